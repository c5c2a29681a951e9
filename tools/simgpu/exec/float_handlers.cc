// f32 and f64 arithmetic of whole warps, every rounding mode exact. Built once for the baseline
// and once for AVX2; without contraction, so that both give the same bits.
#include "tools/simgpu/exec/float_ops.h"
#include "tools/simgpu/exec/handlers.h"

namespace simgpu {
namespace {

template <typename T, bool kFtz, bool kSat>
SIMGPU_INLINE T Finish(T x) {
  x = FlushIf<kFtz>(x);
  if constexpr (kSat) return Saturate(x);
  return Canonical(x);
}

template <bool kMasked, typename T, typename Op, Round kRound, bool kFtz, bool kSat>
void Float1(Warp& w, const Instr& in) {
  const T* a = Lane<T>(w, in.a);
  const RoundScope<kRound> scope;
  Apply<kMasked, T>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    return Finish<T, kFtz, kSat>(Op::template Do<T>(FlushIf<kFtz>(a[i])));
  });
}
template <bool kMasked, typename T, typename Op, Round kRound, bool kFtz, bool kSat>
void Float2(Warp& w, const Instr& in) {
  const T* a = Lane<T>(w, in.a);
  const T* b = Lane<T>(w, in.b);
  const RoundScope<kRound> scope;
  Apply<kMasked, T>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    return Finish<T, kFtz, kSat>(Op::template Do<T>(FlushIf<kFtz>(a[i]), FlushIf<kFtz>(b[i])));
  });
}
template <bool kMasked, typename T, typename Op, Round kRound, bool kFtz, bool kSat>
void Float3(Warp& w, const Instr& in) {
  const T* a = Lane<T>(w, in.a);
  const T* b = Lane<T>(w, in.b);
  const T* c = Lane<T>(w, in.c);
  const RoundScope<kRound> scope;
  Apply<kMasked, T>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    return Finish<T, kFtz, kSat>(
        Op::template Do<T>(FlushIf<kFtz>(a[i]), FlushIf<kFtz>(b[i]), FlushIf<kFtz>(c[i])));
  });
}

// neg, abs and copysign work on the sign bit alone, NaNs included.
template <bool kMasked, typename T, typename B, int kOp, bool kFtz>
void Sign(Warp& w, const Instr& in) {  // kOp: 0 neg, 1 abs
  const T* a = Lane<T>(w, in.a);
  constexpr B kTop = B{1} << (8 * sizeof(B) - 1);
  Apply<kMasked, B>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    const B bits = std::bit_cast<B>(FlushIf<kFtz>(a[i]));
    return kOp == 0 ? bits ^ kTop : bits & ~kTop;
  });
}
template <bool kMasked, typename B>
void Copysign(Warp& w, const Instr& in) {  // the sign of a, the rest of b
  const B* a = Lane<B>(w, in.a);
  const B* b = Lane<B>(w, in.b);
  constexpr B kTop = B{1} << (8 * sizeof(B) - 1);
  Apply<kMasked, B>(w, in.d, [=](int i) SIMGPU_LAMBDA { return (a[i] & kTop) | (b[i] & ~kTop); });
}

// Three-operand min and max.
template <typename Op>
struct Fold3 {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b, T c) {
    return Op::template Do<T>(Op::template Do<T>(a, b), c);
  }
};

constexpr const char* kRoundNames[] = {"", ".rz", ".rm", ".rp"};

// Joins "op", the rounding and the suffix; the sink copies it.
class Key {
 public:
  Key(const char* op, const char* round, const char* suffix) {
    char* at = text_;
    for (const char* part : {op, round, suffix}) {
      while (*part != '\0') *at++ = *part++;
    }
    *at = '\0';
  }
  operator const char*() const { return text_; }

 private:
  char text_[48];
};

#define PUT(op, type, handler, ...) \
  sink.Put(op, type, handler<false, __VA_ARGS__>, handler<true, __VA_ARGS__>)

template <Round kRound>
void Rounded(const HandlerSink& sink) {
  const char* r = kRoundNames[static_cast<int>(kRound)];
#define MODES(op, shape, functor)                                             \
  PUT(Key(op, r, ""), "f32", shape, float, functor, kRound, false, false);    \
  PUT(Key(op, r, ".ftz"), "f32", shape, float, functor, kRound, true, false); \
  PUT(Key(op, r, ""), "f64", shape, double, functor, kRound, false, false)
#define MODES_SAT(op, shape, functor)                                         \
  MODES(op, shape, functor);                                                  \
  PUT(Key(op, r, ".sat"), "f32", shape, float, functor, kRound, false, true); \
  PUT(Key(op, r, ".ftz.sat"), "f32", shape, float, functor, kRound, true, true)
  MODES_SAT("add", Float2, FAdd);
  MODES_SAT("sub", Float2, FSub);
  MODES_SAT("mul", Float2, FMul);
  MODES_SAT("fma", Float3, Fma);
  MODES("div", Float2, FDiv);
  MODES("rcp", Float1, Rcp);
  MODES("sqrt", Float1, Sqrt);
#undef MODES_SAT
#undef MODES
}

}  // namespace

void SIMGPU_CONCAT(RegisterFloat, SIMGPU_SUFFIX)(const HandlerSink& sink) {
  Rounded<Round::kNearest>(sink);
  Rounded<Round::kZero>(sink);
  Rounded<Round::kDown>(sink);
  Rounded<Round::kUp>(sink);
#define MINMAX(op, functor)                                              \
  PUT(op, "f32", Float2, float, functor, Round::kNearest, false, false); \
  PUT(op ".ftz", "f32", Float2, float, functor, Round::kNearest, true, false)
#define MINMAX3(op, functor)                                             \
  PUT(op, "f32", Float3, float, functor, Round::kNearest, false, false); \
  PUT(op ".ftz", "f32", Float3, float, functor, Round::kNearest, true, false)
  MINMAX("min", FMin);
  MINMAX("max", FMax);
  MINMAX("min.NaN", FMinNan);
  MINMAX("max.NaN", FMaxNan);
  MINMAX("min.xorsign", XorSignAbs<FMin>);
  MINMAX("max.xorsign", XorSignAbs<FMax>);
  MINMAX("min.NaN.xorsign", XorSignAbs<FMinNan>);
  MINMAX("max.NaN.xorsign", XorSignAbs<FMaxNan>);
  MINMAX3("min3", Fold3<FMin>);
  MINMAX3("max3", Fold3<FMax>);
  MINMAX3("min3.NaN", Fold3<FMinNan>);
  MINMAX3("max3.NaN", Fold3<FMaxNan>);
#undef MINMAX3
#undef MINMAX
  PUT("min", "f64", Float2, double, FMin, Round::kNearest, false, false);
  PUT("max", "f64", Float2, double, FMax, Round::kNearest, false, false);
  PUT("neg", "f32", Sign, float, uint32_t, 0, false);
  PUT("neg.ftz", "f32", Sign, float, uint32_t, 0, true);
  PUT("neg", "f64", Sign, double, uint64_t, 0, false);
  PUT("abs", "f32", Sign, float, uint32_t, 1, false);
  PUT("abs.ftz", "f32", Sign, float, uint32_t, 1, true);
  PUT("abs", "f64", Sign, double, uint64_t, 1, false);
  PUT("copysign", "f32", Copysign, uint32_t);
  PUT("copysign", "f64", Copysign, uint64_t);
}

}  // namespace simgpu
