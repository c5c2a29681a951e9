// Operations across the lanes of a warp. The interpreter calls them once the lanes of the member
// mask are together, and with the lanes of one member mask at a time.
#include <algorithm>

#include "tools/simgpu/exec/handlers.h"
#include "tools/simgpu/exec/lanes.h"

namespace simgpu {
namespace {

// shfl: a value, b lane or distance, c clamp and segment mask; e: whether the source lane was in
// range. aux: 0 up, 1 down, 2 bfly, 3 idx. A source lane that does not take part gives 0 (on the
// hardware: anything).
template <int kMode>
void Shfl(Warp& w, const Instr& in) {
  const uint32_t* a = Lane<uint32_t>(w, in.a);
  const uint32_t* b = Lane<uint32_t>(w, in.b);
  const uint32_t* c = Lane<uint32_t>(w, in.c);
  const uint32_t mask = w.mask;
  uint32_t out[kLanes], in_range = 0;
  for (int i = 0; i < kLanes; ++i) {
    const int clamp = static_cast<int>(c[i] & 0x1f), segment = static_cast<int>(c[i] >> 8 & 0x1f);
    const int most = (i & segment) | (clamp & ~segment), least = i & segment;
    const int by = static_cast<int>(b[i] & 0x1f);
    int from = i;
    bool valid = false;
    if constexpr (kMode == 0) {
      from = i - by;
      valid = from >= most;
    } else if constexpr (kMode == 1) {
      from = i + by;
      valid = from <= most;
    } else if constexpr (kMode == 2) {
      from = i ^ by;
      valid = from <= most;
    } else {
      from = least | (by & ~segment);
      valid = from <= most;
    }
    if (!valid) from = i;
    in_range |= static_cast<uint32_t>(valid) << i;
    out[i] = (mask >> from & 1) != 0 ? a[from] : 0;
  }
  uint32_t* d = Lane<uint32_t>(w, in.d);
  if (mask == kAllLanes) {
    __builtin_memcpy(d, out, sizeof(out));
  } else {
    ForLanes(mask, [&](int i) { d[i] = out[i]; });
  }
  if (in.e != kNoRef) SetPred(w, in.e, in_range);
}

// vote: aux 0 all, 1 any, 2 uni, 3 ballot. imm: the predicate is negated.
void Vote(Warp& w, const Instr& in) {
  const uint32_t p = (in.imm != 0 ? ~Pred(w, in.a) : Pred(w, in.a)) & w.mask;
  if (in.aux == 3) {
    ForLanes(w.mask, [&](int i) { Lane<uint32_t>(w, in.d)[i] = p; });
    return;
  }
  const bool result = in.aux == 0 ? p == w.mask : in.aux == 1 ? p != 0 : p == 0 || p == w.mask;
  SetPred(w, in.d, result ? kAllLanes : 0);
}

void Activemask(Warp& w, const Instr& in) {
  ForLanes(w.mask, [&](int i) { Lane<uint32_t>(w, in.d)[i] = w.mask; });
}

// elect: one lane of the members (the lowest) gets true; d: which one.
void Elect(Warp& w, const Instr& in) {
  const int leader = __builtin_ctz(w.mask);
  if (in.d != kNoRef) {
    ForLanes(w.mask, [&](int i) { Lane<uint32_t>(w, in.d)[i] = static_cast<uint32_t>(leader); });
  }
  SetPred(w, in.e, 1u << leader);
}

template <typename T>
void MatchAny(Warp& w, const Instr& in) {
  const T* a = Lane<T>(w, in.a);
  uint32_t out[kLanes] = {};
  ForLanes(w.mask, [&](int i) {
    ForLanes(w.mask, [&](int k) { out[i] |= static_cast<uint32_t>(a[i] == a[k]) << k; });
  });
  ForLanes(w.mask, [&](int i) { Lane<uint32_t>(w, in.d)[i] = out[i]; });
}

template <typename T>
void MatchAll(Warp& w, const Instr& in) {
  const T* a = Lane<T>(w, in.a);
  const T first = a[__builtin_ctz(w.mask)];
  bool same = true;
  ForLanes(w.mask, [&](int i) { same &= a[i] == first; });
  ForLanes(w.mask, [&](int i) { Lane<uint32_t>(w, in.d)[i] = same ? w.mask : 0; });
  if (in.e != kNoRef) SetPred(w, in.e, same ? kAllLanes : 0);
}

struct Sum {
  static uint32_t Do(uint32_t a, uint32_t b) { return a + b; }
};
struct AndBits {
  static uint32_t Do(uint32_t a, uint32_t b) { return a & b; }
};
struct OrBits {
  static uint32_t Do(uint32_t a, uint32_t b) { return a | b; }
};
struct XorBits {
  static uint32_t Do(uint32_t a, uint32_t b) { return a ^ b; }
};
struct Least {
  template <typename T>
  static T Do(T a, T b) {
    return std::min(a, b);
  }
};
struct Most {
  template <typename T>
  static T Do(T a, T b) {
    return std::max(a, b);
  }
};
template <typename T, typename F>
void Redux(Warp& w, const Instr& in) {
  const T* a = Lane<T>(w, in.a);
  const int first = __builtin_ctz(w.mask);
  T total = a[first];
  ForLanes(w.mask & (w.mask - 1), [&](int i) { total = F::Do(total, a[i]); });
  ForLanes(w.mask, [&](int i) { Lane<T>(w, in.d)[i] = total; });
}

void Nothing(Warp&, const Instr&) {}

}  // namespace

void RegisterWarp(const HandlerSink& sink) {
  sink.Put("shfl.up", "", Shfl<0>);
  sink.Put("shfl.down", "", Shfl<1>);
  sink.Put("shfl.bfly", "", Shfl<2>);
  sink.Put("shfl.idx", "", Shfl<3>);
  sink.Put("vote", "", Vote);
  sink.Put("activemask", "", Activemask);
  sink.Put("elect", "", Elect);
  sink.Put("match.any", "b32", MatchAny<uint32_t>);
  sink.Put("match.any", "b64", MatchAny<uint64_t>);
  sink.Put("match.all", "b32", MatchAll<uint32_t>);
  sink.Put("match.all", "b64", MatchAll<uint64_t>);
  sink.Put("redux.add", "u32", Redux<uint32_t, Sum>);
  sink.Put("redux.add", "s32", Redux<uint32_t, Sum>);
  sink.Put("redux.and", "b32", Redux<uint32_t, AndBits>);
  sink.Put("redux.or", "b32", Redux<uint32_t, OrBits>);
  sink.Put("redux.xor", "b32", Redux<uint32_t, XorBits>);
  sink.Put("redux.min", "u32", Redux<uint32_t, Least>);
  sink.Put("redux.max", "u32", Redux<uint32_t, Most>);
  sink.Put("redux.min", "s32", Redux<int32_t, Least>);
  sink.Put("redux.max", "s32", Redux<int32_t, Most>);
  sink.Put("nothing", "", Nothing);
}

}  // namespace simgpu
