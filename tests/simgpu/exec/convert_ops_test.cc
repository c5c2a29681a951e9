// cvt between all types, and half arithmetic. The references work in integers, or in double where
// that holds the exact result.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>

#include "tests/simgpu/exec/ops.h"

namespace simgpu::test {
namespace {

#define OP(text, expression)                                   \
  OpCase {                                                     \
    text, [](uint64_t a, uint64_t b, uint64_t c) -> uint64_t { \
      (void)a, (void)b, (void)c;                               \
      return (expression);                                     \
    }                                                          \
  }

enum class Mode { kNearest, kZero, kDown, kUp };

// A 16-bit format by its widths.
struct Format {
  int fraction, bias, top;  // top: the exponent field of infinity
};
constexpr Format kF16 = {10, 15, 31}, kBF16 = {7, 127, 255};

double FromHalf(const Format& f, uint64_t bits) {
  const uint64_t exponent = bits >> f.fraction & static_cast<uint64_t>(f.top);
  const double fraction = static_cast<double>(bits & ((1u << f.fraction) - 1));
  double value = 0;
  if (exponent == static_cast<uint64_t>(f.top)) {
    value = fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                          : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, 1 - f.bias - f.fraction);
  } else {
    value = std::ldexp(fraction + std::ldexp(1.0, f.fraction),
                       static_cast<int>(exponent) - f.bias - f.fraction);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}
// The exact value's rounding, by search: the halves are in order, so the two next to the value are
// found by bisection, and the mode chooses.
uint64_t ToHalf(const Format& f, long double x, Mode mode) {
  if (x != x) return 0x7fff;
  const bool negative = std::signbit(x);
  const uint64_t sign = negative ? 0x8000 : 0;
  const long double m = std::fabs(x);
  const uint64_t infinity = static_cast<uint64_t>(f.top) << f.fraction;
  if (std::isinf(m)) return sign | infinity;
  uint64_t low = 0, high = infinity;  // value(low) <= m < value(high)
  const auto value = [&](uint64_t bits) -> long double {
    // As if the exponents went on: the value that infinity's encoding would have.
    if (bits == infinity) return std::ldexp(1.0L, f.top - f.bias);
    return FromHalf(f, bits);
  };
  if (m >= value(infinity)) {
    low = infinity - 1;
  } else {
    while (high - low > 1) {
      const uint64_t middle = (low + high) / 2;
      (value(middle) <= m ? low : high) = middle;
    }
  }
  if (value(low) == m) return sign | low;
  const bool up = mode == Mode::kUp     ? !negative
                  : mode == Mode::kDown ? negative
                  : mode == Mode::kZero
                      ? false
                      : [&] {
                          const long double below = m - value(low), above = value(low + 1) - m;
                          return below > above || (below == above && (low & 1));
                        }();
  return sign | (up ? low + 1 : low);
}
uint64_t H(double x) { return ToHalf(kF16, x, Mode::kNearest); }
uint64_t B(double x) { return ToHalf(kBF16, x, Mode::kNearest); }
double HF(uint64_t bits) { return FromHalf(kF16, bits & 0xffff); }
double BF(uint64_t bits) { return FromHalf(kBF16, bits & 0xffff); }

float Flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

double RoundInteger(double x, Mode mode) {
  switch (mode) {
    case Mode::kNearest:
      return std::nearbyint(x);
    case Mode::kZero:
      return std::trunc(x);
    case Mode::kDown:
      return std::floor(x);
    case Mode::kUp:
      return std::ceil(x);
  }
  return x;
}
template <typename T>
uint64_t ToInt(double x, Mode mode) {
  using U = std::make_unsigned_t<T>;
  if (x != x) return sizeof(T) == 8 ? uint64_t{1} << 63 : 0;
  const double r = RoundInteger(x, mode);
  if (r < static_cast<double>(std::numeric_limits<T>::min())) {
    return static_cast<U>(std::numeric_limits<T>::min());
  }
  if (r >= std::ldexp(1.0, std::numeric_limits<T>::digits)) {
    return static_cast<U>(std::numeric_limits<T>::max());
  }
  return static_cast<U>(static_cast<T>(r));
}
template <typename To, typename From>
To InMode(int mode, From x) {
  std::fesetround(mode);
  volatile From in = x;
  volatile To out = static_cast<To>(in);
  std::fesetround(FE_TONEAREST);
  return out;
}
template <typename T>
T Clamp(__int128 x) {
  return x < std::numeric_limits<T>::min()   ? std::numeric_limits<T>::min()
         : x > std::numeric_limits<T>::max() ? std::numeric_limits<T>::max()
                                             : static_cast<T>(x);
}

const OpCase kFromIntegers[] = {
    OP("cvt.u32.u16 %d32, %a16;", uint16_t(a)),
    OP("cvt.s32.s16 %d32, %a16;", uint32_t(int16_t(a))),
    OP("cvt.u16.u32 %d16, %a32;", uint16_t(a)),
    OP("cvt.s64.s32 %d64, %a32;", uint64_t(int32_t(a))),
    OP("cvt.u64.u32 %d64, %a32;", uint32_t(a)),
    OP("cvt.u32.u64 %d32, %a64;", uint32_t(a)),
    OP("cvt.s64.s8 %d64, %a32;", uint64_t(int8_t(a))),
    OP("cvt.u64.u8 %d64, %a64;", uint8_t(a)),
    OP("cvt.s32.s8 %d32, %a64;", uint32_t(int8_t(a))),
    OP("cvt.s8.s32 %d32, %a32;", uint32_t(int8_t(a))),
    OP("cvt.u8.u32 %d16, %a32;", uint8_t(a)),
    OP("cvt.sat.s8.s32 %d32, %a32;", uint32_t(Clamp<int8_t>(int32_t(a)))),
    OP("cvt.sat.u8.s32 %d32, %a32;", Clamp<uint8_t>(int32_t(a))),
    OP("cvt.sat.u16.s64 %d16, %a64;", Clamp<uint16_t>(int64_t(a))),
    OP("cvt.sat.s32.u32 %d32, %a32;", uint32_t(Clamp<int32_t>(uint32_t(a)))),
    OP("cvt.sat.u64.s64 %d64, %a64;", Clamp<uint64_t>(int64_t(a))),
    OP("cvt.rn.f32.s32 %d32, %a32;", Bits(float(int32_t(a)))),
    OP("cvt.rn.f32.u32 %d32, %a32;", Bits(float(uint32_t(a)))),
    OP("cvt.rn.f32.s64 %d32, %a64;", Bits(float(int64_t(a)))),
    OP("cvt.rn.f32.u64 %d32, %a64;", Bits(float(uint64_t(a)))),
    OP("cvt.rn.f32.u16 %d32, %a16;", Bits(float(uint16_t(a)))),
    OP("cvt.rn.f32.s8 %d32, %a32;", Bits(float(int8_t(a)))),
    OP("cvt.rz.f32.s32 %d32, %a32;", Bits(InMode<float>(FE_TOWARDZERO, int32_t(a)))),
    OP("cvt.rm.f32.s64 %d32, %a64;", Bits(InMode<float>(FE_DOWNWARD, int64_t(a)))),
    OP("cvt.rp.f32.u32 %d32, %a32;", Bits(InMode<float>(FE_UPWARD, int64_t(uint32_t(a))))),
    OP("cvt.rn.f64.s32 %d64, %a32;", Bits(double(int32_t(a)))),
    OP("cvt.rn.f64.u32 %d64, %a32;", Bits(double(uint32_t(a)))),
    OP("cvt.rn.f64.s64 %d64, %a64;", Bits(double(int64_t(a)))),
    OP("cvt.rn.f64.u64 %d64, %a64;", Bits(double(uint64_t(a)))),
    OP("cvt.rp.f64.s64 %d64, %a64;", Bits(InMode<double>(FE_UPWARD, int64_t(a)))),
    OP("cvt.rn.f16.s32 %d16, %a32;", H(int32_t(a))),
    OP("cvt.rz.f16.u32 %d16, %a32;", ToHalf(kF16, uint32_t(a), Mode::kZero)),
    OP("cvt.rn.f16.u64 %d16, %a64;", ToHalf(kF16, uint64_t(a), Mode::kNearest)),
    OP("cvt.rn.f16.s8 %d16, %a32;", H(int8_t(a))),
    OP("cvt.rn.bf16.s32 %d16, %a32;", B(int32_t(a))),
    OP("cvt.rp.bf16.s64 %d16, %a64;", ToHalf(kBF16, int64_t(a), Mode::kUp)),
};

const OpCase kFromFloats[] = {
    OP("cvt.rni.s32.f32 %d32, %a32;", ToInt<int32_t>(F(a), Mode::kNearest)),
    OP("cvt.rzi.s32.f32 %d32, %a32;", ToInt<int32_t>(F(a), Mode::kZero)),
    OP("cvt.rmi.s32.f32 %d32, %a32;", ToInt<int32_t>(F(a), Mode::kDown)),
    OP("cvt.rpi.u32.f32 %d32, %a32;", ToInt<uint32_t>(F(a), Mode::kUp)),
    OP("cvt.rzi.u32.f32 %d32, %a32;", ToInt<uint32_t>(F(a), Mode::kZero)),
    OP("cvt.rzi.ftz.u32.f32 %d32, %a32;", ToInt<uint32_t>(Flush(F(a)), Mode::kZero)),
    OP("cvt.rpi.ftz.s32.f32 %d32, %a32;", ToInt<int32_t>(Flush(F(a)), Mode::kUp)),
    OP("cvt.rzi.s64.f32 %d64, %a32;", ToInt<int64_t>(F(a), Mode::kZero)),
    OP("cvt.rzi.u64.f32 %d64, %a32;", ToInt<uint64_t>(F(a), Mode::kZero)),
    OP("cvt.rni.s8.f32 %d32, %a32;", uint32_t(int8_t(ToInt<int8_t>(F(a), Mode::kNearest)))),
    OP("cvt.rzi.u16.f32 %d16, %a32;", ToInt<uint16_t>(F(a), Mode::kZero)),
    OP("cvt.rzi.sat.u8.f32 %d32, %a32;", ToInt<uint8_t>(F(a), Mode::kZero)),
    OP("cvt.rni.f32.f32 %d32, %a32;", Result(float(RoundInteger(F(a), Mode::kNearest)))),
    OP("cvt.rzi.f32.f32 %d32, %a32;", Result(float(RoundInteger(F(a), Mode::kZero)))),
    OP("cvt.rmi.f32.f32 %d32, %a32;", Result(float(RoundInteger(F(a), Mode::kDown)))),
    OP("cvt.rpi.ftz.f32.f32 %d32, %a32;", Result(float(RoundInteger(Flush(F(a)), Mode::kUp)))),
    OP("cvt.sat.f32.f32 %d32, %a32;", Bits(F(a) != F(a) || F(a) <= 0 ? 0.0f
                                           : F(a) > 1                ? 1.0f
                                                                     : F(a))),
    OP("cvt.f64.f32 %d64, %a32;", Result(double(F(a)))),
    OP("cvt.ftz.f64.f32 %d64, %a32;", Result(double(Flush(F(a))))),
    OP("cvt.rn.f16.f32 %d16, %a32;", ToHalf(kF16, F(a), Mode::kNearest)),
    OP("cvt.rz.f16.f32 %d16, %a32;", ToHalf(kF16, F(a), Mode::kZero)),
    OP("cvt.rm.f16.f32 %d16, %a32;", ToHalf(kF16, F(a), Mode::kDown)),
    OP("cvt.rp.f16.f32 %d16, %a32;", ToHalf(kF16, F(a), Mode::kUp)),
    OP("cvt.rn.bf16.f32 %d16, %a32;", ToHalf(kBF16, F(a), Mode::kNearest)),
    OP("cvt.rz.bf16.f32 %d16, %a32;", ToHalf(kBF16, F(a), Mode::kZero)),
    OP("cvt.rn.f16x2.f32 %d32, %a32, %b32;",
       ToHalf(kF16, F(a), Mode::kNearest) << 16 | ToHalf(kF16, F(b), Mode::kNearest)),
    OP("cvt.rn.bf16x2.f32 %d32, %a32, %b32;",
       ToHalf(kBF16, F(a), Mode::kNearest) << 16 | ToHalf(kBF16, F(b), Mode::kNearest)),
    OP("cvt.rz.bf16x2.f32 %d32, %a32, %b32;",
       ToHalf(kBF16, F(a), Mode::kZero) << 16 | ToHalf(kBF16, F(b), Mode::kZero)),
    OP("cvt.rn.relu.f16x2.f32 %d32, %a32, %b32;",
       [&] {
         const auto one = [](uint64_t bits) {
           const uint64_t r = ToHalf(kF16, F(bits), Mode::kNearest);
           return (r & 0x8000) != 0 ? 0 : r;
         };
         return one(a) << 16 | one(b);
       }()),
    OP("cvt.rna.tf32.f32 %d32, %a32;", F(a) != F(a) ? 0x7fffffffu
                                       : (a & 0x7f800000) == 0x7f800000
                                           ? uint32_t(a)
                                           : (uint32_t(a) + 0x1000) & ~0x1fffu),
};

const OpCase kFromDoubles[] = {
    OP("cvt.rn.f32.f64 %d32, %a64;", Result(float(D(a)))),
    OP("cvt.rz.f32.f64 %d32, %a64;", Result(InMode<float>(FE_TOWARDZERO, D(a)))),
    OP("cvt.rm.f32.f64 %d32, %a64;", Result(InMode<float>(FE_DOWNWARD, D(a)))),
    OP("cvt.rp.f32.f64 %d32, %a64;", Result(InMode<float>(FE_UPWARD, D(a)))),
    OP("cvt.rn.ftz.f32.f64 %d32, %a64;", Result(Flush(float(D(a))))),
    OP("cvt.rzi.s32.f64 %d32, %a64;", ToInt<int32_t>(D(a), Mode::kZero)),
    OP("cvt.rni.u32.f64 %d32, %a64;", ToInt<uint32_t>(D(a), Mode::kNearest)),
    OP("cvt.rzi.s64.f64 %d64, %a64;", ToInt<int64_t>(D(a), Mode::kZero)),
    OP("cvt.rmi.u64.f64 %d64, %a64;", ToInt<uint64_t>(D(a), Mode::kDown)),
    OP("cvt.rmi.f64.f64 %d64, %a64;", Result(std::floor(D(a)))),
    OP("cvt.rzi.f64.f64 %d64, %a64;", Result(std::trunc(D(a)))),
    OP("cvt.sat.f64.f64 %d64, %a64;", Bits(D(a) != D(a) || D(a) <= 0 ? 0.0
                                           : D(a) > 1                ? 1.0
                                                                     : D(a))),
    OP("cvt.rn.f16.f64 %d16, %a64;", H(D(a))),
    OP("cvt.rn.bf16.f64 %d16, %a64;", B(D(a))),
};

// The exact sum of a product and an addend of halves, in 64 bits of significand where that is
// enough and sticky where it is not: long double, rounded to odd.
long double FmaToOdd(double x, double y, double z) {
  const long double p = static_cast<long double>(x) * y;  // exact
  const long double s = p + z;
  const long double back = s - p;
  const long double error = (p - (s - back)) + (static_cast<long double>(z) - back);
  if (error == 0 || s - s != 0) return s;
  // One place (of 64) towards the error, if the last place is even.
  int exponent = 0;
  const long double m = std::ldexp(std::frexp(s, &exponent), 64);
  if (std::fmod(m, 2.0L) != 0) return s;
  return std::ldexp(m + (error > 0 ? 1.0L : -1.0L), exponent - 64);
}
uint64_t Pair(uint64_t high, uint64_t low) { return (high & 0xffff) << 16 | (low & 0xffff); }
double Least(double a, double b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == 0 && b == 0) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

const OpCase kHalves[] = {
    OP("cvt.f32.f16 %d32, %a16;", Result(float(HF(a)))),
    OP("cvt.f32.bf16 %d32, %a16;", Result(float(BF(a)))),
    OP("cvt.f64.f16 %d64, %a16;", Result(HF(a))),
    OP("cvt.rzi.s32.f16 %d32, %a16;", ToInt<int32_t>(HF(a), Mode::kZero)),
    OP("cvt.rni.f16.f16 %d16, %a16;",
       HF(a) != HF(a) ? 0x7fff : H(RoundInteger(HF(a), Mode::kNearest))),
    OP("add.f16 %d16, %a16, %b16;", H(HF(a) + HF(b))),
    OP("sub.rn.f16 %d16, %a16, %b16;", H(HF(a) - HF(b))),
    OP("mul.f16 %d16, %a16, %b16;", H(HF(a) * HF(b))),
    OP("add.sat.f16 %d16, %a16, %b16;",
       [&] {
         const double r = HF(a) + HF(b);
         return H(r != r || r <= 0 ? 0.0 : r > 1 ? 1.0 : r);
       }()),
    OP("add.f16x2 %d32, %a32, %b32;", Pair(H(HF(a >> 16) + HF(b >> 16)), H(HF(a) + HF(b)))),
    OP("mul.bf16x2 %d32, %a32, %b32;", Pair(B(BF(a >> 16) * BF(b >> 16)), B(BF(a) * BF(b)))),
    OP("add.bf16 %d16, %a16, %b16;",
       ToHalf(kBF16, static_cast<long double>(BF(a)) + BF(b), Mode::kNearest)),
    OP("fma.rn.f16 %d16, %a16, %b16, %c16;",
       ToHalf(kF16, FmaToOdd(HF(a), HF(b), HF(c)), Mode::kNearest)),
    OP("fma.rn.bf16 %d16, %a16, %b16, %c16;",
       ToHalf(kBF16, FmaToOdd(BF(a), BF(b), BF(c)), Mode::kNearest)),
    OP("fma.rn.f16x2 %d32, %a32, %b32, %c32;",
       Pair(ToHalf(kF16, FmaToOdd(HF(a >> 16), HF(b >> 16), HF(c >> 16)), Mode::kNearest),
            ToHalf(kF16, FmaToOdd(HF(a), HF(b), HF(c)), Mode::kNearest))),
    OP("fma.rn.relu.bf16x2 %d32, %a32, %b32, %c32;",
       [&] {
         const auto one = [](uint64_t x, uint64_t y, uint64_t z) -> uint64_t {
           const uint64_t r = ToHalf(kBF16, FmaToOdd(BF(x), BF(y), BF(z)), Mode::kNearest);
           return (r & 0x8000) != 0 ? 0 : r;
         };
         return Pair(one(a >> 16, b >> 16, c >> 16), one(a, b, c));
       }()),
    OP("neg.f16x2 %d32, %a32;", (a ^ 0x80008000) & 0xffffffff),
    OP("abs.bf16 %d16, %a16;", a & 0x7fff),
    OP("min.f16 %d16, %a16, %b16;", H(Least(HF(a), HF(b)))),
    OP("max.bf16x2 %d32, %a32, %b32;",
       Pair(B(-Least(-BF(a >> 16), -BF(b >> 16))), B(-Least(-BF(a), -BF(b))))),
    OP("min.NaN.f16 %d16, %a16, %b16;",
       HF(a) != HF(a) || HF(b) != HF(b) ? 0x7fff : H(Least(HF(a), HF(b)))),
    OP("setp.lt.f16 %p, %a16, %b16;", HF(a) < HF(b)),
    OP("setp.geu.bf16 %p, %a16, %b16;", !(BF(a) < BF(b))),
    OP("setp.gt.f16x2 %p|%q, %a32, %b32;",
       uint64_t{HF(a) > HF(b)} | uint64_t{HF(a >> 16) > HF(b >> 16)} << 32),
    OP("set.le.f16.f16 %d16, %a16, %b16;", HF(a) <= HF(b) ? 0x3c00 : 0),
};

class IntegerConversions : public testing::TestWithParam<OpCase> {};
TEST_P(IntegerConversions, MatchTheHost) { CheckOp(GetParam(), IntegerInputs()); }
INSTANTIATE_TEST_SUITE_P(All, IntegerConversions, testing::ValuesIn(kFromIntegers));

class FloatConversions : public testing::TestWithParam<OpCase> {};
TEST_P(FloatConversions, MatchTheHost) { CheckOp(GetParam(), OneFloat()); }
INSTANTIATE_TEST_SUITE_P(All, FloatConversions, testing::ValuesIn(kFromFloats));

class DoubleConversions : public testing::TestWithParam<OpCase> {};
TEST_P(DoubleConversions, MatchTheHost) { CheckOp(GetParam(), OneDouble()); }
INSTANTIATE_TEST_SUITE_P(All, DoubleConversions, testing::ValuesIn(kFromDoubles));

class HalfOps : public testing::TestWithParam<OpCase> {};
TEST_P(HalfOps, MatchTheHost) { CheckOp(GetParam(), HalfInputs()); }
INSTANTIATE_TEST_SUITE_P(All, HalfOps, testing::ValuesIn(kHalves));

}  // namespace
}  // namespace simgpu::test
