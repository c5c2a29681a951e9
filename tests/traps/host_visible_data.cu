// Data in memory that the host writes without a call (managed, pinned, registered), read and
// written by kernels: what is made from it cannot be made again.
#include <cstdlib>

#include "trap.h"
using namespace trap;

__global__ void AddTo(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] + 1.0f;
}

void Use(const char* name, Layers& layers, float* shared) {
  float* made[3];
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < kCount; ++i) shared[i] = static_cast<float>((i + k) % 211);
    made[k] = Alloc();
    AddTo<<<Blocks(kCount), 256>>>(made[k], shared, kCount);
    AddTo<<<Blocks(kCount), 256>>>(shared, made[k], kCount);
    OK(cudaDeviceSynchronize());
    PrintHost(name, shared, kBytes);
  }
  layers.Forward(1);
  layers.Backward();
  for (float* p : made) {
    Print(name, p);
    OK(cudaFree(p));
  }
}

int main() {
  Layers layers;
  float* managed = nullptr;
  OK(cudaMallocManaged(&managed, kBytes));
  Use("managed", layers, managed);
  float* pinned = nullptr;
  OK(cudaHostAlloc(&pinned, kBytes, cudaHostAllocMapped));
  float* device = nullptr;
  OK(cudaHostGetDevicePointer(&device, pinned, 0));
  Use("pinned", layers, pinned);
  void* pages = std::aligned_alloc(4096, kBytes);
  OK(cudaHostRegister(pages, kBytes, cudaHostRegisterDefault));
  Use("registered", layers, static_cast<float*>(pages));
  // Copies between the two kinds.
  float* a = Alloc();
  OK(cudaMemcpy(a, managed, kBytes, cudaMemcpyDefault));
  layers.Forward(2);
  OK(cudaMemcpy(managed, a, kBytes, cudaMemcpyDefault));
  layers.Backward();
  Print("a", a);
  PrintHost("managed", managed, kBytes);
  OK(cudaHostUnregister(pages));
  OK(cudaFree(managed));
  OK(cudaFreeHost(pinned));
}
