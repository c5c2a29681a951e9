// Interior pointers, pointers to the end that are read backward, and one-based pointers that point
// before their array, as translated Fortran has them.
#include "trap.h"
using namespace trap;

__global__ void AddInterior(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += 2.0f * in[i];
}
__global__ void Reverse(float* out_end, const float* in_end, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out_end[-1 - i] = in_end[-1 - (n - 1 - i)] + 1.0f;
}
__global__ void OneBased(float* out1, const float* in1, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
  if (i <= n) out1[i] = in1[i] * in1[n + 1 - i];
}

int main() {
  Layers layers;
  for (int round = 0; round < 2; ++round) {
    float* a = Filled(round);
    float* b = Alloc();
    float* c = Filled(round + 10);
    float* small_a = Filled(round + 20, 1000);
    float* small_b = Filled(round + 30, 1000);
    Step(b, a);
    layers.Forward(round);
    AddInterior<<<Blocks(kCount / 2), 256>>>(b + kCount / 4, a + kCount / 2, kCount / 2);
    float* d = Alloc();
    Reverse<<<Blocks(kCount), 256>>>(d + kCount, b + kCount, kCount);
    layers.Backward();
    layers.Forward(round + 5);
    OneBased<<<Blocks(kCount), 256>>>(c - 1, d - 1, kCount);
    Reverse<<<Blocks(1000), 256>>>(small_a + 1000, small_b + 1000, 1000);
    OneBased<<<Blocks(1000), 256>>>(small_b - 1, small_a - 1, 1000);
    layers.Backward();
    Print("b", b);
    Print("c", c);
    Print("d", d);
    Print("small a", small_a, 4000);
    Print("small b", small_b, 4000);
    for (float* p : {a, b, c, d, small_a, small_b}) OK(cudaFree(p));
  }
}
