// Integer arithmetic and logic of whole warps; moves. Built once for the baseline and once for
// AVX2.
#include "tools/simgpu/exec/handlers.h"
#include "tools/simgpu/exec/integer_ops.h"

namespace simgpu {
namespace {

// The shift amount has 32 bits whatever the type.
template <bool kMasked, typename T, typename Op>
void Shift(Warp& w, const Instr& in) {
  const Slot<T>* a = Lane<Slot<T>>(w, in.a);
  const uint32_t* b = Lane<uint32_t>(w, in.b);
  Apply<kMasked, T>(w, in.d,
                    [=](int i) SIMGPU_LAMBDA { return Op::template Do<T>(Get<T>(a, i), b[i]); });
}

template <bool kMasked, typename T, typename W>
void MulWide(Warp& w, const Instr& in) {
  const Slot<T>* a = Lane<Slot<T>>(w, in.a);
  const Slot<T>* b = Lane<Slot<T>>(w, in.b);
  Apply<kMasked, W>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    return static_cast<W>(static_cast<W>(Get<T>(a, i)) * static_cast<W>(Get<T>(b, i)));
  });
}
template <bool kMasked, typename T, typename W>
void MadWide(Warp& w, const Instr& in) {
  const Slot<T>* a = Lane<Slot<T>>(w, in.a);
  const Slot<T>* b = Lane<Slot<T>>(w, in.b);
  const Slot<W>* c = Lane<Slot<W>>(w, in.c);
  Apply<kMasked, W>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    return Add::Do<W>(static_cast<W>(static_cast<W>(Get<T>(a, i)) * static_cast<W>(Get<T>(b, i))),
                      static_cast<W>(c[i]));
  });
}

// add.cc and its family. The carry of a lane is a bit of a predicate: f before, e after. A
// subtraction adds the complement, and its carry is "no borrow"; PTX's CC.CF is the borrow, and
// only ever read by subc, so that the sense does not show.
template <typename T>
SIMGPU_INLINE T AddCarry(T a, T b, uint32_t in, uint32_t* out) {
  T sum = 0, total = 0;
  const bool first = __builtin_add_overflow(a, b, &sum);
  const bool second = __builtin_add_overflow(sum, static_cast<T>(in), &total);
  *out = static_cast<uint32_t>(first || second);
  return total;
}
template <typename T, bool kSubtract>
void Carry(Warp& w, const Instr& in) {
  const T* a = Lane<T>(w, in.a);
  const T* b = Lane<T>(w, in.b);
  T* d = Lane<T>(w, in.d);
  const uint32_t before = in.f != kNoRef ? Pred(w, in.f) : (kSubtract ? kAllLanes : 0);
  uint32_t after = 0;
  ForLanes(w.mask, [&](int i) SIMGPU_LAMBDA {
    uint32_t carry = 0;
    d[i] = AddCarry<T>(a[i], kSubtract ? static_cast<T>(~b[i]) : b[i], before >> i & 1, &carry);
    after |= carry << i;
  });
  if (in.e != kNoRef) SetPred(w, in.e, after);
}
// madc and mad.cc: the product's low or high half, then as above.
template <typename T, typename Op>
void MadCarry(Warp& w, const Instr& in) {
  using V = U<T>;
  const T* a = Lane<T>(w, in.a);
  const T* b = Lane<T>(w, in.b);
  const T* c = Lane<T>(w, in.c);
  T* d = Lane<T>(w, in.d);
  const uint32_t before = in.f != kNoRef ? Pred(w, in.f) : 0;
  uint32_t after = 0;
  ForLanes(w.mask, [&](int i) SIMGPU_LAMBDA {
    uint32_t carry = 0;
    const V product = static_cast<V>(Op::template Do<T>(a[i], b[i]));
    d[i] = static_cast<T>(AddCarry<V>(product, static_cast<V>(c[i]), before >> i & 1, &carry));
    after |= carry << i;
  });
  if (in.e != kNoRef) SetPred(w, in.e, after);
}

// selp: c chooses; imm: c is negated.
template <bool kMasked, typename T>
void Selp(Warp& w, const Instr& in) {
  const T* a = Lane<T>(w, in.a);
  const T* b = Lane<T>(w, in.b);
  const uint32_t p = Pred(w, in.c) ^ (in.imm != 0 ? kAllLanes : 0);
  Apply<kMasked, T>(w, in.d, [=](int i) SIMGPU_LAMBDA { return (p >> i & 1) != 0 ? a[i] : b[i]; });
}

