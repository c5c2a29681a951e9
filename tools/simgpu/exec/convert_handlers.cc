// The conversions that programs use all the time, vectorised: among integers, integer to float and
// back, float to and from half, double and float. The rest is in conversions.cc. Built once for
// the baseline and once for AVX2.
#include "tools/simgpu/exec/float_ops.h"
#include "tools/simgpu/exec/half.h"
#include "tools/simgpu/exec/handlers.h"

namespace simgpu {
namespace {

template <bool kMasked, typename D, typename S>
void Integer(Warp& w, const Instr& in) {
  const Slot<S>* a = Lane<Slot<S>>(w, in.a);
  Apply<kMasked, D>(w, in.d, [=](int i) SIMGPU_LAMBDA { return static_cast<D>(Get<S>(a, i)); });
}
// To nearest, which is what C++ does.
template <bool kMasked, typename D, typename S>
void ToFloat(Warp& w, const Instr& in) {
  const Slot<S>* a = Lane<Slot<S>>(w, in.a);
  Apply<kMasked, D>(w, in.d, [=](int i) SIMGPU_LAMBDA { return static_cast<D>(Get<S>(a, i)); });
}

template <Round kRound>
SIMGPU_INLINE float RoundInteger(float x) {
  switch (kRound) {
    case Round::kNearest:
      return __builtin_rintf(x);
    case Round::kZero:
      return __builtin_truncf(x);
    case Round::kDown:
      return __builtin_floorf(x);
    case Round::kUp:
      return __builtin_ceilf(x);
  }
}
// Out of range: the nearest that there is; NaN: 0.
template <bool kMasked, Round kRound, bool kFtz>
void ToS32(Warp& w, const Instr& in) {
  const float* a = Lane<float>(w, in.a);
  Apply<kMasked, int32_t>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    const float x = FlushIf<kFtz>(a[i]);
    const float r = RoundInteger<kRound>(x == x ? x : 0.0f);
    const float low = r > -0x1p31f ? r : -0x1p31f;
    const float within = low < 0x1.fffffep30f ? low : 0x1.fffffep30f;
    const auto value = static_cast<int32_t>(within);
    return r >= 0x1p31f ? std::numeric_limits<int32_t>::max() : value;
  });
}
template <bool kMasked, Round kRound, bool kFtz>
void ToU32(Warp& w, const Instr& in) {
  const float* a = Lane<float>(w, in.a);
  Apply<kMasked, uint32_t>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    const float x = FlushIf<kFtz>(a[i]);
    const float r = RoundInteger<kRound>(x > 0.0f ? x : 0.0f);
    const float low = r < 0x1p31f ? r : 0.0f;
    const float above = r >= 0x1p31f ? r - 0x1p31f : 0.0f;
    const float capped = above < 0x1.fffffep30f ? above : 0x1.fffffep30f;
    const uint32_t value =
        static_cast<uint32_t>(static_cast<int32_t>(low)) |
        (static_cast<uint32_t>(static_cast<int32_t>(capped)) ^ (r >= 0x1p31f ? 0x80000000u : 0));
    return r >= 0x1p32f ? kAllLanes : value;
  });
}
// cvt.f32.f32: .rni and so on, .sat, .ftz.
template <bool kMasked, Round kRound, bool kInteger, bool kFtz, bool kSat>
void FloatFloat(Warp& w, const Instr& in) {
  const float* a = Lane<float>(w, in.a);
  Apply<kMasked, float>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    float x = FlushIf<kFtz>(a[i]);
    if constexpr (kInteger) {
      // Rounding may lose the sign of a zero.
      const float r = RoundInteger<kRound>(x);
      x = std::bit_cast<float>((std::bit_cast<uint32_t>(r) & 0x7fffffffu) |
                               (std::bit_cast<uint32_t>(x) & 0x80000000u));
    }
    return kSat ? Saturate(x) : Canonical(x);
  });
}
template <bool kMasked>
void F64FromF32(Warp& w, const Instr& in) {
  const float* a = Lane<float>(w, in.a);
  Apply<kMasked, double>(w, in.d,
                         [=](int i) SIMGPU_LAMBDA { return Canonical(static_cast<double>(a[i])); });
}
template <bool kMasked>
void F32FromF64(Warp& w, const Instr& in) {
  const double* a = Lane<double>(w, in.a);
  Apply<kMasked, float>(w, in.d,
                        [=](int i) SIMGPU_LAMBDA { return Canonical(static_cast<float>(a[i])); });
}
template <bool kMasked, typename Format>
void FromHalf(Warp& w, const Instr& in) {
  const uint32_t* a = Lane<uint32_t>(w, in.a);
  Apply<kMasked, float>(w, in.d, [=](int i) SIMGPU_LAMBDA { return half::ToFloat<Format>(a[i]); });
}
template <bool kMasked, typename Format>
void ToHalf(Warp& w, const Instr& in) {
  const float* a = Lane<float>(w, in.a);
  Apply<kMasked, uint32_t>(w, in.d,
                           [=](int i) SIMGPU_LAMBDA { return half::FromFloat<Format>(a[i]); });
}
// cvt.rn.f16x2.f32 d, a, b: a into the upper half.
template <bool kMasked, typename Format>
void ToHalves(Warp& w, const Instr& in) {
  const float* a = Lane<float>(w, in.a);
  const float* b = Lane<float>(w, in.b);
  Apply<kMasked, uint32_t>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    return half::FromFloat<Format>(a[i]) << 16 | half::FromFloat<Format>(b[i]);
  });
}

