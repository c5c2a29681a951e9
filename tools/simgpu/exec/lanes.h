// Access to lane arrays, and the loops over lanes that the vectoriser turns into a few
// instructions. Everything is force-inlined: files that include this are built for several
// instruction sets, and no copy may be shared between them.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tools/simgpu/exec/warp.h"

#define SIMGPU_INLINE inline __attribute__((always_inline))
#define SIMGPU_CONCAT2(a, b) a##b
#define SIMGPU_CONCAT(a, b) SIMGPU_CONCAT2(a, b)
#define SIMGPU_LAMBDA __attribute__((always_inline))
// The lane loop's promise to the vectoriser: a lane touches its own slots only.
#if defined(__clang__)
#define SIMGPU_LANE_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define SIMGPU_LANE_LOOP _Pragma("GCC ivdep")
#endif

namespace simgpu {

template <typename T>
SIMGPU_INLINE T* Lane(Warp& warp, Ref ref) {
  return reinterpret_cast<T*>(__builtin_assume_aligned(warp.registers + ref, 64));
}
SIMGPU_INLINE uint32_t& Pred(Warp& warp, Ref ref) {
  return *reinterpret_cast<uint32_t*>(warp.registers + ref);
}
SIMGPU_INLINE void SetPred(Warp& warp, Ref ref, uint32_t bits) {
  uint32_t& d = Pred(warp, ref);
  d = (d & ~warp.mask) | (bits & warp.mask);
}

// How a value of type T stands in its lane.
template <typename T>
using Slot = std::conditional_t<sizeof(T) == 8, T, std::conditional_t<sizeof(T) == 4, T, uint32_t>>;

template <typename T>
SIMGPU_INLINE T Get(const Slot<T>* lanes, int i) {
  return static_cast<T>(lanes[i]);
}

// d[i] = f(i) for the lanes of the mask. `f` must have no effects: all lanes may be computed.
template <bool kMasked, typename D, typename F>
SIMGPU_INLINE void Apply(Warp& w, Ref to, F f) {
  Slot<D>* d = Lane<Slot<D>>(w, to);
  if constexpr (kMasked) {
    const uint32_t mask = w.mask;
    SIMGPU_LANE_LOOP
    for (int i = 0; i < kLanes; ++i) {
      const Slot<D> value = static_cast<Slot<D>>(f(i));
      d[i] = (mask >> i & 1) != 0 ? value : d[i];
    }
  } else {
    SIMGPU_LANE_LOOP
    for (int i = 0; i < kLanes; ++i) d[i] = static_cast<Slot<D>>(f(i));
  }
}

// Before the first access of an instruction that may trap: the page fault's message needs it, so
// the compiler must not move it behind the access.
SIMGPU_INLINE void MayFault(Warp& w, const Instr& in) {
  w.current = &in;
  asm volatile("" ::: "memory");
}

template <typename F>
SIMGPU_INLINE void ForLanes(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(__builtin_ctz(mask));
}

template <bool kMasked, typename T, typename Op>
void Unary(Warp& w, const Instr& in) {
  const Slot<T>* a = Lane<Slot<T>>(w, in.a);
  Apply<kMasked, T>(w, in.d, [=](int i) SIMGPU_LAMBDA { return Op::template Do<T>(Get<T>(a, i)); });
}
template <bool kMasked, typename T, typename Op>
void Binary(Warp& w, const Instr& in) {
  const Slot<T>* a = Lane<Slot<T>>(w, in.a);
  const Slot<T>* b = Lane<Slot<T>>(w, in.b);
  Apply<kMasked, T>(
      w, in.d, [=](int i) SIMGPU_LAMBDA { return Op::template Do<T>(Get<T>(a, i), Get<T>(b, i)); });
}
template <bool kMasked, typename T, typename Op>
void Ternary(Warp& w, const Instr& in) {
  const Slot<T>* a = Lane<Slot<T>>(w, in.a);
  const Slot<T>* b = Lane<Slot<T>>(w, in.b);
  const Slot<T>* c = Lane<Slot<T>>(w, in.c);
  Apply<kMasked, T>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    return Op::template Do<T>(Get<T>(a, i), Get<T>(b, i), Get<T>(c, i));
  });
}

}  // namespace simgpu
