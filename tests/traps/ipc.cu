// Memory named to other processes, where the device can do it: it must stay where it is.
#include "trap.h"
using namespace trap;

int main() {
  Layers layers;
  float* a = Filled(1);
  cudaIpcMemHandle_t handle;
  NeedsSupport(cudaIpcGetMemHandle(&handle, a));
  layers.Forward(1);
  layers.Backward();
  Print("a", a);
}
