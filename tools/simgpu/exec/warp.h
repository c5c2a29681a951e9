// The state of running code: frames, warps, blocks.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/simgpu/exec/code.h"

namespace simgpu {

struct Frame;
class FramePool;

// Counts the splits and frames that hold a frame; the last one gives it back to its pool.
class FrameRef {
 public:
  FrameRef() = default;
  explicit FrameRef(Frame* frame);
  FrameRef(const FrameRef& other);
  FrameRef(FrameRef&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  FrameRef& operator=(FrameRef other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~FrameRef();
  Frame* get() const { return frame_; }
  Frame* operator->() const { return frame_; }
  Frame& operator*() const { return *frame_; }
  bool operator==(const FrameRef& other) const { return frame_ == other.frame_; }

 private:
  Frame* frame_ = nullptr;
};

// One activation of a function, shared by the splits of a warp that are in it.
struct Frame {
  const Code* code = nullptr;
  uint8_t* registers = nullptr;  // code->register_bytes, 64-byte aligned
  uint8_t* params = nullptr;     // [lane][code->param_bytes]
  uint32_t local_base = 0;       // where its variables start in each lane's local memory
  uint32_t depth = 0;
  uint32_t return_pc = 0;
  const CallSite* site = nullptr;
  FrameRef caller;
  FramePool* pool = nullptr;
  int refs = 0;
  std::unique_ptr<uint8_t[]> storage;
};

// Keeps frames of finished calls for the next ones: their constants are in place. Single-threaded.
class FramePool {
 public:
  explicit FramePool(size_t codes) : free_(codes) {}
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;
  ~FramePool();
  FrameRef New(const Code* code);
  void Release(Frame* frame);

 private:
  std::vector<std::vector<std::unique_ptr<Frame>>> free_;  // by Code::index
};

// Lanes of a warp that are at the same place.
struct Split {
  enum class State : uint8_t { kReady, kBarrier, kConverge };
  uint32_t pc = 0;
  uint32_t mask = 0;
  FrameRef frame;
  State state = State::kReady;
  uint8_t barrier = 0;
  bool tired = false;   // has spun for long: the others first
  bool forced = false;  // nobody else will come: go on with the lanes that are there
};

struct Block;

struct Warp {
  // Of the running split; what handlers need.
  uint8_t* registers = nullptr;
  uint32_t mask = 0;
  const Ref* lists = nullptr;
  Frame* frame = nullptr;
  Block* block = nullptr;
  const Instr* current = nullptr;  // the last one that may fault or that changed the flow

  std::vector<Split> splits;
  size_t running = 0;   // index in splits
  uint32_t exited = 0;  // lanes that are done, or never were
  uint32_t id = 0;
  bool blocked = false;  // none of the splits is ready
  alignas(32) uint32_t tid[3][kLanes];
  uint8_t* local = nullptr;  // [lane][Block::local_stride]
};

// A barrier of the block. Arrivals count lanes; a warp that comes as a whole counts as 32, as the
// hardware counts.
struct Barrier {
  uint32_t lanes = 0;     // that have arrived
  uint32_t counted = 0;   // the same, in the hardware's counting
  uint32_t expected = 0;  // 0: every thread of the block
  uint32_t popc = 0;      // of the predicates brought along
  bool all = true, any = false;
};
inline constexpr int kBarriers = 16;

// What all blocks of a launch share.
struct LaunchState {
  const Kernel* kernel = nullptr;
  const LaunchConfig* config = nullptr;
  const MemoryMap* memory = nullptr;
  // The grid's barrier, whose address kernels find in %envreg1 and %envreg2.
  alignas(16) uint32_t grid_workspace[4] = {16, 0, 0, 0};
};

struct Block {
  LaunchState* launch = nullptr;
  uint64_t window_base = 0, window_size = 0;  // of launch->memory
  const uint8_t* params = nullptr;            // the launch's parameter block
  uint64_t params_bytes = 0;
  uint32_t id[3] = {0, 0, 0};
  uint64_t index = 0;
  uint8_t* shared = nullptr;
  uint32_t shared_bytes = 0;
  uint32_t local_stride = 0;
  uint32_t live_threads = 0;  // not exited
  std::vector<Warp> warps;
  Barrier barriers[kBarriers];
  Warp* running = nullptr;
  FramePool* frames = nullptr;
  std::string output;  // of printf
  ExecStats stats;
  uint64_t clock = 0;  // instructions so far

  std::vector<uint8_t> shared_storage;
  std::unique_ptr<uint8_t[]> local_storage;
  size_t local_capacity = 0;
};

// Thrown by handlers. (A trapped page access comes as a jump instead.)
struct FaultError {
  Fault fault = Fault::kNone;
  uint64_t address = 0;
  int lane = -1;
  std::string text;
};
[[noreturn]] void ThrowFault(Fault fault, uint64_t address, int lane, const char* text);

// The host address of `bytes` at a generic address of one lane; throws FaultError.
uint8_t* GenericPointer(Warp& warp, int lane, uint64_t address, uint32_t bytes, bool write);
// The same for an address that an instruction said is global.
uint8_t* GlobalPointer(Warp& warp, int lane, uint64_t address, uint32_t bytes, bool write);
uint8_t* SharedPointer(Warp& warp, int lane, uint64_t address, uint32_t bytes);
uint8_t* LocalPointer(Warp& warp, int lane, uint64_t address, uint32_t bytes);

// The function whose "address" a register holds; null if none (program.cc).
const Code* FunctionByToken(const Warp& warp, uint64_t token);

// run.cc.
enum class BlockState : uint8_t { kDone, kSpinning };
// Runs the block to its end (kDone), or until all its warps wait for what only another block can
// do (kSpinning: call again). Throws FaultError.
BlockState RunBlock(Block* block);

// calls.cc: calls and returns of the running split.
void CallFunction(Warp& warp, const Instr& instr, uint32_t lanes);
void ReturnFromFunction(Warp& warp, uint32_t lanes);
void DevicePrintf(Warp& warp, uint32_t lanes, const CallSite& site);
[[noreturn]] void DeviceAssert(Warp& warp, uint32_t lanes, const CallSite& site);

}  // namespace simgpu
