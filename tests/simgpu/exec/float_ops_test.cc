// f32 and f64 instructions: results are compared bit by bit, in every rounding mode; approximate
// functions within the errors that the manual allows.
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

float Flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }
float FF(uint64_t bits) { return Flush(F(bits)); }
template <typename T>
T Saturate(T x) {
  return x != x ? T{0} : x <= 0 ? T{0} : x > 1 ? T{1} : x;
}
// The compiler does not know what comes out.
template <typename T>
T Unknown(T x) {
  volatile T value = x;
  return value;
}
// f() with the operands read and the result made under a rounding mode.
template <typename Fn, typename... T>
auto In(int mode, Fn f, T... operands) {
  std::fesetround(mode);
  volatile auto result = f(Unknown(operands)...);
  std::fesetround(FE_TONEAREST);
  return decltype(f(operands...)){result};
}
const auto kAdd = [](auto a, auto b) {
  volatile auto r = a + b;
  return decltype(a){r};
};
const auto kSub = [](auto a, auto b) {
  volatile auto r = a - b;
  return decltype(a){r};
};
const auto kMul = [](auto a, auto b) {
  volatile auto r = a * b;
  return decltype(a){r};
};
const auto kDiv = [](auto a, auto b) {
  volatile auto r = a / b;
  return decltype(a){r};
};
const auto kSqrt = [](auto a) {
  volatile auto r = std::sqrt(a);
  return decltype(a){r};
};
const auto kFma = [](auto a, auto b, auto c) {
  volatile auto r = std::fma(a, b, c);
  return decltype(a){r};
};
template <typename T>
T Min(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == 0 && b == 0) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <typename T>
T Max(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == 0 && b == 0) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
template <typename T>
T NanOr(T a, T b, T r) {
  return a != a || b != b ? std::numeric_limits<T>::quiet_NaN() : r;
}

const OpCase kFloat[] = {
    OP("add.f32 %d32, %a32, %b32;", Result(F(a) + F(b))),
    OP("add.rn.f32 %d32, %a32, %b32;", Result(F(a) + F(b))),
    OP("add.rz.f32 %d32, %a32, %b32;", Result(In(FE_TOWARDZERO, kAdd, F(a), F(b)))),
    OP("add.rm.f32 %d32, %a32, %b32;", Result(In(FE_DOWNWARD, kAdd, F(a), F(b)))),
    OP("add.rp.f32 %d32, %a32, %b32;", Result(In(FE_UPWARD, kAdd, F(a), F(b)))),
    OP("add.ftz.f32 %d32, %a32, %b32;", Result(Flush(FF(a) + FF(b)))),
    OP("add.sat.f32 %d32, %a32, %b32;", Result(Saturate(F(a) + F(b)))),
    OP("add.rz.ftz.sat.f32 %d32, %a32, %b32;",
       Result(Saturate(Flush(In(FE_TOWARDZERO, kAdd, FF(a), FF(b)))))),
    OP("sub.f32 %d32, %a32, %b32;", Result(F(a) - F(b))),
    OP("sub.rm.f32 %d32, %a32, %b32;", Result(In(FE_DOWNWARD, kSub, F(a), F(b)))),
    OP("sub.f32 %d32, %a32, 0f3F800000;", Result(F(a) - 1.0f)),
    OP("mul.f32 %d32, %a32, %b32;", Result(F(a) * F(b))),
    OP("mul.rp.f32 %d32, %a32, %b32;", Result(In(FE_UPWARD, kMul, F(a), F(b)))),
    OP("mul.ftz.f32 %d32, %a32, %b32;", Result(Flush(FF(a) * FF(b)))),
    OP("fma.rn.f32 %d32, %a32, %b32, %c32;", Result(std::fma(F(a), F(b), F(c)))),
    OP("fma.rz.f32 %d32, %a32, %b32, %c32;", Result(In(FE_TOWARDZERO, kFma, F(a), F(b), F(c)))),
    OP("fma.rm.f32 %d32, %a32, %b32, %c32;", Result(In(FE_DOWNWARD, kFma, F(a), F(b), F(c)))),
    OP("fma.rp.f32 %d32, %a32, %b32, %c32;", Result(In(FE_UPWARD, kFma, F(a), F(b), F(c)))),
    OP("fma.rn.ftz.f32 %d32, %a32, %b32, %c32;", Result(Flush(std::fma(FF(a), FF(b), FF(c))))),
    OP("fma.rn.sat.f32 %d32, %a32, %b32, %c32;", Result(Saturate(std::fma(F(a), F(b), F(c))))),
    OP("mad.rn.f32 %d32, %a32, %b32, %c32;", Result(std::fma(F(a), F(b), F(c)))),
    OP("div.rn.f32 %d32, %a32, %b32;", Result(F(a) / F(b))),
    OP("div.rz.f32 %d32, %a32, %b32;", Result(In(FE_TOWARDZERO, kDiv, F(a), F(b)))),
    OP("div.rm.f32 %d32, %a32, %b32;", Result(In(FE_DOWNWARD, kDiv, F(a), F(b)))),
    OP("div.rn.ftz.f32 %d32, %a32, %b32;", Result(Flush(FF(a) / FF(b)))),
    OP("rcp.rn.f32 %d32, %a32;", Result(1.0f / F(a))),
    OP("rcp.rp.f32 %d32, %a32;", Result(In(FE_UPWARD, kDiv, 1.0f, F(a)))),
    OP("sqrt.rn.f32 %d32, %a32;", Result(std::sqrt(F(a)))),
    OP("sqrt.rz.f32 %d32, %a32;", Result(In(FE_TOWARDZERO, kSqrt, F(a)))),
    OP("sqrt.rn.ftz.f32 %d32, %a32;", Result(std::sqrt(FF(a)))),
    OP("neg.f32 %d32, %a32;", (a ^ 0x80000000) & 0xffffffff),
    OP("abs.f32 %d32, %a32;", a & 0x7fffffff),
    OP("abs.ftz.f32 %d32, %a32;", Bits(FF(a)) & 0x7fffffff),
    OP("copysign.f32 %d32, %a32, %b32;", (a & 0x80000000) | (b & 0x7fffffff)),
    OP("min.f32 %d32, %a32, %b32;", Result(Min(F(a), F(b)))),
    OP("max.f32 %d32, %a32, %b32;", Result(Max(F(a), F(b)))),
    OP("min.ftz.f32 %d32, %a32, %b32;", Result(Min(FF(a), FF(b)))),
    OP("max.NaN.f32 %d32, %a32, %b32;", Result(NanOr(F(a), F(b), Max(F(a), F(b))))),
    OP("min.NaN.f32 %d32, %a32, %b32;", Result(NanOr(F(a), F(b), Min(F(a), F(b))))),
    OP("min.xorsign.abs.f32 %d32, %a32, %b32;",
       F(a) != F(a) && F(b) != F(b)
           ? 0x7fffffff
           : Bits(Min(std::fabs(F(a)), std::fabs(F(b)))) | ((a ^ b) & 0x80000000)),
    OP("max.f32 %d32, %a32, %b32, %c32;", Result(Max(Max(F(a), F(b)), F(c)))),
};

