// How a cvt that has no loop of its own is told what to do: Instr::aux.
#pragma once

#include <cstdint>

namespace simgpu {

inline constexpr uint16_t kConvertRoundMask = 3;  // a Round
inline constexpr uint16_t kConvertIntegral = 4;   // .rni, .rzi ... of float to float
inline constexpr uint16_t kConvertSaturate = 8;
inline constexpr uint16_t kConvertFlush = 16;   // .ftz
inline constexpr uint16_t kConvertRelu = 32;    // negative results to +0
inline constexpr uint16_t kConvertFinite = 64;  // .satfinite

}  // namespace simgpu