// slct: a if c >= 0 (C is s32 or f32; a NaN is not), else b. aux: subnormals of c count as zero.
template <bool kMasked, typename T, typename C>
void Slct(Warp& w, const Instr& in) {
  const T* a = Lane<T>(w, in.a);
  const T* b = Lane<T>(w, in.b);
  const C* c = Lane<C>(w, in.c);
  const bool flush = in.aux != 0;
  Apply<kMasked, T>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    bool first = c[i] >= C{0};
    if constexpr (std::is_same_v<C, float>) {
      first = first || (flush && c[i] > -std::numeric_limits<float>::min());
    }
    return first ? a[i] : b[i];
  });
}

template <bool kMasked>
void Lop3(Warp& w, const Instr& in) {  // aux: the truth table
  const uint32_t* a = Lane<uint32_t>(w, in.a);
  const uint32_t* b = Lane<uint32_t>(w, in.b);
  const uint32_t* c = Lane<uint32_t>(w, in.c);
  uint32_t on[8];
  for (int k = 0; k < 8; ++k) on[k] = (in.aux >> k & 1) != 0 ? kAllLanes : 0;
  Apply<kMasked, uint32_t>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    const uint32_t x = a[i], y = b[i], z = c[i];
    return (~x & ~y & ~z & on[0]) | (~x & ~y & z & on[1]) | (~x & y & ~z & on[2]) |
           (~x & y & z & on[3]) | (x & ~y & ~z & on[4]) | (x & ~y & z & on[5]) |
           (x & y & ~z & on[6]) | (x & y & z & on[7]);
  });
}

// shf: the upper (l) or lower (r) word of {b,a} shifted; aux: wrap, otherwise clamp.
template <bool kMasked, bool kLeft>
void Shf(Warp& w, const Instr& in) {
  const uint32_t* a = Lane<uint32_t>(w, in.a);
  const uint32_t* b = Lane<uint32_t>(w, in.b);
  const uint32_t* c = Lane<uint32_t>(w, in.c);
  const bool wrap = in.aux != 0;
  Apply<kMasked, uint32_t>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    const uint32_t n = wrap ? c[i] & 31 : (c[i] > 32 ? 32 : c[i]);
    const uint64_t both = static_cast<uint64_t>(b[i]) << 32 | a[i];
    return static_cast<uint32_t>(kLeft ? both << n >> 32 : both >> n);
  });
}

// mov of a pair into one register, and of a part of one register.
template <bool kMasked>
void Pack64(Warp& w, const Instr& in) {
  const uint32_t* a = Lane<uint32_t>(w, in.a);
  const uint32_t* b = Lane<uint32_t>(w, in.b);
  Apply<kMasked, uint64_t>(
      w, in.d, [=](int i) SIMGPU_LAMBDA { return static_cast<uint64_t>(b[i]) << 32 | a[i]; });
}
template <bool kMasked>
void Pack32(Warp& w, const Instr& in) {
  const uint32_t* a = Lane<uint32_t>(w, in.a);
  const uint32_t* b = Lane<uint32_t>(w, in.b);
  Apply<kMasked, uint32_t>(w, in.d,
                           [=](int i) SIMGPU_LAMBDA { return b[i] << 16 | (a[i] & 0xffff); });
}
// Of `bits` bits: a at aux, or-ed into d (which the first part clears).
template <bool kMasked, typename T>
void Insert(Warp& w, const Instr& in) {  // d = a's low imm bits << aux | b
  const uint32_t* a = Lane<uint32_t>(w, in.a);
  const T* b = Lane<T>(w, in.b);
  const uint32_t shift = in.aux;
  const uint32_t keep = in.imm >= 32 ? kAllLanes : (1u << in.imm) - 1;
  Apply<kMasked, T>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    return static_cast<T>(static_cast<T>(a[i] & keep) << shift | b[i]);
  });
}
template <bool kMasked, typename T>
void Extract(Warp& w, const Instr& in) {  // d = a >> aux, imm bits of it
  const T* a = Lane<T>(w, in.a);
  const uint32_t shift = in.aux;
  const uint32_t keep = in.imm >= 32 ? kAllLanes : (1u << in.imm) - 1;
  Apply<kMasked, uint32_t>(
      w, in.d, [=](int i) SIMGPU_LAMBDA { return static_cast<uint32_t>(a[i] >> shift) & keep; });
}

