// Loads and stores. Global addresses are host addresses inside the window of device memory: one
// check of the range serves eight lanes whose addresses follow each other or are the same; a page
// without access traps. Built once for the baseline and once for AVX2.
#include "tools/simgpu/exec/handlers.h"
#include "tools/simgpu/exec/lanes.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

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

// Eight lanes are looked at together: their addresses mostly follow each other or are the same.
constexpr int kGroup = 8;

// Whether a[i] == a[0] + i * kStep for a group.
template <typename A, uint32_t kStep>
SIMGPU_INLINE bool Follow(const A* a) {
#if defined(__AVX2__)
  if constexpr (sizeof(A) == 4) {
    const __m256i step = _mm256_setr_epi32(0, kStep, 2 * kStep, 3 * kStep, 4 * kStep, 5 * kStep,
                                           6 * kStep, 7 * kStep);
    const __m256i want = _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(a[0])), step);
    const __m256i off =
        _mm256_xor_si256(_mm256_load_si256(reinterpret_cast<const __m256i*>(a)), want);
    return _mm256_testz_si256(off, off) != 0;
  } else {
    const __m256i first = _mm256_set1_epi64x(static_cast<long long>(a[0]));
    const __m256i step = _mm256_setr_epi64x(0, kStep, 2 * kStep, 3 * kStep);
    const __m256i later = _mm256_setr_epi64x(4 * kStep, 5 * kStep, 6 * kStep, 7 * kStep);
    const auto* at = reinterpret_cast<const __m256i*>(a);
    const __m256i low = _mm256_xor_si256(_mm256_load_si256(at), _mm256_add_epi64(first, step));
    const __m256i high =
        _mm256_xor_si256(_mm256_load_si256(at + 1), _mm256_add_epi64(first, later));
    const __m256i off = _mm256_or_si256(low, high);
    return _mm256_testz_si256(off, off) != 0;
  }
#else
  A off = 0;
  for (int i = 0; i < kGroup; ++i)
    off |= a[i] ^ static_cast<A>(a[0] + A{kStep} * static_cast<A>(i));
  return off == 0;
#endif
}

// The place of `bytes` that one group reads or writes, if all of them are in the space; else null.
template <Where kWhere>
SIMGPU_INLINE uint8_t* RangePointer(const Block& block, uint64_t address, uint32_t bytes,
                                    uint32_t alignment) {
  if ((address & (alignment - 1)) != 0) return nullptr;
  if constexpr (kWhere == Where::kShared) {
    return address + bytes <= block.shared_bytes ? block.shared + address : nullptr;
  } else {
    return address - block.window_base <= block.window_size - bytes
               ? reinterpret_cast<uint8_t*>(address)
               : nullptr;
  }
}

// Global, generic and shared loads: kCount elements a lane. aux and list as in LoadLanes.
template <bool kMasked, Where kWhere, typename A, typename M, uint32_t kCount>
void Load(Warp& w, const Instr& in) {
  MayFault(w, in);
  constexpr uint32_t kBytes = sizeof(M) * kCount;
  const A* addresses = Lane<A>(w, in.a);
  const Block& block = *w.block;
  Held<M>* d[kCount];
  for (uint32_t k = 0; k < kCount; ++k) {
    const Ref ref = w.lists[in.target + k];
    d[k] = kCount > 1 && ref == kNoRef ? nullptr : Lane<Held<M>>(w, ref);
  }
  for (int g = 0; g < kLanes; g += kGroup) {
    const uint32_t mask = kMasked ? w.mask >> g & 0xff : 0xff;
    const A* a = addresses + g;
    if (!kMasked || mask == 0xff) {
      const A start = a[0] + static_cast<A>(in.imm);
      if (Follow<A, kBytes>(a)) {
        if (const uint8_t* p = RangePointer<kWhere>(block, start, kGroup * kBytes, kBytes)) {
          if constexpr (kCount == 1 && sizeof(M) == sizeof(Held<M>)) {
            __builtin_memcpy(d[0] + g, p, kGroup * sizeof(M));
            continue;
          }
          for (uint32_t k = 0; k < kCount; ++k) {
            if (kCount > 1 && d[k] == nullptr) continue;
            SIMGPU_LANE_LOOP
            for (int i = 0; i < kGroup; ++i) {
              d[k][g + i] = static_cast<Held<M>>(Read<M>(p + (i * kCount + k) * sizeof(M)));
            }
          }
          continue;
        }
      } else if (Follow<A, 0>(a)) {
        // (The same generic address outside the window may be each lane's own local memory.)
        if (const uint8_t* p = RangePointer<kWhere>(block, start, kBytes, kBytes)) {
          for (uint32_t k = 0; k < kCount; ++k) {
            if (kCount > 1 && d[k] == nullptr) continue;
            const auto value = static_cast<Held<M>>(Read<M>(p + k * sizeof(M)));
            SIMGPU_LANE_LOOP
            for (int i = 0; i < kGroup; ++i) d[k][g + i] = value;
          }
          continue;
        }
      }
    }
    const auto one = [&](int i) SIMGPU_LAMBDA {
      const A address = a[i] + static_cast<A>(in.imm);
      const uint8_t* p = Pointer<kWhere>(w, g + i, address, kBytes, false);
      for (uint32_t k = 0; k < kCount; ++k) {
        if (kCount > 1 && d[k] == nullptr) continue;
        d[k][g + i] = static_cast<Held<M>>(Read<M>(p + k * sizeof(M)));
      }
    };
    if (kMasked) {
      ForLanes(mask, one);
    } else {
      for (int i = 0; i < kGroup; ++i) one(i);
    }
  }
}

