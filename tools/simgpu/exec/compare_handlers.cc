// Comparisons into predicates, tests of floats, and logic on predicates. Built once for the
// baseline and once for AVX2.
#include "tools/simgpu/exec/float_ops.h"
#include "tools/simgpu/exec/half.h"
#include "tools/simgpu/exec/handlers.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace simgpu {
namespace {

// f(i) is a lane's bit.
template <typename F>
SIMGPU_INLINE uint32_t Bits(F f) {
#if defined(__AVX2__)
  alignas(32) int32_t lanes[kLanes];
  SIMGPU_LANE_LOOP
  for (int i = 0; i < kLanes; ++i) lanes[i] = f(i) ? -1 : 0;
  uint32_t bits = 0;
  for (int k = 0; k < kLanes / 8; ++k) {
    const __m256 part = _mm256_load_ps(reinterpret_cast<const float*>(lanes + 8 * k));
    bits |= static_cast<uint32_t>(_mm256_movemask_ps(part)) << (8 * k);
  }
  return bits;
#else
  uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= static_cast<uint32_t>(f(i)) << i;
  return bits;
#endif
}

// setp d|e, a, b {, c}: aux says how c is combined: 0 not at all, 1 and, 2 or, 3 xor; imm: c is
// negated. e gets the comparison's opposite, combined the same way.
SIMGPU_INLINE void Store(Warp& w, const Instr& in, uint32_t bits) {
  uint32_t other = ~bits;
  if (in.aux != 0) {
    const uint32_t c = Pred(w, in.c) ^ (in.imm != 0 ? kAllLanes : 0);
    switch (in.aux) {
      case 1:
        bits &= c;
        other &= c;
        break;
      case 2:
        bits |= c;
        other |= c;
        break;
      default:
        bits ^= c;
        other ^= c;
        break;
    }
  }
  SetPred(w, in.d, bits);
  if (in.e != kNoRef) SetPred(w, in.e, other);
}

template <typename T>
SIMGPU_INLINE bool IsNan(T x) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return x != x;
  }
}
struct Eq {
  template <typename T>
  static SIMGPU_INLINE bool Do(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <typename T>
  static SIMGPU_INLINE bool Do(T a, T b) {
    if constexpr (std::is_integral_v<T>) return a != b;
    return (a < b) | (a > b);
  }
};
struct Lt {
  template <typename T>
  static SIMGPU_INLINE bool Do(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <typename T>
  static SIMGPU_INLINE bool Do(T a, T b) {
    return a <= b;
  }
};
struct Gt {
  template <typename T>
  static SIMGPU_INLINE bool Do(T a, T b) {
    return a > b;
  }
};
struct Ge {
  template <typename T>
  static SIMGPU_INLINE bool Do(T a, T b) {
    return a >= b;
  }
};
// Without a branch: the lanes are looked at together.
SIMGPU_INLINE bool Either(bool a, bool b) {
  return (static_cast<int>(a) | static_cast<int>(b)) != 0;
}

struct Num {
  template <typename T>
  static SIMGPU_INLINE bool Do(T a, T b) {
    return !Either(IsNan(a), IsNan(b));
  }
};
struct Nan {
  template <typename T>
  static SIMGPU_INLINE bool Do(T a, T b) {
    return Either(IsNan(a), IsNan(b));
  }
};
// equ, neu, ltu ...: true if either is a NaN.
template <typename Op>
struct Unordered {
  template <typename T>
  static SIMGPU_INLINE bool Do(T a, T b) {
    return Either(Either(IsNan(a), IsNan(b)), Op::template Do<T>(a, b));
  }
};

template <typename T, typename Op, bool kFtz>
void Setp(Warp& w, const Instr& in) {
  const Slot<T>* a = Lane<Slot<T>>(w, in.a);
  const Slot<T>* b = Lane<Slot<T>>(w, in.b);
  Store(w, in, Bits([=](int i) SIMGPU_LAMBDA {
          return Op::template Do<T>(FlushIf<kFtz>(Get<T>(a, i)), FlushIf<kFtz>(Get<T>(b, i)));
        }));
}
template <typename Format, typename Op, bool kFtz>
void SetpHalf(Warp& w, const Instr& in) {
  const uint32_t* a = Lane<uint32_t>(w, in.a);
  const uint32_t* b = Lane<uint32_t>(w, in.b);
  Store(w, in, Bits([=](int i) SIMGPU_LAMBDA {
          const uint32_t x = kFtz ? half::FlushBits<Format>(a[i]) : a[i];
          const uint32_t y = kFtz ? half::FlushBits<Format>(b[i]) : b[i];
          return Op::template Do<float>(half::ToFloat<Format>(x), half::ToFloat<Format>(y));
        }));
}

// testp: aux 0 finite, 1 infinite, 2 number, 3 notanumber, 4 normal, 5 subnormal.
template <typename B, int kMantissa>
void Testp(Warp& w, const Instr& in) {
  const B* a = Lane<B>(w, in.a);
  const uint32_t kind = in.aux;
  constexpr B kMagnitude = ~B{0} >> 1;
  constexpr B kInfinity = kMagnitude >> kMantissa << kMantissa;
  constexpr B kNormal = B{1} << kMantissa;
  SetPred(w, in.d, Bits([=](int i) SIMGPU_LAMBDA {
            const B x = a[i] & kMagnitude;
            return kind == 0   ? x < kInfinity
                   : kind == 1 ? x == kInfinity
                   : kind == 2 ? x <= kInfinity
                   : kind == 3 ? x > kInfinity
                   : kind == 4 ? x >= kNormal && x < kInfinity
                               : x != 0 && x < kNormal;
          }));
}

// Logic on predicates. imm: bit 0 negates a, bit 1 b. kOp: 0 and, 1 or, 2 xor, 3 not, 4 move.
template <int kOp>
void PredLogic(Warp& w, const Instr& in) {
  const uint32_t a = Pred(w, in.a) ^ ((in.imm & 1) != 0 ? kAllLanes : 0);
  const uint32_t b = kOp < 3 ? Pred(w, in.b) ^ ((in.imm & 2) != 0 ? kAllLanes : 0) : 0;
  SetPred(w, in.d, kOp == 0 ? a & b : kOp == 1 ? a | b : kOp == 2 ? a ^ b : kOp == 3 ? ~a : a);
}

template <typename T>
void Integers(const HandlerSink& sink, const char* t) {
  sink.Put("setp.eq", t, Setp<T, Eq, false>);
  sink.Put("setp.ne", t, Setp<T, Ne, false>);
  sink.Put("setp.lt", t, Setp<T, Lt, false>);
  sink.Put("setp.le", t, Setp<T, Le, false>);
  sink.Put("setp.gt", t, Setp<T, Gt, false>);
  sink.Put("setp.ge", t, Setp<T, Ge, false>);
}

#define COMPARISONS(suffix, type, shape, first, ftz)                   \
  sink.Put("setp.eq" suffix, type, shape<first, Eq, ftz>);             \
  sink.Put("setp.ne" suffix, type, shape<first, Ne, ftz>);             \
  sink.Put("setp.lt" suffix, type, shape<first, Lt, ftz>);             \
  sink.Put("setp.le" suffix, type, shape<first, Le, ftz>);             \
  sink.Put("setp.gt" suffix, type, shape<first, Gt, ftz>);             \
  sink.Put("setp.ge" suffix, type, shape<first, Ge, ftz>);             \
  sink.Put("setp.equ" suffix, type, shape<first, Unordered<Eq>, ftz>); \
  sink.Put("setp.neu" suffix, type, shape<first, Unordered<Ne>, ftz>); \
  sink.Put("setp.ltu" suffix, type, shape<first, Unordered<Lt>, ftz>); \
  sink.Put("setp.leu" suffix, type, shape<first, Unordered<Le>, ftz>); \
  sink.Put("setp.gtu" suffix, type, shape<first, Unordered<Gt>, ftz>); \
  sink.Put("setp.geu" suffix, type, shape<first, Unordered<Ge>, ftz>); \
  sink.Put("setp.num" suffix, type, shape<first, Num, ftz>);           \
  sink.Put("setp.nan" suffix, type, shape<first, Nan, ftz>)

}  // namespace

void SIMGPU_CONCAT(RegisterCompare, SIMGPU_SUFFIX)(const HandlerSink& sink) {
  Integers<uint16_t>(sink, "u16");
  Integers<uint32_t>(sink, "u32");
  Integers<uint64_t>(sink, "u64");
  Integers<int16_t>(sink, "s16");
  Integers<int32_t>(sink, "s32");
  Integers<int64_t>(sink, "s64");
  COMPARISONS("", "f32", Setp, float, false);
  COMPARISONS(".ftz", "f32", Setp, float, true);
  COMPARISONS("", "f64", Setp, double, false);
  COMPARISONS("", "f16", SetpHalf, half::F16, false);
  COMPARISONS(".ftz", "f16", SetpHalf, half::F16, true);
  COMPARISONS("", "bf16", SetpHalf, half::BF16, false);
  sink.Put("testp", "f32", Testp<uint32_t, 23>);
  sink.Put("testp", "f64", Testp<uint64_t, 52>);
  sink.Put("and", "pred", PredLogic<0>);
  sink.Put("or", "pred", PredLogic<1>);
  sink.Put("xor", "pred", PredLogic<2>);
  sink.Put("not", "pred", PredLogic<3>);
  sink.Put("mov", "pred", PredLogic<4>);
}

}  // namespace simgpu
