// Loads and stores. Global addresses are host addresses inside the window of device memory: one
// check of the range serves a whole warp where the lanes' addresses follow each other or are the
// same; a page without access traps. Built once for the baseline and once for AVX2.
#include "tools/simgpu/exec/handlers.h"
#include "tools/simgpu/exec/lanes.h"

namespace simgpu {
namespace {

enum class Where { kGlobal, kGeneric, kShared, kLocal, kParam, kKernelParam };

// The address of `bytes` in the space, checked.
template <Where kWhere>
SIMGPU_INLINE uint8_t* Pointer(Warp& w, int lane, uint64_t address, uint32_t bytes, bool write) {
  if constexpr (kWhere == Where::kGlobal || kWhere == Where::kGeneric) {
    const Block& block = *w.block;
    if (address - block.window_base <= block.window_size - bytes && (address & (bytes - 1)) == 0) {
      return reinterpret_cast<uint8_t*>(address);
    }
    return kWhere == Where::kGlobal ? GlobalPointer(w, lane, address, bytes, write)
                                    : GenericPointer(w, lane, address, bytes, write);
  } else if constexpr (kWhere == Where::kShared) {
    const Block& block = *w.block;
    if (address + bytes <= block.shared_bytes && (address & (bytes - 1)) == 0 &&
        address < block.shared_bytes) {
      return block.shared + address;
    }
    return SharedPointer(w, lane, address, bytes);
  } else if constexpr (kWhere == Where::kLocal) {
    return LocalPointer(w, lane, address, bytes);
  } else if constexpr (kWhere == Where::kParam) {
    const uint32_t size = w.frame->code->param_bytes;
    if (address > size || address + bytes > size) {
      ThrowFault(Fault::kIllegalAddress, address, lane, "parameter memory");
    }
    return w.frame->params + static_cast<size_t>(lane) * size + address;
  } else {
    const uint64_t size = w.block->params_bytes;
    if (address > size || address + bytes > size || write) {
      ThrowFault(Fault::kIllegalAddress, address, lane, "kernel parameters");
    }
    return const_cast<uint8_t*>(w.block->params) + address;
  }
}

template <typename M>
SIMGPU_INLINE M Read(const uint8_t* p) {
  M value;
  __builtin_memcpy(&value, p, sizeof(M));
  return value;
}
template <typename M>
SIMGPU_INLINE void Write(uint8_t* p, M value) {
  __builtin_memcpy(p, &value, sizeof(M));
}

// What a value of M becomes in a register: extended by its sign to 32 bits.
template <typename M>
using Held = std::conditional_t<sizeof(M) == 8, uint64_t,
                                std::conditional_t<std::is_signed_v<M>, int32_t, uint32_t>>;

// A: the type of the address register. aux: how many elements; target: their registers' list.
template <Where kWhere, typename A, typename M>
void LoadLanes(Warp& w, const Instr& in) {
  MayFault(w, in);
  const uint32_t count = in.aux;
  const uint32_t bytes = static_cast<uint32_t>(sizeof(M)) * count;
  const A* addresses = Lane<A>(w, in.a);
  const Ref* list = w.lists + in.target;
  ForLanes(w.mask, [&](int i) SIMGPU_LAMBDA {
    const A address = addresses[i] + static_cast<A>(in.imm);
    const uint8_t* p = Pointer<kWhere>(w, i, address, bytes, false);
    for (uint32_t k = 0; k < count; ++k) {
      if (list[k] == kNoRef) continue;
      Lane<Held<M>>(w, list[k])[i] = static_cast<Held<M>>(Read<M>(p + k * sizeof(M)));
    }
  });
}

template <Where kWhere, typename A, typename M>
void StoreLanes(Warp& w, const Instr& in) {
  MayFault(w, in);
  const uint32_t count = in.aux;
  const uint32_t bytes = static_cast<uint32_t>(sizeof(M)) * count;
  const A* addresses = Lane<A>(w, in.a);
  const Ref* list = w.lists + in.target;
  ForLanes(w.mask, [&](int i) SIMGPU_LAMBDA {
    const A address = addresses[i] + static_cast<A>(in.imm);
    uint8_t* p = Pointer<kWhere>(w, i, address, bytes, true);
    for (uint32_t k = 0; k < count; ++k) {
      Write<M>(p + k * sizeof(M), static_cast<M>(Lane<Held<M>>(w, list[k])[i]));
    }
  });
}

// How the addresses of a full warp lie.
enum class Shape { kRun, kSame, kScattered, kOdd };

// kRun: lane i's is i elements after lane 0's, all inside the space and aligned; *at: lane 0's
// place. kScattered: all inside and aligned; the place of an address is *at plus it. kSame: equal,
// not checked. kOdd: something else, to be checked lane by lane.
template <Where kWhere, typename A, uint32_t kBytes>
SIMGPU_INLINE Shape Classify(Warp& w, const A* a, int64_t imm, uint8_t** at) {
  const A first = a[0];
  A run = 0, same = 0;
  for (int i = 0; i < kLanes; ++i) {
    same |= a[i] ^ first;
    run |= a[i] ^ static_cast<A>(first + static_cast<A>(i) * kBytes);
  }
  const A start = first + static_cast<A>(imm);
  const Block& block = *w.block;
  constexpr uint32_t kWhole = kBytes * kLanes;
  if constexpr (kWhere == Where::kShared) {
    if (run == 0) {
      if (start % kBytes != 0 || uint64_t{start} + kWhole > block.shared_bytes) return Shape::kOdd;
      *at = block.shared + start;
      return Shape::kRun;
    }
    if (same == 0) return Shape::kSame;
    A most = 0, low = 0;
    for (int i = 0; i < kLanes; ++i) {
      const A address = a[i] + static_cast<A>(imm);
      most = most > address ? most : address;
      low |= address;
    }
    if (low % kBytes != 0 || most > block.shared_bytes || most + kBytes > block.shared_bytes) {
      return Shape::kOdd;
    }
    *at = block.shared;
    return Shape::kScattered;
  } else {
    const uint64_t window = block.window_base;
    if (block.window_size < kWhole) return Shape::kOdd;
    if (run == 0) {
      if (start % kBytes != 0 || start - window > block.window_size - kWhole) return Shape::kOdd;
      *at = reinterpret_cast<uint8_t*>(start);
      return Shape::kRun;
    }
    if (same == 0) {
      // The same generic address may be each lane's own local memory.
      const bool shared_by_lanes = kWhere == Where::kGlobal || start - window < block.window_size;
      return shared_by_lanes ? Shape::kSame : Shape::kOdd;
    }
    // The sign bit of one of the two distances shows an address outside.
    const uint64_t base = window - static_cast<uint64_t>(imm);
    const uint64_t last = block.window_size - kBytes;
    uint64_t outside = 0, low = 0;
    for (int i = 0; i < kLanes; ++i) {
      const uint64_t distance = a[i] - base;
      outside |= distance | (last - distance);
      low |= a[i] + static_cast<uint64_t>(imm);
    }
    if (low % kBytes != 0 || (outside >> 63) != 0) return Shape::kOdd;
    *at = nullptr;
    return Shape::kScattered;
  }
}

// All lanes, kCount elements each.
template <Where kWhere, typename A, typename M, uint32_t kCount>
void LoadFull(Warp& w, const Instr& in) {
  MayFault(w, in);
  const A* a = Lane<A>(w, in.a);
  const Ref* list = w.lists + in.target;
  uint8_t* at = nullptr;
  constexpr uint32_t kBytes = sizeof(M) * kCount;
  switch (Classify<kWhere, A, kBytes>(w, a, in.imm, &at)) {
    case Shape::kRun:
      for (uint32_t k = 0; k < kCount; ++k) {
        if (kCount > 1 && list[k] == kNoRef) continue;
        Held<M>* d = Lane<Held<M>>(w, list[k]);
        SIMGPU_LANE_LOOP
        for (int i = 0; i < kLanes; ++i) {
          d[i] = static_cast<Held<M>>(Read<M>(at + (i * kCount + k) * sizeof(M)));
        }
      }
      return;
    case Shape::kSame: {
      const A address = a[0] + static_cast<A>(in.imm);
      const uint8_t* p = Pointer<kWhere>(w, 0, address, kBytes, false);
      for (uint32_t k = 0; k < kCount; ++k) {
        if (kCount > 1 && list[k] == kNoRef) continue;
        const auto value = static_cast<Held<M>>(Read<M>(p + k * sizeof(M)));
        Held<M>* d = Lane<Held<M>>(w, list[k]);
        SIMGPU_LANE_LOOP
        for (int i = 0; i < kLanes; ++i) d[i] = value;
      }
      return;
    }
    case Shape::kScattered: {
      // An element may go to the address register itself: addresses first.
      A copy[kLanes];
      __builtin_memcpy(copy, a, sizeof(copy));
      for (uint32_t k = 0; k < kCount; ++k) {
        if (kCount > 1 && list[k] == kNoRef) continue;
        Held<M>* d = Lane<Held<M>>(w, list[k]);
        for (int i = 0; i < kLanes; ++i) {
          const A address = copy[i] + static_cast<A>(in.imm);
          d[i] = static_cast<Held<M>>(
              Read<M>(reinterpret_cast<const uint8_t*>(reinterpret_cast<uintptr_t>(at) + address) +
                      k * sizeof(M)));
        }
      }
      return;
    }
    case Shape::kOdd:
      LoadLanes<kWhere, A, M>(w, in);
      return;
  }
}

template <Where kWhere, typename A, typename M, uint32_t kCount>
void StoreFull(Warp& w, const Instr& in) {
  MayFault(w, in);
  const A* a = Lane<A>(w, in.a);
  const Ref* list = w.lists + in.target;
  uint8_t* at = nullptr;
  constexpr uint32_t kBytes = sizeof(M) * kCount;
  switch (Classify<kWhere, A, kBytes>(w, a, in.imm, &at)) {
    case Shape::kRun:
      for (uint32_t k = 0; k < kCount; ++k) {
        const Held<M>* s = Lane<Held<M>>(w, list[k]);
        SIMGPU_LANE_LOOP
        for (int i = 0; i < kLanes; ++i) {
          Write<M>(at + (i * kCount + k) * sizeof(M), static_cast<M>(s[i]));
        }
      }
      return;
    case Shape::kScattered:
      // In the order of the lanes: the last one wins where two meet.
      for (int i = 0; i < kLanes; ++i) {
        const A address = a[i] + static_cast<A>(in.imm);
        uint8_t* p = reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(at) + address);
        for (uint32_t k = 0; k < kCount; ++k) {
          Write<M>(p + k * sizeof(M), static_cast<M>(Lane<Held<M>>(w, list[k])[i]));
        }
      }
      return;
    case Shape::kSame:
    case Shape::kOdd:
      StoreLanes<kWhere, A, M>(w, in);
      return;
  }
}

// A kernel parameter at a known place (imm), which the launch has been checked to hold.
template <bool kMasked, typename M>
void LoadUniform(Warp& w, const Instr& in) {
  const uint8_t* p = w.block->params + in.imm;
  const Ref* list = w.lists + in.target;
  const uint32_t count = in.aux;
  for (uint32_t k = 0; k < count; ++k) {
    if (list[k] == kNoRef) continue;
    const auto value = static_cast<Held<M>>(Read<M>(p + k * sizeof(M)));
    Apply<kMasked, Held<M>>(w, list[k], [=](int) SIMGPU_LAMBDA { return value; });
  }
}

#define UNIFORM(M, type) sink.Put("ld.uniform", type, LoadUniform<false, M>, LoadUniform<true, M>)
#define FAST(space, where, A, M, type, count)                                                   \
  sink.Put("ld." space "." #count, type, LoadFull<where, A, M, count>, LoadLanes<where, A, M>); \
  sink.Put("st." space "." #count, type, StoreFull<where, A, M, count>, StoreLanes<where, A, M>)
#define SLOW(space, where, A, M, type, count)                     \
  sink.Put("ld." space "." #count, type, LoadLanes<where, A, M>); \
  sink.Put("st." space "." #count, type, StoreLanes<where, A, M>)
#define COUNTS(kind, space, where, A, M, type) \
  kind(space, where, A, M, type, 1);           \
  kind(space, where, A, M, type, 2);           \
  kind(space, where, A, M, type, 4);           \
  kind(space, where, A, M, type, 8)
#define TYPES(kind, space, where, A)              \
  COUNTS(kind, space, where, A, uint8_t, "u8");   \
  COUNTS(kind, space, where, A, int8_t, "s8");    \
  COUNTS(kind, space, where, A, uint16_t, "u16"); \
  COUNTS(kind, space, where, A, int16_t, "s16");  \
  COUNTS(kind, space, where, A, uint32_t, "b32"); \
  COUNTS(kind, space, where, A, uint64_t, "b64")

}  // namespace

void SIMGPU_CONCAT(RegisterMemory, SIMGPU_SUFFIX)(const HandlerSink& sink) {
  TYPES(FAST, "global", Where::kGlobal, uint64_t);
  TYPES(FAST, "generic", Where::kGeneric, uint64_t);
  TYPES(FAST, "shared", Where::kShared, uint32_t);
  TYPES(SLOW, "shared.64", Where::kShared, uint64_t);
  TYPES(SLOW, "local", Where::kLocal, uint64_t);
  TYPES(SLOW, "param", Where::kParam, uint64_t);
  TYPES(SLOW, "kparam", Where::kKernelParam, uint64_t);
  UNIFORM(uint8_t, "u8");
  UNIFORM(int8_t, "s8");
  UNIFORM(uint16_t, "u16");
  UNIFORM(int16_t, "s16");
  UNIFORM(uint32_t, "b32");
  UNIFORM(uint64_t, "b64");
}

}  // namespace simgpu
