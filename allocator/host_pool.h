// Pinned host memory for values that are swapped out: blocks under a budget of their own, recycled.
//
// Not thread-safe: the runtime holds its lock around every call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tidepool {

// Where the blocks come from (cuMemHostAlloc, cuMemFreeHost).
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  virtual absl::StatusOr<void*> AllocateHost(uint64_t bytes) = 0;
  virtual absl::Status FreeHost(void* data) = 0;
};

struct HostBlock {
  void* data = nullptr;
  uint64_t bytes = 0;
  uint32_t id = 0;  // dense; used again for another block after a release
  bool free = false;
};

class HostPool {
 public:
  // `unit_bytes`: sizes are multiples of it, so that blocks fit again.
  HostPool(HostMemory* memory, uint64_t budget_bytes, uint64_t unit_bytes);
  ~HostPool();  // frees everything; errors are ignored
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  // A block of at least `bytes`: a free one that is not much larger, or a new one; if the budget is
  // short of that, free blocks are released first. `before_release` is called with a block that is
  // about to be released: the caller waits there for the device's last use of it. Errors:
  // ResourceExhausted if the budget does not hold it or the host gives no more.
  absl::StatusOr<HostBlock*> Take(
      uint64_t bytes, const std::function<absl::Status(const HostBlock&)>& before_release);
  void GiveBack(HostBlock* block);

  // The context is gone, and its pinned memory with it: nothing is freed from now on.
  void Abandon() { abandoned_ = true; }

  uint64_t budget_bytes() const { return budget_; }
  uint64_t held_bytes() const { return held_; }  // blocks in use and free ones
  uint64_t used_bytes() const { return used_; }
  uint64_t peak_bytes() const { return peak_; }

 private:
  HostBlock* BestFree(uint64_t bytes, uint64_t at_most);

  HostMemory* memory_;
  const uint64_t budget_;
  const uint64_t unit_;
  uint64_t held_ = 0, used_ = 0, peak_ = 0;
  bool abandoned_ = false;
  std::vector<std::unique_ptr<HostBlock>> blocks_;  // by id; null: released
  std::vector<uint32_t> spare_ids_;
};

}  // namespace tidepool
