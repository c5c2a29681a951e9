// Operations across the lanes of a warp, and special registers.
#include <algorithm>
#include <bit>
#include <cstring>

#include "tools/simgpu/exec/code.h"

namespace simgpu {
namespace {

// shfl.sync: a value, b lane or offset, c clamp and segment; d result, e in-range predicate. aux: 0
// up, 1 down, 2 bfly, 3 idx.
void Shfl(Warp& w, const Instr& in) {
  const auto* a = Lane<uint32_t>(w, in.a);
  const auto* b = Lane<uint32_t>(w, in.b);
  const auto* c = Lane<uint32_t>(w, in.c);
  uint32_t out[kLanes], in_range = 0;
  for (int i = 0; i < kLanes; ++i) {
    const int clamp = static_cast<int>(c[i] & 0x1f), segment = static_cast<int>(c[i] >> 8 & 0x1f);
    const int max_lane = (i & segment) | (clamp & ~segment), min_lane = i & segment;
    const int by = static_cast<int>(b[i] & 0x1f);
    int from = i;
    bool valid = false;
    switch (in.aux) {
      case 0:
        from = i - by;
        valid = from >= max_lane;
        break;
      case 1:
        from = i + by;
        valid = from <= max_lane;
        break;
      case 2:
        from = i ^ by;
        valid = from <= max_lane;
        break;
      default:
        from = min_lane | (by & ~segment);
        valid = from <= max_lane;
    }
    if (!valid) from = i;
    in_range |= static_cast<uint32_t>(valid) << i;
    out[i] = a[from & 31];
  }
  auto* d = Lane<uint32_t>(w, in.d);
  for (int i = 0; i < kLanes; ++i) {
    if (w.mask >> i & 1) d[i] = out[i];
  }
  if (in.e != kNoRef) {
    uint32_t& p = Pred(w, in.e);
    p = (p & ~w.mask) | (in_range & w.mask);
  }
}

// vote: aux 0 all, 1 any, 2 uni, 3 ballot. imm: the predicate is negated. b: member mask (lanes).
void Vote(Warp& w, const Instr& in) {
  const uint32_t p = (in.imm != 0 ? ~Pred(w, in.a) : Pred(w, in.a)) & w.mask;
  if (in.aux == 3) {
    auto* d = Lane<uint32_t>(w, in.d);
    for (int i = 0; i < kLanes; ++i) {
      if (w.mask >> i & 1) d[i] = p;
    }
    return;
  }
  const bool result = in.aux == 0 ? p == w.mask : in.aux == 1 ? p != 0 : p == 0 || p == w.mask;
  uint32_t& d = Pred(w, in.d);
  d = (d & ~w.mask) | (result ? w.mask : 0);
}

void Activemask(Warp& w, const Instr& in) {
  auto* d = Lane<uint32_t>(w, in.d);
  const uint32_t mask = w.mask;
  for (int i = 0; i < kLanes; ++i) {
    if (mask >> i & 1) d[i] = mask;
  }
}

template <typename T>
void MatchAny(Warp& w, const Instr& in) {
  const auto* a = Lane<T>(w, in.a);
  auto* d = Lane<uint32_t>(w, in.d);
  uint32_t out[kLanes] = {};
  for (int i = 0; i < kLanes; ++i) {
    for (int k = 0; k < kLanes; ++k) {
      if ((w.mask >> k & 1) && a[i] == a[k]) out[i] |= 1u << k;
    }
  }
  for (int i = 0; i < kLanes; ++i) {
    if (w.mask >> i & 1) d[i] = out[i];
  }
}

template <typename T>
void MatchAll(Warp& w, const Instr& in) {
  const auto* a = Lane<T>(w, in.a);
  const int first = std::countr_zero(w.mask);
  bool same = true;
  for (int i = 0; i < kLanes; ++i) same &= !(w.mask >> i & 1) || a[i] == a[first];
  auto* d = Lane<uint32_t>(w, in.d);
  for (int i = 0; i < kLanes; ++i) {
    if (w.mask >> i & 1) d[i] = same ? w.mask : 0;
  }
  if (in.e != kNoRef) {
    uint32_t& p = Pred(w, in.e);
    p = (p & ~w.mask) | (same ? w.mask : 0);
  }
}

template <typename T, typename F>
void Redux(Warp& w, const Instr& in, F f) {
  const auto* a = Lane<T>(w, in.a);
  bool first = true;
  T total{};
  for (int i = 0; i < kLanes; ++i) {
    if (!(w.mask >> i & 1)) continue;
    total = first ? a[i] : f(total, a[i]);
    first = false;
  }
  auto* d = Lane<T>(w, in.d);
  for (int i = 0; i < kLanes; ++i) {
    if (w.mask >> i & 1) d[i] = total;
  }
}

// Special registers: aux says which.
void Special(Warp& w, const Instr& in) {
  const Block& block = *w.block;
  const Dim3 grid = block.config->grid, size = block.config->block;
  auto put = [&](auto f) {
    for (int i = 0; i < kLanes; ++i) {
      if (!(w.mask >> i & 1)) continue;
      if (in.imm != 0) {
        Lane<uint64_t>(w, in.d)[i] = f(i);
      } else {
        Lane<uint32_t>(w, in.d)[i] = static_cast<uint32_t>(f(i));
      }
    }
  };
  const uint32_t dims[3] = {size.x, size.y, size.z}, grids[3] = {grid.x, grid.y, grid.z};
  const int which = in.aux;
  if (which < 3) return put([&](int i) -> uint64_t { return w.tid[which][i]; });
  if (which < 6) return put([&](int) -> uint64_t { return dims[which - 3]; });
  if (which < 9) return put([&](int) -> uint64_t { return block.id[which - 6]; });
  if (which < 12) return put([&](int) -> uint64_t { return grids[which - 9]; });
  switch (which) {
    case 12:
      return put([&](int i) -> uint64_t { return static_cast<uint64_t>(i); });
    case 13:
      return put([&](int) -> uint64_t { return w.id; });
    case 14:
      return put([&](int) -> uint64_t { return (size.count() + 31) / 32; });
    case 15:
      return put([&](int i) -> uint64_t { return 1u << i; });
    case 16:
      return put([&](int i) -> uint64_t { return (1u << i) - 1; });
    case 17:
      return put([&](int i) -> uint64_t { return (2u << i) - 1; });
    case 18:
      return put([&](int i) -> uint64_t { return ~((2u << i) - 1); });
    case 19:
      return put([&](int i) -> uint64_t { return ~((1u << i) - 1); });
    case 20:  // clocks: virtual, advancing with what the block executes
      return put([&](int) -> uint64_t { return block.config->clock_base_ns * 2 + block.clock; });
    case 21:
      return put([&](int) -> uint64_t { return block.config->clock_base_ns + block.clock / 2; });
    case 22:  // smid
      return put([&](int) -> uint64_t { return (block.id[0] + block.id[1] * grid.x) % 132; });
    case 23:
      return put([&](int) -> uint64_t { return 132; });
    case 24:
      return put([&](int) -> uint64_t { return block.config->grid_id; });
    case 25:
      return put([&](int) -> uint64_t { return block.config->dynamic_shared_bytes; });
    case 26:
      return put([&](int) -> uint64_t { return block.shared.size(); });
    default:
      return put([&](int) -> uint64_t { return 0; });
  }
}

void Nothing(Warp&, const Instr&) {}

}  // namespace

void RegisterWarp(HandlerMap* map) {
  HandlerMap& m = *map;
  m["shfl"] = Shfl;
  m["vote"] = Vote;
  m["activemask"] = Activemask;
  m["match.any.b32"] = MatchAny<uint32_t>;
  m["match.any.b64"] = MatchAny<uint64_t>;
  m["match.all.b32"] = MatchAll<uint32_t>;
  m["match.all.b64"] = MatchAll<uint64_t>;
  m["redux.add"] = [](Warp& w, const Instr& in) {
    Redux<uint32_t>(w, in, [](uint32_t a, uint32_t b) { return a + b; });
  };
  m["redux.and"] = [](Warp& w, const Instr& in) {
    Redux<uint32_t>(w, in, [](uint32_t a, uint32_t b) { return a & b; });
  };
  m["redux.or"] = [](Warp& w, const Instr& in) {
    Redux<uint32_t>(w, in, [](uint32_t a, uint32_t b) { return a | b; });
  };
  m["redux.xor"] = [](Warp& w, const Instr& in) {
    Redux<uint32_t>(w, in, [](uint32_t a, uint32_t b) { return a ^ b; });
  };
  m["redux.min.s32"] = [](Warp& w, const Instr& in) {
    Redux<int32_t>(w, in, [](int32_t a, int32_t b) { return std::min(a, b); });
  };
  m["redux.max.s32"] = [](Warp& w, const Instr& in) {
    Redux<int32_t>(w, in, [](int32_t a, int32_t b) { return std::max(a, b); });
  };
  m["redux.min.u32"] = [](Warp& w, const Instr& in) {
    Redux<uint32_t>(w, in, [](uint32_t a, uint32_t b) { return std::min(a, b); });
  };
  m["redux.max.u32"] = [](Warp& w, const Instr& in) {
    Redux<uint32_t>(w, in, [](uint32_t a, uint32_t b) { return std::max(a, b); });
  };
  m["special"] = Special;
  m["nothing"] = Nothing;
}

}  // namespace simgpu