const OpCase kDouble[] = {
    OP("add.f64 %d64, %a64, %b64;", Result(D(a) + D(b))),
    OP("add.rm.f64 %d64, %a64, %b64;", Result(In(FE_DOWNWARD, kAdd, D(a), D(b)))),
    OP("sub.rp.f64 %d64, %a64, %b64;", Result(In(FE_UPWARD, kSub, D(a), D(b)))),
    OP("mul.f64 %d64, %a64, %b64;", Result(D(a) * D(b))),
    OP("mul.rz.f64 %d64, %a64, %b64;", Result(In(FE_TOWARDZERO, kMul, D(a), D(b)))),
    OP("fma.rn.f64 %d64, %a64, %b64, %c64;", Result(std::fma(D(a), D(b), D(c)))),
    OP("fma.rm.f64 %d64, %a64, %b64, %c64;", Result(In(FE_DOWNWARD, kFma, D(a), D(b), D(c)))),
    OP("mad.rn.f64 %d64, %a64, %b64, %c64;", Result(std::fma(D(a), D(b), D(c)))),
    OP("div.rn.f64 %d64, %a64, %b64;", Result(D(a) / D(b))),
    OP("div.rp.f64 %d64, %a64, %b64;", Result(In(FE_UPWARD, kDiv, D(a), D(b)))),
    OP("rcp.rn.f64 %d64, %a64;", Result(1.0 / D(a))),
    OP("sqrt.rn.f64 %d64, %a64;", Result(std::sqrt(D(a)))),
    OP("sqrt.rm.f64 %d64, %a64;", Result(In(FE_DOWNWARD, kSqrt, D(a)))),
    OP("min.f64 %d64, %a64, %b64;", Result(Min(D(a), D(b)))),
    OP("max.f64 %d64, %a64, %b64;", Result(Max(D(a), D(b)))),
    OP("neg.f64 %d64, %a64;", a ^ (uint64_t{1} << 63)),
    OP("abs.f64 %d64, %a64;", a & ~(uint64_t{1} << 63)),
    OP("copysign.f64 %d64, %a64, %b64;", (a & (uint64_t{1} << 63)) | (b & ~(uint64_t{1} << 63))),
    OP("mul.f64 %d64, %a64, 0d4000000000000000;", Result(D(a) * 2.0)),
};

