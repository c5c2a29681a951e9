// A launch: blocks handed to worker threads, faults turned into a result, printf output put in
// order.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/simgpu/exec/fault.h"
#include "tools/simgpu/exec/lanes.h"
#include "tools/simgpu/exec/program_impl.h"
#include "tools/simgpu/exec/warp.h"
#include "tools/simgpu/exec/workers.h"

namespace simgpu {
namespace {

// Blocks that one worker keeps going at a time while they wait for each other.
constexpr size_t kMaxResident = 64;

void Add(ExecStats* total, const ExecStats& part) {
  total->warp_instructions += part.warp_instructions;
  total->lane_instructions += part.lane_instructions;
  total->flops += part.flops;
  total->global_read_bytes += part.global_read_bytes;
  total->global_written_bytes += part.global_written_bytes;
  total->atomics += part.atomics;
}

// One launch, shared by the threads that run its blocks.
struct Launch : LaunchState {
  uint64_t blocks = 0;
  std::atomic<uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::condition_variable done;
  int active = 0;
  LaunchResult result;
  uint64_t fault_block = ~uint64_t{0};
  std::map<uint64_t, std::string> output;  // by block
};

// The lane whose access of the current instruction touched `address`, by its address register.
int FaultingLane(Warp& w, uint64_t address) {
  constexpr uint64_t kWidest = 64;
  int best = -1;
  uint64_t nearest = kWidest;
  const Instr* in = w.current;
  if (in == nullptr || in->a == kNoRef) return best;
  ForLanes(w.mask, [&](int i) {
    const uint64_t at = Lane<uint64_t>(w, in->a)[i] + static_cast<uint64_t>(in->imm);
    if (address - at < nearest) {
      nearest = address - at;
      best = i;
    }
  });
  return best;
}

std::string Describe(Block& block, const FaultError& fault) {
  std::string text = absl::StrFormat("kernel %s, block (%d,%d,%d)", block.launch->kernel->info.name,
                                     block.id[0], block.id[1], block.id[2]);
  const Warp* warp = block.running;
  if (warp != nullptr) {
    if (fault.lane >= 0) {
      absl::StrAppendFormat(&text, ", thread (%d,%d,%d)", warp->tid[0][fault.lane],
                            warp->tid[1][fault.lane], warp->tid[2][fault.lane]);
    }
    if (warp->current != nullptr)
      absl::StrAppendFormat(&text, ", PTX line %d", warp->current->line);
  }
  if (fault.fault == Fault::kIllegalAddress || fault.fault == Fault::kMisalignedAddress) {
    absl::StrAppendFormat(&text, ", %s address %#x",
                          fault.fault == Fault::kIllegalAddress ? "illegal" : "misaligned",
                          fault.address);
  }
  if (!fault.text.empty()) absl::StrAppend(&text, ": ", fault.text);
  return text;
}

// Runs blocks on one thread, one after the other; several in turns where they wait for each other.
class BlockRunner {
 public:
  explicit BlockRunner(Launch* launch)
      : launch_(*launch), frames_(launch->kernel->program->codes.size()) {}
  void Run();

 private:
  std::unique_ptr<Block> NewBlock();
  void Start(Block* block, uint64_t index);
  bool StartNext();
  void Finish(size_t resident);
  void Fail(Block* block, const FaultError& fault);
  std::optional<FaultError> RunGuarded(Block* block, BlockState* state);

