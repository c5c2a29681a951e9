// The two 16-bit float formats, branch-free so that loops over lanes vectorise. Force-inlined, as
// everything that is built for several instruction sets.
#pragma once

#include <bit>
#include <cstdint>

#include "tools/simgpu/exec/lanes.h"

namespace simgpu::half {
namespace {

// Format tags: bits of the significand without the leading one.
struct F16 {
  static constexpr uint32_t kInfinity = 0x7c00;
  static constexpr uint32_t kOne = 0x3c00;
};
struct BF16 {
  static constexpr uint32_t kInfinity = 0x7f80;
  static constexpr uint32_t kOne = 0x3f80;
};
constexpr uint32_t kNan = 0x7fff;  // canonical, of both

// Exact. The low 16 bits of `bits` count. A NaN gives the canonical one.
template <typename Format>
SIMGPU_INLINE float ToFloat(uint32_t bits) {
  const uint32_t magnitude = bits & 0x7fff;
  const uint32_t sign = (bits & 0x8000) << 16;
  uint32_t out = 0;
  if constexpr (Format::kInfinity == 0x7c00) {
    // As if the exponents had the same bias, then scaled; this makes subnormals right too.
    const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    out = magnitude >= 0x7c00 ? 0x7f800000u : std::bit_cast<uint32_t>(scaled);
  } else {
    out = magnitude << 16;
  }
  out |= sign;
  return std::bit_cast<float>(magnitude > Format::kInfinity ? 0x7fffffffu : out);
}

// To nearest, ties to even.
template <typename Format>
SIMGPU_INLINE uint32_t FromFloat(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t out = 0;
  if constexpr (Format::kInfinity == 0x7c00) {
    const uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    // The places of 0.5 are those of a subnormal half: the addition rounds.
    const uint32_t small =
        std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    out = magnitude < 0x38800000u ? small : normal;
    out = magnitude >= 0x477ff000u ? 0x7c00u : out;
  } else {
    out = (magnitude + 0x7fff + (magnitude >> 16 & 1)) >> 16;
  }
  out |= bits >> 16 & 0x8000;
  return magnitude > 0x7f800000u ? kNan : out;
}

// Subnormals to zero, the sign kept; of the low 16 bits.
template <typename Format>
SIMGPU_INLINE uint32_t FlushBits(uint32_t bits) {
  return (bits & Format::kInfinity) == 0 ? bits & 0x8000 : bits & 0xffff;
}

SIMGPU_INLINE bool IsNan(uint32_t bits, uint32_t infinity) { return (bits & 0x7fff) > infinity; }

}  // namespace
}  // namespace simgpu::half
