// Chains of updates in place, short and long, whose versions others were made from.
#include "trap.h"
using namespace trap;

__global__ void Scale(float* data, int n, float k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = data[i] * k + 0.01f;
}

int main() {
  Layers layers;
  float* x = Filled(1);
  float* versions[4];
  for (int v = 0; v < 4; ++v) {
    for (int k = 0; k < (v == 2 ? 150 : 3); ++k) {
      Scale<<<Blocks(kCount), 256>>>(x, kCount, 0.9f + 0.01f * v);
    }
    versions[v] = Alloc();
    Step(versions[v], x);
  }
  layers.Forward(1);
  for (int k = 0; k < 5; ++k) Scale<<<Blocks(kCount), 256>>>(x, kCount, 1.1f);
  layers.Backward();
  for (float* v : versions) Print("version", v);
  Print("x", x);
}
