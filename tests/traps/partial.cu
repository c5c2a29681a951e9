// Values that are written in parts: strided, half by half, with holes that keep what was there.
#include "trap.h"
using namespace trap;

__global__ void Strided(float* out, const float* in, int n, int stride, int first) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * stride + first;
  if (i < n) out[i] = in[i] + 1.0f;
}
__global__ void Guarded(float* out, const float* in, int n, float limit) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] > limit) out[i] = in[i] * 3.0f;
}

int main() {
  Layers layers;
  float* source = Filled(1);
  float* a = Filled(2);
  float* b = Filled(3);
  float* c = Alloc();
  Strided<<<Blocks(kCount / 2), 256>>>(a, source, kCount, 2, 1);
  Guarded<<<Blocks(kCount), 256>>>(b, source, kCount, 0.0f);
  layers.Forward(1);
  Strided<<<Blocks(kCount / 3), 256>>>(a, b, kCount, 3, 0);
  OK(cudaMemcpy(c, a, kBytes / 2, cudaMemcpyDeviceToDevice));
  OK(cudaMemcpy(c + kCount / 2, b, kBytes / 2, cudaMemcpyDeviceToDevice));
  layers.Backward();
  layers.Forward(2);
  Guarded<<<Blocks(kCount), 256>>>(b, a, kCount, 1.0f);
  OK(cudaMemset(a + 100, 0, 5000));
  Step(source, c);
  layers.Backward();
  for (float* p : {source, a, b, c}) Print("value", p);
}
