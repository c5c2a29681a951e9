// cudaDeviceReset in the middle, and a second life.
#include "trap.h"
using namespace trap;

int main() {
  for (int life = 0; life < 3; ++life) {
    float* a = Filled(life);
    float* b = Alloc();
    Step(b, a);
    Layers layers;
    layers.Forward(life);
    Step(a, b);
    layers.Backward();
    Print("a", a);
    Layers left;
    left.Forward(life);
    OK(cudaDeviceReset());
  }
}
