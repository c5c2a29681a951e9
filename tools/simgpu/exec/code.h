// The executor's internal code: what a PTX function is compiled to, and the state of a warp that
// runs it.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/simgpu/exec/exec.h"

namespace simgpu {

inline constexpr int kLanes = 32;

// Generic addresses of shared and local memory: no host mapping is ever that low.
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 32;
inline constexpr uint64_t kSharedWindowBytes = uint64_t{1} << 24;
inline constexpr uint64_t kLocalWindow = uint64_t{2} << 32;
inline constexpr uint64_t kLocalWindowBytes = uint64_t{1} << 24;

struct Warp;
struct Instr;
using Handler = void (*)(Warp& warp, const Instr& instr);

// A register or a constant: an offset into the frame (>= 0) or, complemented, into the constants.
using Ref = int32_t;
inline constexpr Ref kNoRef = 0x7fffffff;

enum class Control : uint8_t {
  kNone,
  kBranch,
  kBranchIndexed,
  kReturn,
  kExit,
  kBarrier,   // of the block
  kConverge,  // needs the lanes of a member mask together: shfl, vote, bar.warp
  kCall,
  kTrap,
};

// Registers take a lane array: 4 bytes a lane for up to 32 bits, 8 for 64, and one word for a
// predicate (a bit a lane).
struct Instr {
  Handler handler = nullptr;
  Ref d = kNoRef, a = kNoRef, b = kNoRef, c = kNoRef, e = kNoRef;
  int64_t imm = 0;
  uint32_t target = 0;
  Ref guard = kNoRef;
  bool guard_negated = false;
  Control control = Control::kNone;
  uint8_t flops = 0;       // per lane
  uint8_t bytes_read = 0;  // of global memory, per lane
  uint8_t bytes_written = 0;
  bool atomic = false;
  uint16_t aux = 0;  // meaning by handler
  uint32_t line = 0;
  const Ref* list = nullptr;  // more operands (vectors): `aux` of them or as the handler knows
  const void* extra = nullptr;
};

struct CallSite;

// A compiled function.
struct Code {
  std::string name;
  std::vector<Instr> instrs;
  std::vector<uint8_t> constants;  // broadcast lane arrays
  std::vector<std::unique_ptr<std::vector<Ref>>> lists;
  std::vector<std::vector<uint32_t>> targets;  // of brx.idx
  uint32_t register_bytes = 0;
  uint32_t local_bytes = 0;  // per lane
  uint32_t param_bytes = 0;  // per lane: call arguments of this function and its own formals
  struct Formal {
    uint32_t offset = 0;  // in param memory
    uint32_t bytes = 0;
    Ref reg = kNoRef;  // register formals
  };
  std::vector<Formal> formals, returns;
  uint32_t shared_bytes = 0;  // static, of the variables it declares
  bool ordered_atomics = false;
  bool grid_sync = false;
  std::vector<std::unique_ptr<CallSite>> sites;
};

struct CallSite {
  const Code* callee = nullptr;  // null: indirect
  Ref callee_register = kNoRef;
  std::vector<Code::Formal> arguments,
      results;  // offsets in the caller's param memory, or registers
  enum class Builtin : uint8_t { kNone, kPrintf, kAssert } builtin = Builtin::kNone;
};

// One activation of a function, shared by the splits of a warp that are in it.
struct Frame {
  const Code* code = nullptr;
  uint8_t* registers = nullptr;
  const uint8_t* constants = nullptr;
  uint8_t* params = nullptr;  // [lane][param_bytes]
  uint32_t local_base = 0;    // offset in each lane's local memory
  uint32_t depth = 0;
  uint32_t return_pc = 0;
  const CallSite* site = nullptr;
  std::shared_ptr<Frame> caller;
  std::vector<uint8_t> storage;
};

// Lanes of a warp that are at the same place.
struct Split {
  uint32_t pc = 0;
  uint32_t mask = 0;
  std::shared_ptr<Frame> frame;
  bool at_barrier = false;
  bool tired = false;    // has spun for long: the others first
  bool blocked = false;  // at a kConverge, waiting for the others
};

struct Block;

struct Warp {
  // Hot state of the running split.
  uint8_t* registers = nullptr;
  const uint8_t* constants = nullptr;
  uint32_t mask = 0;  // lanes that execute the current instruction
  Frame* frame = nullptr;
  Block* block = nullptr;

