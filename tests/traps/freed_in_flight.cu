// Memory is freed, and streams destroyed, while work on them is still under way.
#include "trap.h"
using namespace trap;

__global__ void Slow(float* out, const float* in, int n, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = 0;
  for (int k = 0; k < rounds; ++k) x = x * 0.5f + in[(i + k) % n];
  out[i] = x;
}

int main() {
  Layers layers;
  float* results[4];
  for (int k = 0; k < 4; ++k) {
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float* in = Filled(k, kCount, stream);
    results[k] = Alloc();
    Slow<<<Blocks(kCount), 256, 0, stream>>>(results[k], in, kCount, 20);
    if (k % 2 == 0) {
      OK(cudaStreamDestroy(stream));
      OK(cudaFree(in));
    } else {
      OK(cudaFree(in));
      OK(cudaStreamDestroy(stream));
    }
    layers.Forward(k);
    layers.Backward();
  }
  for (float* r : results) Print("result", r);
}
