// The driver's functions, for what the runtime API does not reach.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include "trap.h"

namespace trap {

template <typename F>
F Driver(const char* name, unsigned version) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found;
  OK(cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &found));
  if (address == nullptr) std::exit(kSkipped);
  return reinterpret_cast<F>(address);
}
inline CUdeviceptr Ptr(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }
inline const char* Name(CUresult result) {
  static const auto name = Driver<PFN_cuGetErrorName_v6000>("cuGetErrorName", 6000);
  const char* text = nullptr;
  return name(result, &text) == CUDA_SUCCESS ? text : "?";
}
inline void Check(CUresult result, const char* call, const char* file, int line) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: %s (%s:%d)\n", Name(result), call, file, line);
  std::exit(1);
}

}  // namespace trap
