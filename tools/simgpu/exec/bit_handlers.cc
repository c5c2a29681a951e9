// Counting, finding, extracting and permuting bits: lane by lane.
#include <bit>
#include <type_traits>

#include "tools/simgpu/exec/handlers.h"
#include "tools/simgpu/exec/lanes.h"

namespace simgpu {
namespace {

template <typename T>
void Popc(Warp& w, const Instr& in) {
  ForLanes(w.mask, [&](int i) {
    Lane<uint32_t>(w, in.d)[i] = static_cast<uint32_t>(std::popcount(Lane<T>(w, in.a)[i]));
  });
}
template <typename T>
void Clz(Warp& w, const Instr& in) {
  ForLanes(w.mask, [&](int i) {
    Lane<uint32_t>(w, in.d)[i] = static_cast<uint32_t>(std::countl_zero(Lane<T>(w, in.a)[i]));
  });
}
template <typename T>
T Reverse(T x) {
  T r = 0;
  for (size_t i = 0; i < 8 * sizeof(T); ++i) r = static_cast<T>(r << 1 | (x >> i & 1));
  return r;
}
template <typename T>
void Brev(Warp& w, const Instr& in) {
  ForLanes(w.mask, [&](int i) { Lane<T>(w, in.d)[i] = Reverse<T>(Lane<T>(w, in.a)[i]); });
}

// bfe: c bits of a from b on; the sign bit of the field (or of a, where the field reaches beyond
// it) fills the rest.
template <typename T>
T ExtractField(T a, uint32_t pos, uint32_t len) {
  using V = std::make_unsigned_t<T>;
  constexpr uint32_t kBits = 8 * sizeof(T);
  if (len == 0) return 0;
  const auto value = static_cast<V>(a);
  const uint32_t last = pos + len - 1 < kBits - 1 ? pos + len - 1 : kBits - 1;
  const bool sign = std::is_signed_v<T> && (value >> last & 1) != 0;
  const uint32_t have = pos >= kBits ? 0 : kBits - pos;  // bits of a from pos on
  const uint32_t taken = len < have ? len : have;
  V out = taken == 0 ? 0 : value >> pos;
  if (taken < kBits) {
    const V keep = (V{1} << taken) - 1;
    out &= keep;
    if (sign) out |= ~keep;
  }
  return static_cast<T>(out);
}
template <typename T>
void Bfe(Warp& w, const Instr& in) {
  ForLanes(w.mask, [&](int i) {
    Lane<T>(w, in.d)[i] = ExtractField<T>(Lane<T>(w, in.a)[i], Lane<uint32_t>(w, in.b)[i] & 0xff,
                                          Lane<uint32_t>(w, in.c)[i] & 0xff);
  });
}
// bfi d, a, b, c, f: the low f bits of a put into b at c.
template <typename T>
void Bfi(Warp& w, const Instr& in) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  ForLanes(w.mask, [&](int i) {
    const T a = Lane<T>(w, in.a)[i], b = Lane<T>(w, in.b)[i];
    const uint32_t pos = Lane<uint32_t>(w, in.c)[i] & 0xff;
    const uint32_t len = Lane<uint32_t>(w, in.f)[i] & 0xff;
    T out = b;
    if (len != 0 && pos < kBits) {
      const T ones = len >= kBits ? ~T{0} : (T{1} << len) - 1;
      out = (b & ~(ones << pos)) | ((a & ones) << pos);
    }
    Lane<T>(w, in.d)[i] = out;
  });
}
// The highest bit that differs from the sign. aux: .shiftamt, how far it is from the top.
template <typename T>
void Bfind(Warp& w, const Instr& in) {
  using V = std::make_unsigned_t<T>;
  constexpr uint32_t kTop = 8 * sizeof(T) - 1;
  ForLanes(w.mask, [&](int i) {
    auto v = static_cast<V>(Lane<T>(w, in.a)[i]);
    if (std::is_signed_v<T> && (v >> kTop) != 0) v = ~v;
    uint32_t out = kAllLanes;
    if (v != 0) {
      const auto zeros = static_cast<uint32_t>(std::countl_zero(v));
      out = in.aux != 0 ? zeros : kTop - zeros;
    }
    Lane<uint32_t>(w, in.d)[i] = out;
  });
}
// fns: the c-th set bit of a from bit b on (up for c > 0, down for c < 0; c == 0: b itself).
uint32_t NthSet(uint32_t mask, uint32_t base, int32_t offset) {
  if (base > 31) return kAllLanes;
  if (offset == 0) return (mask >> base & 1) != 0 ? base : kAllLanes;
  const int step = offset < 0 ? -1 : 1;
  int64_t left = offset < 0 ? -static_cast<int64_t>(offset) : offset;
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step) {
    if ((mask >> at & 1) != 0 && --left == 0) return static_cast<uint32_t>(at);
  }
  return kAllLanes;
}
void Fns(Warp& w, const Instr& in) {
  ForLanes(w.mask, [&](int i) {
    Lane<uint32_t>(w, in.d)[i] =
        NthSet(Lane<uint32_t>(w, in.a)[i], Lane<uint32_t>(w, in.b)[i], Lane<int32_t>(w, in.c)[i]);
  });
}
// bmsk: b ones from bit a on. aux: .wrap, otherwise .clamp.
void Bmsk(Warp& w, const Instr& in) {
  ForLanes(w.mask, [&](int i) {
    uint32_t start = Lane<uint32_t>(w, in.a)[i], width = Lane<uint32_t>(w, in.b)[i];
    if (in.aux != 0) {
      start &= 31;
      width &= 31;
    }
    const uint64_t ones = width >= 32 ? 0xffffffffu : (uint64_t{1} << width) - 1;
    Lane<uint32_t>(w, in.d)[i] = start >= 32 ? 0 : static_cast<uint32_t>(ones << start);
  });
}
// szext: a's low b bits extended. aux: .wrap.
template <bool kSigned>
void Szext(Warp& w, const Instr& in) {
  ForLanes(w.mask, [&](int i) {
    const uint32_t a = Lane<uint32_t>(w, in.a)[i];
    uint32_t n = Lane<uint32_t>(w, in.b)[i];
    n = in.aux != 0 ? n & 31 : n > 32 ? 32 : n;
    uint32_t out = a;
    if (n < 32) {
      const uint32_t keep = (1u << n) - 1;
      out = a & keep;
      if (kSigned && n > 0 && (a >> (n - 1) & 1) != 0) out |= ~keep;
    }
    Lane<uint32_t>(w, in.d)[i] = out;
  });
}

