// f16 and bf16 arithmetic, single and in pairs. Sums, differences and products of two halves are
// rounded right through float (its 24 bits hold twice the places, and two more); fused ones go
// through double, rounded to odd so that the second rounding cannot err. Built once for the
// baseline and once for AVX2.
#include "tools/simgpu/exec/float_ops.h"
#include "tools/simgpu/exec/half.h"
#include "tools/simgpu/exec/handlers.h"

namespace simgpu {
namespace {

using half::BF16;
using half::F16;

struct HAdd {
  static SIMGPU_INLINE float Do(float a, float b) { return a + b; }
};
struct HSub {
  static SIMGPU_INLINE float Do(float a, float b) { return a - b; }
};
struct HMul {
  static SIMGPU_INLINE float Do(float a, float b) { return a * b; }
};
struct HMin {
  static SIMGPU_INLINE float Do(float a, float b) { return FMin::Do<float>(a, b); }
};
struct HMax {
  static SIMGPU_INLINE float Do(float a, float b) { return FMax::Do<float>(a, b); }
};
struct HMinNan {
  static SIMGPU_INLINE float Do(float a, float b) { return FMinNan::Do<float>(a, b); }
};
struct HMaxNan {
  static SIMGPU_INLINE float Do(float a, float b) { return FMaxNan::Do<float>(a, b); }
};

// What is done with the result: nothing, .sat, .relu (a NaN stays one).
enum class After { kNothing, kSaturate, kRelu };
template <typename Format, After kAfter>
SIMGPU_INLINE uint32_t Finish(uint32_t bits) {
  if constexpr (kAfter == After::kSaturate) {
    const uint32_t positive = (bits & 0x8000) != 0 ? 0 : bits & 0xffff;
    const uint32_t capped = positive > Format::kOne ? Format::kOne : positive;
    return half::IsNan(bits, Format::kInfinity) ? 0 : capped;
  } else if constexpr (kAfter == After::kRelu) {
    const uint32_t positive = (bits & 0x8000) != 0 ? 0 : bits & 0xffff;
    return half::IsNan(bits, Format::kInfinity) ? half::kNan : positive;
  } else {
    return bits;
  }
}

template <typename Format, typename Op, After kAfter, bool kFtz>
SIMGPU_INLINE uint32_t Two(uint32_t a, uint32_t b) {
  if constexpr (kFtz) {
    a = half::FlushBits<Format>(a);
    b = half::FlushBits<Format>(b);
  }
  uint32_t r = half::FromFloat<Format>(Op::Do(half::ToFloat<Format>(a), half::ToFloat<Format>(b)));
  if constexpr (kFtz) r = half::FlushBits<Format>(r);
  return Finish<Format, kAfter>(r);
}
template <bool kMasked, typename Format, typename Op, After kAfter, bool kFtz, bool kPair>
void HalfTwo(Warp& w, const Instr& in) {
  const uint32_t* a = Lane<uint32_t>(w, in.a);
  const uint32_t* b = Lane<uint32_t>(w, in.b);
  Apply<kMasked, uint32_t>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    uint32_t out = Two<Format, Op, kAfter, kFtz>(a[i], b[i]);
    if constexpr (kPair) out |= Two<Format, Op, kAfter, kFtz>(a[i] >> 16, b[i] >> 16) << 16;
    return out;
  });
}

