// What a SIMD video instruction does, packed into Instr::imm.
#pragma once

#include <cstdint>

namespace simgpu {

enum class VideoOp : uint8_t { kAdd, kSub, kAverage, kAbsDiff, kMin, kMax };

struct VideoMode {
  uint8_t op = 0;     // a VideoOp
  uint8_t parts = 4;  // 2 or 4
  bool signed_d = false, signed_a = false, signed_b = false;
  bool saturate = false;
  bool accumulate = false;  // the sum of the parts, plus c

  uint64_t ToBits() const {
    return op | static_cast<uint64_t>(parts) << 8 | uint64_t{signed_d} << 16 |
           uint64_t{signed_a} << 17 | uint64_t{signed_b} << 18 | uint64_t{saturate} << 19 |
           uint64_t{accumulate} << 20;
  }
  static VideoMode FromBits(uint64_t bits) {
    VideoMode mode;
    mode.op = bits & 0xff;
    mode.parts = bits >> 8 & 0xff;
    mode.signed_d = (bits >> 16 & 1) != 0;
    mode.signed_a = (bits >> 17 & 1) != 0;
    mode.signed_b = (bits >> 18 & 1) != 0;
    mode.saturate = (bits >> 19 & 1) != 0;
    mode.accumulate = (bits >> 20 & 1) != 0;
    return mode;
  }
};

}  // namespace simgpu
