// The state of random number generators lives in device memory, and every launch changes it.
#include "trap.h"
using namespace trap;

__global__ void Seed(unsigned* state, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) state[i] = i * 747796405u + 2891336453u;
}
__global__ void Dropout(float* out, const float* in, unsigned* state, int streams, int n) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= streams) return;
  unsigned s = state[t];
  for (int i = t; i < n; i += streams) {
    s = s * 1664525u + 1013904223u;
    out[i] = (s >> 16) & 1 ? in[i] * 2.0f : 0.0f;
  }
  state[t] = s;
}
// One counter for all, as optimizers keep their step number.
__global__ void Noise(float* out, const float* in, unsigned long long* counter, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] + static_cast<float>((*counter * 6364136223846793005ull + i) >> 54);
}
__global__ void Advance(unsigned long long* counter) { *counter += 1; }

int main() {
  constexpr int kStreams = 1024, kLayers = 18;
  unsigned* state = nullptr;
  unsigned long long* counter = nullptr;
  OK(cudaMalloc(&state, kStreams * sizeof(unsigned)));
  OK(cudaMalloc(&counter, sizeof(*counter)));
  OK(cudaMemset(counter, 0, sizeof(*counter)));
  unsigned* wide = nullptr;  // as large as what it serves
  OK(cudaMalloc(&wide, kBytes));
  Seed<<<Blocks(kStreams), 256>>>(state, kStreams);
  Seed<<<Blocks(kCount), 256>>>(wide, kCount);
  for (int step = 0; step < 2; ++step) {
    std::vector<float*> values = {Filled(step)};
    for (int k = 0; k < kLayers; ++k) {
      values.push_back(Alloc());
      if (k % 3 == 0) Dropout<<<4, 256>>>(values.back(), values[k], state, kStreams, kCount);
      if (k % 3 == 1) {
        Dropout<<<Blocks(kCount), 256>>>(values.back(), values[k], wide, kCount, kCount);
      }
      if (k % 3 == 2) {
        Advance<<<1, 1>>>(counter);
        Noise<<<Blocks(kCount), 256>>>(values.back(), values[k], counter, kCount);
      }
    }
    float* gradient = Filled(7);
    for (int k = kLayers; k >= 0; --k) {
      float* next = Alloc();
      BackKernel<<<Blocks(kCount), 256>>>(next, gradient, values[k], kCount);
      OK(cudaFree(values[k]));
      OK(cudaFree(gradient));
      gradient = next;
    }
    Print("gradient", gradient);
    OK(cudaFree(gradient));
  }
  Print("state", state, kStreams * 4);
  Print("wide", wide);
  Print("counter", counter, 8);
}
