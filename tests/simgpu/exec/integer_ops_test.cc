// Integer instructions, bit by bit.
#include <gtest/gtest.h>

#include "tests/simgpu/exec/ops.h"

namespace simgpu::test {
namespace {

using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i128 = __int128;
using u128 = unsigned __int128;

// A lambda of three operands as a 64-bit result's low bits.
#define OP(text, expression)                                   \
  OpCase {                                                     \
    text, [](uint64_t a, uint64_t b, uint64_t c) -> uint64_t { \
      (void)a, (void)b, (void)c;                               \
      return (expression);                                     \
    }                                                          \
  }

template <typename T>
T Clamp(i64 value) {
  return value < std::numeric_limits<T>::min()   ? std::numeric_limits<T>::min()
         : value > std::numeric_limits<T>::max() ? std::numeric_limits<T>::max()
                                                 : static_cast<T>(value);
}
template <typename T>
T Divide(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if (std::is_signed_v<T> && b == static_cast<T>(-1))
    return static_cast<T>(0 - static_cast<u64>(a));
  return static_cast<T>(a / b);
}
template <typename T>
T Remainder(T a, T b) {
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
  return static_cast<T>(a % b);
}
i64 Extend24(u64 x) { return static_cast<i64>(x << 40) >> 40; }
u32 Reverse(u32 x) {
  u32 r = 0;
  for (int i = 0; i < 32; ++i) r |= (x >> i & 1) << (31 - i);
  return r;
}
// bfe as the manual writes it: bit by bit.
template <typename T>
u64 Extract(u64 value, u64 start, u64 length) {
  const u64 bits = 8 * sizeof(T), pos = start & 0xff, len = length & 0xff;
  bool sign = false;
  if (std::is_signed_v<T> && len != 0) {
    sign = (value >> std::min<u64>(pos + len - 1, bits - 1) & 1) != 0;
  }
  u64 out = 0;
  for (u64 i = 0; i < bits; ++i) {
    const bool bit = i < len && pos + i < bits ? (value >> (pos + i) & 1) != 0 : sign;
    out |= static_cast<u64>(bit) << i;
  }
  return out;
}
template <typename T>
u64 Insert(u64 a, u64 b, u64 start, u64 length) {
  const u64 bits = 8 * sizeof(T), pos = start & 0xff, len = length & 0xff;
  u64 out = b & (sizeof(T) == 4 ? 0xffffffff : ~u64{0});
  for (u64 i = 0; i < len && pos + i < bits; ++i) {
    out = (out & ~(u64{1} << (pos + i))) | (a >> i & 1) << (pos + i);
  }
  return out;
}
template <typename T>
u32 FindHighest(T value, bool shift) {
  for (int i = 8 * sizeof(T) - 1; i >= 0; --i) {
    const bool negative = std::is_signed_v<T> && value < 0;
    if ((static_cast<u64>(value) >> i & 1) != static_cast<u64>(negative)) {
      return static_cast<u32>(shift ? 8 * sizeof(T) - 1 - static_cast<size_t>(i)
                                    : static_cast<size_t>(i));
    }
  }
  return 0xffffffff;
}
u32 Byte(u32 x, int k) { return x >> (8 * k) & 0xff; }

const OpCase kArithmetic[] = {
    OP("add.u16 %d16, %a16, %b16;", u16(a + b)),
    OP("add.s32 %d32, %a32, %b32;", u32(a + b)),
    OP("add.u64 %d64, %a64, %b64;", a + b),
    OP("add.s32 %d32, %a32, -7;", u32(a - 7)),
    OP("add.sat.s32 %d32, %a32, %b32;", u32(Clamp<i32>(i64{i32(a)} + i32(b)))),
    OP("sub.s16 %d16, %a16, %b16;", u16(a - b)),
    OP("sub.u32 %d32, %a32, %b32;", u32(a - b)),
    OP("sub.s64 %d64, %a64, %b64;", a - b),
    OP("sub.sat.s32 %d32, %a32, %b32;", u32(Clamp<i32>(i64{i32(a)} - i32(b)))),
    OP("add.u16x2 %d32, %a32, %b32;", u32(u16(a + b)) | u32(u16((a >> 16) + (b >> 16))) << 16),
    OP("mul.lo.u16 %d16, %a16, %b16;", u16(u32(u16(a)) * u16(b))),
    OP("mul.lo.s32 %d32, %a32, %b32;", u32(a) * u32(b)),
    OP("mul.lo.s64 %d64, %a64, %b64;", a* b),
    OP("mul.hi.u16 %d16, %a16, %b16;", u16(u32(u16(a)) * u16(b) >> 16)),
    OP("mul.hi.s16 %d16, %a16, %b16;", u16(i32(i16(a)) * i16(b) >> 16)),
    OP("mul.hi.u32 %d32, %a32, %b32;", u32(u64(u32(a)) * u32(b) >> 32)),
    OP("mul.hi.s32 %d32, %a32, %b32;", u32(i64(i32(a)) * i32(b) >> 32)),
    OP("mul.hi.u64 %d64, %a64, %b64;", u64(u128(a) * b >> 64)),
    OP("mul.hi.s64 %d64, %a64, %b64;", u64(i128(i64(a)) * i64(b) >> 64)),
    OP("mul.wide.u16 %d32, %a16, %b16;", u32(u16(a)) * u16(b)),
    OP("mul.wide.s16 %d32, %a16, %b16;", u32(i32(i16(a)) * i16(b))),
    OP("mul.wide.u32 %d64, %a32, %b32;", u64(u32(a)) * u32(b)),
    OP("mul.wide.s32 %d64, %a32, %b32;", u64(i64(i32(a)) * i32(b))),
    OP("mad.lo.s32 %d32, %a32, %b32, %c32;", u32(u32(a) * u32(b) + u32(c))),
    OP("mad.lo.u64 %d64, %a64, %b64, %c64;", a* b + c),
    OP("mad.lo.s16 %d16, %a16, %b16, %c16;", u16(u32(u16(a)) * u16(b) + c)),
    OP("mad.hi.u32 %d32, %a32, %b32, %c32;", u32((u64(u32(a)) * u32(b) >> 32) + c)),
    OP("mad.hi.s64 %d64, %a64, %b64, %c64;", u64(i128(i64(a)) * i64(b) >> 64) + c),
    OP("mad.hi.sat.s32 %d32, %a32, %b32, %c32;",
       u32(Clamp<i32>((i64(i32(a)) * i32(b) >> 32) + i32(c)))),
    OP("mad.wide.u32 %d64, %a32, %b32, %c64;", u64(u32(a)) * u32(b) + c),
    OP("mad.wide.s32 %d64, %a32, %b32, %c64;", u64(i64(i32(a)) * i32(b)) + c),
    OP("mad.wide.u16 %d32, %a16, %b16, %c32;", u32(u32(u16(a)) * u16(b) + u32(c))),
    OP("mul24.lo.u32 %d32, %a32, %b32;", u32((a & 0xffffff) * (b & 0xffffff))),
    OP("mul24.hi.u32 %d32, %a32, %b32;", u32((a & 0xffffff) * (b & 0xffffff) >> 16)),
    OP("mul24.lo.s32 %d32, %a32, %b32;", u32(Extend24(a) * Extend24(b))),
    OP("mul24.hi.s32 %d32, %a32, %b32;", u32(Extend24(a) * Extend24(b) >> 16)),
    OP("mad24.lo.s32 %d32, %a32, %b32, %c32;", u32(Extend24(a) * Extend24(b) + i64(c))),
    OP("mad24.hi.sat.s32 %d32, %a32, %b32, %c32;",
       u32(Clamp<i32>(i32(Extend24(a) * Extend24(b) >> 16) + i64{i32(c)}))),
    OP("div.u16 %d16, %a16, %b16;", Divide<u16>(u16(a), u16(b))),
    OP("div.s16 %d16, %a16, %b16;", u16(Divide<i16>(i16(a), i16(b)))),
    OP("div.u32 %d32, %a32, %b32;", Divide<u32>(u32(a), u32(b))),
    OP("div.s32 %d32, %a32, %b32;", u32(Divide<i32>(i32(a), i32(b)))),
    OP("div.u64 %d64, %a64, %b64;", Divide<u64>(a, b)),
    OP("div.s64 %d64, %a64, %b64;", u64(Divide<i64>(i64(a), i64(b)))),
    OP("rem.u32 %d32, %a32, %b32;", Remainder<u32>(u32(a), u32(b))),
    OP("rem.s32 %d32, %a32, %b32;", u32(Remainder<i32>(i32(a), i32(b)))),
    OP("rem.u64 %d64, %a64, %b64;", Remainder<u64>(a, b)),
    OP("rem.s64 %d64, %a64, %b64;", u64(Remainder<i64>(i64(a), i64(b)))),
    OP("min.u16 %d16, %a16, %b16;", std::min(u16(a), u16(b))),
    OP("max.s16 %d16, %a16, %b16;", u16(std::max(i16(a), i16(b)))),
    OP("min.s32 %d32, %a32, %b32;", u32(std::min(i32(a), i32(b)))),
    OP("max.u32 %d32, %a32, %b32;", std::max(u32(a), u32(b))),
    OP("min.s64 %d64, %a64, %b64;", u64(std::min(i64(a), i64(b)))),
    OP("max.u64 %d64, %a64, %b64;", std::max(a, b)),
    OP("max.relu.s32 %d32, %a32, %b32;", u32(std::max({i32(a), i32(b), 0}))),
    OP("min.s16x2 %d32, %a32, %b32;",
       u32(u16(std::min(i16(a), i16(b)))) | u32(u16(std::min(i16(a >> 16), i16(b >> 16)))) << 16),
    OP("neg.s16 %d16, %a16;", u16(-a)),
    OP("neg.s32 %d32, %a32;", u32(-a)),
    OP("neg.s64 %d64, %a64;", -a),
    OP("abs.s32 %d32, %a32;", i32(a) < 0 ? u32(-a) : u32(a)),
    OP("abs.s64 %d64, %a64;", i64(a) < 0 ? -a : a),
    OP("sad.u32 %d32, %a32, %b32, %c32;",
       u32(c + (u32(a) < u32(b) ? u32(b) - u32(a) : u32(a) - u32(b)))),
    OP("sad.s32 %d32, %a32, %b32, %c32;",
       u32(c + (i32(a) < i32(b) ? u32(b) - u32(a) : u32(a) - u32(b)))),
};

const OpCase kCarries[] = {
    OP("{ .reg .b32 %al, %ah, %bl, %bh, %lo, %hi; mov.b64 {%al, %ah}, %a64; "
       "mov.b64 {%bl, %bh}, %b64; add.cc.u32 %lo, %al, %bl; addc.u32 %hi, %ah, %bh; "
       "mov.b64 %d64, {%lo, %hi}; }",
       a + b),
    OP("{ .reg .b32 %al, %ah, %bl, %bh, %lo, %hi; mov.b64 {%al, %ah}, %a64; "
       "mov.b64 {%bl, %bh}, %b64; sub.cc.u32 %lo, %al, %bl; subc.u32 %hi, %ah, %bh; "
       "mov.b64 %d64, {%lo, %hi}; }",
       a - b),
    OP("add.cc.u64 %x64, %a64, %b64; addc.u64 %d64, 0, 0;", u64((u128(a) + b) >> 64)),
    OP("sub.cc.u64 %x64, %a64, %b64; subc.u64 %d64, 0, 0;", a < b ? ~u64{0} : 0),
    OP("add.cc.u32 %r1, %a32, %b32; addc.cc.u32 %r2, %c32, 0; addc.u32 %d32, 0, 0;",
       (u64(u32(c)) + ((u64(u32(a)) + u32(b)) >> 32)) >> 32),
    // The 64-bit product of 64-bit numbers from 32-bit pieces.
    OP("{ .reg .b32 %al, %ah, %bl, %bh, %lo, %hi; mov.b64 {%al, %ah}, %a64; "
       "mov.b64 {%bl, %bh}, %b64; mul.lo.u32 %lo, %al, %bl; mul.hi.u32 %hi, %al, %bl; "
       "mad.lo.u32 %hi, %al, %bh, %hi; mad.lo.u32 %hi, %ah, %bl, %hi; "
       "mov.b64 %d64, {%lo, %hi}; }",
       a* b),
    OP("mad.lo.cc.u32 %r1, %a32, %b32, %c32; madc.hi.u32 %d32, %a32, %b32, 0;",
       u32((u64(u32(a)) * u32(b) + u32(c)) >> 32)),
    OP("mad.hi.cc.s32 %r1, %a32, %b32, %c32; addc.u32 %d32, 0, 0;",
       (u64(u32(i64(i32(a)) * i32(b) >> 32)) + u32(c)) >> 32),
};

const OpCase kBits[] = {
    OP("and.b32 %d32, %a32, %b32;", u32(a& b)),
    OP("or.b64 %d64, %a64, %b64;", a | b),
    OP("xor.b16 %d16, %a16, %b16;", u16(a ^ b)),
    OP("not.b32 %d32, %a32;", u32(~a)),
    OP("not.b64 %d64, %a64;", ~a),
    OP("cnot.b32 %d32, %a32;", u32(a) == 0),
    OP("shl.b16 %d16, %a16, %b32;", u32(b) > 15 ? 0 : u16(a << u32(b))),
    OP("shl.b32 %d32, %a32, %b32;", u32(b) > 31 ? 0 : u32(a << u32(b))),
    OP("shl.b64 %d64, %a64, %b32;", u32(b) > 63 ? 0 : a << u32(b)),
    OP("shr.u16 %d16, %a16, %b32;", u32(b) > 15 ? 0 : u16(a) >> u32(b)),
    OP("shr.s16 %d16, %a16, %b32;", u16(i16(a) >> std::min(u32(b), 15u))),
    OP("shr.u32 %d32, %a32, %b32;", u32(b) > 31 ? 0 : u32(a) >> u32(b)),
    OP("shr.s32 %d32, %a32, %b32;", u32(i32(a) >> std::min(u32(b), 31u))),
    OP("shr.b64 %d64, %a64, %b32;", u32(b) > 63 ? 0 : a >> u32(b)),
    OP("shr.s64 %d64, %a64, %b32;", u64(i64(a) >> std::min(u32(b), 63u))),
    OP("shf.l.clamp.b32 %d32, %a32, %b32, %c32;",
       u32((u64(u32(b)) << 32 | u32(a)) << std::min(u32(c), 32u) >> 32)),
    OP("shf.l.wrap.b32 %d32, %a32, %b32, %c32;",
       u32((u64(u32(b)) << 32 | u32(a)) << (c & 31) >> 32)),
    OP("shf.r.clamp.b32 %d32, %a32, %b32, %c32;",
       u32((u64(u32(b)) << 32 | u32(a)) >> std::min(u32(c), 32u))),
    OP("shf.r.wrap.b32 %d32, %a32, %b32, %c32;", u32((u64(u32(b)) << 32 | u32(a)) >> (c & 31))),
    OP("lop3.b32 %d32, %a32, %b32, %c32, 0x96;", u32(a ^ b ^ c)),
    OP("lop3.b32 %d32, %a32, %b32, %c32, 0xe8;", u32((a & b) | (a & c) | (b & c))),
    OP("lop3.b32 %d32, %a32, %b32, %c32, 0x2c;", u32((~a & b) | (a & ~b & c))),
    OP("popc.b32 %d32, %a32;", u64(std::popcount(u32(a)))),
    OP("popc.b64 %d32, %a64;", u64(std::popcount(a))),
    OP("clz.b32 %d32, %a32;", u64(std::countl_zero(u32(a)))),
    OP("clz.b64 %d32, %a64;", u64(std::countl_zero(a))),
    OP("brev.b32 %d32, %a32;", Reverse(u32(a))),
    OP("brev.b64 %d64, %a64;", u64(Reverse(u32(a))) << 32 | Reverse(u32(a >> 32))),
    OP("bfe.u32 %d32, %a32, %b32, %c32;", Extract<u32>(u32(a), b, c)),
    OP("bfe.s32 %d32, %a32, %b32, %c32;", Extract<i32>(u32(a), b, c)),
    OP("bfe.u64 %d64, %a64, %b32, %c32;", Extract<u64>(a, b, c)),
    OP("bfe.s64 %d64, %a64, %b32, %c32;", Extract<i64>(a, b, c)),
    OP("bfi.b32 %d32, %a32, %b32, %c32, 9;", Insert<u32>(a, b, c, 9)),
    OP("bfi.b32 %d32, %a32, %b32, 5, %c32;", Insert<u32>(a, b, 5, c)),
    OP("bfi.b64 %d64, %a64, %b64, %c32, 40;", Insert<u64>(a, b, c, 40)),
    OP("bfi.b64 %d64, %a64, %b64, 33, %c32;", Insert<u64>(a, b, 33, c)),
    OP("bfind.u32 %d32, %a32;", FindHighest<u32>(u32(a), false)),
    OP("bfind.s32 %d32, %a32;", FindHighest<i32>(i32(a), false)),
    OP("bfind.shiftamt.u32 %d32, %a32;", FindHighest<u32>(u32(a), true)),
    OP("bfind.u64 %d32, %a64;", FindHighest<u64>(a, false)),
    OP("bfind.shiftamt.s64 %d32, %a64;", FindHighest<i64>(i64(a), true)),
    OP("bmsk.clamp.b32 %d32, %a32, %b32;",
       u32(a) > 31 ? 0 : u32(((u32(b) > 31 ? u64(1) << 32 : u64(1) << u32(b)) - 1) << u32(a))),
    OP("bmsk.wrap.b32 %d32, %a32, %b32;", u32(((u64(1) << (b & 31)) - 1) << (a & 31))),
    OP("szext.clamp.s32 %d32, %a32, %b32;",
       u32(b) >= 32  ? u32(a)
       : u32(b) == 0 ? 0
                     : u32(i32(u32(a) << (32 - u32(b))) >> (32 - u32(b)))),
    OP("szext.wrap.u32 %d32, %a32, %b32;", u32(a) & ((1u << (b & 31)) - 1)),
    OP("prmt.b32 %d32, %a32, %b32, 0x5410;", u32(a & 0xffff) | u32(b) << 16),
    OP("prmt.b32 %d32, %a32, %b32, 0x7632;", u32(a) >> 16 | u32(b & 0xffff0000)),
    OP("prmt.b32 %d32, %a32, %b32, 0x0123;", __builtin_bswap32(u32(a))),
    OP("prmt.b32 %d32, %a32, %b32, 0xba98;",
       (Byte(u32(a), 0) >> 7) * 0xffu | (Byte(u32(a), 1) >> 7) * 0xff00u |
           (Byte(u32(a), 2) >> 7) * 0xff0000u | (Byte(u32(a), 3) >> 7) * 0xff000000u),
    OP("prmt.b32.f4e %d32, %a32, %b32, %c32;", u32((u64(u32(b)) << 32 | u32(a)) >> (8 * (c & 3)))),
    OP("prmt.b32.rc8 %d32, %a32, %b32, %c32;", Byte(u32(a), int(c & 3)) * 0x01010101u),
    OP("prmt.b32.rc16 %d32, %a32, %b32, %c32;",
       u32((u32(a) >> (16 * (c & 1)) & 0xffff) * 0x00010001u)),
    OP("prmt.b32.ecl %d32, %a32, %b32, 2;", Byte(u32(a), 2) * 0x010101u | Byte(u32(a), 3) << 24),
    OP("prmt.b32.ecr %d32, %a32, %b32, 2;",
       Byte(u32(a), 0) | Byte(u32(a), 1) << 8 | Byte(u32(a), 2) * 0x01010000u),
    OP("prmt.b32.b4e %d32, %a32, %b32, 1;",
       Byte(u32(a), 1) | Byte(u32(a), 0) << 8 | Byte(u32(b), 3) << 16 | Byte(u32(b), 2) << 24),
    OP("fns.b32 %d32, %a32, %b32, 0;", u32(b) < 32 && (a >> u32(b) & 1) != 0 ? u32(b) : 0xffffffff),
    OP("mov.b32 {%a16, %b16}, %a32; mov.b32 %d32, {%b16, %a16};", u32(a) >> 16 | u32(a) << 16),
    OP("{ .reg .b16 %x<4>; mov.b64 {%x0, %x1, %x2, %x3}, %a64; "
       "mov.b64 %d64, {%x3, %x0, %x1, %x2}; }",
       a << 16 | a >> 48),
    OP("mov.b64 {%r1, _}, %a64; mov.b64 %d64, {%r1, %b32};", u32(a) | u64(u32(b)) << 32),
    OP("isspacep.global %p, %a64;", (a >> 47) != 1 || (a >> 32) > 0x8002),
};

const OpCase kPacked[] = {
    OP("dp4a.u32.u32 %d32, %a32, %b32, %c32;",
       u32(c + Byte(u32(a), 0) * Byte(u32(b), 0) + Byte(u32(a), 1) * Byte(u32(b), 1) +
           Byte(u32(a), 2) * Byte(u32(b), 2) + Byte(u32(a), 3) * Byte(u32(b), 3))),
    OP("dp4a.s32.s32 %d32, %a32, %b32, %c32;",
       u32(i32(u32(c)) * i64{1} + int8_t(a) * int8_t(b) + int8_t(a >> 8) * int8_t(b >> 8) +
           int8_t(a >> 16) * int8_t(b >> 16) + int8_t(a >> 24) * int8_t(b >> 24))),
    OP("dp4a.s32.u32 %d32, %a32, %b32, %c32;",
       u32(i64(c) + int8_t(a) * i32(Byte(u32(b), 0)) + int8_t(a >> 8) * i32(Byte(u32(b), 1)) +
           int8_t(a >> 16) * i32(Byte(u32(b), 2)) + int8_t(a >> 24) * i32(Byte(u32(b), 3)))),
    OP("dp2a.lo.u32.u32 %d32, %a32, %b32, %c32;",
       u32(c + u16(a) * Byte(u32(b), 0) + u16(a >> 16) * Byte(u32(b), 1))),
    OP("dp2a.hi.s32.s32 %d32, %a32, %b32, %c32;",
       u32(i64(c) + i16(a) * int8_t(b >> 16) + i16(a >> 16) * int8_t(b >> 24))),
    OP("vabsdiff4.u32.u32.u32.add %d32, %a32, %b32, %c32;",
       u32(c + u32(std::abs(i32(Byte(u32(a), 0)) - i32(Byte(u32(b), 0))) +
                   std::abs(i32(Byte(u32(a), 1)) - i32(Byte(u32(b), 1))) +
                   std::abs(i32(Byte(u32(a), 2)) - i32(Byte(u32(b), 2))) +
                   std::abs(i32(Byte(u32(a), 3)) - i32(Byte(u32(b), 3)))))),
    OP("vadd2.s32.s32.s32.sat %d32, %a32, %b32, %c32;",
       u32(u16(Clamp<i16>(i16(a) + i16(b)))) | u32(u16(Clamp<i16>(i16(a >> 16) + i16(b >> 16))))
                                                   << 16),
    OP("vmax4.s32.s32.s32 %d32, %a32, %b32, %c32;",
       u32(uint8_t(std::max(int8_t(a), int8_t(b)))) |
           u32(uint8_t(std::max(int8_t(a >> 8), int8_t(b >> 8)))) << 8 |
           u32(uint8_t(std::max(int8_t(a >> 16), int8_t(b >> 16)))) << 16 |
           u32(uint8_t(std::max(int8_t(a >> 24), int8_t(b >> 24)))) << 24),
};

const OpCase kSelections[] = {
    OP("setp.eq.s32 %p, %a32, %b32;", u32(a) == u32(b)),
    OP("setp.ne.b16 %p, %a16, %b16;", u16(a) != u16(b)),
    OP("setp.lt.s16 %p, %a16, %b16;", i16(a) < i16(b)),
    OP("setp.lt.u16 %p, %a16, %b16;", u16(a) < u16(b)),
    OP("setp.lt.s32 %p, %a32, %b32;", i32(a) < i32(b)),
    OP("setp.le.u32 %p, %a32, %b32;", u32(a) <= u32(b)),
    OP("setp.gt.s64 %p, %a64, %b64;", i64(a) > i64(b)),
    OP("setp.ge.u64 %p, %a64, %b64;", a >= b),
    OP("setp.lo.u32 %p, %a32, %b32;", u32(a) < u32(b)),
    OP("setp.ls.u32 %p, %a32, %b32;", u32(a) <= u32(b)),
    OP("setp.hi.u64 %p, %a64, %b64;", a > b),
    OP("setp.hs.u16 %p, %a16, %b16;", u16(a) >= u16(b)),
    OP("setp.lt.s32 %p|%q, %a32, %b32;", u64(i32(a) < i32(b)) | u64(i32(a) >= i32(b)) << 32),
    OP("setp.ne.s32 %q, %c32, 0; setp.lt.and.s32 %p|%q, %a32, %b32, !%q;",
       u64(i32(a) < i32(b) && u32(c) == 0) | u64(i32(a) >= i32(b) && u32(c) == 0) << 32),
    OP("setp.ne.s32 %q, %c32, 0; setp.lt.or.s32 %p|%q, %a32, %b32, %q;",
       u64(i32(a) < i32(b) || u32(c) != 0) | u64(i32(a) >= i32(b) || u32(c) != 0) << 32),
    OP("setp.ne.s32 %q, %c32, 0; setp.lt.xor.s32 %p, %a32, %b32, %q;",
       u64((i32(a) < i32(b)) != (u32(c) != 0)) | u64(u32(c) != 0) << 32),
    OP("set.gt.u32.s32 %d32, %a32, %b32;", i32(a) > i32(b) ? 0xffffffff : 0),
    OP("set.gt.f32.u32 %d32, %a32, %b32;", u32(a) > u32(b) ? 0x3f800000 : 0),
    OP("setp.ne.u32 %q, %c32, 0; set.eq.and.s32.u32 %d32, %a32, %b32, %q;",
       u32(a) == u32(b) && u32(c) != 0 ? 0xffffffff : 0),
    OP("setp.lt.u32 %q, %c32, 5; selp.b32 %d32, %a32, %b32, %q;", u32(c) < 5 ? u32(a) : u32(b)),
    OP("setp.lt.u32 %q, %c32, 5; selp.s64 %d64, %a64, %b64, !%q;", u32(c) < 5 ? b : a),
    OP("setp.lt.u32 %q, %c32, 5; selp.b16 %d16, %a16, 77, %q;", u32(c) < 5 ? u16(a) : 77),
    OP("slct.u32.s32 %d32, %a32, %b32, %c32;", i32(c) >= 0 ? u32(a) : u32(b)),
    OP("slct.b64.s32 %d64, %a64, %b64, %c32;", i32(c) >= 0 ? a : b),
    OP("slct.u32.f32 %d32, %a32, %b32, %c32;", F(c) >= 0 ? u32(a) : u32(b)),
    OP("slct.ftz.u32.f32 %d32, %a32, %b32, %c32;",
       F(c) >= 0 || (c & 0x7f800000) == 0 ? u32(a) : u32(b)),
    OP("{ .reg .pred %x, %y; setp.lt.u32 %x, %a32, 100; setp.lt.u32 %y, %b32, 100; "
       "and.pred %p, %x, !%y; or.pred %x, %x, %y; xor.pred %q, %x, %p; not.pred %q, %q; }",
       u64(u32(a) < 100 && u32(b) >= 100) |
           u64(((u32(a) < 100) || (u32(b) < 100)) == (u32(a) < 100 && u32(b) >= 100)) << 32),
    // Instructions under a guard leave the other lanes' registers alone.
    OP("setp.lt.u32 %q, %c32, 1000; mov.u32 %d32, %b32; @%q add.u32 %d32, %a32, 1;",
       u32(c) < 1000 ? u32(a + 1) : u32(b)),
    OP("setp.lt.u32 %q, %c32, 1000; mov.u64 %d64, 5; @!%q mul.wide.u32 %d64, %a32, %b32;",
       u32(c) < 1000 ? 5 : u64(u32(a)) * u32(b)),
};

class IntegerOps : public testing::TestWithParam<OpCase> {};
TEST_P(IntegerOps, MatchTheHost) { CheckOp(GetParam(), IntegerInputs()); }

INSTANTIATE_TEST_SUITE_P(Arithmetic, IntegerOps, testing::ValuesIn(kArithmetic));
INSTANTIATE_TEST_SUITE_P(Carries, IntegerOps, testing::ValuesIn(kCarries));
INSTANTIATE_TEST_SUITE_P(Bits, IntegerOps, testing::ValuesIn(kBits));
INSTANTIATE_TEST_SUITE_P(Packed, IntegerOps, testing::ValuesIn(kPacked));
INSTANTIATE_TEST_SUITE_P(Selections, IntegerOps, testing::ValuesIn(kSelections));

}  // namespace
}  // namespace simgpu::test
