// A launch: blocks handed to worker threads, faults turned into a result, printf output put in
// order.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/simgpu/exec/code.h"

namespace simgpu {

class Workers::Impl {
 public:
  explicit Impl(int threads) {
    if (threads <= 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
  }
  ~Impl() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    ready_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  int size() const { return static_cast<int>(threads_.size()); }
  void Post(std::function<void()> work) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      queue_.push_back(std::move(work));
    }
    ready_.notify_one();
  }

 private:
  void Loop() {
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        ready_.wait(lock, [this] { return stop_ || !queue_.empty(); });
        if (queue_.empty()) return;
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      work();
    }
  }

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> queue_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

Workers::Workers(int threads) : impl_(std::make_unique<Impl>(threads)) {}
Workers::~Workers() = default;
int Workers::size() const { return impl_->size(); }

namespace {

void Add(ExecStats* total, const ExecStats& part) {
  total->warp_instructions += part.warp_instructions;
  total->lane_instructions += part.lane_instructions;
  total->flops += part.flops;
  total->global_read_bytes += part.global_read_bytes;
  total->global_written_bytes += part.global_written_bytes;
  total->atomics += part.atomics;
}

std::string Describe(const Block& block, const FaultError& fault) {
  std::string text = absl::StrFormat("kernel %s, block (%d,%d,%d)", block.kernel->info.name,
                                     block.id[0], block.id[1], block.id[2]);
  for (const Warp& warp : block.warps) {
    if (warp.done || warp.current == nullptr || warp.waiting) continue;
    if (fault.lane >= 0) {
      absl::StrAppendFormat(&text, ", thread (%d,%d,%d)", warp.tid[0][fault.lane],
                            warp.tid[1][fault.lane], warp.tid[2][fault.lane]);
    }
    absl::StrAppendFormat(&text, ", PTX line %d", warp.current->line);
    break;
  }
  if (fault.address != 0) absl::StrAppendFormat(&text, ", address %#x", fault.address);
  if (!fault.text.empty()) absl::StrAppend(&text, ": ", fault.text);
  return text;
}

// One launch, shared by the workers that run its blocks.
struct Launch {
  const Kernel* kernel;
  const LaunchConfig* config;
  const MemoryMap* memory;
  uint64_t blocks;
  std::atomic<uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::condition_variable done;
  int active = 0;
  LaunchResult result;
  uint64_t fault_block = ~uint64_t{0};
  std::map<uint64_t, std::string> output;  // by block
};

void SetUp(Block* block, const Launch& launch, uint64_t index) {
  const LaunchConfig& config = *launch.config;
  const Code& code = *launch.kernel->code;
  block->id[0] = static_cast<uint32_t>(index % config.grid.x);
  block->id[1] = static_cast<uint32_t>(index / config.grid.x % config.grid.y);
  block->id[2] = static_cast<uint32_t>(index / config.grid.x / config.grid.y);
  // What shared memory holds at the start is nobody's business: not zero.
  block->shared.assign(code.shared_bytes + config.dynamic_shared_bytes, 0xcd);
  block->clock = 0;
  block->output.clear();
  const auto threads = static_cast<uint32_t>(config.block.count());
  const uint32_t warps = (threads + kLanes - 1) / kLanes;
  block->warps.resize(warps);
  for (uint32_t w = 0; w < warps; ++w) {
    Warp& warp = block->warps[w];
    warp.splits.clear();
    warp.block = block;
    warp.id = w;
    warp.done = warp.waiting = false;
    warp.current = nullptr;
    warp.exited = 0;
    warp.local.assign(static_cast<size_t>(block->local_stride) * kLanes, 0xcd);
    for (uint32_t i = 0; i < kLanes; ++i) {
      const uint32_t thread = w * kLanes + i;
      if (thread >= threads) warp.exited |= 1u << i;
      warp.tid[0][i] = thread % config.block.x;
      warp.tid[1][i] = thread / config.block.x % config.block.y;
      warp.tid[2][i] = thread / config.block.x / config.block.y;
    }
    StartWarp(&warp, &code, config.params.data(), config.params.size());
  }
}

// Runs the block; false with `*fault` set. A trapped page access arrives by a jump over frames that
// own nothing but what the block owns.
bool RunGuarded(Block* block, FaultError* fault) {
  TrapPoint point;
  if (sigsetjmp(point.jump, 0) != 0) {
    *fault = FaultError{Fault::kIllegalAddress, point.address, -1, "page without access"};
    return false;
  }
  trap_point = &point;
  bool ok = true;
  try {
    RunBlock(block);
  } catch (const FaultError& error) {
    *fault = error;
    ok = false;
  }
  trap_point = nullptr;
  return ok;
}

void Work(Launch* launch) {
  Block block;
  block.kernel = launch->kernel;
  block.config = launch->config;
  block.memory = launch->memory;
  block.local_stride = launch->kernel->local_stride;
  std::map<uint64_t, std::string> output;
  FaultError fault;
  for (;;) {
    const uint64_t index = launch->next.fetch_add(1);
    if (index >= launch->blocks || launch->failed.load()) break;
    SetUp(&block, *launch, index);
    const bool ok = RunGuarded(&block, &fault);
    if (!block.output.empty()) output[index] = std::move(block.output);
    if (ok) continue;
    launch->failed = true;
    std::lock_guard<std::mutex> lock(launch->mutex);
    if (index < launch->fault_block) {
      launch->fault_block = index;
      launch->result.fault = fault.fault;
      launch->result.message = Describe(block, fault);
    }
  }
  std::lock_guard<std::mutex> lock(launch->mutex);
  Add(&launch->result.stats, block.stats);
  launch->output.merge(output);
  if (--launch->active == 0) launch->done.notify_all();
}

}  // namespace

LaunchResult Execute(const Kernel& kernel, const LaunchConfig& config, const MemoryMap& memory,
                     Workers& workers) {
  InstallTrapHandler();
  auto launch = std::make_shared<Launch>();
  launch->kernel = &kernel;
  launch->config = &config;
  launch->memory = &memory;
  launch->blocks = config.grid.count();
  // Few or order-dependent blocks run here, on the caller's thread.
  const auto helpers = static_cast<int>(
      kernel.ordered ? 0
                     : std::min<uint64_t>(static_cast<uint64_t>(workers.size()), launch->blocks));
  if (helpers <= 1) {
    launch->active = 1;
    Work(launch.get());
  } else {
    launch->active = helpers;
    for (int i = 0; i < helpers; ++i) workers.impl()->Post([launch] { Work(launch.get()); });
    std::unique_lock<std::mutex> lock(launch->mutex);
    launch->done.wait(lock, [&] { return launch->active == 0; });
  }
  if (config.print) {
    for (const auto& [index, text] : launch->output) config.print(text);
  }
  return std::move(launch->result);
}

}  // namespace simgpu