// a*b+c with one rounding. The product is exact in double; the sum is rounded to odd, which no
// later rounding to fewer places can tell from the exact sum.
template <typename Format>
SIMGPU_INLINE uint32_t FmaBits(uint32_t a, uint32_t b, uint32_t c) {
  const double p =
      static_cast<double>(half::ToFloat<Format>(a)) * static_cast<double>(half::ToFloat<Format>(b));
  const double z = static_cast<double>(half::ToFloat<Format>(c));
  const double sum = p + z;
  const double back = sum - p;
  const double error = (p - (sum - back)) + (z - back);
  auto bits = std::bit_cast<uint64_t>(sum);
  const bool inexact = error != 0.0 && sum - sum == 0.0;
  // Towards the error if the sum is even: one place away from or nearer to zero.
  const bool away = (error < 0.0) == ((bits >> 63) != 0);
  const uint64_t odd = (bits & 1) != 0 ? bits : away ? bits + 1 : bits - 1;
  bits = inexact ? odd : bits;
  // To float, to odd again: the low 29 bits are folded into the last kept place. Below float's
  // normal range both formats' halves are exact in float or vanish alike.
  const double rounded = std::bit_cast<double>(bits);
  const auto near = static_cast<float>(rounded);
  auto fbits = std::bit_cast<uint32_t>(near);
  const double rest = rounded - static_cast<double>(near);
  const bool off = rest != 0.0 && rest - rest == 0.0;
  const bool faway = (rest < 0.0) == ((fbits >> 31) != 0);
  const uint32_t fodd = (fbits & 1) != 0 ? fbits : faway ? fbits + 1 : fbits - 1;
  fbits = off ? fodd : fbits;
  return half::FromFloat<Format>(std::bit_cast<float>(fbits));
}
template <typename Format, After kAfter, bool kFtz>
SIMGPU_INLINE uint32_t Three(uint32_t a, uint32_t b, uint32_t c) {
  if constexpr (kFtz) {
    a = half::FlushBits<Format>(a);
    b = half::FlushBits<Format>(b);
    c = half::FlushBits<Format>(c);
  }
  uint32_t r = FmaBits<Format>(a, b, c);
  if constexpr (kFtz) r = half::FlushBits<Format>(r);
  return Finish<Format, kAfter>(r);
}
template <bool kMasked, typename Format, After kAfter, bool kFtz, bool kPair>
void HalfFma(Warp& w, const Instr& in) {
  const uint32_t* a = Lane<uint32_t>(w, in.a);
  const uint32_t* b = Lane<uint32_t>(w, in.b);
  const uint32_t* c = Lane<uint32_t>(w, in.c);
  Apply<kMasked, uint32_t>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    uint32_t out = Three<Format, kAfter, kFtz>(a[i], b[i], c[i]);
    if constexpr (kPair) {
      out |= Three<Format, kAfter, kFtz>(a[i] >> 16, b[i] >> 16, c[i] >> 16) << 16;
    }
    return out;
  });
}

template <bool kMasked, typename Format, int kOp, bool kFtz, bool kPair>
void HalfSign(Warp& w, const Instr& in) {  // kOp: 0 neg, 1 abs
  const uint32_t* a = Lane<uint32_t>(w, in.a);
  constexpr uint32_t kSigns = kPair ? 0x80008000u : 0x8000u;
  Apply<kMasked, uint32_t>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    uint32_t bits = a[i];
    if constexpr (kFtz) {
      bits = half::FlushBits<Format>(a[i]) | half::FlushBits<Format>(a[i] >> 16) << 16;
    }
    return kOp == 0 ? bits ^ kSigns : bits & ~kSigns;
  });
}

#define PUT(op, type, handler, ...) \
  sink.Put(op, type, handler<false, __VA_ARGS__>, handler<true, __VA_ARGS__>)
#define BOTH(op, handler, ...)                       \
  PUT(op, one, handler, Format, __VA_ARGS__, false); \
  PUT(op, pair, handler, Format, __VA_ARGS__, true)
#define MODES(op, functor)                                    \
  BOTH(op, HalfTwo, functor, After::kNothing, false);         \
  BOTH(op ".sat", HalfTwo, functor, After::kSaturate, false); \
  BOTH(op ".ftz", HalfTwo, functor, After::kNothing, true);   \
  BOTH(op ".ftz.sat", HalfTwo, functor, After::kSaturate, true)
#define MINMAX(op, functor)                           \
  BOTH(op, HalfTwo, functor, After::kNothing, false); \
  BOTH(op ".ftz", HalfTwo, functor, After::kNothing, true)

template <typename Format>
void RegisterFormat(const HandlerSink& sink, const char* one, const char* pair) {
  MODES("add", HAdd);
  MODES("sub", HSub);
  MODES("mul", HMul);
  MINMAX("min", HMin);
  MINMAX("max", HMax);
  MINMAX("min.NaN", HMinNan);
  MINMAX("max.NaN", HMaxNan);
  BOTH("fma", HalfFma, After::kNothing, false);
  BOTH("fma.sat", HalfFma, After::kSaturate, false);
  BOTH("fma.relu", HalfFma, After::kRelu, false);
  BOTH("fma.ftz", HalfFma, After::kNothing, true);
  BOTH("fma.ftz.sat", HalfFma, After::kSaturate, true);
  BOTH("fma.ftz.relu", HalfFma, After::kRelu, true);
  BOTH("neg", HalfSign, 0, false);
  BOTH("abs", HalfSign, 1, false);
  BOTH("neg.ftz", HalfSign, 0, true);
  BOTH("abs.ftz", HalfSign, 1, true);
}

}  // namespace

void SIMGPU_CONCAT(RegisterHalf, SIMGPU_SUFFIX)(const HandlerSink& sink) {
  RegisterFormat<F16>(sink, "f16", "f16x2");
  RegisterFormat<BF16>(sink, "bf16", "bf16x2");
}

}  // namespace simgpu
