// The approximate functions: ex2, lg2, sin, cos, tanh, rsqrt. They are computed in double by
// polynomials, to well below half a unit of the float result, in the same operations on every
// machine. Built once for the baseline and once for AVX2.
#include "tools/simgpu/exec/approx.h"
#include "tools/simgpu/exec/float_ops.h"
#include "tools/simgpu/exec/half.h"
#include "tools/simgpu/exec/handlers.h"

namespace simgpu {
namespace {

template <bool kMasked, typename Op, bool kFtz>
void Approx(Warp& w, const Instr& in) {
  const float* a = Lane<float>(w, in.a);
  Apply<kMasked, float>(
      w, in.d, [=](int i) SIMGPU_LAMBDA { return FlushIf<kFtz>(Op::Do(FlushIf<kFtz>(a[i]))); });
}

// Beyond this the two-part reduction of sin and cos is not exact; such arguments are rare and get
// a slower one.
constexpr float kReducible = 1e6f;

template <bool kMasked, bool kCos, bool kFtz>
void SinCos(Warp& w, const Instr& in) {
  const float* a = Lane<float>(w, in.a);
  alignas(32) float x[kLanes];
  bool large = false;
  for (int i = 0; i < kLanes; ++i) {
    x[i] = FlushIf<kFtz>(a[i]);
    large |= __builtin_fabsf(x[i]) > kReducible;
  }
  if (large) {
    for (int i = 0; i < kLanes; ++i) {
      // An infinity becomes a NaN here, as it should.
      if (__builtin_fabsf(x[i]) > kReducible) {
        x[i] = static_cast<float>(__builtin_fmod(x[i], 6.283185307179586));
      }
    }
  }
  const float* reduced = x;
  Apply<kMasked, float>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    return FlushIf<kFtz>(approx::SinCos<kCos>(reduced[i]));
  });
}

struct RsqrtD {
  static SIMGPU_INLINE double Do(double a) { return 1.0 / __builtin_sqrt(a); }
};
struct RcpD {
  static SIMGPU_INLINE double Do(double a) { return 1.0 / a; }
};
// The double forms give, and look at, the upper word only; subnormals are flushed.
template <bool kMasked, typename Op>
void ApproxDouble(Warp& w, const Instr& in) {
  const double* a = Lane<double>(w, in.a);
  Apply<kMasked, double>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    constexpr uint64_t kUpper = 0xffffffff00000000u;
    const double x = Flush(std::bit_cast<double>(std::bit_cast<uint64_t>(a[i]) & kUpper));
    const double r = Flush(Canonical(Op::Do(x)));
    return std::bit_cast<double>(std::bit_cast<uint64_t>(r) & kUpper);
  });
}
// rsqrt.approx.f64 (without .ftz) is as good as a division and a root.
template <bool kMasked>
void RsqrtDouble(Warp& w, const Instr& in) {
  const double* a = Lane<double>(w, in.a);
  Apply<kMasked, double>(w, in.d, [=](int i) SIMGPU_LAMBDA { return Canonical(RsqrtD::Do(a[i])); });
}

// Halves: through float, rounded once more.
template <typename Format, typename Op, bool kFtz>
SIMGPU_INLINE uint32_t ApproxHalfOne(uint32_t bits) {
  const uint32_t x = kFtz ? half::FlushBits<Format>(bits) : bits & 0xffff;
  const uint32_t r = half::FromFloat<Format>(Op::Do(half::ToFloat<Format>(x)));
  return kFtz ? half::FlushBits<Format>(r) : r;
}
template <bool kMasked, typename Format, typename Op, bool kFtz, bool kPair>
void ApproxHalf(Warp& w, const Instr& in) {
  const uint32_t* a = Lane<uint32_t>(w, in.a);
  Apply<kMasked, uint32_t>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    uint32_t out = ApproxHalfOne<Format, Op, kFtz>(a[i]);
    if (kPair) out |= ApproxHalfOne<Format, Op, kFtz>(a[i] >> 16) << 16;
    return out;
  });
}

#define PUT(op, type, handler, ...) \
  sink.Put(op, type, handler<false, __VA_ARGS__>, handler<true, __VA_ARGS__>)

}  // namespace

void SIMGPU_CONCAT(RegisterApprox, SIMGPU_SUFFIX)(const HandlerSink& sink) {
  PUT("ex2", "f32", Approx, approx::Ex2, false);
  PUT("ex2.ftz", "f32", Approx, approx::Ex2, true);
  PUT("lg2", "f32", Approx, approx::Lg2, false);
  PUT("lg2.ftz", "f32", Approx, approx::Lg2, true);
  PUT("tanh", "f32", Approx, approx::Tanh, false);
  PUT("rsqrt", "f32", Approx, approx::Rsqrt, false);
  PUT("rsqrt.ftz", "f32", Approx, approx::Rsqrt, true);
  PUT("sin", "f32", SinCos, false, false);
  PUT("sin.ftz", "f32", SinCos, false, true);
  PUT("cos", "f32", SinCos, true, false);
  PUT("cos.ftz", "f32", SinCos, true, true);
  sink.Put("rsqrt", "f64", RsqrtDouble<false>, RsqrtDouble<true>);
  PUT("rsqrt.ftz", "f64", ApproxDouble, RsqrtD);
  PUT("rcp.approx.ftz", "f64", ApproxDouble, RcpD);
  PUT("ex2", "f16", ApproxHalf, half::F16, approx::Ex2, false, false);
  PUT("ex2", "f16x2", ApproxHalf, half::F16, approx::Ex2, false, true);
  PUT("ex2.ftz", "bf16", ApproxHalf, half::BF16, approx::Ex2, true, false);
  PUT("ex2.ftz", "bf16x2", ApproxHalf, half::BF16, approx::Ex2, true, true);
  PUT("tanh", "f16", ApproxHalf, half::F16, approx::Tanh, false, false);
  PUT("tanh", "f16x2", ApproxHalf, half::F16, approx::Tanh, false, true);
  PUT("tanh", "bf16", ApproxHalf, half::BF16, approx::Tanh, false, false);
  PUT("tanh", "bf16x2", ApproxHalf, half::BF16, approx::Tanh, false, true);
}

}  // namespace simgpu
