// Loads, stores and atomics. Global and generic addresses are host addresses inside the window;
// every lane is checked, and a page without access traps.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "tools/simgpu/exec/code.h"

namespace simgpu {

uint8_t* SharedPointer(Warp& warp, int lane, uint64_t offset, uint32_t bytes) {
  std::vector<uint8_t>& shared = warp.block->shared;
  if (offset + bytes > shared.size() || offset + bytes < offset) {
    throw FaultError{Fault::kIllegalAddress, offset, lane, "shared memory"};
  }
  if (offset & (bytes - 1))
    throw FaultError{Fault::kMisalignedAddress, offset, lane, "shared memory"};
  return shared.data() + offset;
}

uint8_t* LocalPointer(Warp& warp, int lane, uint64_t offset, uint32_t bytes) {
  const uint32_t stride = warp.block->local_stride;
  if (offset + bytes > stride || offset + bytes < offset) {
    throw FaultError{Fault::kIllegalAddress, offset, lane, "local memory"};
  }
  if (offset & (bytes - 1))
    throw FaultError{Fault::kMisalignedAddress, offset, lane, "local memory"};
  return warp.local.data() + static_cast<size_t>(lane) * stride + offset;
}

uint8_t* GenericPointer(Warp& warp, int lane, uint64_t address, uint32_t bytes, bool write) {
  const MemoryMap& memory = *warp.block->memory;
  if (address - memory.window_base < memory.window_size) {
    if (address & (bytes - 1)) throw FaultError{Fault::kMisalignedAddress, address, lane, ""};
    return reinterpret_cast<uint8_t*>(address);
  }
  if (address - kSharedWindow < kSharedWindowBytes) {
    return SharedPointer(warp, lane, address - kSharedWindow, bytes);
  }
  if (address - kLocalWindow < kLocalWindowBytes) {
    return LocalPointer(warp, lane, address - kLocalWindow, bytes);
  }
  if (memory.other && memory.other(address, bytes, write)) {
    if (address & (bytes - 1)) throw FaultError{Fault::kMisalignedAddress, address, lane, ""};
    return reinterpret_cast<uint8_t*>(address);
  }
  throw FaultError{Fault::kIllegalAddress, address, lane, write ? "write" : "read"};
}

namespace {

enum class Where { kGlobal, kShared, kLocal, kParam };

template <Where kWhere>
inline uint8_t* Pointer(Warp& w, int lane, uint64_t address, uint32_t bytes, bool write) {
  if constexpr (kWhere == Where::kGlobal) {
    const MemoryMap& memory = *w.block->memory;
    if (address - memory.window_base < memory.window_size && (address & (bytes - 1)) == 0) {
      return reinterpret_cast<uint8_t*>(address);
    }
    return GenericPointer(w, lane, address, bytes, write);
  } else if constexpr (kWhere == Where::kShared) {
    return SharedPointer(w, lane, address - (address >= kSharedWindow ? kSharedWindow : 0), bytes);
  } else if constexpr (kWhere == Where::kLocal) {
    return LocalPointer(w, lane, address - (address >= kLocalWindow ? kLocalWindow : 0), bytes);
  } else {
    const Code& code = *w.frame->code;
    if (address + bytes > code.param_bytes) {
      throw FaultError{Fault::kIllegalAddress, address, lane, "parameter memory"};
    }
    return w.frame->params + static_cast<size_t>(lane) * code.param_bytes + address;
  }
}

// aux bit 0: the address register has 64 bits. a: the register or kNoRef.
inline void Addresses(Warp& w, const Instr& in, uint64_t* out) {
  if (in.a == kNoRef) {
    for (int i = 0; i < kLanes; ++i) out[i] = static_cast<uint64_t>(in.imm);
  } else if (in.aux & 1) {
    const auto* a = Lane<uint64_t>(w, in.a);
    for (int i = 0; i < kLanes; ++i) out[i] = a[i] + static_cast<uint64_t>(in.imm);
  } else {
    const auto* a = Lane<uint32_t>(w, in.a);
    for (int i = 0; i < kLanes; ++i) {
      out[i] = static_cast<uint32_t>(a[i] + static_cast<uint32_t>(in.imm));
    }
  }
}

// M: what stands in memory. R: what the lane holds (sign- or zero-extended).
template <Where kWhere, typename M, typename R>
void Load(Warp& w, const Instr& in) {
  uint64_t at[kLanes];
  Addresses(w, in, at);
  const auto count = static_cast<uint32_t>(in.aux >> 8);
  const uint32_t whole = static_cast<uint32_t>(sizeof(M)) * count;
  const uint32_t mask = w.mask;
  if constexpr (kWhere == Where::kGlobal && sizeof(M) == sizeof(R)) {
    if (count == 1 && mask == 0xffffffffu) {
      bool run = true;
      for (int i = 1; i < kLanes; ++i) run &= at[i] == at[0] + static_cast<uint64_t>(i) * sizeof(M);
      const MemoryMap& memory = *w.block->memory;
      if (run && at[0] - memory.window_base < memory.window_size - 256 && at[0] % sizeof(M) == 0) {
        std::memcpy(Lane<R>(w, in.d), reinterpret_cast<const void*>(at[0]), sizeof(M) * kLanes);
        return;
      }
    }
  }
  for (int i = 0; i < kLanes; ++i) {
    if (!(mask >> i & 1)) continue;
    const uint8_t* p = Pointer<kWhere>(w, i, at[i], whole, false);
    for (uint32_t k = 0; k < count; ++k) {
      M value;
      std::memcpy(&value, p + k * sizeof(M), sizeof(M));
      const Ref ref = in.list != nullptr ? in.list[k] : in.d;
      if (ref != kNoRef) Lane<R>(w, ref)[i] = static_cast<R>(value);
    }
  }
}

template <Where kWhere, typename M, typename R>
void Store(Warp& w, const Instr& in) {
  uint64_t at[kLanes];
  Addresses(w, in, at);
  const auto count = static_cast<uint32_t>(in.aux >> 8);
  const uint32_t whole = static_cast<uint32_t>(sizeof(M)) * count;
  const uint32_t mask = w.mask;
  for (int i = 0; i < kLanes; ++i) {
    if (!(mask >> i & 1)) continue;
    uint8_t* p = Pointer<kWhere>(w, i, at[i], whole, true);
    for (uint32_t k = 0; k < count; ++k) {
      const Ref ref = in.list != nullptr ? in.list[k] : in.d;
      const M value = static_cast<M>(Lane<R>(w, ref)[i]);
      std::memcpy(p + k * sizeof(M), &value, sizeof(M));
    }
  }
}

template <typename T>
T AtomicApply(uint8_t* p, T (*f)(T, T), T operand) {
  auto* at = reinterpret_cast<T*>(p);
  if constexpr (std::is_integral_v<T>) {
    T old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &old, f(old, operand), true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
    }
    return old;
  } else {
    using I = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    auto* bits = reinterpret_cast<I*>(p);
    I old = __atomic_load_n(bits, __ATOMIC_RELAXED);
    for (;;) {
      T value;
      std::memcpy(&value, &old, sizeof(T));
      const T next = f(value, operand);
      I wanted;
      std::memcpy(&wanted, &next, sizeof(T));
      if (__atomic_compare_exchange_n(bits, &old, wanted, true, __ATOMIC_ACQ_REL,
                                      __ATOMIC_RELAXED)) {
        return value;
      }
    }
  }
}

template <typename T>
T AtomAdd(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}
template <typename T>
T AtomMin(T a, T b) {
  return std::min(a, b);
}
template <typename T>
T AtomMax(T a, T b) {
  return std::max(a, b);
}
template <typename T>
T AtomAnd(T a, T b) {
  return a & b;
}
template <typename T>
T AtomOr(T a, T b) {
  return a | b;
}
template <typename T>
T AtomXor(T a, T b) {
  return a ^ b;
}
template <typename T>
T AtomExch(T, T b) {
  return b;
}
template <typename T>
T AtomInc(T a, T b) {
  return a >= b ? 0 : a + 1;
}
template <typename T>
T AtomDec(T a, T b) {
  return a == 0 || a > b ? b : a - 1;
}

template <Where kWhere, typename T, T (*kF)(T, T)>
void Atom(Warp& w, const Instr& in) {
  uint64_t at[kLanes];
  Addresses(w, in, at);
  for (int i = 0; i < kLanes; ++i) {
    if (!(w.mask >> i & 1)) continue;
    uint8_t* p = Pointer<kWhere>(w, i, at[i], sizeof(T), true);
    const T old = AtomicApply<T>(p, kF, Lane<T>(w, in.b)[i]);
    if (in.d != kNoRef) Lane<T>(w, in.d)[i] = old;
  }
}

template <Where kWhere, typename T>
void AtomCas(Warp& w, const Instr& in) {
  uint64_t at[kLanes];
  Addresses(w, in, at);
  for (int i = 0; i < kLanes; ++i) {
    if (!(w.mask >> i & 1)) continue;
    auto* p = reinterpret_cast<T*>(Pointer<kWhere>(w, i, at[i], sizeof(T), true));
    T expected = Lane<T>(w, in.b)[i];
    __atomic_compare_exchange_n(p, &expected, Lane<T>(w, in.c)[i], false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
    if (in.d != kNoRef) Lane<T>(w, in.d)[i] = expected;
  }
}

// cvta: imm is added (to a generic address) or subtracted.
void Cvta(Warp& w, const Instr& in) {
  const auto* a = Lane<uint64_t>(w, in.a);
  auto* d = Lane<uint64_t>(w, in.d);
  for (int i = 0; i < kLanes; ++i) {
    if (w.mask >> i & 1) d[i] = a[i] + static_cast<uint64_t>(in.imm);
  }
}

// isspacep: imm is the window's start, extra its size; aux 2: global, that is none of the others.
void Isspacep(Warp& w, const Instr& in) {
  const auto* a = Lane<uint64_t>(w, in.a);
  uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) {
    const bool shared = a[i] - kSharedWindow < kSharedWindowBytes;
    const bool local = a[i] - kLocalWindow < kLocalWindowBytes;
    const bool is = in.imm == 0 ? shared : in.imm == 1 ? local : !shared && !local;
    bits |= static_cast<uint32_t>(is) << i;
  }
  uint32_t& d = Pred(w, in.d);
  d = (d & ~w.mask) | (bits & w.mask);
}

template <Where kWhere>
void RegisterSpace(HandlerMap* map, const std::string& space) {
  HandlerMap& m = *map;
  // By type in memory and width of the register.
  m["ld." + space + ".u8.32"] = Load<kWhere, uint8_t, uint32_t>;
  m["ld." + space + ".s8.32"] = Load<kWhere, int8_t, uint32_t>;
  m["ld." + space + ".u16.32"] = Load<kWhere, uint16_t, uint32_t>;
  m["ld." + space + ".s16.32"] = Load<kWhere, int16_t, uint32_t>;
  m["ld." + space + ".u32.32"] = Load<kWhere, uint32_t, uint32_t>;
  m["ld." + space + ".s32.32"] = Load<kWhere, uint32_t, uint32_t>;
  m["ld." + space + ".u8.64"] = Load<kWhere, uint8_t, uint64_t>;
  m["ld." + space + ".s8.64"] = Load<kWhere, int8_t, uint64_t>;
  m["ld." + space + ".u16.64"] = Load<kWhere, uint16_t, uint64_t>;
  m["ld." + space + ".s16.64"] = Load<kWhere, int16_t, uint64_t>;
  m["ld." + space + ".u32.64"] = Load<kWhere, uint32_t, uint64_t>;
  m["ld." + space + ".s32.64"] = Load<kWhere, int32_t, uint64_t>;
  m["ld." + space + ".u64.64"] = Load<kWhere, uint64_t, uint64_t>;
  m["ld." + space + ".s64.64"] = Load<kWhere, uint64_t, uint64_t>;
  m["st." + space + ".u8.32"] = Store<kWhere, uint8_t, uint32_t>;
  m["st." + space + ".u16.32"] = Store<kWhere, uint16_t, uint32_t>;
  m["st." + space + ".u32.32"] = Store<kWhere, uint32_t, uint32_t>;
  m["st." + space + ".u8.64"] = Store<kWhere, uint8_t, uint64_t>;
  m["st." + space + ".u16.64"] = Store<kWhere, uint16_t, uint64_t>;
  m["st." + space + ".u32.64"] = Store<kWhere, uint32_t, uint64_t>;
  m["st." + space + ".u64.64"] = Store<kWhere, uint64_t, uint64_t>;
}

template <Where kWhere, typename T>
void RegisterInteger(HandlerMap* map, const std::string& space, const std::string& type) {
  HandlerMap& m = *map;
  const std::string s = "atom." + space + ".", t = "." + type;
  m[s + "add" + t] = Atom<kWhere, T, AtomAdd<T>>;
  m[s + "min" + t] = Atom<kWhere, T, AtomMin<T>>;
  m[s + "max" + t] = Atom<kWhere, T, AtomMax<T>>;
  m[s + "and" + t] = Atom<kWhere, T, AtomAnd<T>>;
  m[s + "or" + t] = Atom<kWhere, T, AtomOr<T>>;
  m[s + "xor" + t] = Atom<kWhere, T, AtomXor<T>>;
  m[s + "exch" + t] = Atom<kWhere, T, AtomExch<T>>;
  m[s + "inc" + t] = Atom<kWhere, T, AtomInc<T>>;
  m[s + "dec" + t] = Atom<kWhere, T, AtomDec<T>>;
  m[s + "cas" + t] = AtomCas<kWhere, T>;
}

template <Where kWhere>
void RegisterAtomics(HandlerMap* map, const std::string& space) {
  RegisterInteger<kWhere, uint32_t>(map, space, "u32");
  RegisterInteger<kWhere, int32_t>(map, space, "s32");
  RegisterInteger<kWhere, uint64_t>(map, space, "u64");
  RegisterInteger<kWhere, int64_t>(map, space, "s64");
  RegisterInteger<kWhere, uint32_t>(map, space, "b32");
  RegisterInteger<kWhere, uint64_t>(map, space, "b64");
  (*map)["atom." + space + ".add.f32"] = Atom<kWhere, float, AtomAdd<float>>;
  (*map)["atom." + space + ".add.f64"] = Atom<kWhere, double, AtomAdd<double>>;
}

}  // namespace

void RegisterMemory(HandlerMap* map) {
  RegisterSpace<Where::kGlobal>(map, "global");
  RegisterSpace<Where::kShared>(map, "shared");
  RegisterSpace<Where::kLocal>(map, "local");
  RegisterSpace<Where::kParam>(map, "param");
  RegisterAtomics<Where::kGlobal>(map, "global");
  RegisterAtomics<Where::kShared>(map, "shared");
  (*map)["cvta"] = Cvta;
  (*map)["isspacep"] = Isspacep;
}

}  // namespace simgpu