#define PUT(op, type, handler, ...) \
  sink.Put(op, type, handler<false, __VA_ARGS__>, handler<true, __VA_ARGS__>)
#define FROM_INTEGERS(d, D)                   \
  PUT("cvt." d, "s8", Integer, D, int8_t);    \
  PUT("cvt." d, "u8", Integer, D, uint8_t);   \
  PUT("cvt." d, "s16", Integer, D, int16_t);  \
  PUT("cvt." d, "u16", Integer, D, uint16_t); \
  PUT("cvt." d, "s32", Integer, D, int32_t);  \
  PUT("cvt." d, "u32", Integer, D, uint32_t); \
  PUT("cvt." d, "s64", Integer, D, int64_t);  \
  PUT("cvt." d, "u64", Integer, D, uint64_t)
#define FLOAT_FROM_INTEGERS(d, D)                \
  PUT("cvt.rn." d, "s8", ToFloat, D, int8_t);    \
  PUT("cvt.rn." d, "u8", ToFloat, D, uint8_t);   \
  PUT("cvt.rn." d, "s16", ToFloat, D, int16_t);  \
  PUT("cvt.rn." d, "u16", ToFloat, D, uint16_t); \
  PUT("cvt.rn." d, "s32", ToFloat, D, int32_t);  \
  PUT("cvt.rn." d, "u32", ToFloat, D, uint32_t); \
  PUT("cvt.rn." d, "s64", ToFloat, D, int64_t);  \
  PUT("cvt.rn." d, "u64", ToFloat, D, uint64_t)
#define ROUNDINGS(r, R)                                              \
  PUT("cvt." r ".s32", "f32", ToS32, R, false);                      \
  PUT("cvt." r ".ftz.s32", "f32", ToS32, R, true);                   \
  PUT("cvt." r ".u32", "f32", ToU32, R, false);                      \
  PUT("cvt." r ".ftz.u32", "f32", ToU32, R, true);                   \
  PUT("cvt." r ".f32", "f32", FloatFloat, R, true, false, false);    \
  PUT("cvt." r ".ftz.f32", "f32", FloatFloat, R, true, true, false); \
  PUT("cvt." r ".sat.f32", "f32", FloatFloat, R, true, false, true); \
  PUT("cvt." r ".ftz.sat.f32", "f32", FloatFloat, R, true, true, true)

}  // namespace

void SIMGPU_CONCAT(RegisterConvert, SIMGPU_SUFFIX)(const HandlerSink& sink) {
  FROM_INTEGERS("s8", int8_t);
  FROM_INTEGERS("u8", uint8_t);
  FROM_INTEGERS("s16", int16_t);
  FROM_INTEGERS("u16", uint16_t);
  FROM_INTEGERS("s32", int32_t);
  FROM_INTEGERS("u32", uint32_t);
  FROM_INTEGERS("s64", int64_t);
  FROM_INTEGERS("u64", uint64_t);
  FLOAT_FROM_INTEGERS("f32", float);
  FLOAT_FROM_INTEGERS("f64", double);
  ROUNDINGS("rni", Round::kNearest);
  ROUNDINGS("rzi", Round::kZero);
  ROUNDINGS("rmi", Round::kDown);
  ROUNDINGS("rpi", Round::kUp);
  PUT("cvt.f32", "f32", FloatFloat, Round::kNearest, false, false, false);
  PUT("cvt.ftz.f32", "f32", FloatFloat, Round::kNearest, false, true, false);
  PUT("cvt.sat.f32", "f32", FloatFloat, Round::kNearest, false, false, true);
  PUT("cvt.ftz.sat.f32", "f32", FloatFloat, Round::kNearest, false, true, true);
  sink.Put("cvt.f64", "f32", F64FromF32<false>, F64FromF32<true>);
  sink.Put("cvt.rn.f32", "f64", F32FromF64<false>, F32FromF64<true>);
  PUT("cvt.f32", "f16", FromHalf, half::F16);
  PUT("cvt.f32", "bf16", FromHalf, half::BF16);
  PUT("cvt.rn.f16", "f32", ToHalf, half::F16);
  PUT("cvt.rn.bf16", "f32", ToHalf, half::BF16);
  PUT("cvt.rn.f16x2", "f32", ToHalves, half::F16);
  PUT("cvt.rn.bf16x2", "f32", ToHalves, half::BF16);
}

}  // namespace simgpu
