// Scatter with integer atomics (which are exact in any order) and with plain stores; a histogram;
// an atomic whose result decides where things go.
#include "trap.h"
using namespace trap;

__global__ void Scatter(int* bins, const float* x, int n, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(bins + static_cast<int>(fabsf(x[i]) * 1000.0f) % count, i % 17);
}
__global__ void Permute(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[(i * 4099) % n] = in[i];
}
__global__ void Compact(float* out, int* cursor, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] > 0) out[atomicAdd(cursor, 1)] = 1.0f;
}
__global__ void ToFloat(float* out, const int* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<float>(in[i]);
}

int main() {
  Layers layers;
  float* x = Filled(1);
  int* bins = nullptr;
  OK(cudaMalloc(&bins, kBytes));
  OK(cudaMemset(bins, 0, kBytes));
  float* y = Alloc();
  float* z = Alloc();
  int* cursor = nullptr;
  OK(cudaMalloc(&cursor, sizeof(int)));
  OK(cudaMemset(cursor, 0, sizeof(int)));
  OK(cudaMemset(z, 0, kBytes));
  for (int round = 0; round < 3; ++round) {
    Scatter<<<Blocks(kCount), 256>>>(bins, x, kCount, kCount);
    Permute<<<Blocks(kCount), 256>>>(y, x, kCount);
    layers.Forward(round);
    Compact<<<Blocks(kCount / 8), 256>>>(z, cursor, y, kCount / 8);
    ToFloat<<<Blocks(kCount), 256>>>(x, bins, kCount);
    layers.Backward();
  }
  Print("x", x);
  Print("y", y);
  Print("z", z);
  Print("bins", bins);
  Print("cursor", cursor, 4);
}
