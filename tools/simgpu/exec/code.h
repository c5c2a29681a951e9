// What a PTX function is compiled to: an array of pre-decoded instructions whose operands are
// offsets into a register file of lane arrays. Immutable once loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/simgpu/exec/exec.h"

namespace simgpu {

inline constexpr int kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xffffffffu;

// Generic addresses of shared, local and kernel parameter memory. No host mapping is ever at 2^47
// or above, and the low 32 bits of such an address are the address in its own space.
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 47;
inline constexpr uint64_t kLocalWindow = kSharedWindow + (uint64_t{1} << 32);
inline constexpr uint64_t kParamWindow = kLocalWindow + (uint64_t{1} << 32);
inline constexpr uint64_t kWindowBytes = uint64_t{1} << 32;
// "Addresses" of functions, 16 apart: values that nothing else has.
inline constexpr uint64_t kFunctionTokens = kParamWindow + (uint64_t{1} << 32);

struct Warp;
struct Instr;
// Executes one instruction for the lanes of Warp::mask. The `full` one of a pair may take the mask
// to be kAllLanes.
using Handler = void (*)(Warp& warp, const Instr& instr);
struct HandlerPair {
  Handler full = nullptr;
  Handler masked = nullptr;
};

// An operand: the byte offset of a lane array in the register file. A lane takes 4 bytes for
// everything up to 32 bits (what lies above a narrow value is not defined), 8 bytes for 64 bits; a
// predicate is one 32-bit word, a bit a lane.
using Ref = int32_t;
inline constexpr Ref kNoRef = -1;

// What the interpreter's loop does with an instruction.
enum class Control : uint8_t {
  kPlain,     // calls the handler; neither guarded nor able to change the flow
  kGuarded,   // calls the handler for the lanes of the guard (all, where there is none)
  kConverge,  // calls the handler once the lanes of a member mask (operand f) are together
  kWarpBarrier,
  kBranch,
  kBranchTable,
  kReturn,
  kExit,
  kBarrier,  // of the block: aux is a BarrierKind
  kCall,
  kTrap,
};

enum class BarrierKind : uint16_t { kSync, kArrive, kRedPopc, kRedAnd, kRedOr };

// Destinations are d and e, sources a, b, c and f; `guard` is a predicate.
struct alignas(64) Instr {
  Handler full = nullptr;
  Handler masked = nullptr;
  Ref d = kNoRef, e = kNoRef, a = kNoRef, b = kNoRef, c = kNoRef, f = kNoRef;
  int64_t imm = 0;
  Ref guard = kNoRef;
  uint32_t target = 0;  // a branch's instruction, a call's site, where a list of operands starts
  uint32_t line = 0;    // in the PTX text
  uint16_t aux = 0;     // meaning by handler
  Control control = Control::kPlain;
  bool guard_negated = false;
};
static_assert(sizeof(Instr) == 64);

// What a lane spends on an instruction: ExecStats' input.
struct Cost {
  uint32_t flops = 0;
  uint32_t read = 0;  // bytes of global memory
  uint32_t written = 0;
  uint32_t atomics = 0;
};

struct Code;

// A place in parameter memory (per lane), or a register of an old-style formal.
struct Formal {
  uint32_t offset = 0;
  uint32_t bytes = 0;
  Ref reg = kNoRef;
};

struct CallSite {
  const Code* callee = nullptr;  // null: indirect (operand a holds its token), or a builtin
  std::vector<Formal> arguments, results;  // in the caller
  enum class Builtin : uint8_t { kNone, kPrintf, kAssert, kMalloc, kFree } builtin = Builtin::kNone;
};

struct Code {
  std::string name;
  uint32_t index = 0;  // among the program's codes
  std::vector<Instr> instrs;
  std::vector<uint32_t> run;   // run[i]: how many plain instructions follow each other from i on
  std::vector<Cost> before;    // before[i]: the sum over the instructions before i
  std::vector<uint8_t> spins;  // of a backward branch: its loop may wait for another thread
  std::vector<Ref> lists;      // operands of vector instructions
  std::vector<std::vector<uint32_t>> branch_tables;
  std::vector<CallSite> sites;

  uint32_t register_bytes = 0;  // the whole file; the constants are at its end
  uint32_t constant_offset = 0;
  std::vector<uint8_t> constants;
  std::vector<std::pair<uint32_t, uint32_t>> undefined;  // offset, bytes: may be read unwritten
  uint32_t live_registers = 0;                           // 32-bit registers at the worst place

  uint32_t local_bytes = 0;  // per lane
  uint32_t param_bytes = 0;  // per lane: call arguments, and the formals of a device function
  std::vector<Formal> formals, returns;
  uint32_t shared_bytes = 0;  // static shared memory of a kernel
  bool ordered = false;       // has effects whose order among blocks shows in the results
  bool grid_sync = false;     // reads the address of the grid's barrier
};

class Kernel {
 public:
  KernelInfo info;
  const Code* code = nullptr;
  Program::Impl* program = nullptr;
  bool ordered = false;
  uint32_t local_stride = 0;  // bytes of local memory per lane, calls included
};

}  // namespace simgpu
