// The part that relocatable.cu is linked with.
#include "relocatable.h"

__device__ int shared_counter = 5;
__constant__ int shared_factor = 3;

__device__ int Combine(int a, int b) {
  atomicAdd(&shared_counter, 1);
  return a * shared_factor + b;
}

__global__ void PartKernel(int* out) { out[threadIdx.x] = Combine(threadIdx.x, 100); }
void LaunchPart(int* out) { PartKernel<<<1, 32>>>(out); }