// prmt: four bytes of {b,a}, chosen by c. aux: 0 by nibbles (bit 3 replicates the sign), 1 f4e,
// 2 b4e, 3 rc8, 4 ecl, 5 ecr, 6 rc16.
uint32_t Permute(uint32_t a, uint32_t b, uint32_t c, uint32_t mode) {
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  uint32_t out = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    const uint32_t n = c & 3;
    uint32_t from = 0;
    bool sign = false;
    switch (mode) {
      case 0:
        from = c >> (4 * k) & 7;
        sign = (c >> (4 * k) & 8) != 0;
        break;
      case 1:
        from = (n + k) & 7;
        break;
      case 2:
        from = (n - k) & 7;
        break;
      case 3:
        from = n;
        break;
      case 4:
        from = k > n ? k : n;
        break;
      case 5:
        from = k < n ? k : n;
        break;
      default:
        from = (n & 1) * 2 + (k & 1);
        break;
    }
    uint32_t byte = static_cast<uint32_t>(bytes >> (8 * from)) & 0xff;
    if (sign) byte = (byte & 0x80) != 0 ? 0xff : 0;
    out |= byte << (8 * k);
  }
  return out;
}
void Prmt(Warp& w, const Instr& in) {
  ForLanes(w.mask, [&](int i) {
    Lane<uint32_t>(w, in.d)[i] = Permute(Lane<uint32_t>(w, in.a)[i], Lane<uint32_t>(w, in.b)[i],
                                         Lane<uint32_t>(w, in.c)[i], in.aux);
  });
}

}  // namespace

void RegisterBits(const HandlerSink& sink) {
  sink.Put("popc", "b32", Popc<uint32_t>);
  sink.Put("popc", "b64", Popc<uint64_t>);
  sink.Put("clz", "b32", Clz<uint32_t>);
  sink.Put("clz", "b64", Clz<uint64_t>);
  sink.Put("brev", "b32", Brev<uint32_t>);
  sink.Put("brev", "b64", Brev<uint64_t>);
  sink.Put("bfe", "u32", Bfe<uint32_t>);
  sink.Put("bfe", "u64", Bfe<uint64_t>);
  sink.Put("bfe", "s32", Bfe<int32_t>);
  sink.Put("bfe", "s64", Bfe<int64_t>);
  sink.Put("bfi", "b32", Bfi<uint32_t>);
  sink.Put("bfi", "b64", Bfi<uint64_t>);
  sink.Put("bfind", "u32", Bfind<uint32_t>);
  sink.Put("bfind", "u64", Bfind<uint64_t>);
  sink.Put("bfind", "s32", Bfind<int32_t>);
  sink.Put("bfind", "s64", Bfind<int64_t>);
  sink.Put("fns", "b32", Fns);
  sink.Put("bmsk", "b32", Bmsk);
  sink.Put("szext", "u32", Szext<false>);
  sink.Put("szext", "s32", Szext<true>);
  sink.Put("prmt", "b32", Prmt);
}

}  // namespace simgpu