bool Unordered(float a, float b) { return a != a || b != b; }
bool Unordered(double a, double b) { return a != a || b != b; }

const OpCase kCompareFloat[] = {
    OP("setp.eq.f32 %p, %a32, %b32;", F(a) == F(b)),
    OP("setp.ne.f32 %p, %a32, %b32;", !Unordered(F(a), F(b)) && F(a) != F(b)),
    OP("setp.lt.f32 %p, %a32, %b32;", F(a) < F(b)),
    OP("setp.ge.f32 %p, %a32, %b32;", F(a) >= F(b)),
    OP("setp.equ.f32 %p, %a32, %b32;", Unordered(F(a), F(b)) || F(a) == F(b)),
    OP("setp.neu.f32 %p, %a32, %b32;", F(a) != F(b)),
    OP("setp.ltu.f32 %p, %a32, %b32;", !(F(a) >= F(b))),
    OP("setp.leu.f32 %p, %a32, %b32;", !(F(a) > F(b))),
    OP("setp.gtu.f32 %p, %a32, %b32;", !(F(a) <= F(b))),
    OP("setp.geu.f32 %p, %a32, %b32;", !(F(a) < F(b))),
    OP("setp.num.f32 %p, %a32, %b32;", !Unordered(F(a), F(b))),
    OP("setp.nan.f32 %p, %a32, %b32;", Unordered(F(a), F(b))),
    OP("setp.gt.ftz.f32 %p, %a32, %b32;", FF(a) > FF(b)),
    OP("setp.eq.ftz.f32 %p|%q, %a32, %b32;",
       uint64_t{FF(a) == FF(b)} | uint64_t{!(FF(a) == FF(b))} << 32),
    OP("set.le.f32.f32 %d32, %a32, %b32;", F(a) <= F(b) ? 0x3f800000 : 0),
    OP("set.ltu.u32.f32 %d32, %a32, %b32;", !(F(a) >= F(b)) ? 0xffffffff : 0),
    OP("testp.finite.f32 %p, %a32;", std::isfinite(F(a))),
    OP("testp.infinite.f32 %p, %a32;", std::isinf(F(a))),
    OP("testp.number.f32 %p, %a32;", !std::isnan(F(a))),
    OP("testp.notanumber.f32 %p, %a32;", std::isnan(F(a))),
    OP("testp.normal.f32 %p, %a32;", std::isnormal(F(a))),
    OP("testp.subnormal.f32 %p, %a32;", std::fpclassify(F(a)) == FP_SUBNORMAL),
};
const OpCase kCompareDouble[] = {
    OP("setp.lt.f64 %p, %a64, %b64;", D(a) < D(b)),
    OP("setp.neu.f64 %p, %a64, %b64;", D(a) != D(b)),
    OP("setp.gtu.f64 %p, %a64, %b64;", !(D(a) <= D(b))),
    OP("setp.nan.f64 %p, %a64, %b64;", Unordered(D(a), D(b))),
    OP("testp.subnormal.f64 %p, %a64;", std::fpclassify(D(a)) == FP_SUBNORMAL),
    OP("set.gt.f32.f64 %d32, %a64, %b64;", D(a) > D(b) ? 0x3f800000 : 0),
};

class FloatOps : public testing::TestWithParam<OpCase> {};
TEST_P(FloatOps, MatchTheHost) { CheckOp(GetParam(), FloatInputs()); }
INSTANTIATE_TEST_SUITE_P(Arithmetic, FloatOps, testing::ValuesIn(kFloat));
INSTANTIATE_TEST_SUITE_P(Comparisons, FloatOps, testing::ValuesIn(kCompareFloat));

class DoubleOps : public testing::TestWithParam<OpCase> {};
TEST_P(DoubleOps, MatchTheHost) { CheckOp(GetParam(), DoubleInputs()); }
INSTANTIATE_TEST_SUITE_P(Arithmetic, DoubleOps, testing::ValuesIn(kDouble));
INSTANTIATE_TEST_SUITE_P(Comparisons, DoubleOps, testing::ValuesIn(kCompareDouble));

// An approximate function: the host's, in double, and the error allowed, in units of the last
// place of the result or absolutely.
struct ApproxCase {
  const char* text;
  double (*want)(double);
  double relative, absolute;
  float low, high;  // arguments outside may be anything
};
void PrintTo(const ApproxCase& approx, std::ostream* out) { *out << approx.text; }

