// A texture object on linear memory, read when others have had the memory.
#include "trap.h"
using namespace trap;

__global__ void Fetch(float* out, cudaTextureObject_t texture, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1Dfetch<float>(texture, i) * 2.0f;
}

int main() {
  cudaFuncAttributes attributes;
  NeedsSupport(cudaFuncGetAttributes(&attributes, Fetch));
  Layers layers;
  float* a = Filled(1);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = a;
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = kBytes;
  cudaTextureDesc description = {};
  cudaTextureObject_t texture = 0;
  NeedsSupport(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  float* out = Alloc();
  layers.Forward(1);
  Fetch<<<Blocks(kCount), 256>>>(out, texture, kCount);
  NeedsSupport(cudaGetLastError());
  layers.Backward();
  Print("out", out);
}
