// Integer operations on one lane, as PTX defines them: wrap-around arithmetic, shifts that saturate
// at the width, division by zero as the hardware does it.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "tools/simgpu/exec/lanes.h"

namespace simgpu {
namespace {

template <typename T>
using U = std::make_unsigned_t<T>;

struct Add {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    return static_cast<T>(static_cast<U<T>>(a) + static_cast<U<T>>(b));
  }
};
struct Sub {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    return static_cast<T>(static_cast<U<T>>(a) - static_cast<U<T>>(b));
  }
};
struct AddSat {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    const int64_t sum = static_cast<int64_t>(a) + b;
    return static_cast<T>(sum > std::numeric_limits<T>::max()   ? std::numeric_limits<T>::max()
                          : sum < std::numeric_limits<T>::min() ? std::numeric_limits<T>::min()
                                                                : sum);
  }
};
struct SubSat {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    const int64_t sum = static_cast<int64_t>(a) - b;
    return static_cast<T>(sum > std::numeric_limits<T>::max()   ? std::numeric_limits<T>::max()
                          : sum < std::numeric_limits<T>::min() ? std::numeric_limits<T>::min()
                                                                : sum);
  }
};
struct MulLo {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    using W = std::conditional_t<sizeof(T) < 4, uint32_t, U<T>>;
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  }
};
struct MulHi {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    if constexpr (sizeof(T) == 8) {
      using W = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
      return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> 64);
    } else {
      using W = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> (8 * sizeof(T)));
    }
  }
};
struct MadLo {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b, T c) {
    return Add::Do<T>(MulLo::Do<T>(a, b), c);
  }
};
struct MadHi {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b, T c) {
    return Add::Do<T>(MulHi::Do<T>(a, b), c);
  }
};
struct MadHiSat {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b, T c) {
    return AddSat::Do<T>(MulHi::Do<T>(a, b), c);
  }
};
// 24-bit products: the low 24 bits of both, sign- or zero-extended; .hi gives bits 47..16.
template <typename T>
SIMGPU_INLINE int64_t Product24(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(a) << 8) >> 8) *
           (static_cast<int32_t>(static_cast<uint32_t>(b) << 8) >> 8);
  } else {
    return static_cast<int64_t>(static_cast<uint64_t>(a & 0xffffff) * (b & 0xffffff));
  }
}
struct Mul24Lo {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    return static_cast<T>(Product24<T>(a, b));
  }
};
struct Mul24Hi {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    return static_cast<T>(Product24<T>(a, b) >> 16);
  }
};
struct Mad24Lo {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b, T c) {
    return Add::Do<T>(Mul24Lo::Do<T>(a, b), c);
  }
};
struct Mad24Hi {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b, T c) {
    return Add::Do<T>(Mul24Hi::Do<T>(a, b), c);
  }
};
struct Mad24HiSat {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b, T c) {
    return AddSat::Do<T>(Mul24Hi::Do<T>(a, b), c);
  }
};
// Division by zero is all ones; the quotient of the least number by -1 wraps.
struct Div {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(0 - static_cast<U<T>>(a));
    }
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Neg {
  template <typename T>
  static SIMGPU_INLINE T Do(T a) {
    return static_cast<T>(0 - static_cast<U<T>>(a));
  }
};
struct Abs {
  template <typename T>
  static SIMGPU_INLINE T Do(T a) {
    return a < 0 ? static_cast<T>(0 - static_cast<U<T>>(a)) : a;
  }
};
struct Min {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    return a < b ? a : b;
  }
};
struct Max {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    return a > b ? a : b;
  }
};
template <typename Op>
struct Relu {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    const T r = Op::template Do<T>(a, b);
    return r < 0 ? T{0} : r;
  }
};
struct And {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <typename T>
  static SIMGPU_INLINE T Do(T a) {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <typename T>
  static SIMGPU_INLINE T Do(T a) {
    return a == 0 ? T{1} : T{0};
  }
};
struct Shl {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, uint32_t b) {
    return b >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << (b & (8 * sizeof(T) - 1)));
  }
};
struct Shr {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, uint32_t b) {
    constexpr uint32_t kMost = 8 * sizeof(T) - 1;
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(a >> (b > kMost ? kMost : b));
    } else {
      return b > kMost ? T{0} : static_cast<T>(a >> (b & kMost));
    }
  }
};
struct Mov {
  template <typename T>
  static SIMGPU_INLINE T Do(T a) {
    return a;
  }
};
// sad: c + |a - b|.
struct Sad {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b, T c) {
    return Add::Do<T>(c, a < b ? Sub::Do<T>(b, a) : Sub::Do<T>(a, b));
  }
};
// The same operation on both halves of a word.
template <typename Op, typename H>
struct Pair {
  template <typename T>
  static SIMGPU_INLINE T Do(T a, T b) {
    const auto low = static_cast<uint16_t>(
        Op::template Do<H>(static_cast<H>(a & 0xffff), static_cast<H>(b & 0xffff)));
    const auto high =
        static_cast<uint16_t>(Op::template Do<H>(static_cast<H>(a >> 16), static_cast<H>(b >> 16)));
    return static_cast<uint32_t>(high) << 16 | low;
  }
};

}  // namespace
}  // namespace simgpu
