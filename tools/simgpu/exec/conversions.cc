// Every conversion that convert_handlers.cc has no vectorised loop for: directed roundings,
// saturation, the less usual pairs of types. Lane by lane; exact, in integers or by correcting a
// result that was rounded to nearest.
#include "tools/simgpu/exec/conversions.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tools/simgpu/exec/float_ops.h"
#include "tools/simgpu/exec/half.h"
#include "tools/simgpu/exec/handlers.h"

namespace simgpu {
namespace {

struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};

template <typename T>
constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;
template <typename T>
constexpr bool kIsFloat = std::is_floating_point_v<T> || kIsHalf<T>;

template <typename T>
T ReadLane(Warp& w, Ref ref, int lane) {
  if constexpr (kIsHalf<T>) {
    return {static_cast<uint16_t>(Lane<uint32_t>(w, ref)[lane])};
  } else {
    return static_cast<T>(Lane<Slot<T>>(w, ref)[lane]);
  }
}

double Value(Half x) { return static_cast<double>(half::ToFloat<half::F16>(x.bits)); }
double Value(Bfloat x) { return static_cast<double>(half::ToFloat<half::BF16>(x.bits)); }
double Value(float x) { return static_cast<double>(x); }
double Value(double x) { return x; }

// Integers that an operation with rounding works on: sign and magnitude.
struct Whole {
  bool negative = false;
  uint64_t magnitude = 0;
};
template <typename S>
Whole ToWhole(S x) {
  if constexpr (std::is_signed_v<S>) {
    if (x < 0) return {true, 0 - static_cast<uint64_t>(static_cast<int64_t>(x))};
  }
  return {false, static_cast<uint64_t>(x)};
}

// Whether a magnitude with these discarded bits goes up to the next one. `rest` is compared with
// half a place: below (-1), exactly (0), above (1); `inexact`: it is not zero.
bool RoundsUp(Round mode, bool negative, bool odd, int rest, bool inexact) {
  switch (mode) {
    case Round::kNearest:
      return rest > 0 || (rest == 0 && odd);
    case Round::kZero:
      return false;
    case Round::kDown:
      return inexact && negative;
    case Round::kUp:
      return inexact && !negative;
  }
  return false;
}

// An integer as a float of `bits` significant places (all of them fit the exponent).
double WholeToDouble(Whole x, int bits, Round mode) {
  const int length = 64 - (x.magnitude == 0 ? 64 : __builtin_clzll(x.magnitude));
  uint64_t kept = x.magnitude;
  int shift = length - bits;
  if (shift > 0) {
    const uint64_t rest = x.magnitude & ((uint64_t{1} << shift) - 1);
    const uint64_t middle = uint64_t{1} << (shift - 1);
    kept = x.magnitude >> shift;
    if (RoundsUp(mode, x.negative, (kept & 1) != 0,
                 rest > middle    ? 1
                 : rest == middle ? 0
                                  : -1,
                 rest != 0)) {
      ++kept;
    }
  } else {
    shift = 0;
  }
  const double value = std::ldexp(static_cast<double>(kept), shift);
  return x.negative ? -value : value;
}

double RoundToInteger(double x, Round mode) {
  switch (mode) {
    case Round::kNearest:
      return std::nearbyint(x);  // the environment's mode is to nearest, ties to even
    case Round::kZero:
      return std::trunc(x);
    case Round::kDown:
      return std::floor(x);
    case Round::kUp:
      return std::ceil(x);
  }
  return x;
}

template <typename D>
D ToInteger(double x, Round mode) {
  // A NaN gives 0, and the sign bit alone in 64 bits.
  if (x != x) return sizeof(D) == 8 ? static_cast<D>(uint64_t{1} << 63) : D{0};
  const double r = RoundToInteger(x, mode);
  const auto low = static_cast<double>(std::numeric_limits<D>::min());
  const double high = std::ldexp(1.0, std::numeric_limits<D>::digits);
  if (r < low) return std::numeric_limits<D>::min();
  if (r >= high) return std::numeric_limits<D>::max();
  return static_cast<D>(r);
}

float RoundToFloat(double x, Round mode) {
  if (x != x) return std::bit_cast<float>(0x7fffffffu);
  const auto near = static_cast<float>(x);
  if (mode == Round::kNearest || static_cast<double>(near) == x) return near;
  const bool above = static_cast<double>(near) > x;
  const bool want_above = mode == Round::kUp || (mode == Round::kZero && std::signbit(x));
  if (above == want_above) return near;
  return std::nextafterf(near, above ? -std::numeric_limits<float>::infinity()
                                     : std::numeric_limits<float>::infinity());
}

// To a format with `bits` significant places, exponents as in the format's encoding: the place of
// the least subnormal is 2^low, and 2^high is the first value that is too large.
uint32_t RoundToHalf(double x, int bits, int low, int high, uint32_t infinity, Round mode) {
  const uint32_t sign = std::signbit(x) ? 0x8000 : 0;
  if (x != x) return half::kNan;
  if (std::isinf(x)) return sign | infinity;
  if (x == 0) return sign;
  int exponent = 0;
  const double m = std::frexp(std::fabs(x), &exponent);
  const int place = exponent - bits > low ? exponent - bits : low;
  const double scaled = std::ldexp(m, exponent - place);  // exact: it has at most 53 bits
  double whole = std::floor(scaled);
  const double rest = scaled - whole;
  if (RoundsUp(mode, sign != 0, std::fmod(whole, 2.0) == 1.0,
               rest > 0.5    ? 1
               : rest == 0.5 ? 0
                             : -1,
               rest != 0)) {
    whole += 1;
  }
  const double value = std::ldexp(whole, place);
  if (value >= std::ldexp(1.0, high)) {
    const bool away = mode == Round::kNearest || (mode == Round::kDown && sign != 0) ||
                      (mode == Round::kUp && sign == 0);
    return sign | (away ? infinity : infinity - 1);
  }
  // Subnormals and normals are one sequence of encodings: count places of the value's binade.
  if (value < std::ldexp(1.0, low + bits - 1)) {
    return sign | static_cast<uint32_t>(std::ldexp(value, -low));
  }
  int e = 0;
  const double fraction = std::frexp(value, &e);
  const auto significand = static_cast<uint32_t>(std::ldexp(fraction, bits));
  const auto field = static_cast<uint32_t>(e - (low + bits - 1));
  return sign | ((field << (bits - 1)) + (significand - (1u << (bits - 1))));
}

template <typename D, typename S>
void Convert(Warp& w, const Instr& in, int lane, S x) {
  const auto mode = static_cast<Round>(in.aux & kConvertRoundMask);
  const bool integral = (in.aux & kConvertIntegral) != 0;
  const bool saturate = (in.aux & kConvertSaturate) != 0;
  const bool flush = (in.aux & kConvertFlush) != 0;
  constexpr bool kFloatSource = kIsFloat<S>;
  double value = 0;
  if constexpr (kFloatSource) {
    value = Value(x);
    if (flush && std::is_same_v<S, float> &&
        std::fabs(value) < static_cast<double>(std::numeric_limits<float>::min())) {
      value = std::copysign(0.0, value);
    }
  }
  if constexpr (!kIsFloat<D>) {
    D out{};
    if constexpr (kFloatSource) {
      out = ToInteger<D>(value, mode);
    } else if (saturate) {
      const auto wide = static_cast<__int128>(x);
      const auto low = static_cast<__int128>(std::numeric_limits<D>::min());
      const auto high = static_cast<__int128>(std::numeric_limits<D>::max());
      out = static_cast<D>(wide < low ? low : wide > high ? high : wide);
    } else {
      out = static_cast<D>(x);
    }
    Lane<Slot<D>>(w, in.d)[lane] = static_cast<Slot<D>>(out);
    return;
  } else {
    constexpr int kBits = std::is_same_v<D, double>  ? 53
                          : std::is_same_v<D, float> ? 24
                          : std::is_same_v<D, Half>  ? 11
                                                     : 8;
    if constexpr (!kFloatSource) {
      value = WholeToDouble(ToWhole(x), kBits, mode);
    } else if (integral) {
      value = std::copysign(RoundToInteger(value, mode), value);
    }
    if (saturate) value = value > 0 ? (value < 1 ? value : 1.0) : 0.0;
    if constexpr (std::is_same_v<D, double>) {
      Lane<double>(w, in.d)[lane] =
          value == value ? value : std::bit_cast<double>(uint64_t{0xfff8000000000000});
    } else if constexpr (std::is_same_v<D, float>) {
      float out = RoundToFloat(value, mode);
      if (flush && std::fabs(out) < std::numeric_limits<float>::min()) {
        out = std::copysign(0.0f, out);
      }
      Lane<float>(w, in.d)[lane] = out;
    } else {
      // Integers beyond the format's range were not rounded to its places for nothing: a value
      // above the largest finite one still becomes that, or infinity, as the mode says.
      uint32_t out = std::is_same_v<D, Half> ? RoundToHalf(value, 11, -24, 16, 0x7c00, mode)
                                             : RoundToHalf(value, 8, -133, 128, 0x7f80, mode);
      if ((in.aux & kConvertRelu) != 0 && (out & 0x8000) != 0) out = 0;
      if ((in.aux & kConvertFinite) != 0 && value == value) {
        constexpr uint32_t kInfinity = std::is_same_v<D, Half> ? 0x7c00 : 0x7f80;
        if ((out & 0x7fff) == kInfinity) out -= 1;
      }
      Lane<uint32_t>(w, in.d)[lane] = out;
    }
  }
}

template <typename D, typename S>
void Cvt(Warp& w, const Instr& in) {
  ForLanes(w.mask, [&](int i) { Convert<D, S>(w, in, i, ReadLane<S>(w, in.a, i)); });
}

// cvt.rn.relu.f16x2.f32 d, a, b and the like: a into the upper half.
template <typename D>
void CvtPair(Warp& w, const Instr& in) {
  ForLanes(w.mask, [&](int i) {
    const float a = Lane<float>(w, in.a)[i], b = Lane<float>(w, in.b)[i];
    Convert<D, float>(w, in, i, a);
    const uint32_t high = Lane<uint32_t>(w, in.d)[i];
    Convert<D, float>(w, in, i, b);
    Lane<uint32_t>(w, in.d)[i] |= high << 16;
  });
}

// cvt.rna.tf32.f32 (aux 1) and cvt.rn.tf32.f32: ten bits of fraction, ties away or to even.
void CvtTf32(Warp& w, const Instr& in) {
  ForLanes(w.mask, [&](int i) {
    const uint32_t bits = Lane<uint32_t>(w, in.a)[i];
    const uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t out = magnitude;
    if (magnitude > 0x7f800000u) {
      Lane<uint32_t>(w, in.d)[i] = 0x7fffffffu;
      return;
    }
    if (magnitude < 0x7f800000u) {
      out += in.aux != 0 ? 0x1000u : 0xfffu + (magnitude >> 13 & 1);
      out &= ~0x1fffu;
    }
    Lane<uint32_t>(w, in.d)[i] = out | (bits & 0x80000000u);
  });
}

template <typename D>
void RegisterTo(const HandlerSink& sink, const char* op) {
  sink.Put(op, "s8", Cvt<D, int8_t>);
  sink.Put(op, "u8", Cvt<D, uint8_t>);
  sink.Put(op, "s16", Cvt<D, int16_t>);
  sink.Put(op, "u16", Cvt<D, uint16_t>);
  sink.Put(op, "s32", Cvt<D, int32_t>);
  sink.Put(op, "u32", Cvt<D, uint32_t>);
  sink.Put(op, "s64", Cvt<D, int64_t>);
  sink.Put(op, "u64", Cvt<D, uint64_t>);
  sink.Put(op, "f16", Cvt<D, Half>);
  sink.Put(op, "bf16", Cvt<D, Bfloat>);
  sink.Put(op, "f32", Cvt<D, float>);
  sink.Put(op, "f64", Cvt<D, double>);
}

}  // namespace

void RegisterConversions(const HandlerSink& sink) {
  RegisterTo<int8_t>(sink, "convert.s8");
  RegisterTo<uint8_t>(sink, "convert.u8");
  RegisterTo<int16_t>(sink, "convert.s16");
  RegisterTo<uint16_t>(sink, "convert.u16");
  RegisterTo<int32_t>(sink, "convert.s32");
  RegisterTo<uint32_t>(sink, "convert.u32");
  RegisterTo<int64_t>(sink, "convert.s64");
  RegisterTo<uint64_t>(sink, "convert.u64");
  RegisterTo<Half>(sink, "convert.f16");
  RegisterTo<Bfloat>(sink, "convert.bf16");
  RegisterTo<float>(sink, "convert.f32");
  RegisterTo<double>(sink, "convert.f64");
  sink.Put("convert.f16x2", "f32", CvtPair<Half>);
  sink.Put("convert.bf16x2", "f32", CvtPair<Bfloat>);
  sink.Put("convert.tf32", "f32", CvtTf32);
}

}  // namespace simgpu
