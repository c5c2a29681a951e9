// Copies that name their devices, which may be the same one.
#include "trap.h"
using namespace trap;

int main() {
  Layers layers;
  float* from = Filled(1);
  float* to = Alloc();
  layers.Forward(1);
  NeedsSupport(cudaMemcpyPeer(to, 0, from, 0, kBytes));
  layers.Backward();
  Print("to", to);
  layers.Forward(2);
  OK(cudaMemcpyPeerAsync(to + 100, 0, from, 0, kBytes - 400, nullptr));
  layers.Backward();
  Print("part", to);
}
