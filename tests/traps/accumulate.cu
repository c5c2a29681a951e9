// Gradients that accumulate over micro-batches, zeroed at each step, and a weight update.
#include "trap.h"
using namespace trap;

__global__ void AddTo(float* sum, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] += x[i];
}
__global__ void Update(float* weight, const float* gradient, int n, float rate) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) weight[i] -= rate * gradient[i];
}
__global__ void Apply(float* out, const float* x, const float* weight, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * weight[i % 1024] + 0.5f;
}

int main() {
  constexpr int kLayers = 16;
  float* weight = Filled(3);
  float* gradient = Alloc();
  for (int step = 0; step < 3; ++step) {
    OK(cudaMemset(gradient, 0, kBytes));
    for (int micro = 0; micro < 2; ++micro) {
      std::vector<float*> values = {Filled(step * 2 + micro)};
      for (int k = 0; k < kLayers; ++k) {
        values.push_back(Alloc());
        Apply<<<Blocks(kCount), 256>>>(values.back(), values[k], weight, kCount);
      }
      for (int k = kLayers; k >= 0; --k) {
        AddTo<<<Blocks(kCount), 256>>>(gradient, values[k], kCount);
        OK(cudaFree(values[k]));
      }
    }
    Update<<<Blocks(kCount), 256>>>(weight, gradient, kCount, 0.001f);
  }
  Print("weight", weight);
  Print("gradient", gradient);
}
