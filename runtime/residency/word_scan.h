// Looks for addresses in plain bytes. Pure; thread-safe.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cstring>

#include "absl/functional/function_ref.h"

namespace tidepool {

// Calls `found` for every eight bytes of [data, data + bytes), at any alignment, that are a number
// in [low, high]; ends with the first result that is no success. About one cycle a byte where there
// is none.
inline CUresult ForEachWordWithin(const void* data, uint64_t bytes, uint64_t low, uint64_t high,
                                  absl::FunctionRef<CUresult(uint64_t)> found) {
  const auto* at = static_cast<const unsigned char*>(data);
  // Addresses share their upper halves: only these are compared until one fits, in a form that
  // compilers make vectors of.
  const auto first = static_cast<uint32_t>(low >> 32);
  const uint32_t span = static_cast<uint32_t>(high >> 32) - first;
  constexpr uint64_t kBlock = 512;
  uint64_t i = 0;
  while (i + 8 <= bytes) {
    const uint64_t end = bytes - 7 < i + kBlock ? bytes - 7 : i + kBlock;
    uint32_t any = 0;
    for (uint64_t k = i; k < end; ++k) {
      uint32_t upper;
      std::memcpy(&upper, at + k + 4, sizeof(upper));
      any |= static_cast<uint32_t>(upper - first <= span);
    }
    for (; any != 0 && i < end; ++i) {
      uint64_t word;
      std::memcpy(&word, at + i, sizeof(word));
      if (word < low || word > high) continue;
      if (CUresult result = found(word); result != CUDA_SUCCESS) return result;
    }
    i = end;
  }
  return CUDA_SUCCESS;
}

}  // namespace tidepool
