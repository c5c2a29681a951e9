// Device tensors of the trainer: one cudaMalloc each, freed when they go out of scope or are
// released.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>

#define CUDA_CHECK(call)                                                                     \
  do {                                                                                       \
    cudaError_t error_ = (call);                                                             \
    if (error_ != cudaSuccess) {                                                             \
      std::fprintf(stderr, "CUDA error: %s (%s:%d)\n", cudaGetErrorString(error_), __FILE__, \
                   __LINE__);                                                                \
      std::exit(1);                                                                          \
    }                                                                                        \
  } while (0)

// Bytes held by all tensors, now and at most.
struct DeviceBytes {
  static size_t now, peak;
};

template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t count) : count_(count) {
    CUDA_CHECK(cudaMalloc(&data_, count * sizeof(T)));
    DeviceBytes::now += count * sizeof(T);
    if (DeviceBytes::now > DeviceBytes::peak) DeviceBytes::peak = DeviceBytes::now;
  }
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { Release(); }

  void Release() {
    if (data_ == nullptr) return;
    CUDA_CHECK(cudaFree(data_));
    DeviceBytes::now -= count_ * sizeof(T);
    data_ = nullptr;
    count_ = 0;
  }
  T* data() const { return data_; }
  size_t count() const { return count_; }
  size_t bytes() const { return count_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  size_t count_ = 0;
};

using Tensor = Buffer<float>;