template <bool kMasked, Where kWhere, typename A, typename M, uint32_t kCount>
void Store(Warp& w, const Instr& in) {
  MayFault(w, in);
  constexpr uint32_t kBytes = sizeof(M) * kCount;
  const A* addresses = Lane<A>(w, in.a);
  const Block& block = *w.block;
  const Held<M>* s[kCount];
  for (uint32_t k = 0; k < kCount; ++k) s[k] = Lane<Held<M>>(w, w.lists[in.target + k]);
  for (int g = 0; g < kLanes; g += kGroup) {
    const uint32_t mask = kMasked ? w.mask >> g & 0xff : 0xff;
    const A* a = addresses + g;
    if ((!kMasked || mask == 0xff) && Follow<A, kBytes>(a)) {
      const A start = a[0] + static_cast<A>(in.imm);
      if (uint8_t* p = RangePointer<kWhere>(block, start, kGroup * kBytes, kBytes)) {
        if constexpr (kCount == 1 && sizeof(M) == sizeof(Held<M>)) {
          __builtin_memcpy(p, s[0] + g, kGroup * sizeof(M));
          continue;
        }
        for (uint32_t k = 0; k < kCount; ++k) {
          SIMGPU_LANE_LOOP
          for (int i = 0; i < kGroup; ++i) {
            Write<M>(p + (i * kCount + k) * sizeof(M), static_cast<M>(s[k][g + i]));
          }
        }
        continue;
      }
    }
    // In the order of the lanes: the last one wins where two meet.
    const auto one = [&](int i) SIMGPU_LAMBDA {
      const A address = a[i] + static_cast<A>(in.imm);
      uint8_t* p = Pointer<kWhere>(w, g + i, address, kBytes, true);
      for (uint32_t k = 0; k < kCount; ++k) {
        Write<M>(p + k * sizeof(M), static_cast<M>(s[k][g + i]));
      }
    };
    if (kMasked) {
      ForLanes(mask, one);
    } else {
      for (int i = 0; i < kGroup; ++i) one(i);
    }
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
#define FAST(space, where, A, M, type, count)                              \
  sink.Put("ld." space "." #count, type, Load<false, where, A, M, count>,  \
           Load<true, where, A, M, count>);                                \
  sink.Put("st." space "." #count, type, Store<false, where, A, M, count>, \
           Store<true, where, A, M, count>)
#define SLOW(space, where, A, M, type, count)                     \
  sink.Put("ld." space "." #count, type, LoadLanes<where, A, M>); \
  sink.Put("st." space "." #count, type, StoreLanes<where, A, M>)
// What programs move in bulk has the fast forms; the rest is right, and compiles in reasonable
// time.
#define FAST_TYPES(space, where, A)          \
  FAST(space, where, A, uint8_t, "u8", 1);   \
  FAST(space, where, A, int8_t, "s8", 1);    \
  FAST(space, where, A, uint16_t, "u16", 1); \
  FAST(space, where, A, int16_t, "s16", 1);  \
  FAST(space, where, A, uint32_t, "b32", 1); \
  FAST(space, where, A, uint32_t, "b32", 2); \
  FAST(space, where, A, uint32_t, "b32", 4); \
  FAST(space, where, A, uint64_t, "b64", 1); \
  FAST(space, where, A, uint64_t, "b64", 2); \
  VECTORS(space, where, A, uint8_t, "u8");   \
  VECTORS(space, where, A, int8_t, "s8");    \
  VECTORS(space, where, A, uint16_t, "u16"); \
  VECTORS(space, where, A, int16_t, "s16");  \
  SLOW(space, where, A, uint32_t, "b32", 8); \
  SLOW(space, where, A, uint64_t, "b64", 4); \
  SLOW(space, where, A, uint64_t, "b64", 8)
#define VECTORS(space, where, A, M, type) \
  SLOW(space, where, A, M, type, 2);      \
  SLOW(space, where, A, M, type, 4);      \
  SLOW(space, where, A, M, type, 8)
#define COUNTS(space, where, A, M, type) \
  SLOW(space, where, A, M, type, 1);     \
  VECTORS(space, where, A, M, type)
#define SLOW_TYPES(space, where, A)         \
  COUNTS(space, where, A, uint8_t, "u8");   \
  COUNTS(space, where, A, int8_t, "s8");    \
  COUNTS(space, where, A, uint16_t, "u16"); \
  COUNTS(space, where, A, int16_t, "s16");  \
  COUNTS(space, where, A, uint32_t, "b32"); \
  COUNTS(space, where, A, uint64_t, "b64")

}  // namespace

void SIMGPU_CONCAT(RegisterMemory, SIMGPU_SUFFIX)(const HandlerSink& sink) {
  FAST_TYPES("global", Where::kGlobal, uint64_t);
  FAST_TYPES("generic", Where::kGeneric, uint64_t);
  FAST_TYPES("shared", Where::kShared, uint32_t);
  SLOW_TYPES("shared.64", Where::kShared, uint64_t);
  SLOW_TYPES("local", Where::kLocal, uint64_t);
  SLOW_TYPES("param", Where::kParam, uint64_t);
  SLOW_TYPES("kparam", Where::kKernelParam, uint64_t);
  UNIFORM(uint8_t, "u8");
  UNIFORM(int8_t, "s8");
  UNIFORM(uint16_t, "u16");
  UNIFORM(int16_t, "s16");
  UNIFORM(uint32_t, "b32");
  UNIFORM(uint64_t, "b64");
}

}  // namespace simgpu
