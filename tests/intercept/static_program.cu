// A program with the CUDA runtime linked in statically. It prints the first error, and that is all.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void Add(int* at) { *at += 1; }

int main() {
  int* at = nullptr;
  int value = 1;
  cudaError_t error = cudaMalloc(&at, 4 << 20);
  if (error == cudaSuccess) error = cudaMemcpy(at, &value, sizeof(value), cudaMemcpyHostToDevice);
  if (error == cudaSuccess) Add<<<1, 1>>>(at);
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  if (error == cudaSuccess) error = cudaFree(at);
  std::printf("%s\n", cudaGetErrorName(error));
  return 0;
}