  Launch& launch_;
  FramePool frames_;
  std::vector<std::unique_ptr<Block>> resident_;
  std::vector<std::unique_ptr<Block>> idle_;
  std::map<uint64_t, std::string> output_;
  ExecStats stats_;
  bool more_ = true;  // blocks that nobody has started
};

std::unique_ptr<Block> BlockRunner::NewBlock() {
  auto block = std::make_unique<Block>();
  const LaunchConfig& config = *launch_.config;
  const MemoryMap& memory = *launch_.memory;
  block->launch = &launch_;
  block->frames = &frames_;
  block->params = config.params.data();
  block->params_bytes = config.params.size();
  // The fast paths subtract an access's size from the window's; one that holds no access at all
  // stands for none.
  const bool has_window = memory.window_size >= 4096;
  block->window_base = has_window ? memory.window_base : ~uint64_t{0} - 8191;
  block->window_size = has_window ? memory.window_size : 4096;
  block->local_stride = launch_.kernel->local_stride;
  block->shared_bytes = launch_.kernel->code->shared_bytes + config.dynamic_shared_bytes;
  block->shared_storage.resize(block->shared_bytes + 128);
  const auto base = reinterpret_cast<uintptr_t>(block->shared_storage.data());
  block->shared = reinterpret_cast<uint8_t*>((base + 127) / 128 * 128);
  const auto threads = static_cast<uint32_t>(config.block.count());
  const uint32_t warps = (threads + kLanes - 1) / kLanes;
  const size_t warp_local = static_cast<size_t>(block->local_stride) * kLanes;
  if (warp_local != 0) {
    // Not initialised: a stack for recursion is large, and hardly used.
    block->local_storage.reset(new uint8_t[warp_local * warps + 16]);
  }
  const auto local = (reinterpret_cast<uintptr_t>(block->local_storage.get()) + 15) / 16 * 16;
  block->warps.resize(warps);
  for (uint32_t w = 0; w < warps; ++w) {
    Warp& warp = block->warps[w];
    warp.block = block.get();
    warp.id = w;
    warp.local = reinterpret_cast<uint8_t*>(local) + warp_local * w;
    for (uint32_t i = 0; i < kLanes; ++i) {
      const uint32_t thread = w * kLanes + i;
      warp.tid[0][i] = thread % config.block.x;
      warp.tid[1][i] = thread / config.block.x % config.block.y;
      warp.tid[2][i] = thread / config.block.x / config.block.y;
    }
  }
  return block;
}

void BlockRunner::Start(Block* block, uint64_t index) {
  const LaunchConfig& config = *launch_.config;
  const Code& code = *launch_.kernel->code;
  block->index = index;
  block->id[0] = static_cast<uint32_t>(index % config.grid.x);
  block->id[1] = static_cast<uint32_t>(index / config.grid.x % config.grid.y);
  block->id[2] = static_cast<uint32_t>(index / config.grid.x / config.grid.y);
  // Memory starts as garbage, but the same garbage every time.
  std::memset(block->shared, 0xcd, block->shared_bytes);
  const uint32_t poisoned = launch_.kernel->info.local_bytes;
  block->clock = 0;
  block->stats = ExecStats{};
  block->output.clear();
  block->running = nullptr;
  std::fill(std::begin(block->barriers), std::end(block->barriers), Barrier{});
  const auto threads = static_cast<uint32_t>(config.block.count());
  block->live_threads = threads;
  for (uint32_t w = 0; w < block->warps.size(); ++w) {
    Warp& warp = block->warps[w];
    const uint32_t rest = threads - w * kLanes;
    warp.exited = rest >= kLanes ? 0 : kAllLanes << rest;
    warp.blocked = false;
    warp.current = nullptr;
    for (int i = 0; poisoned != 0 && i < kLanes; ++i) {
      std::memset(warp.local + static_cast<size_t>(i) * block->local_stride, 0xcd, poisoned);
    }
    warp.splits.clear();
    Split split;
    split.mask = ~warp.exited;
    split.frame = frames_.New(&code);
    split.frame->depth = 0;
    split.frame->local_base = 0;
    warp.splits.push_back(std::move(split));
  }
}

// A trapped page access arrives by a jump over frames that own nothing.
std::optional<FaultError> BlockRunner::RunGuarded(Block* block, BlockState* state) {
  TrapPoint point;
  point.base[0] = launch_.memory->window_base;
  point.size[0] = launch_.memory->window_size;
  if (sigsetjmp(point.jump, 0) != 0) {
    Warp& warp = *block->running;
    return FaultError{Fault::kIllegalAddress, point.address, FaultingLane(warp, point.address),
                      "page without access"};
  }
  SetTrapPoint(&point);
  std::optional<FaultError> fault;
  try {
    *state = RunBlock(block);
  } catch (const FaultError& error) {
    fault = error;
  }
  ClearTrapPoint(&point);
  return fault;
}

bool BlockRunner::StartNext() {
  if (!more_) return false;
  const uint64_t index = launch_.failed.load() ? launch_.blocks : launch_.next.fetch_add(1);
  if (index >= launch_.blocks) {
    more_ = false;
    return false;
  }
  std::unique_ptr<Block> block;
  if (!idle_.empty()) {
    block = std::move(idle_.back());
    idle_.pop_back();
  } else {
    block = NewBlock();
  }
  Start(block.get(), index);
  resident_.push_back(std::move(block));
  return true;
}

void BlockRunner::Finish(size_t resident) {
  std::unique_ptr<Block> block = std::move(resident_[resident]);
  resident_.erase(resident_.begin() + static_cast<ptrdiff_t>(resident));
  Add(&stats_, block->stats);
  if (!block->output.empty()) output_[block->index] = std::move(block->output);
  idle_.push_back(std::move(block));
}

void BlockRunner::Fail(Block* block, const FaultError& fault) {
  launch_.failed = true;
  std::lock_guard<std::mutex> lock(launch_.mutex);
  if (block->index >= launch_.fault_block) return;
  launch_.fault_block = block->index;
  launch_.result.fault = fault.fault;
  launch_.result.message = Describe(*block, fault);
}

void BlockRunner::Run() {
  size_t turn = 0;
  // A cooperative grid is resident as a whole.
  const size_t most = launch_.config->cooperative ? launch_.blocks : kMaxResident;
  for (;;) {
    if (resident_.empty() && !StartNext()) break;
    if (turn >= resident_.size()) turn = 0;
    Block* block = resident_[turn].get();
    BlockState state = BlockState::kDone;
    if (const std::optional<FaultError> fault = RunGuarded(block, &state)) {
      Fail(block, *fault);
      // Blocks that wait for this one would wait for ever.
      while (!resident_.empty()) Finish(resident_.size() - 1);
      continue;
    }
    if (state == BlockState::kDone) {
      Finish(turn);
      continue;
    }
    // It waits for what another block does: give the others a turn, and start one more.
    ++turn;
    if (turn >= resident_.size() && resident_.size() < most) StartNext();
    if (launch_.failed.load()) {  // perhaps what it waits for will never be done
      while (!resident_.empty()) Finish(resident_.size() - 1);
    }
  }
  std::lock_guard<std::mutex> lock(launch_.mutex);
  Add(&launch_.result.stats, stats_);
  launch_.output.merge(output_);
  // Notified under the lock: the launch may be gone as soon as its owner can have it.
  if (--launch_.active == 0) launch_.done.notify_all();
}

LaunchResult Invalid(const Kernel& kernel, std::string_view why) {
  LaunchResult result;
  result.fault = Fault::kInvalidLaunch;
  result.message =
      absl::StrCat("kernel ", kernel.info.name, ": ", absl::string_view(why.data(), why.size()));
  return result;
}

}  // namespace

LaunchResult Execute(const Kernel& kernel, const LaunchConfig& config, const MemoryMap& memory,
                     Workers& workers) {
  if (config.grid.count() == 0 || config.block.count() == 0) {
    return Invalid(kernel, "an empty grid or block");
  }
  if (config.block.count() > 1024) return Invalid(kernel, "more than 1024 threads in a block");
  if (config.params.size() < kernel.info.param_bytes) {
    return Invalid(kernel, "the parameter block is too short");
  }
  const uint64_t shared = uint64_t{kernel.code->shared_bytes} + config.dynamic_shared_bytes;
  if (shared > (uint64_t{227} << 10)) return Invalid(kernel, "more than 227 KiB of shared memory");
  InstallTrapHandler();
  auto launch = std::make_shared<Launch>();
  launch->kernel = &kernel;
  launch->config = &config;
  launch->memory = &memory;
  launch->blocks = config.grid.count();
  // Blocks whose order shows, and those that must all be there at once, run on this thread alone.
  const bool alone = kernel.ordered || config.cooperative || workers.size() == 1;
  const auto helpers = static_cast<int>(
      alone ? 0 : std::min<uint64_t>(static_cast<uint64_t>(workers.size()), launch->blocks));
  if (helpers <= 1) {
    launch->active = 1;
    BlockRunner(launch.get()).Run();
  } else {
    launch->active = helpers;
    for (int i = 0; i < helpers; ++i) {
      workers.impl()->Post([launch] {
        InstallTrapHandler();
        BlockRunner(launch.get()).Run();
      });
    }
    std::unique_lock<std::mutex> lock(launch->mutex);
    launch->done.wait(lock, [&] { return launch->active == 0; });
  }
  if (config.print) {
    for (const auto& [index, text] : launch->output) config.print(text);
  }
  return std::move(launch->result);
}

}  // namespace simgpu