  const Instr* current = nullptr;  // for messages
  std::vector<Split> splits;       // all of them; the running one is splits[running]
  size_t running = 0;
  uint32_t exited = 0;  // lanes that are done, or never were
  uint32_t id = 0;
  uint32_t tid[3][kLanes];
  std::vector<uint8_t> local;  // [lane][local_stride]
  bool done = false;
  bool waiting = false;  // every lane is at the barrier
};

struct Block {
  const Kernel* kernel = nullptr;
  const LaunchConfig* config = nullptr;
  const MemoryMap* memory = nullptr;
  uint32_t id[3] = {0, 0, 0};
  std::vector<uint8_t> shared;
  std::vector<Warp> warps;
  uint32_t local_stride = 0;
  std::string output;  // printf
  ExecStats stats;
  uint64_t clock = 0;
};

// Thrown by handlers; a trapped page access comes as a jump instead.
struct FaultError {
  Fault fault = Fault::kNone;
  uint64_t address = 0;
  int lane = -1;
  std::string text;
};

inline uint8_t* At(Warp& warp, Ref ref) {
  return ref >= 0 ? warp.registers + ref : const_cast<uint8_t*>(warp.constants) + ~ref;
}
template <typename T>
T* Lane(Warp& warp, Ref ref) {
  return reinterpret_cast<T*>(At(warp, ref));
}
inline uint32_t& Pred(Warp& warp, Ref ref) { return *reinterpret_cast<uint32_t*>(At(warp, ref)); }

using HandlerMap = std::unordered_map<std::string, Handler>;
// Arithmetic, by canonical name ("add.f32", "setp.lt.s32"): built for the baseline and for AVX2,
// with the same results.
void RegisterArithmeticBase(HandlerMap* map);
void RegisterArithmeticAvx2(HandlerMap* map);
void RegisterRounding(HandlerMap* map);     // .rz, .rm, .rp
void RegisterConversions(HandlerMap* map);  // cvt
void RegisterMemory(HandlerMap* map);       // ld, st, atom, red, cvta
void RegisterWarp(HandlerMap* map);         // shfl, vote, special registers
const HandlerMap& Handlers();

class Kernel {
 public:
  KernelInfo info;
  const Code* code = nullptr;
  Program::Impl* program = nullptr;
  bool ordered = false;
  uint32_t local_stride = 0;
};

// Resolves a generic address for one lane: the host pointer, or throws.
uint8_t* GenericPointer(Warp& warp, int lane, uint64_t address, uint32_t bytes, bool write);
uint8_t* SharedPointer(Warp& warp, int lane, uint64_t offset, uint32_t bytes);
uint8_t* LocalPointer(Warp& warp, int lane, uint64_t offset, uint32_t bytes);

// Puts all lanes at the start of a kernel.
void StartWarp(Warp* warp, const Code* code, const uint8_t* params, size_t param_bytes);
// The function whose "address" a register holds; null if none.
const Code* FunctionByToken(const Warp& warp, uint64_t token);
// Runs the block to its end. Throws FaultError.
void RunBlock(Block* block);
void DevicePrintf(Warp& warp, uint32_t mask, const CallSite& site);

// Where a trapped access of this thread jumps to (fault.cc).
struct TrapPoint {
  sigjmp_buf jump;
  uint64_t address = 0;
};
void InstallTrapHandler();
extern thread_local TrapPoint* trap_point;

}  // namespace simgpu
