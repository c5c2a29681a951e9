// cvt: among integers, half, bfloat16, float and double, with every rounding mode. The half formats
// are done in integers, so that no hardware mode matters.
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tools/simgpu/exec/code.h"
#include "tools/simgpu/exec/half.h"

namespace simgpu {

float HalfToFloat(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  const uint32_t exponent = h >> 10 & 0x1f;
  uint32_t mantissa = h & 0x3ff;
  uint32_t bits = 0;
  if (exponent == 0x1f) {
    bits = sign | 0x7f800000u | mantissa << 13;
  } else if (exponent != 0) {
    bits = sign | (exponent + 112) << 23 | mantissa << 13;
  } else if (mantissa != 0) {
    uint32_t e = 113;
    while ((mantissa & 0x400) == 0) {
      mantissa <<= 1;
      --e;
    }
    bits = sign | e << 23 | (mantissa & 0x3ff) << 13;
  } else {
    bits = sign;
  }
  float out;
  std::memcpy(&out, &bits, sizeof(out));
  return out;
}

namespace {

// Rounds |x| = mantissa * 2^exponent (64-bit mantissa) to a format of `bits` mantissa bits (hidden
// one included), least exponent `low` of the last place, greatest value below 2^high.
uint32_t RoundTo(double x, int bits, int low, int high, Rounding mode, uint32_t max_finite,
                 uint32_t infinity) {
  const bool negative = std::signbit(x);
  int e = 0;
  const double m = std::frexp(std::fabs(x), &e);  // m in [0.5, 1)
  if (x == 0) return 0;
  int place = e - bits;  // exponent of the last kept place
  if (place < low) place = low;
  const double scaled = std::ldexp(m, e - place);
  double whole = std::floor(scaled);
  const double rest = scaled - whole;
  bool up = false;
  switch (mode) {
    case Rounding::kNearest:
      up = rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) == 1);
      break;
    case Rounding::kZero:
      break;
    case Rounding::kDown:
      up = negative && rest > 0;
      break;
    case Rounding::kUp:
      up = !negative && rest > 0;
      break;
  }
  if (up) whole += 1;
  if (whole == 0) return 0;
  const double value = std::ldexp(whole, place);
  if (value >= std::ldexp(1.0, high)) {
    const bool to_infinity = mode == Rounding::kNearest || (mode == Rounding::kDown && negative) ||
                             (mode == Rounding::kUp && !negative);
    return to_infinity ? infinity : max_finite;
  }
  int ve = 0;
  const double vm = std::frexp(value, &ve);
  const int field = ve - 1 - (low + bits - 1) + 1;  // biased exponent; <= 0: subnormal
  if (field <= 0) return static_cast<uint32_t>(std::ldexp(value, -low));
  const auto mantissa = static_cast<uint32_t>(std::ldexp(vm, bits));
  return static_cast<uint32_t>(field) << (bits - 1) | (mantissa & ((1u << (bits - 1)) - 1));
}

}  // namespace

uint16_t ToHalf(double x, Rounding mode) {
  const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  if (std::isnan(x)) return 0x7fff;
  if (std::isinf(x)) return sign | 0x7c00;
  return static_cast<uint16_t>(sign | RoundTo(x, 11, -24, 16, mode, 0x7bff, 0x7c00));
}

uint16_t ToBfloat(double x, Rounding mode) {
  const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  if (std::isnan(x)) return 0x7fff;
  if (std::isinf(x)) return sign | 0x7f80;
  return static_cast<uint16_t>(sign | RoundTo(x, 8, -133, 128, mode, 0x7f7f, 0x7f80));
}

float BfloatToFloat(uint16_t b) {
  const uint32_t bits = static_cast<uint32_t>(b) << 16;
  float out;
  std::memcpy(&out, &bits, sizeof(out));
  return out;
}

namespace {

// Lane types of the two half formats.
struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};

template <typename T>
constexpr bool kIsFloat =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;

