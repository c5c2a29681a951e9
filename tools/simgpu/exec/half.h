// The two 16-bit float formats, in integers. Pure functions.
#pragma once

#include <cstdint>

namespace simgpu {

enum class Rounding : uint8_t { kNearest = 0, kZero = 1, kDown = 2, kUp = 3 };

float HalfToFloat(uint16_t bits);
float BfloatToFloat(uint16_t bits);
uint16_t ToHalf(double value, Rounding mode);
uint16_t ToBfloat(double value, Rounding mode);

}  // namespace simgpu
