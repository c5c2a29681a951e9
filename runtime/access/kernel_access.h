// What a kernel does with each word of its parameter block, found out from its PTX by abstract
// interpretation. Pure functions of the PTX module; thread-safe.
//
// Soundness: whatever is not followed makes the kernel `opaque`, with the construct and its line;
// an opaque kernel must be taken to read, write and keep everything that it can reach.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/ast.h"

namespace tidepool {

// How an op uses a buffer.
enum class AccessMode : uint8_t {
  kNone = 0,
  kRead = 1,
  kWrite = 2,   // may write; never reads through this word. Not proof that every byte is written
  kUpdate = 3,  // reads and may write
};
inline AccessMode operator|(AccessMode a, AccessMode b) {
  return static_cast<AccessMode>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
inline bool Reads(AccessMode m) { return (static_cast<uint8_t>(m) & 1) != 0; }
inline bool Writes(AccessMode m) { return (static_cast<uint8_t>(m) & 2) != 0; }

// Why an access is believed.
enum class Evidence : uint8_t { kPtx, kAnnotation };

// One word of the parameter block that flows into the address of some access, or out of the kernel.
// A scalar that takes part in address arithmetic (an index, a stride) appears too, with the modes
// of the accesses that it takes part in: it matters only at a launch where its value happens to lie
// in a buffer.
struct WordAccess {
  uint32_t offset = 0;  // bytes into the parameter block
  uint32_t bytes = 8;   // width of the word as the kernel loads it
  AccessMode mode = AccessMode::kNone;
  bool escapes = false;  // its value is stored to global memory, or passed where it is not followed
  bool atomics = false;  // updated by atomic operations
  // Every launch writes all of the buffer, if the word is its start. The analysis never says so
  // (footprint.h does, for one launch); an annotation may.
  bool covers = false;
  Evidence evidence = Evidence::kPtx;
  uint32_t line = 0;  // of the first access, for messages
};

// A module variable (.global or .const) that the kernel uses.
struct VariableAccess {
  std::string name;
  AccessMode mode = AccessMode::kNone;
  bool escapes = false;  // its address is stored or passed on
  uint32_t line = 0;     // of the first write or escape, for messages
};

// Why a kernel cannot be replayed to the same bits, or has effects beyond its buffers.
struct SideEffects {
  bool prints = false;     // vprintf
  bool allocates = false;  // device malloc/free
  bool asserts = false;    // __assertfail: the check itself reads only registers; replay is safe
  bool traps = false;
  bool reads_clock = false;       // %clock, %clock64, %globaltimer
  bool reads_placement = false;   // %smid, %warpid, %nsmid, %gridid
  bool reads_active = false;      // activemask: which lanes happen to run together
  bool grid_sync = false;         // %envreg use, grid-wide barriers
  bool system_scope = false;      // .sys atomics or fences, volatile/mmio accesses to global memory
  bool ordered_atomics = false;   // float atomics, exchange/cas, or an atomic whose result is used:
                                  // the bits depend on the order of threads
  bool textures = false;          // texture or surface instructions
  bool launches = false;          // device-side launches
  bool async_or_cluster = false;  // bulk copies, clusters, and other forms not followed
};

// Where the first instruction with a side effect stands.
struct EffectSite {
  bool SideEffects::*effect = nullptr;
  std::string construct;
  uint32_t line = 0;
};

struct KernelAccess {
  std::string name;
  bool opaque = false;
  std::string opaque_reason;  // the construct, and "line N"
  bool indirect = false;      // some access goes through an address loaded from memory
  uint32_t indirect_line = 0;
  AccessMode indirect_mode = AccessMode::kNone;
  // Some access has an address into which no variable, no loaded pointer and no 8-byte word of the
  // parameters went: it may reach anything.
  bool unbased = false;
  uint32_t unbased_line = 0;
  std::vector<WordAccess> words;  // by offset
  std::vector<VariableAccess> variables;
  SideEffects effects;
  std::vector<EffectSite> sites;  // one for each effect
  uint64_t param_bytes = 0;
  // Every access goes through the words and variables above, and nothing else happens that a replay
  // would repeat or miss: running the kernel again on the same inputs gives the same bits. (Whether
  // the variables are constant is for the caller to know.)
  bool Replayable() const;
  std::string NotReplayableReason() const;  // empty if Replayable()
};

// Analyses one entry function of `module`.
KernelAccess AnalyzeKernel(const ptx::Module& module, const ptx::Function& entry);

// Facts about a module's variables over all of its functions.
struct ModuleVariableUse {
  std::string name;
  bool written = false;         // by some function, or its address is not followed
  bool holds_pointers = false;  // its initializer has relocations
  bool managed = false;         // the host writes it without a call
  bool address_kept = false;    // in memory: some kernel stores it, or some initializer names it
};
struct ModuleAccess {
  std::vector<KernelAccess> kernels;
  std::vector<ModuleVariableUse> variables;
};
ModuleAccess AnalyzeModule(const ptx::Module& module);

}  // namespace tidepool