template <typename T>
T Read(Warp& w, Ref ref, int lane) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) {
    return {static_cast<uint16_t>(Lane<uint32_t>(w, ref)[lane])};
  } else if constexpr (sizeof(T) >= 4) {
    return Lane<T>(w, ref)[lane];
  } else {
    return static_cast<T>(Lane<uint32_t>(w, ref)[lane]);
  }
}

template <typename T>
double Widen(T x) {
  if constexpr (std::is_same_v<T, Half>) {
    return HalfToFloat(x.bits);
  } else if constexpr (std::is_same_v<T, Bfloat>) {
    return BfloatToFloat(x.bits);
  } else {
    return static_cast<double>(x);
  }
}

double RoundToInteger(double x, Rounding mode) {
  switch (mode) {
    case Rounding::kNearest:
      return std::nearbyint(x);  // the default mode is to nearest even
    case Rounding::kZero:
      return std::trunc(x);
    case Rounding::kDown:
      return std::floor(x);
    case Rounding::kUp:
      return std::ceil(x);
  }
  return x;
}

template <typename D>
D FloatToInteger(double x, Rounding mode) {
  if (x != x) {
    // The hardware gives 0 for narrow results, and the sign bit alone for 64 bits.
    return sizeof(D) == 8 ? static_cast<D>(uint64_t{1} << 63) : D{0};
  }
  const double r = RoundToInteger(x, mode);
  const auto low = static_cast<double>(std::numeric_limits<D>::min());
  const double high = std::ldexp(1.0, std::numeric_limits<D>::digits);
  if (r < low) return std::numeric_limits<D>::min();
  if (r >= high) return std::numeric_limits<D>::max();
  return static_cast<D>(r);
}

int FeMode(Rounding mode) {
  return mode == Rounding::kNearest ? FE_TONEAREST
         : mode == Rounding::kZero  ? FE_TOWARDZERO
         : mode == Rounding::kDown  ? FE_DOWNWARD
                                    : FE_UPWARD;
}

template <typename D, typename S>
D ToFloat(S x, Rounding mode) {
  volatile S in = x;
  if (mode == Rounding::kNearest) return static_cast<D>(in);
  std::fesetround(FeMode(mode));
  volatile D out = static_cast<D>(in);
  std::fesetround(FE_TONEAREST);
  return out;
}

template <typename D, typename S>
void StoreLane(Warp& w, const Instr& in, int lane, S x) {
  const auto mode = static_cast<Rounding>(in.aux & 3);
  const bool to_integer = in.aux & 4, saturate = in.aux & 8, ftz = in.aux & 16;
  if constexpr (!kIsFloat<D>) {
    D out{};
    if constexpr (kIsFloat<S>) {
      double value = Widen(x);
      if (ftz && std::fabs(value) < std::numeric_limits<float>::min()) value = 0;
      out = FloatToInteger<D>(value, mode);
    } else if (saturate) {
      const auto wide = static_cast<__int128>(x);
      const auto low = static_cast<__int128>(std::numeric_limits<D>::min());
      const auto high = static_cast<__int128>(std::numeric_limits<D>::max());
      out = static_cast<D>(wide < low ? low : wide > high ? high : wide);
    } else {
      out = static_cast<D>(x);
    }
    if constexpr (sizeof(D) == 8) {
      Lane<D>(w, in.d)[lane] = out;
    } else if (in.aux & 32) {  // a 64-bit destination register: extended
      Lane<int64_t>(w, in.d)[lane] = static_cast<int64_t>(out);
    } else {
      Lane<int32_t>(w, in.d)[lane] = static_cast<int32_t>(out);
    }
  } else if constexpr (std::is_same_v<D, Half> || std::is_same_v<D, Bfloat>) {
    double value = Widen(x);
    if constexpr (!kIsFloat<S> && sizeof(S) == 8) value = ToFloat<double>(x, mode);
    if (to_integer) value = RoundToInteger(value, mode);
    if (saturate) value = value != value || value < 0 ? 0 : value > 1 ? 1 : value;
    Lane<uint32_t>(w, in.d)[lane] =
        std::is_same_v<D, Half> ? ToHalf(value, mode) : ToBfloat(value, mode);
  } else {
    D value{};
    if constexpr (std::is_same_v<S, Half> || std::is_same_v<S, Bfloat>) {
      value = static_cast<D>(Widen(x));
    } else {
      value = ToFloat<D>(x, mode);
    }
    if (to_integer) value = static_cast<D>(RoundToInteger(value, mode));
    if (ftz && std::is_same_v<D, float> &&
        std::fabs(value) < static_cast<D>(std::numeric_limits<float>::min())) {
      value = std::copysign(D{0}, value);
    }
    if (saturate) value = value != value || value < 0 ? D{0} : value > 1 ? D{1} : value;
    Lane<D>(w, in.d)[lane] = value;
  }
}