class ApproxOps : public testing::TestWithParam<ApproxCase> {};

TEST_P(ApproxOps, AreWithinTheirError) {
  const ApproxCase& approx = GetParam();
  const auto inputs = OneFloat();
  const auto got = RunOp(approx.text, inputs);
  ASSERT_EQ(got.size(), inputs.size());
  const bool ftz = std::string(approx.text).find(".ftz") != std::string::npos;
  for (size_t i = 0; i < inputs.size(); ++i) {
    float x = F(inputs[i][0]);
    if (ftz) x = Flush(x);
    if (x == x && !std::isinf(x) && (x < approx.low || x > approx.high)) continue;
    float want = static_cast<float>(approx.want(static_cast<double>(x)));
    if (ftz) want = Flush(want);
    const float r = F(got[i]);
    if (want != want) {
      ASSERT_EQ(got[i], 0x7fffffffu) << x;
    } else if (std::isinf(want) || want == 0) {
      ASSERT_EQ(r, want) << x;
    } else {
      ASSERT_NEAR(r, want, std::fabs(want) * approx.relative + approx.absolute) << x;
    }
  }
}

constexpr float kAll = std::numeric_limits<float>::max();
const ApproxCase kApprox[] = {
    {"ex2.approx.f32 %d32, %a32;", [](double x) { return std::exp2(x); }, 0x1p-22, 0x1p-149, -kAll,
     kAll},
    {"ex2.approx.ftz.f32 %d32, %a32;", [](double x) { return std::exp2(x); }, 0x1p-22, 0, -kAll,
     kAll},
    {"lg2.approx.f32 %d32, %a32;", [](double x) { return std::log2(x); }, 0x1p-22, 0, -kAll, kAll},
    {"lg2.approx.ftz.f32 %d32, %a32;", [](double x) { return std::log2(x); }, 0x1p-22, 0, -kAll,
     kAll},
    {"sin.approx.f32 %d32, %a32;", [](double x) { return std::sin(x); }, 0x1p-22, 0x1p-30, -1e6f,
     1e6f},
    {"cos.approx.ftz.f32 %d32, %a32;", [](double x) { return std::cos(x); }, 0x1p-22, 0x1p-30,
     -1e6f, 1e6f},
    {"tanh.approx.f32 %d32, %a32;", [](double x) { return std::tanh(x); }, 0x1p-22, 0, -kAll, kAll},
    {"rsqrt.approx.f32 %d32, %a32;", [](double x) { return 1 / std::sqrt(x); }, 0x1p-22, 0, -kAll,
     kAll},
    {"rcp.approx.f32 %d32, %a32;", [](double x) { return 1 / x; }, 0x1p-23, 0x1p-149, -kAll, kAll},
    {"rcp.approx.ftz.f32 %d32, %a32;", [](double x) { return 1 / x; }, 0x1p-23, 0, -kAll, kAll},
    {"sqrt.approx.f32 %d32, %a32;", [](double x) { return std::sqrt(x); }, 0x1p-23, 0, -kAll, kAll},
    {"div.approx.f32 %d32, %a32, 0f40490FDB;",
     [](double x) { return x / static_cast<double>(F(0x40490fdb)); }, 0x1p-22, 0x1p-149, -kAll,
     kAll},
    {"div.full.ftz.f32 %d32, %a32, 0f40490FDB;",
     [](double x) { return x / static_cast<double>(F(0x40490fdb)); }, 0x1p-22, 0, -kAll, kAll},
};
INSTANTIATE_TEST_SUITE_P(All, ApproxOps, testing::ValuesIn(kApprox));

TEST(ApproxDouble, LooksAtTheUpperWordOnly) {
  for (const char* text : {"rcp.approx.ftz.f64 %d64, %a64;", "rsqrt.approx.ftz.f64 %d64, %a64;"}) {
    const auto inputs = OneDouble();
    const auto got = RunOp(text, inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const double x = D(inputs[i][0]);
      const double want = text[1] == 'c' ? 1 / x : 1 / std::sqrt(x);
      ASSERT_EQ(got[i] & 0xffffffff, 0u);
      if (std::isnormal(x) && std::isnormal(want)) {
        ASSERT_NEAR(D(got[i]) / want, 1, 0x1p-19) << text << x;
      } else if (std::fpclassify(x) == FP_SUBNORMAL && text[1] == 'c') {
        ASSERT_EQ(D(got[i]), std::copysign(std::numeric_limits<double>::infinity(), x)) << x;
      }
    }
  }
}

}  // namespace
}  // namespace simgpu::test