// A value whose register has another width than the instruction works on.
template <bool kMasked>
void Narrow(Warp& w, const Instr& in) {
  const uint64_t* a = Lane<uint64_t>(w, in.a);
  Apply<kMasked, uint32_t>(w, in.d,
                           [=](int i) SIMGPU_LAMBDA { return static_cast<uint32_t>(a[i]); });
}
template <bool kMasked, typename T>
void Widen(Warp& w, const Instr& in) {
  const T* a = Lane<T>(w, in.a);
  Apply<kMasked, uint64_t>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    return static_cast<uint64_t>(static_cast<int64_t>(a[i]));
  });
}
// d = a + imm: cvta, and addresses of local variables.
template <bool kMasked>
void AddImm64(Warp& w, const Instr& in) {
  const uint64_t* a = Lane<uint64_t>(w, in.a);
  const auto imm = static_cast<uint64_t>(in.imm);
  Apply<kMasked, uint64_t>(w, in.d, [=](int i) SIMGPU_LAMBDA { return a[i] + imm; });
}
// d = imm + the frame's place in local memory.
template <bool kMasked, typename T>
void LocalAddress(Warp& w, const Instr& in) {
  const T value = static_cast<T>(static_cast<uint64_t>(in.imm) + w.frame->local_base);
  Apply<kMasked, T>(w, in.d, [=](int) SIMGPU_LAMBDA { return value; });
}

// Packed products with an addend: dp4a (imm 0), dp2a.lo (1), dp2a.hi (2).
template <bool kMasked, bool kSignedA, bool kSignedB>
void DotProduct(Warp& w, const Instr& in) {
  const uint32_t* a = Lane<uint32_t>(w, in.a);
  const uint32_t* b = Lane<uint32_t>(w, in.b);
  const uint32_t* c = Lane<uint32_t>(w, in.c);
  const int64_t kind = in.imm;
  Apply<kMasked, uint32_t>(w, in.d, [=](int i) SIMGPU_LAMBDA {
    uint32_t sum = c[i];
    if (kind == 0) {
      for (int k = 0; k < 4; ++k) {
        const uint32_t x = a[i] >> (8 * k) & 0xff, y = b[i] >> (8 * k) & 0xff;
        sum += static_cast<uint32_t>((kSignedA ? static_cast<int8_t>(x) : static_cast<int>(x)) *
                                     (kSignedB ? static_cast<int8_t>(y) : static_cast<int>(y)));
      }
    } else {
      const uint32_t bytes = kind == 2 ? b[i] >> 16 : b[i];
      for (int k = 0; k < 2; ++k) {
        const uint32_t x = a[i] >> (16 * k) & 0xffff, y = bytes >> (8 * k) & 0xff;
        sum += static_cast<uint32_t>((kSignedA ? static_cast<int16_t>(x) : static_cast<int>(x)) *
                                     (kSignedB ? static_cast<int8_t>(y) : static_cast<int>(y)));
      }
    }
    return sum;
  });
}

#define PUT(op, type, handler, ...) \
  sink.Put(op, type, handler<false, __VA_ARGS__>, handler<true, __VA_ARGS__>)
#define PUT0(op, type, handler) sink.Put(op, type, handler<false>, handler<true>)

template <typename T>
void Arithmetic(const HandlerSink& sink, const char* t) {
  PUT("add", t, Binary, T, Add);
  PUT("sub", t, Binary, T, Sub);
  PUT("mul.lo", t, Binary, T, MulLo);
  PUT("mul.hi", t, Binary, T, MulHi);
  PUT("mad.lo", t, Ternary, T, MadLo);
  PUT("mad.hi", t, Ternary, T, MadHi);
  PUT("div", t, Binary, T, Div);
  PUT("rem", t, Binary, T, Rem);
  PUT("min", t, Binary, T, Min);
  PUT("max", t, Binary, T, Max);
  PUT("shr", t, Shift, T, Shr);
  PUT("sad", t, Ternary, T, Sad);
  if constexpr (std::is_signed_v<T>) {
    PUT("neg", t, Unary, T, Neg);
    PUT("abs", t, Unary, T, Abs);
  }
}

template <typename T>
void Logic(const HandlerSink& sink, const char* t) {
  PUT("and", t, Binary, T, And);
  PUT("or", t, Binary, T, Or);
  PUT("xor", t, Binary, T, Xor);
  PUT("not", t, Unary, T, Not);
  PUT("cnot", t, Unary, T, Cnot);
  PUT("shl", t, Shift, T, Shl);
  PUT("shr", t, Shift, T, Shr);
}

template <typename T>
void Carries(const HandlerSink& sink, const char* t) {
  using S = std::make_signed_t<T>;
  sink.Put("add.cc", t, Carry<T, false>);
  sink.Put("sub.cc", t, Carry<T, true>);
  sink.Put("mad.lo.cc", t, MadCarry<T, MulLo>);
  sink.Put("mad.hi.cc", t, MadCarry<T, MulHi>);
  sink.Put("mad.hi.cc.signed", t, MadCarry<S, MulHi>);
}

}  // namespace

