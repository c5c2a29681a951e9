// atom and red. On global memory they are atomic among all threads of the process; shared memory
// belongs to one block, which one thread runs.
#include <bit>
#include <cstring>
#include <type_traits>

#include "tools/simgpu/exec/float_ops.h"
#include "tools/simgpu/exec/half.h"
#include "tools/simgpu/exec/handlers.h"

namespace simgpu {
namespace {

enum class Op { kAdd, kMin, kMax, kAnd, kOr, kXor, kExch, kInc, kDec, kCas };

// Value types: integers; float and double; pairs and single halves as their bits.
struct F16Bits {
  uint16_t v;
};
struct BF16Bits {
  uint16_t v;
};
struct F16x2Bits {
  uint32_t v;
};
struct BF16x2Bits {
  uint32_t v;
};

template <typename T>
using Word = std::conditional_t<sizeof(T) == 8, uint64_t,
                                std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;

template <typename Format, Op kOp>
uint32_t HalfOne(uint32_t a, uint32_t b) {
  const float x = half::ToFloat<Format>(a), y = half::ToFloat<Format>(b);
  if constexpr (kOp == Op::kAdd) return half::FromFloat<Format>(x + y);
  if constexpr (kOp == Op::kMin) return half::FromFloat<Format>(FMin::Do<float>(x, y));
  if constexpr (kOp == Op::kMax) return half::FromFloat<Format>(FMax::Do<float>(x, y));
  return b;
}

template <Op kOp, typename T, bool kFtz>
T Combine(T a, T b) {
  if constexpr (kOp == Op::kExch) {
    return b;
  } else if constexpr (std::is_same_v<T, F16Bits>) {
    return {static_cast<uint16_t>(HalfOne<half::F16, kOp>(a.v, b.v))};
  } else if constexpr (std::is_same_v<T, BF16Bits>) {
    return {static_cast<uint16_t>(HalfOne<half::BF16, kOp>(a.v, b.v))};
  } else if constexpr (std::is_same_v<T, F16x2Bits>) {
    return {HalfOne<half::F16, kOp>(a.v, b.v) | HalfOne<half::F16, kOp>(a.v >> 16, b.v >> 16)
                                                    << 16};
  } else if constexpr (std::is_same_v<T, BF16x2Bits>) {
    return {HalfOne<half::BF16, kOp>(a.v, b.v) | HalfOne<half::BF16, kOp>(a.v >> 16, b.v >> 16)
                                                     << 16};
  } else if constexpr (std::is_floating_point_v<T>) {
    return Canonical(FlushIf<kFtz>(FlushIf<kFtz>(a) + FlushIf<kFtz>(b)));
  } else {
    if constexpr (kOp == Op::kAdd) {
      using V = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<V>(a) + static_cast<V>(b));
    }
    if constexpr (kOp == Op::kMin) return a < b ? a : b;
    if constexpr (kOp == Op::kMax) return a > b ? a : b;
    if constexpr (kOp == Op::kAnd) return static_cast<T>(a & b);
    if constexpr (kOp == Op::kOr) return static_cast<T>(a | b);
    if constexpr (kOp == Op::kXor) return static_cast<T>(a ^ b);
    if constexpr (kOp == Op::kInc) return a >= b ? T{0} : static_cast<T>(a + 1);
    if constexpr (kOp == Op::kDec) return a == 0 || a > b ? b : static_cast<T>(a - 1);
    return b;
  }
}

// Memory of one block needs no atomic instruction; memory of the device does.
template <Op kOp, typename T, bool kFtz, bool kAtomic>
T Apply1(uint8_t* p, T operand, T swap) {
  using B = Word<T>;
  auto* at = reinterpret_cast<B*>(p);
  B old = kAtomic ? __atomic_load_n(at, __ATOMIC_RELAXED) : *at;
  for (;;) {
    const T value = std::bit_cast<T>(old);
    B next;
    if constexpr (kOp == Op::kCas) {
      if (old != std::bit_cast<B>(operand)) {
        // Still a read-modify-write, which orders it among the others.
        next = old;
      } else {
        next = std::bit_cast<B>(swap);
      }
    } else {
      next = std::bit_cast<B>(Combine<kOp, T, kFtz>(value, operand));
    }
    if (!kAtomic) {
      *at = next;
      return value;
    }
    if (__atomic_compare_exchange_n(at, &old, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      return value;
    }
  }
}

template <typename T>
T Operand(Warp& w, Ref ref, int i) {
  if constexpr (sizeof(T) == 2) {
    return std::bit_cast<T>(static_cast<uint16_t>(Lane<uint32_t>(w, ref)[i]));
  } else {
    return Lane<T>(w, ref)[i];
  }
}

enum class Where { kGlobal, kGeneric, kShared, kShared64 };

template <Where kWhere, Op kOp, typename T, bool kFtz>
void Atom(Warp& w, const Instr& in) {
  MayFault(w, in);
  ForLanes(w.mask, [&](int i) {
    uint64_t address = 0;
    if constexpr (kWhere == Where::kShared) {
      address = Lane<uint32_t>(w, in.a)[i] + static_cast<uint32_t>(in.imm);
    } else {
      address = Lane<uint64_t>(w, in.a)[i] + static_cast<uint64_t>(in.imm);
    }
    const T operand = Operand<T>(w, in.b, i);
    const T swap = kOp == Op::kCas ? Operand<T>(w, in.c, i) : T{};
    T old;
    if constexpr (kWhere == Where::kShared || kWhere == Where::kShared64) {
      old = Apply1<kOp, T, kFtz, false>(SharedPointer(w, i, address, sizeof(T)), operand, swap);
    } else {
      uint8_t* p = kWhere == Where::kGlobal ? GlobalPointer(w, i, address, sizeof(T), true)
                                            : GenericPointer(w, i, address, sizeof(T), true);
      old = Apply1<kOp, T, kFtz, true>(p, operand, swap);
    }
    if (in.d == kNoRef) return;
    if constexpr (sizeof(T) == 2) {
      Lane<uint32_t>(w, in.d)[i] = std::bit_cast<uint16_t>(old);
    } else {
      Lane<T>(w, in.d)[i] = old;
    }
  });
}

template <Where kWhere>
class Space {
 public:
  Space(const HandlerSink& sink, const char* prefix) : sink_(sink), prefix_(prefix) {}

  template <Op kOp, typename T, bool kFtz = false>
  void Put(const char* op, const char* type) {
    char name[64];
    char* at = name;
    for (const char* part : {prefix_, op}) {
      while (*part != '\0') *at++ = *part++;
    }
    *at = '\0';
    sink_.Put(name, type, Atom<kWhere, kOp, T, kFtz>);
  }
  template <typename T>
  void Numbers(const char* t) {
    Put<Op::kAdd, T>("add", t);
    Put<Op::kMin, T>("min", t);
    Put<Op::kMax, T>("max", t);
  }
  template <typename T>
  void Bits(const char* t) {
    Put<Op::kAnd, T>("and", t);
    Put<Op::kOr, T>("or", t);
    Put<Op::kXor, T>("xor", t);
    Put<Op::kExch, T>("exch", t);
    Put<Op::kCas, T>("cas", t);
  }
  template <typename T>
  void Halves(const char* t) {
    Put<Op::kAdd, T>("add", t);
    Put<Op::kMin, T>("min", t);
    Put<Op::kMax, T>("max", t);
  }
  void All() {
    Numbers<uint32_t>("u32");
    Numbers<uint64_t>("u64");
    Numbers<int32_t>("s32");
    Numbers<int64_t>("s64");
    Put<Op::kInc, uint32_t>("inc", "u32");
    Put<Op::kDec, uint32_t>("dec", "u32");
    Bits<uint32_t>("b32");
    Bits<uint64_t>("b64");
    Put<Op::kCas, uint16_t>("cas", "b16");
    Put<Op::kAdd, float>("add", "f32");
    Put<Op::kAdd, float, true>("add.ftz", "f32");
    Put<Op::kAdd, double>("add", "f64");
    Halves<F16Bits>("f16");
    Halves<BF16Bits>("bf16");
    Halves<F16x2Bits>("f16x2");
    Halves<BF16x2Bits>("bf16x2");
  }

 private:
  const HandlerSink& sink_;
  const char* prefix_;
};

}  // namespace

void RegisterAtomics(const HandlerSink& sink) {
  Space<Where::kGlobal>(sink, "atom.global.").All();
  Space<Where::kGeneric>(sink, "atom.generic.").All();
  Space<Where::kShared>(sink, "atom.shared.").All();
  Space<Where::kShared64>(sink, "atom.shared.64.").All();
}

}  // namespace simgpu