template <typename D, typename S>
void Cvt(Warp& w, const Instr& in) {
  for (int i = 0; i < kLanes; ++i) {
    if (w.mask >> i & 1) StoreLane<D, S>(w, in, i, Read<S>(w, in.a, i));
  }
}

// cvt.rn.f16x2.f32 d, a, b: a into the high half.
template <typename D>
void CvtPacked(Warp& w, const Instr& in) {
  const auto mode = static_cast<Rounding>(in.aux & 3);
  auto one = [&](float x) -> uint32_t {
    return std::is_same_v<D, Half> ? ToHalf(x, mode) : ToBfloat(x, mode);
  };
  const auto* a = Lane<float>(w, in.a);
  const auto* b = Lane<float>(w, in.b);
  auto* d = Lane<uint32_t>(w, in.d);
  for (int i = 0; i < kLanes; ++i) {
    if (w.mask >> i & 1) d[i] = one(a[i]) << 16 | one(b[i]);
  }
}

template <typename D>
void RegisterTo(HandlerMap* map, const std::string& d) {
  HandlerMap& m = *map;
  m["cvt." + d + ".s8"] = Cvt<D, int8_t>;
  m["cvt." + d + ".u8"] = Cvt<D, uint8_t>;
  m["cvt." + d + ".s16"] = Cvt<D, int16_t>;
  m["cvt." + d + ".u16"] = Cvt<D, uint16_t>;
  m["cvt." + d + ".s32"] = Cvt<D, int32_t>;
  m["cvt." + d + ".u32"] = Cvt<D, uint32_t>;
  m["cvt." + d + ".s64"] = Cvt<D, int64_t>;
  m["cvt." + d + ".u64"] = Cvt<D, uint64_t>;
  m["cvt." + d + ".f16"] = Cvt<D, Half>;
  m["cvt." + d + ".bf16"] = Cvt<D, Bfloat>;
  m["cvt." + d + ".f32"] = Cvt<D, float>;
  m["cvt." + d + ".f64"] = Cvt<D, double>;
}

// Directed rounding of the basic operations.
template <typename T, typename F>
void Directed(Warp& w, const Instr& in, F f) {
  std::fesetround(FeMode(static_cast<Rounding>(in.aux & 3)));
  for (int i = 0; i < kLanes; ++i) {
    if (!(w.mask >> i & 1)) continue;
    volatile T out = f(i);
    Lane<T>(w, in.d)[i] = out;
  }
  std::fesetround(FE_TONEAREST);
}
template <typename T>
void AddDirected(Warp& w, const Instr& in) {
  Directed<T>(w, in, [&](int i) {
    volatile T a = Lane<T>(w, in.a)[i], b = Lane<T>(w, in.b)[i];
    return a + b;
  });
}
template <typename T>
void SubDirected(Warp& w, const Instr& in) {
  Directed<T>(w, in, [&](int i) {
    volatile T a = Lane<T>(w, in.a)[i], b = Lane<T>(w, in.b)[i];
    return a - b;
  });
}
template <typename T>
void MulDirected(Warp& w, const Instr& in) {
  Directed<T>(w, in, [&](int i) {
    volatile T a = Lane<T>(w, in.a)[i], b = Lane<T>(w, in.b)[i];
    return a * b;
  });
}
template <typename T>
void DivDirected(Warp& w, const Instr& in) {
  Directed<T>(w, in, [&](int i) {
    volatile T a = Lane<T>(w, in.a)[i], b = Lane<T>(w, in.b)[i];
    return a / b;
  });
}
template <typename T>
void FmaDirected(Warp& w, const Instr& in) {
  Directed<T>(w, in, [&](int i) {
    volatile T a = Lane<T>(w, in.a)[i], b = Lane<T>(w, in.b)[i], c = Lane<T>(w, in.c)[i];
    return std::fma(a, b, c);
  });
}
template <typename T>
void SqrtDirected(Warp& w, const Instr& in) {
  Directed<T>(w, in, [&](int i) {
    volatile T a = Lane<T>(w, in.a)[i];
    return std::sqrt(a);
  });
}
template <typename T>
void RcpDirected(Warp& w, const Instr& in) {
  Directed<T>(w, in, [&](int i) {
    volatile T a = Lane<T>(w, in.a)[i];
    return T{1} / a;
  });
}

