// A kernel whose dynamic shared memory is limited after it made values with more: they are to be
// rebuilt all the same.
#include "trap.h"
using namespace trap;

__global__ void Reverse(float* out, const float* in, int n) {
  extern __shared__ float tile[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = in[blockIdx.x * n + i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    out[blockIdx.x * n + i] = tile[n - 1 - i] * 1.5f + 1.0f;
  }
}

int main() {
  constexpr int kLarge = 16 * 1024, kSmall = 8 * 1024;
  OK(cudaFuncSetAttribute(Reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024));
  float* values[12];
  float* in = Filled(1);
  for (int i = 0; i < 12; ++i) {
    const int n = i < 6 ? kLarge : kSmall;
    if (i == 6) {
      OK(cudaFuncSetAttribute(Reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 32 * 1024));
    }
    values[i] = Alloc();
    Reverse<<<kCount / n, 256, n * sizeof(float)>>>(values[i], i == 0 ? in : values[i - 1], n);
  }
  // The limit holds.
  Reverse<<<kCount / kLarge, 256, kLarge * sizeof(float)>>>(values[0], in, kLarge);
  std::printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  Layers layers(30);
  layers.Forward(1);
  layers.Backward();
  for (int i = 11; i >= 0; --i) Print("value", values[i]);
}
