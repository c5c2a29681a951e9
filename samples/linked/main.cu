// A program that links Tidepool: starts it with a budget, names its buffers, and asks what
// happened.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

#include "runtime/include/tidepool/tidepool.h"

__global__ void Scale(float* out, const float* in, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i] * factor;
}

#define CHECK(call)                                                                           \
  do {                                                                                        \
    if (cudaError_t error = (call); error != cudaSuccess) {                                   \
      std::fprintf(stderr, "CUDA error: %s, line %d\n", cudaGetErrorString(error), __LINE__); \
      return 1;                                                                               \
    }                                                                                         \
  } while (0)

int main() {
  if (tidepool_start("16MiB") != TIDEPOOL_OK)
    std::fprintf(stderr, "Tidepool manages memory already\n");
  constexpr int kCount = 1 << 20, kLayers = 8;  // 4 MiB each: twice the budget
  std::vector<float*> layers(kLayers + 1);
  for (float*& layer : layers) CHECK(cudaMalloc(&layer, kCount * sizeof(float)));
  std::vector<float> host(kCount, 1.0f);
  CHECK(cudaMemcpy(layers[0], host.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  for (int i = 0; i < kLayers; ++i) {
    tidepool_tag(layers[i + 1], "layer");
    Scale<<<kCount / 256, 256>>>(layers[i + 1], layers[i], 2.0f, kCount);
    CHECK(cudaGetLastError());
  }
  double sum = 0;
  for (int i = kLayers; i >= 0; --i) {
    CHECK(cudaMemcpy(host.data(), layers[i], kCount * sizeof(float), cudaMemcpyDeviceToHost));
    sum += host[kCount - 1];
    CHECK(cudaFree(layers[i]));
  }
  std::printf("sum %.1f\n", sum);
  tidepool_statistics statistics = {};
  statistics.size = sizeof(statistics);
  if (tidepool_get_statistics(&statistics) == TIDEPOOL_OK) {
    std::printf("peak %llu of %llu bytes, %llu values dropped, %llu rebuilt\n",
                static_cast<unsigned long long>(statistics.peak_physical_bytes),
                static_cast<unsigned long long>(statistics.budget_bytes),
                static_cast<unsigned long long>(statistics.drops),
                static_cast<unsigned long long>(statistics.rebuilds));
  }
  return sum == 511.0 ? 0 : 1;
}
