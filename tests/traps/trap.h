// What the trap programs share: error checks, digests, and layers of intermediate values that put
// the memory under pressure. Plain CUDA, as a user would write it: nothing here knows of Tidepool.
//
// A trap makes values, runs the layers forward (under a small budget this takes the memory of
// whatever can be given up), uses its values by the road that it is about, and reads the layers
// backward. It prints what it can see; the runner compares that with a run with plenty of memory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define OK(call) trap::Check((call), #call, __FILE__, __LINE__)

namespace trap {

constexpr int kSkipped = 77;       // exit status: this device has nothing of the kind
constexpr int kCount = 64 * 1024;  // elements of most buffers: 256 KiB
constexpr size_t kBytes = kCount * sizeof(float);

inline void Check(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s (%s:%d)\n", cudaGetErrorName(error), call, file, line);
  std::exit(1);
}

// Ends the program as skipped if the device does not have what `error` was asked for.
inline void NeedsSupport(cudaError_t error) {
  if (error == cudaErrorNotSupported) std::exit(kSkipped);
  Check(error, "what the trap is about", __FILE__, __LINE__);
}

inline int Blocks(int n) { return (n + 255) / 256; }

static __global__ void FillKernel(float* out, int n, unsigned seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<float>((i * 2654435761u + seed * 40503u) >> 20) * 0.001f - 2.0f;
}
static __global__ void StepKernel(float* out, const float* in, int n, float k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * k + in[(i + 7) % n] * 0.25f;
}
static __global__ void BackKernel(float* out, const float* gradient, const float* value, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = gradient[i] * 0.5f + value[i];
}

inline float* Alloc(int n = kCount) {
  OK(cudaGetLastError());
  float* p = nullptr;
  OK(cudaMalloc(&p, n * sizeof(float)));
  return p;
}
// A buffer that a kernel filled: it can be computed again.
inline float* Filled(unsigned seed, int n = kCount, cudaStream_t stream = nullptr) {
  float* p = Alloc(n);
  FillKernel<<<Blocks(n), 256, 0, stream>>>(p, n, seed);
  OK(cudaGetLastError());
  return p;
}
inline void Step(float* out, const float* in, float k = 0.75f, int n = kCount,
                 cudaStream_t stream = nullptr) {
  StepKernel<<<Blocks(n), 256, 0, stream>>>(out, in, n, k);
  OK(cudaGetLastError());
}

inline uint64_t HashBytes(const void* data, size_t bytes) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < bytes; ++i) {
    hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211u;
  }
  return hash;
}
inline void PrintHost(const char* name, const void* data, size_t bytes) {
  std::printf("%s %016llx\n", name, static_cast<unsigned long long>(HashBytes(data, bytes)));
}
inline void Print(const char* name, const void* device, size_t bytes = kBytes) {
  OK(cudaGetLastError());  // of launches that were not checked
  std::vector<char> host(bytes);
  OK(cudaMemcpy(host.data(), device, bytes, cudaMemcpyDeviceToHost));
  PrintHost(name, host.data(), bytes);
}

// Intermediate values of a network: made forward, read backward, freed.
class Layers {
 public:
  explicit Layers(int count = 20, cudaStream_t stream = nullptr) : count_(count), stream_(stream) {}

  void Forward(unsigned seed = 1) {
    values_.push_back(Filled(seed, kCount, stream_));
    for (int i = 0; i < count_; ++i) {
      values_.push_back(Alloc());
      Step(values_[i + 1], values_[i], 0.5f + 0.01f * i, kCount, stream_);
    }
  }
  void Backward(const char* name = "layers") {
    float* gradient = Filled(99, kCount, stream_);
    while (!values_.empty()) {
      float* next = Alloc();
      BackKernel<<<Blocks(kCount), 256, 0, stream_>>>(next, gradient, values_.back(), kCount);
      OK(cudaGetLastError());
      OK(cudaFree(values_.back()));
      OK(cudaFree(gradient));
      values_.pop_back();
      gradient = next;
    }
    if (stream_ != nullptr) OK(cudaStreamSynchronize(stream_));
    Print(name, gradient);
    OK(cudaFree(gradient));
  }

 private:
  int count_;
  cudaStream_t stream_;
  std::vector<float*> values_;
};

}  // namespace trap
