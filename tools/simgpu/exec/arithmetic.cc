// Arithmetic of whole warps. Built twice (SIMGPU_SUFFIX): for any x86-64 and for AVX2; without
// contraction, so that both give the same bits. Loops over all lanes where the mask is full, for
// the vectoriser; a masked operation computes all lanes and stores those that are on.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tools/simgpu/exec/code.h"

#define SIMGPU_CONCAT2(a, b) a##b
#define SIMGPU_CONCAT(a, b) SIMGPU_CONCAT2(a, b)

namespace simgpu {
namespace {

// How a value of type T stands in its lane: 4 bytes for up to 32 bits, 8 for 64.
template <typename T>
using Slot = std::conditional_t<sizeof(T) == 8, T, std::conditional_t<sizeof(T) == 4, T, uint32_t>>;

template <typename T>
inline T Get(const Slot<T>* lanes, int i) {
  return static_cast<T>(lanes[i]);
}

template <typename D, typename F>
inline void Apply(Warp& w, const Instr& in, F f) {
  auto* d = Lane<Slot<D>>(w, in.d);
  if (w.mask == 0xffffffffu) {
    Slot<D> out[kLanes];
    for (int i = 0; i < kLanes; ++i) out[i] = static_cast<Slot<D>>(f(i));
    std::memcpy(d, out, sizeof(out));
  } else {
    const uint32_t mask = w.mask;
    for (int i = 0; i < kLanes; ++i) {
      if (mask >> i & 1) d[i] = static_cast<Slot<D>>(f(i));
    }
  }
}

template <typename T, typename Op>
void Unary(Warp& w, const Instr& in) {
  const auto* a = Lane<Slot<T>>(w, in.a);
  Apply<T>(w, in, [=](int i) { return Op::Do(Get<T>(a, i)); });
}
template <typename T, typename Op>
void Binary(Warp& w, const Instr& in) {
  const auto* a = Lane<Slot<T>>(w, in.a);
  const auto* b = Lane<Slot<T>>(w, in.b);
  Apply<T>(w, in, [=](int i) { return Op::Do(Get<T>(a, i), Get<T>(b, i)); });
}
template <typename T, typename Op>
void Ternary(Warp& w, const Instr& in) {
  const auto* a = Lane<Slot<T>>(w, in.a);
  const auto* b = Lane<Slot<T>>(w, in.b);
  const auto* c = Lane<Slot<T>>(w, in.c);
  Apply<T>(w, in, [=](int i) { return Op::Do(Get<T>(a, i), Get<T>(b, i), Get<T>(c, i)); });
}
// The shift amount is 32 bits whatever the type.
template <typename T, typename Op>
void Shift(Warp& w, const Instr& in) {
  const auto* a = Lane<Slot<T>>(w, in.a);
  const auto* b = Lane<uint32_t>(w, in.b);
  Apply<T>(w, in, [=](int i) { return Op::Do(Get<T>(a, i), b[i]); });
}

template <typename T>
using U = std::make_unsigned_t<T>;

struct Add {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<U<T>>(a) + static_cast<U<T>>(b));
    else
      return a + b;
  }
};
struct Sub {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<U<T>>(a) - static_cast<U<T>>(b));
    else
      return a - b;
  }
};
struct Mul {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using W = std::conditional_t<sizeof(T) < 4, uint32_t, U<T>>;
      return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
    } else
      return a * b;
  }
};
struct MulHi {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (sizeof(T) == 8) {
      using W = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
      return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> 64);
    } else {
      using W = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> (8 * sizeof(T)));
    }
  }
};
struct Mad {
  template <typename T>
  static T Do(T a, T b, T c) {
    return Add::Do(Mul::Do(a, b), c);
  }
};
struct MadHi {
  template <typename T>
  static T Do(T a, T b, T c) {
    return Add::Do(MulHi::Do(a, b), c);
  }
};
struct Div {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return static_cast<T>(~T{0});
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return static_cast<T>(0 - static_cast<U<T>>(a));
      }
      return static_cast<T>(a / b);
    } else
      return a / b;
  }
};
struct Rem {
  template <typename T>
  static T Do(T a, T b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Neg {
  template <typename T>
  static T Do(T a) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(0 - static_cast<U<T>>(a));
    else
      return -a;
  }
};
struct Abs {
  template <typename T>
  static T Do(T a) {
    if constexpr (std::is_integral_v<T>)
      return a < 0 ? static_cast<T>(0 - static_cast<U<T>>(a)) : a;
    else
      return std::fabs(a);
  }
};
struct Min {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return a < b ? a : b;
    else {
      if (a != a) return b != b ? std::numeric_limits<T>::quiet_NaN() : b;
      if (b != b) return a;
      if (a == b) return std::signbit(a) ? a : b;
      return a < b ? a : b;
    }
  }
};
struct Max {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return a > b ? a : b;
    else {
      if (a != a) return b != b ? std::numeric_limits<T>::quiet_NaN() : b;
      if (b != b) return a;
      if (a == b) return std::signbit(a) ? b : a;
      return a > b ? a : b;
    }
  }
};
struct Fma {
  template <typename T>
  static T Do(T a, T b, T c) {
    return std::fma(a, b, c);
  }
};
struct And {
  template <typename T>
  static T Do(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  static T Do(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  static T Do(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <typename T>
  static T Do(T a) {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <typename T>
  static T Do(T a) {
    return a == 0 ? 1 : 0;
  }
};
struct Shl {
  template <typename T>
  static T Do(T a, uint32_t b) {
    return b >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << b);
  }
};
struct Shr {
  template <typename T>
  static T Do(T a, uint32_t b) {
    if (b >= 8 * sizeof(T)) {
      if constexpr (std::is_signed_v<T>) return a < 0 ? T(-1) : T(0);
      return T{0};
    }
    return static_cast<T>(a >> b);
  }
};
struct Popc {
  template <typename T>
  static T Do(T a) {
    return static_cast<T>(std::popcount(a));
  }
};
struct Clz {
  template <typename T>
  static T Do(T a) {
    return static_cast<T>(std::countl_zero(a));
  }
};
struct Brev {
  template <typename T>
  static T Do(T a) {
    T r = 0;
    for (size_t i = 0; i < 8 * sizeof(T); ++i) r = static_cast<T>(r << 1 | (a >> i & 1));
    return r;
  }
};
struct Copysign {
  template <typename T>
  static T Do(T a, T b) {
    return std::copysign(b, a);
  }
};
struct Sad {
  template <typename T>
  static T Do(T a, T b, T c) {
    return Add::Do(c, static_cast<T>(a < b ? b - a : a - b));
  }
};
struct Mov {
  template <typename T>
  static T Do(T a) {
    return a;
  }
};
struct Lop3 {};

struct Sqrt {
  template <typename T>
  static T Do(T a) {
    return std::sqrt(a);
  }
};
struct Rcp {
  template <typename T>
  static T Do(T a) {
    return T{1} / a;
  }
};
struct Rsqrt {
  template <typename T>
  static T Do(T a) {
    return T{1} / std::sqrt(a);
  }
};
struct Ex2 {
  template <typename T>
  static T Do(T a) {
    return std::exp2(a);
  }
};
struct Lg2 {
  template <typename T>
  static T Do(T a) {
    return std::log2(a);
  }
};
struct Sin {
  template <typename T>
  static T Do(T a) {
    return std::sin(a);
  }
};
struct Cos {
  template <typename T>
  static T Do(T a) {
    return std::cos(a);
  }
};
struct Tanh {
  template <typename T>
  static T Do(T a) {
    return std::tanh(a);
  }
};

inline float Flush(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}
inline float Saturate(float x) { return x != x ? 0.0f : x < 0 ? 0.0f : x > 1 ? 1.0f : x; }
inline double Saturate(double x) { return x != x ? 0.0 : x < 0 ? 0.0 : x > 1 ? 1.0 : x; }
template <typename Op>
struct Ftz {
  static float Do(float a) { return Flush(Op::Do(Flush(a))); }
  static float Do(float a, float b) { return Flush(Op::Do(Flush(a), Flush(b))); }
  static float Do(float a, float b, float c) { return Flush(Op::Do(Flush(a), Flush(b), Flush(c))); }
};
template <typename Op>
struct Sat {
  template <typename... T>
  static auto Do(T... a) {
    return Saturate(Op::Do(a...));
  }
};

template <typename T, typename W>
void MulWide(Warp& w, const Instr& in) {
  const auto* a = Lane<Slot<T>>(w, in.a);
  const auto* b = Lane<Slot<T>>(w, in.b);
  Apply<W>(w, in, [=](int i) {
    return static_cast<W>(static_cast<W>(Get<T>(a, i)) * static_cast<W>(Get<T>(b, i)));
  });
}
template <typename T, typename W>
void MadWide(Warp& w, const Instr& in) {
  const auto* a = Lane<Slot<T>>(w, in.a);
  const auto* b = Lane<Slot<T>>(w, in.b);
  const auto* c = Lane<Slot<W>>(w, in.c);
  Apply<W>(w, in, [=](int i) {
    return Add::Do(static_cast<W>(static_cast<W>(Get<T>(a, i)) * static_cast<W>(Get<T>(b, i))),
                   static_cast<W>(c[i]));
  });
}

// Comparisons give a bit a lane; `c` is combined with it by `aux`: 0 none, 1 and, 2 or, 3 xor. imm:
// c is negated.
template <typename T, typename Op>
void Setp(Warp& w, const Instr& in) {
  const auto* a = Lane<Slot<T>>(w, in.a);
  const auto* b = Lane<Slot<T>>(w, in.b);
  uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i)
    bits |= static_cast<uint32_t>(Op::Do(Get<T>(a, i), Get<T>(b, i))) << i;
  uint32_t other = ~bits;
  if (in.aux != 0) {
    const uint32_t c = in.imm != 0 ? ~Pred(w, in.c) : Pred(w, in.c);
    switch (in.aux) {
      case 1:
        other = ~bits & c;
        bits &= c;
        break;
      case 2:
        other = ~bits | c;
        bits |= c;
        break;
      default:
        other = ~bits ^ c;
        bits ^= c;
        break;
    }
  }
  uint32_t& d = Pred(w, in.d);
  d = (d & ~w.mask) | (bits & w.mask);
  if (in.e != kNoRef) {
    uint32_t& e = Pred(w, in.e);
    e = (e & ~w.mask) | (other & w.mask);
  }
}
template <typename T>
bool IsNan(T x) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return x != x;
}
struct Eq {
  template <typename T>
  static bool Do(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <typename T>
  static bool Do(T a, T b) {
    return !IsNan(a) && !IsNan(b) && a != b;
  }
};
struct Lt {
  template <typename T>
  static bool Do(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <typename T>
  static bool Do(T a, T b) {
    return a <= b;
  }
};
struct Gt {
  template <typename T>
  static bool Do(T a, T b) {
    return a > b;
  }
};
struct Ge {
  template <typename T>
  static bool Do(T a, T b) {
    return a >= b;
  }
};
template <typename Op>
struct Unordered {
  template <typename T>
  static bool Do(T a, T b) {
    return IsNan(a) || IsNan(b) || Op::Do(a, b);
  }
};
struct Num {
  template <typename T>
  static bool Do(T a, T b) {
    return !IsNan(a) && !IsNan(b);
  }
};
struct Nan {
  template <typename T>
  static bool Do(T a, T b) {
    return IsNan(a) || IsNan(b);
  }
};

// selp d, a, b, p (c; imm: negated).
template <typename T>
void Selp(Warp& w, const Instr& in) {
  const auto* a = Lane<T>(w, in.a);
  const auto* b = Lane<T>(w, in.b);
  const uint32_t p = in.imm != 0 ? ~Pred(w, in.c) : Pred(w, in.c);
  Apply<T>(w, in, [=](int i) { return p >> i & 1 ? a[i] : b[i]; });
}

// Logic on predicates. imm: bit 0 negates a, bit 1 b.
template <typename Op>
void PredBinary(Warp& w, const Instr& in) {
  const uint32_t a = Pred(w, in.a) ^ (in.imm & 1 ? ~0u : 0u),
                 b = Pred(w, in.b) ^ (in.imm & 2 ? ~0u : 0u);
  uint32_t& d = Pred(w, in.d);
  d = (d & ~w.mask) | (Op::Do(a, b) & w.mask);
}
template <typename Op>
void PredUnary(Warp& w, const Instr& in) {
  const uint32_t a = Pred(w, in.a) ^ (in.imm & 1 ? ~0u : 0u);
  uint32_t& d = Pred(w, in.d);
  d = (d & ~w.mask) | (Op::Do(a) & w.mask);
}

template <typename T>
void Bfe(Warp& w, const Instr& in) {
  const auto* a = Lane<Slot<T>>(w, in.a);
  const auto* b = Lane<uint32_t>(w, in.b);
  const auto* c = Lane<uint32_t>(w, in.c);
  constexpr int kBits = 8 * sizeof(T);
  Apply<T>(w, in, [=](int i) -> T {
    const int pos = static_cast<int>(b[i] & 0xff), len = static_cast<int>(c[i] & 0xff);
    const auto value = static_cast<U<T>>(a[i]);
    if (len == 0) return 0;
    U<T> out = pos >= kBits ? 0 : value >> pos;
    const bool sign = std::is_signed_v<T> && (value >> std::min(pos + len - 1, kBits - 1) & 1);
    if (len < kBits) {
      const U<T> keep = (U<T>{1} << len) - 1;
      out = sign ? (out | ~keep) : (out & keep);
    }
    if (sign && pos > 0 && pos + len > kBits && pos < kBits) out |= ~U<T>{0} << (kBits - pos);
    if (sign && pos >= kBits) out = ~U<T>{0};
    return static_cast<T>(out);
  });
}
template <typename T>
void Bfi(Warp& w, const Instr& in) {  // d, a, b, c, e: insert a into b at c, e bits
  const auto* a = Lane<T>(w, in.a);
  const auto* b = Lane<T>(w, in.b);
  const auto* c = Lane<uint32_t>(w, in.c);
  const auto* e = Lane<uint32_t>(w, in.e);
  constexpr uint32_t kBits = 8 * sizeof(T);
  Apply<T>(w, in, [=](int i) -> T {
    const uint32_t pos = c[i] & 0xff, len = e[i] & 0xff;
    if (len == 0 || pos >= kBits) return b[i];
    const T ones = len >= kBits ? ~T{0} : (T{1} << len) - 1;
    return (b[i] & ~(ones << pos)) | ((a[i] & ones) << pos);
  });
}
template <typename T>
void Bfind(Warp& w, const Instr& in) {  // aux: .shiftamt
  const auto* a = Lane<Slot<T>>(w, in.a);
  Apply<uint32_t>(w, in, [=](int i) -> uint32_t {
    auto v = static_cast<U<T>>(a[i]);
    if (std::is_signed_v<T> && (v >> (8 * sizeof(T) - 1))) v = ~v;
    if (v == 0) return 0xffffffffu;
    const auto top = static_cast<uint32_t>(8 * sizeof(T) - 1 - std::countl_zero(v));
    return in.aux != 0 ? static_cast<uint32_t>(8 * sizeof(T) - 1) - top : top;
  });
}
template <typename T, typename Op>
void CountBits(Warp& w, const Instr& in) {
  const auto* a = Lane<T>(w, in.a);
  Apply<uint32_t>(w, in, [=](int i) { return static_cast<uint32_t>(Op::Do(a[i])); });
}
void Prmt(Warp& w, const Instr& in) {  // aux: mode, 0 = default
  const auto* a = Lane<uint32_t>(w, in.a);
  const auto* b = Lane<uint32_t>(w, in.b);
  const auto* c = Lane<uint32_t>(w, in.c);
  Apply<uint32_t>(w, in, [=](int i) {
    const uint64_t bytes = static_cast<uint64_t>(b[i]) << 32 | a[i];
    uint32_t out = 0;
    for (int k = 0; k < 4; ++k) {
      const uint32_t s = c[i] >> (4 * k) & 0xf;
      uint32_t byte = static_cast<uint32_t>(bytes >> (8 * (s & 7))) & 0xff;
      if (s & 8) byte = byte & 0x80 ? 0xff : 0;
      out |= byte << (8 * k);
    }
    return out;
  });
}
void Lop3Handler(Warp& w, const Instr& in) {  // aux: table
  const auto* a = Lane<uint32_t>(w, in.a);
  const auto* b = Lane<uint32_t>(w, in.b);
  const auto* c = Lane<uint32_t>(w, in.c);
  const uint32_t table = in.aux;
  Apply<uint32_t>(w, in, [=](int i) {
    uint32_t out = 0;
    for (int k = 0; k < 8; ++k) {
      if (table >> k & 1)
        out |= (k & 4 ? a[i] : ~a[i]) & (k & 2 ? b[i] : ~b[i]) & (k & 1 ? c[i] : ~c[i]);
    }
    return out;
  });
}
template <bool kLeft>
void Shf(Warp& w, const Instr& in) {  // aux: wrap
  const auto* a = Lane<uint32_t>(w, in.a);
  const auto* b = Lane<uint32_t>(w, in.b);
  const auto* c = Lane<uint32_t>(w, in.c);
  Apply<uint32_t>(w, in, [=](int i) {
    const uint32_t n = in.aux != 0 ? c[i] & 31 : std::min(c[i], 32u);
    const uint64_t both = static_cast<uint64_t>(b[i]) << 32 | a[i];
    return static_cast<uint32_t>(kLeft ? both << n >> 32 : both >> n);
  });
}
// mov.b64 d, {a, b} and mov.b32 of halves; unpacking goes lane by lane through `list`.
void Pack64(Warp& w, const Instr& in) {
  const auto* a = Lane<uint32_t>(w, in.a);
  const auto* b = Lane<uint32_t>(w, in.b);
  Apply<uint64_t>(w, in, [=](int i) { return static_cast<uint64_t>(b[i]) << 32 | a[i]; });
}
void Pack32(Warp& w, const Instr& in) {
  const auto* a = Lane<uint32_t>(w, in.a);
  const auto* b = Lane<uint32_t>(w, in.b);
  Apply<uint32_t>(w, in, [=](int i) { return (b[i] & 0xffff) << 16 | (a[i] & 0xffff); });
}
template <typename S, int kShift, uint32_t kMask>
void Unpack(Warp& w, const Instr& in) {
  const auto* a = Lane<S>(w, in.a);
  Apply<uint32_t>(w, in, [=](int i) { return static_cast<uint32_t>(a[i] >> kShift) & kMask; });
}
void Testp(Warp& w,
           const Instr& in) {  // aux: 0 finite 1 infinite 2 number 3 nan 4 normal 5 subnormal; f32
  const auto* a = Lane<float>(w, in.a);
  uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) {
    const int c = std::fpclassify(a[i]);
    const bool r = in.aux == 0   ? c != FP_INFINITE && c != FP_NAN
                   : in.aux == 1 ? c == FP_INFINITE
                   : in.aux == 2 ? c != FP_NAN
                   : in.aux == 3 ? c == FP_NAN
                   : in.aux == 4 ? c == FP_NORMAL
                                 : c == FP_SUBNORMAL;
    bits |= static_cast<uint32_t>(r) << i;
  }
  uint32_t& d = Pred(w, in.d);
  d = (d & ~w.mask) | (bits & w.mask);
}
// The carry of add.cc stands in a predicate (e).
template <bool kIn, bool kOut, bool kSubtract>
void Carry(Warp& w, const Instr& in) {
  const auto* a = Lane<uint32_t>(w, in.a);
  const auto* b = Lane<uint32_t>(w, in.b);
  uint32_t& carry = Pred(w, in.e);
  const uint32_t before = carry;
  uint32_t after = carry;
  Apply<uint32_t>(w, in, [&](int i) {
    const uint64_t c = kIn ? before >> i & 1 : (kSubtract ? 1 : 0);
    const uint64_t sum = static_cast<uint64_t>(a[i]) + (kSubtract ? ~b[i] : b[i]) + c;
    after = (after & ~(1u << i)) | static_cast<uint32_t>(sum >> 32 & 1) << i;
    return static_cast<uint32_t>(sum);
  });
  if (kOut) carry = after;
}

class Registry {
 public:
  explicit Registry(HandlerMap* map) : map_(map) {}
  void Put(const std::string& name, Handler handler) { (*map_)[name] = handler; }