// Half and bfloat16 arithmetic through double, which holds every sum and product of theirs exactly
// (and a fused multiply-add to within its one rounding).
enum class HalfOp { kAdd, kSub, kMul, kFma, kMin, kMax, kNeg, kAbs };
template <typename D, HalfOp kOp>
uint32_t HalfOne(uint32_t a, uint32_t b, uint32_t c) {
  const double x = Widen(D{static_cast<uint16_t>(a)}), y = Widen(D{static_cast<uint16_t>(b)}),
               z = Widen(D{static_cast<uint16_t>(c)});
  if (kOp == HalfOp::kNeg) return (a ^ 0x8000) & 0xffff;
  if (kOp == HalfOp::kAbs) return a & 0x7fff;
  double r = 0;
  switch (kOp) {
    case HalfOp::kAdd:
      r = x + y;
      break;
    case HalfOp::kSub:
      r = x - y;
      break;
    case HalfOp::kMul:
      r = x * y;
      break;
    case HalfOp::kFma:
      r = std::fma(x, y, z);
      break;
    case HalfOp::kMin:
      r = x != x ? y : y != y ? x : x < y || (x == y && std::signbit(x)) ? x : y;
      break;
    case HalfOp::kMax:
      r = x != x ? y : y != y ? x : x > y || (x == y && !std::signbit(x)) ? x : y;
      break;
    default:
      break;
  }
  return std::is_same_v<D, Half> ? ToHalf(r, Rounding::kNearest) : ToBfloat(r, Rounding::kNearest);
}
template <typename D, HalfOp kOp, bool kPacked>
void HalfArithmetic(Warp& w, const Instr& in) {
  const auto* a = Lane<uint32_t>(w, in.a);
  const auto* b = in.b != kNoRef ? Lane<uint32_t>(w, in.b) : a;
  const auto* c = in.c != kNoRef ? Lane<uint32_t>(w, in.c) : a;
  auto* d = Lane<uint32_t>(w, in.d);
  for (int i = 0; i < kLanes; ++i) {
    if (!(w.mask >> i & 1)) continue;
    uint32_t out = HalfOne<D, kOp>(a[i], b[i], c[i]);
    if (kPacked) out |= HalfOne<D, kOp>(a[i] >> 16, b[i] >> 16, c[i] >> 16) << 16;
    d[i] = out;
  }
}
template <typename D>
void HalfSetp(Warp& w, const Instr& in) {  // imm >> 1: comparison by index; bit 0: c negated
  const auto* a = Lane<uint32_t>(w, in.a);
  const auto* b = Lane<uint32_t>(w, in.b);
  uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) {
    const double x = Widen(D{static_cast<uint16_t>(a[i])}),
                 y = Widen(D{static_cast<uint16_t>(b[i])});
    const bool nan = x != x || y != y;
    bool r = false;
    switch (in.target & 7) {
      case 0:
        r = x == y;
        break;
      case 1:
        r = !nan && x != y;
        break;
      case 2:
        r = x < y;
        break;
      case 3:
        r = x <= y;
        break;
      case 4:
        r = x > y;
        break;
      case 5:
        r = x >= y;
        break;
      default:
        break;
    }
    if (in.target & 8) r = r || nan;
    bits |= static_cast<uint32_t>(r) << i;
  }
  uint32_t& d = Pred(w, in.d);
  d = (d & ~w.mask) | (bits & w.mask);
}

