// The program ends with work under way, memory not freed and a stream not destroyed.
#include "trap.h"
using namespace trap;

__global__ void Slow(float* data, int n, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = data[i];
  for (int k = 0; k < rounds; ++k) x = x * 0.5f + 1.0f;
  data[i] = x;
}

int main() {
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  Layers layers(20, stream);
  layers.Forward(1);
  float* a = Filled(1, kCount, stream);
  layers.Backward();
  Print("a", a);
  layers.Forward(2);
  for (int k = 0; k < 20; ++k) Slow<<<Blocks(kCount), 256, 0, stream>>>(a, kCount, 10);
  std::printf("done\n");
}