void SIMGPU_CONCAT(RegisterInteger, SIMGPU_SUFFIX)(const HandlerSink& sink) {
  Arithmetic<uint16_t>(sink, "u16");
  Arithmetic<uint32_t>(sink, "u32");
  Arithmetic<uint64_t>(sink, "u64");
  Arithmetic<int16_t>(sink, "s16");
  Arithmetic<int32_t>(sink, "s32");
  Arithmetic<int64_t>(sink, "s64");
  PUT("mul.wide", "u16", MulWide, uint16_t, uint32_t);
  PUT("mul.wide", "u32", MulWide, uint32_t, uint64_t);
  PUT("mul.wide", "s16", MulWide, int16_t, int32_t);
  PUT("mul.wide", "s32", MulWide, int32_t, int64_t);
  PUT("mad.wide", "u16", MadWide, uint16_t, uint32_t);
  PUT("mad.wide", "u32", MadWide, uint32_t, uint64_t);
  PUT("mad.wide", "s16", MadWide, int16_t, int32_t);
  PUT("mad.wide", "s32", MadWide, int32_t, int64_t);
  PUT("add.sat", "s32", Binary, int32_t, AddSat);
  PUT("sub.sat", "s32", Binary, int32_t, SubSat);
  PUT("mad.hi.sat", "s32", Ternary, int32_t, MadHiSat);
  PUT("min.relu", "s32", Binary, int32_t, Relu<Min>);
  PUT("max.relu", "s32", Binary, int32_t, Relu<Max>);
  PUT("mul24.lo", "u32", Binary, uint32_t, Mul24Lo);
  PUT("mul24.hi", "u32", Binary, uint32_t, Mul24Hi);
  PUT("mad24.lo", "u32", Ternary, uint32_t, Mad24Lo);
  PUT("mad24.hi", "u32", Ternary, uint32_t, Mad24Hi);
  PUT("mul24.lo", "s32", Binary, int32_t, Mul24Lo);
  PUT("mul24.hi", "s32", Binary, int32_t, Mul24Hi);
  PUT("mad24.lo", "s32", Ternary, int32_t, Mad24Lo);
  PUT("mad24.hi", "s32", Ternary, int32_t, Mad24Hi);
  PUT("mad24.hi.sat", "s32", Ternary, int32_t, Mad24HiSat);
#define PAIRS(op, functor)                                     \
  PUT(op, "u16x2", Binary, uint32_t, Pair<functor, uint16_t>); \
  PUT(op, "s16x2", Binary, uint32_t, Pair<functor, int16_t>)
  PAIRS("add", Add);
  PAIRS("min", Min);
  PAIRS("max", Max);
#undef PAIRS
  PUT("min.relu", "s16x2", Binary, uint32_t, Pair<Relu<Min>, int16_t>);
  PUT("max.relu", "s16x2", Binary, uint32_t, Pair<Relu<Max>, int16_t>);
  Logic<uint16_t>(sink, "b16");
  Logic<uint32_t>(sink, "b32");
  Logic<uint64_t>(sink, "b64");
  Carries<uint32_t>(sink, "32");
  Carries<uint64_t>(sink, "64");
  PUT("selp", "32", Selp, uint32_t);
  PUT("selp", "64", Selp, uint64_t);
  PUT("slct.s32", "32", Slct, uint32_t, int32_t);
  PUT("slct.s32", "64", Slct, uint64_t, int32_t);
  PUT("slct.f32", "32", Slct, uint32_t, float);
  PUT("slct.f32", "64", Slct, uint64_t, float);
  PUT0("lop3", "", Lop3);
  PUT("shf.l", "", Shf, true);
  PUT("shf.r", "", Shf, false);
  PUT("mov", "32", Unary, uint32_t, Mov);
  PUT("mov", "64", Unary, uint64_t, Mov);
  PUT0("pack", "64", Pack64);
  PUT0("pack", "32", Pack32);
  PUT("insert", "32", Insert, uint32_t);
  PUT("insert", "64", Insert, uint64_t);
  PUT("extract", "32", Extract, uint32_t);
  PUT("extract", "64", Extract, uint64_t);
  PUT0("narrow", "", Narrow);
  PUT("widen", "u32", Widen, uint32_t);
  PUT("widen", "s32", Widen, int32_t);
  PUT0("add.imm", "64", AddImm64);
  PUT("local.address", "32", LocalAddress, uint32_t);
  PUT("local.address", "64", LocalAddress, uint64_t);
  PUT("dot.uu", "", DotProduct, false, false);
  PUT("dot.us", "", DotProduct, false, true);
  PUT("dot.su", "", DotProduct, true, false);
  PUT("dot.ss", "", DotProduct, true, true);
}

}  // namespace simgpu
