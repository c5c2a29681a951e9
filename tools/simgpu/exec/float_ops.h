// Float operations on one lane: NaN results are the hardware's canonical ones, so that no operand
// order and no instruction set shows; subnormals flushed where PTX says .ftz; -0 < +0 for min and
// max.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tools/simgpu/exec/lanes.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace simgpu {

enum class Round : uint8_t { kNearest = 0, kZero = 1, kDown = 2, kUp = 3 };

namespace {

template <typename T>
SIMGPU_INLINE T CanonicalNan() {
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<float>(0x7fffffffu);
  } else {
    return std::bit_cast<double>(uint64_t{0xfff8000000000000});
  }
}
template <typename T>
SIMGPU_INLINE T Canonical(T x) {
  return x == x ? x : CanonicalNan<T>();
}
SIMGPU_INLINE float Flush(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}
SIMGPU_INLINE double Flush(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const uint64_t top = uint64_t{1} << 63;
  return std::bit_cast<double>((bits & 0x7ff0000000000000u) == 0 ? bits & top : bits);
}
template <bool kFtz, typename T>
SIMGPU_INLINE T FlushIf(T x) {
  if constexpr (kFtz) {
    return Flush(x);
  } else {
    return x;
  }
}
// [0, 1], NaN to +0.
template <typename T>
SIMGPU_INLINE T Saturate(T x) {
  const T low = x > T{0} ? x : T{0};
  return low < T{1} ? low : T{1};
}
template <typename T>
SIMGPU_INLINE bool SignBit(T x) {
  if constexpr (sizeof(T) == 4) {
    return (std::bit_cast<uint32_t>(x) >> 31) != 0;
  } else {
    return (std::bit_cast<uint64_t>(x) >> 63) != 0;
  }
}

struct FAdd {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    return a + b;
  }
};
struct FSub {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    return a - b;
  }
};
struct FMul {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    return a * b;
  }
};
struct FDiv {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    return a / b;
  }
};
struct Fma {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b, T c) {
    if constexpr (sizeof(T) == 4) {
      return __builtin_fmaf(a, b, c);
    } else {
      return __builtin_fma(a, b, c);
    }
  }
};
struct Rcp {
  template <typename T>
  static SIMGPU_INLINE T Do(T a) {
    return T{1} / a;
  }
};
struct Sqrt {
  template <typename T>
  static SIMGPU_INLINE T Do(T a) {
    if constexpr (sizeof(T) == 4) {
      return __builtin_sqrtf(a);
    } else {
      return __builtin_sqrt(a);
    }
  }
};
// Of two numbers the lesser; of a number and a NaN the number.
struct FMin {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    const T least = a < b ? a : a > b ? b : SignBit(a) ? a : b;
    return a != a ? b : b != b ? a : least;
  }
};
struct FMax {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    const T most = a > b ? a : a < b ? b : SignBit(a) ? b : a;
    return a != a ? b : b != b ? a : most;
  }
};
// .NaN: a NaN if either is.
struct FMinNan {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    return a != a || b != b ? CanonicalNan<T>() : FMin::Do<T>(a, b);
  }
};
struct FMaxNan {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    return a != a || b != b ? CanonicalNan<T>() : FMax::Do<T>(a, b);
  }
};
// .xorsign.abs: of the magnitudes, with the product of the signs.
template <typename Op>
struct XorSignAbs {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    const auto x = std::bit_cast<uint32_t>(a), y = std::bit_cast<uint32_t>(b);
    const auto r = std::bit_cast<uint32_t>(Op::template Do<T>(
        std::bit_cast<float>(x & 0x7fffffffu), std::bit_cast<float>(y & 0x7fffffffu)));
    return std::bit_cast<float>(r | ((x ^ y) & 0x80000000u));
  }
};

// The rounding mode of float instructions for a scope. The operations in it must read their
// operands from memory and write their results there: that is what keeps them inside.
template <Round kRound>
class RoundScope {
 public:
#if defined(__x86_64__)
  SIMGPU_INLINE RoundScope() {
    if constexpr (kRound != Round::kNearest) {
      before_ = _mm_getcsr();
      constexpr unsigned kMode = kRound == Round::kZero   ? 0x6000u
                                 : kRound == Round::kDown ? 0x2000u
                                                          : 0x4000u;
      _mm_setcsr((before_ & ~0x6000u) | kMode);
      asm volatile("" ::: "memory");
    }
  }
  SIMGPU_INLINE ~RoundScope() {
    if constexpr (kRound != Round::kNearest) {
      asm volatile("" ::: "memory");
      _mm_setcsr(before_);
    }
  }

 private:
  unsigned before_ = 0;
#else
  SIMGPU_INLINE RoundScope() {
    if constexpr (kRound != Round::kNearest) {
      std::fesetround(kRound == Round::kZero   ? FE_TOWARDZERO
                      : kRound == Round::kDown ? FE_DOWNWARD
                                               : FE_UPWARD);
      asm volatile("" ::: "memory");
    }
  }
  SIMGPU_INLINE ~RoundScope() {
    if constexpr (kRound != Round::kNearest) {
      asm volatile("" ::: "memory");
      std::fesetround(FE_TONEAREST);
    }
  }
#endif
};

}  // namespace
}  // namespace simgpu