  template <typename T>
  void Integer(const std::string& t) {
    Put("add." + t, Binary<T, Add>);
    Put("sub." + t, Binary<T, Sub>);
    Put("mul.lo." + t, Binary<T, Mul>);
    Put("mul.hi." + t, Binary<T, MulHi>);
    Put("mad.lo." + t, Ternary<T, Mad>);
    Put("mad.hi." + t, Ternary<T, MadHi>);
    Put("div." + t, Binary<T, Div>);
    Put("rem." + t, Binary<T, Rem>);
    Put("min." + t, Binary<T, Min>);
    Put("max." + t, Binary<T, Max>);
    Put("shr." + t, Shift<T, Shr>);
    Put("sad." + t, Ternary<T, Sad>);
    if constexpr (std::is_signed_v<T>) {
      Put("neg." + t, Unary<T, Neg>);
      Put("abs." + t, Unary<T, Abs>);
    }
    Compare<T>(t);
  }
  template <typename T>
  void Bits(const std::string& t) {
    Put("and." + t, Binary<T, And>);
    Put("or." + t, Binary<T, Or>);
    Put("xor." + t, Binary<T, Xor>);
    Put("not." + t, Unary<T, Not>);
    Put("cnot." + t, Unary<T, Cnot>);
    Put("shl." + t, Shift<T, Shl>);
    Put("shr." + t, Shift<T, Shr>);
    Put("setp.eq." + t, Setp<T, Eq>);
    Put("setp.ne." + t, Setp<T, Ne>);
  }
  template <typename T>
  void Compare(const std::string& t) {
    Put("setp.eq." + t, Setp<T, Eq>);
    Put("setp.ne." + t, Setp<T, Ne>);
    Put("setp.lt." + t, Setp<T, Lt>);
    Put("setp.le." + t, Setp<T, Le>);
    Put("setp.gt." + t, Setp<T, Gt>);
    Put("setp.ge." + t, Setp<T, Ge>);
    Put("setp.lo." + t, Setp<T, Lt>);
    Put("setp.ls." + t, Setp<T, Le>);
    Put("setp.hi." + t, Setp<T, Gt>);
    Put("setp.hs." + t, Setp<T, Ge>);
  }
  template <typename T>
  void Float(const std::string& t) {
    Put("add." + t, Binary<T, Add>);
    Put("sub." + t, Binary<T, Sub>);
    Put("mul." + t, Binary<T, Mul>);
    Put("fma." + t, Ternary<T, Fma>);
    Put("div." + t, Binary<T, Div>);
    Put("min." + t, Binary<T, Min>);
    Put("max." + t, Binary<T, Max>);
    Put("neg." + t, Unary<T, Neg>);
    Put("abs." + t, Unary<T, Abs>);
    Put("sqrt." + t, Unary<T, Sqrt>);
    Put("rcp." + t, Unary<T, Rcp>);
    Put("rsqrt." + t, Unary<T, Rsqrt>);
    Put("copysign." + t, Binary<T, Copysign>);
    Put("add.sat." + t, Binary<T, Sat<Add>>);
    Put("sub.sat." + t, Binary<T, Sat<Sub>>);
    Put("mul.sat." + t, Binary<T, Sat<Mul>>);
    Put("fma.sat." + t, Ternary<T, Sat<Fma>>);
    Compare<T>(t);
    Put("setp.equ." + t, Setp<T, Unordered<Eq>>);
    Put("setp.neu." + t, Setp<T, Unordered<Ne>>);
    Put("setp.ltu." + t, Setp<T, Unordered<Lt>>);
    Put("setp.leu." + t, Setp<T, Unordered<Le>>);
    Put("setp.gtu." + t, Setp<T, Unordered<Gt>>);
    Put("setp.geu." + t, Setp<T, Unordered<Ge>>);
    Put("setp.num." + t, Setp<T, Num>);
    Put("setp.nan." + t, Setp<T, Nan>);
  }
  void FloatFtz() {
    Put("add.ftz.f32", Binary<float, Ftz<Add>>);
    Put("sub.ftz.f32", Binary<float, Ftz<Sub>>);
    Put("mul.ftz.f32", Binary<float, Ftz<Mul>>);
    Put("fma.ftz.f32", Ternary<float, Ftz<Fma>>);
    Put("div.ftz.f32", Binary<float, Ftz<Div>>);
    Put("min.ftz.f32", Binary<float, Ftz<Min>>);
    Put("max.ftz.f32", Binary<float, Ftz<Max>>);
    Put("neg.ftz.f32", Unary<float, Ftz<Neg>>);
    Put("abs.ftz.f32", Unary<float, Ftz<Abs>>);
    Put("sqrt.ftz.f32", Unary<float, Ftz<Sqrt>>);
    Put("rcp.ftz.f32", Unary<float, Ftz<Rcp>>);
    Put("rsqrt.ftz.f32", Unary<float, Ftz<Rsqrt>>);
    Put("ex2.ftz.f32", Unary<float, Ftz<Ex2>>);
    Put("lg2.ftz.f32", Unary<float, Ftz<Lg2>>);
    Put("sin.ftz.f32", Unary<float, Ftz<Sin>>);
    Put("cos.ftz.f32", Unary<float, Ftz<Cos>>);
    Put("add.ftz.sat.f32", Binary<float, Sat<Ftz<Add>>>);
    Put("mul.ftz.sat.f32", Binary<float, Sat<Ftz<Mul>>>);
    Put("fma.ftz.sat.f32", Ternary<float, Sat<Ftz<Fma>>>);
    Put("ex2.f32", Unary<float, Ex2>);
    Put("lg2.f32", Unary<float, Lg2>);
    Put("sin.f32", Unary<float, Sin>);
    Put("cos.f32", Unary<float, Cos>);
    Put("tanh.f32", Unary<float, Tanh>);
  }