template <typename D>
void RegisterHalf(HandlerMap* map, const std::string& t) {
  HandlerMap& m = *map;
  m["add." + t] = HalfArithmetic<D, HalfOp::kAdd, false>;
  m["sub." + t] = HalfArithmetic<D, HalfOp::kSub, false>;
  m["mul." + t] = HalfArithmetic<D, HalfOp::kMul, false>;
  m["fma." + t] = HalfArithmetic<D, HalfOp::kFma, false>;
  m["min." + t] = HalfArithmetic<D, HalfOp::kMin, false>;
  m["max." + t] = HalfArithmetic<D, HalfOp::kMax, false>;
  m["neg." + t] = HalfArithmetic<D, HalfOp::kNeg, false>;
  m["abs." + t] = HalfArithmetic<D, HalfOp::kAbs, false>;
  m["add." + t + "x2"] = HalfArithmetic<D, HalfOp::kAdd, true>;
  m["sub." + t + "x2"] = HalfArithmetic<D, HalfOp::kSub, true>;
  m["mul." + t + "x2"] = HalfArithmetic<D, HalfOp::kMul, true>;
  m["fma." + t + "x2"] = HalfArithmetic<D, HalfOp::kFma, true>;
  m["min." + t + "x2"] = HalfArithmetic<D, HalfOp::kMin, true>;
  m["max." + t + "x2"] = HalfArithmetic<D, HalfOp::kMax, true>;
  m["neg." + t + "x2"] = HalfArithmetic<D, HalfOp::kNeg, true>;
  m["abs." + t + "x2"] = HalfArithmetic<D, HalfOp::kAbs, true>;
  m["setp." + t] = HalfSetp<D>;
}

}  // namespace

void RegisterConversions(HandlerMap* map) {
  RegisterTo<int8_t>(map, "s8");
  RegisterTo<uint8_t>(map, "u8");
  RegisterTo<int16_t>(map, "s16");
  RegisterTo<uint16_t>(map, "u16");
  RegisterTo<int32_t>(map, "s32");
  RegisterTo<uint32_t>(map, "u32");
  RegisterTo<int64_t>(map, "s64");
  RegisterTo<uint64_t>(map, "u64");
  RegisterTo<Half>(map, "f16");
  RegisterTo<Bfloat>(map, "bf16");
  RegisterTo<float>(map, "f32");
  RegisterTo<double>(map, "f64");
  (*map)["cvt.f16x2.f32"] = CvtPacked<Half>;
  (*map)["cvt.bf16x2.f32"] = CvtPacked<Bfloat>;
  RegisterHalf<Half>(map, "f16");
  RegisterHalf<Bfloat>(map, "bf16");
}

void RegisterRounding(HandlerMap* map) {
  HandlerMap& m = *map;
  m["add.directed.f32"] = AddDirected<float>;
  m["add.directed.f64"] = AddDirected<double>;
  m["sub.directed.f32"] = SubDirected<float>;
  m["sub.directed.f64"] = SubDirected<double>;
  m["mul.directed.f32"] = MulDirected<float>;
  m["mul.directed.f64"] = MulDirected<double>;
  m["div.directed.f32"] = DivDirected<float>;
  m["div.directed.f64"] = DivDirected<double>;
  m["fma.directed.f32"] = FmaDirected<float>;
  m["fma.directed.f64"] = FmaDirected<double>;
  m["sqrt.directed.f32"] = SqrtDirected<float>;
  m["sqrt.directed.f64"] = SqrtDirected<double>;
  m["rcp.directed.f32"] = RcpDirected<float>;
  m["rcp.directed.f64"] = RcpDirected<double>;
}

}  // namespace simgpu
