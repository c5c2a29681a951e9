// Elementary functions of one float lane, in double. No fused operations, no library calls: the
// same bits whatever the machine. Errors are below 2^-30 relative (sin and cos: of the reduced
// argument).
#pragma once

#include <bit>
#include <cstdint>

#include "tools/simgpu/exec/float_ops.h"
#include "tools/simgpu/exec/lanes.h"

namespace simgpu::approx {
namespace {

// Adding it rounds a double below 2^51 to an integer, which then stands in the low bits.
constexpr double kRounder = 0x1.8p52;

// 2^x for |x| < 1000; relative error below 2^-32 (or, kFine, 2^-50).
template <bool kFine>
SIMGPU_INLINE double Exp2(double x) {
  const double shifted = x + kRounder;
  const double f = x - (shifted - kRounder);  // in [-1/2, 1/2]
  // ln(2)^k / k!
  double p = 0x1.62c0223a5c822p-20;
  if constexpr (kFine) {
    p = 0x1.c3bd650fc2983p-36;
    p = p * f + 0x1.e8cac7351bb22p-32;
    p = p * f + 0x1.e4cf5158b8ec7p-28;
    p = p * f + 0x1.b5253d395e7c1p-24;
    p = p * f + 0x1.62c0223a5c822p-20;
  }
  p = p * f + 0x1.ffcbfc588b0c5p-17;
  p = p * f + 0x1.430912f86c786p-13;
  p = p * f + 0x1.5d87fe78a6730p-10;
  p = p * f + 0x1.3b2ab6fba4e77p-7;
  p = p * f + 0x1.c6b08d704a0bfp-5;
  p = p * f + 0x1.ebfbdff82c58ep-3;
  p = p * f + 0x1.62e42fefa39efp-1;
  p = p * f + 1.0;
  const uint64_t scale = (std::bit_cast<uint64_t>(shifted) + 1023) << 52;
  return p * std::bit_cast<double>(scale);
}

struct Ex2 {
  static SIMGPU_INLINE float Do(float x) {
    const float above = x > -200.0f ? x : -200.0f;
    const float within = above < 200.0f ? above : 200.0f;
    const auto r = static_cast<float>(Exp2<false>(within));
    return x == x ? r : CanonicalNan<float>();
  }
};

struct Lg2 {
  static SIMGPU_INLINE float Do(float a) {
    const auto bits = std::bit_cast<uint64_t>(static_cast<double>(a));
    // a = 2^e * m with m in [sqrt(1/2), sqrt(2)).
    constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd;
    const uint64_t biased = (bits - kRootHalf + (uint64_t{1023} << 52)) >> 52;
    const auto m = std::bit_cast<double>(bits - ((biased - 1023) << 52));
    const double e = std::bit_cast<double>(biased | 0x4330000000000000) - (0x1p52 + 1023.0);
    const double z = (m - 1.0) / (m + 1.0);
    const double w = z * z;
    // log2(m) = 2/ln(2) * (z + z^3/3 + z^5/5 ...)
    double p = 0x1.89f3b1694cffep-3;
    p = p * w + 0x1.c68f568d31760p-3;
    p = p * w + 0x1.0c9a84994022dp-2;
    p = p * w + 0x1.484b13d7c02a9p-2;
    p = p * w + 0x1.a61762a7aded9p-2;
    p = p * w + 0x1.2776c50ef9bfep-1;
    p = p * w + 0x1.ec709dc3a03fdp-1;
    p = p * w + 0x1.71547652b82fep+1;
    const auto r = static_cast<float>(e + z * p);
    const float infinity = std::numeric_limits<float>::infinity();
    const float special = a == 0.0f ? -infinity : a == infinity ? infinity : CanonicalNan<float>();
    return a > 0.0f && a < infinity ? r : special;
  }
};

template <bool kCos>
SIMGPU_INLINE float SinCos(float x) {
  const double a = static_cast<double>(x);
  const double shifted = a * 0x1.45f306dc9c883p-1 + kRounder;  // 2/pi
  const double k = shifted - kRounder;
  // pi/2 in two parts, the first of 33 bits: k times it is exact.
  const double r = (a - k * 0x1.921fb544p+0) - k * 0x1.0b4611a626331p-34;
  const double w = r * r;
  double s = -0x1.ae64567f544e4p-26;
  s = s * w + 0x1.71de3a556c734p-19;
  s = s * w - 0x1.a01a01a01a01ap-13;
  s = s * w + 0x1.1111111111111p-7;
  s = s * w - 0x1.5555555555555p-3;
  s = r + r * w * s;
  double c = 0x1.1eed8eff8d898p-29;
  c = c * w - 0x1.27e4fb7789f5cp-22;
  c = c * w + 0x1.a01a01a01a01ap-16;
  c = c * w - 0x1.6c16c16c16c17p-10;
  c = c * w + 0x1.5555555555555p-5;
  c = c * w - 0.5;
  c = c * w + 1.0;
  const uint64_t quadrant = std::bit_cast<uint64_t>(shifted) + (kCos ? 1 : 0);
  const double value = (quadrant & 1) != 0 ? c : s;
  const uint64_t sign = (quadrant & 2) << 62;
  const auto out = static_cast<float>(std::bit_cast<double>(std::bit_cast<uint64_t>(value) ^ sign));
  // sin(-0) is -0.
  return !kCos && x == 0.0f ? x : Canonical(out);
}

struct Tanh {
  static SIMGPU_INLINE float Do(float x) {
    const float above = x > -20.0f ? x : -20.0f;
    const double a = above < 20.0f ? above : 20.0f;
    const double t = Exp2<true>(a * 0x1.71547652b82fep+1);  // e^2a
    const double large = (t - 1.0) / (t + 1.0);
    const double w = a * a;
    double p = 0x1.664f4882c10fap-6;
    p = p * w - 0x1.ba1ba1ba1ba1cp-5;
    p = p * w + 0x1.1111111111111p-3;
    p = p * w - 0x1.5555555555555p-2;
    const double small = a + a * w * p;
    const auto r = static_cast<float>(w < 0.01 ? small : large);
    return x == x ? (x == 0.0f ? x : r) : CanonicalNan<float>();
  }
};

struct Rsqrt {
  static SIMGPU_INLINE float Do(float a) {
    // In double: rounded twice, but never seen to differ from the exact result rounded once by more
    // than the last place.
    return Canonical(static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a))));
  }
};

}  // namespace
}  // namespace simgpu::approx