 private:
  HandlerMap* map_;
};

}  // namespace

void SIMGPU_CONCAT(RegisterArithmetic, SIMGPU_SUFFIX)(HandlerMap* map) {
  Registry r(map);
  r.Integer<int16_t>("s16");
  r.Integer<uint16_t>("u16");
  r.Integer<int32_t>("s32");
  r.Integer<uint32_t>("u32");
  r.Integer<int64_t>("s64");
  r.Integer<uint64_t>("u64");
  r.Bits<uint16_t>("b16");
  r.Bits<uint32_t>("b32");
  r.Bits<uint64_t>("b64");
  r.Float<float>("f32");
  r.Float<double>("f64");
  r.FloatFtz();
  r.Put("mul.wide.s16", MulWide<int16_t, int32_t>);
  r.Put("mul.wide.u16", MulWide<uint16_t, uint32_t>);
  r.Put("mul.wide.s32", MulWide<int32_t, int64_t>);
  r.Put("mul.wide.u32", MulWide<uint32_t, uint64_t>);
  r.Put("mad.wide.s16", MadWide<int16_t, int32_t>);
  r.Put("mad.wide.u16", MadWide<uint16_t, uint32_t>);
  r.Put("mad.wide.s32", MadWide<int32_t, int64_t>);
  r.Put("mad.wide.u32", MadWide<uint32_t, uint64_t>);
  r.Put("mov.32", Unary<uint32_t, Mov>);
  r.Put("mov.64", Unary<uint64_t, Mov>);
  r.Put("selp.32", Selp<uint32_t>);
  r.Put("selp.64", Selp<uint64_t>);
  r.Put("and.pred", PredBinary<And>);
  r.Put("or.pred", PredBinary<Or>);
  r.Put("xor.pred", PredBinary<Xor>);
  r.Put("not.pred", PredUnary<Not>);
  r.Put("mov.pred", PredUnary<Mov>);
  r.Put("bfe.s32", Bfe<int32_t>);
  r.Put("bfe.u32", Bfe<uint32_t>);
  r.Put("bfe.s64", Bfe<int64_t>);
  r.Put("bfe.u64", Bfe<uint64_t>);
  r.Put("bfi.b32", Bfi<uint32_t>);
  r.Put("bfi.b64", Bfi<uint64_t>);
  r.Put("bfind.s32", Bfind<int32_t>);
  r.Put("bfind.u32", Bfind<uint32_t>);
  r.Put("bfind.s64", Bfind<int64_t>);
  r.Put("bfind.u64", Bfind<uint64_t>);
  r.Put("popc.b32", CountBits<uint32_t, Popc>);
  r.Put("popc.b64", CountBits<uint64_t, Popc>);
  r.Put("clz.b32", CountBits<uint32_t, Clz>);
  r.Put("clz.b64", CountBits<uint64_t, Clz>);
  r.Put("brev.b32", Unary<uint32_t, Brev>);
  r.Put("brev.b64", Unary<uint64_t, Brev>);
  r.Put("prmt.b32", Prmt);
  r.Put("lop3.b32", Lop3Handler);
  r.Put("shf.l.b32", Shf<true>);
  r.Put("shf.r.b32", Shf<false>);
  r.Put("pack.64", Pack64);
  r.Put("pack.32", Pack32);
  r.Put("unpack.64.0", Unpack<uint64_t, 0, 0xffffffffu>);
  r.Put("unpack.64.1", Unpack<uint64_t, 32, 0xffffffffu>);
  r.Put("unpack.32.0", Unpack<uint32_t, 0, 0xffff>);
  r.Put("unpack.32.1", Unpack<uint32_t, 16, 0xffff>);
  r.Put("testp.f32", Testp);
  r.Put("add.cc", Carry<false, true, false>);
  r.Put("addc.cc", Carry<true, true, false>);
  r.Put("addc", Carry<true, false, false>);
  r.Put("sub.cc", Carry<false, true, true>);
  r.Put("subc.cc", Carry<true, true, true>);
  r.Put("subc", Carry<true, false, true>);
}

}  // namespace simgpu
