#include "allocator/host_pool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tidepool {

HostPool::HostPool(HostMemory* memory, uint64_t budget_bytes, uint64_t unit_bytes)
    : memory_(memory), budget_(budget_bytes), unit_(unit_bytes) {}

HostPool::~HostPool() {
  if (abandoned_) return;
  for (const std::unique_ptr<HostBlock>& block : blocks_) {
    if (block != nullptr) memory_->FreeHost(block->data).IgnoreError();
  }
}

HostBlock* HostPool::BestFree(uint64_t bytes, uint64_t at_most) {
  HostBlock* best = nullptr;
  for (const std::unique_ptr<HostBlock>& block : blocks_) {
    if (block == nullptr || !block->free || block->bytes < bytes || block->bytes > at_most)
      continue;
    if (best == nullptr || block->bytes < best->bytes) best = block.get();
  }
  return best;
}

absl::StatusOr<HostBlock*> HostPool::Take(
    uint64_t bytes, const std::function<absl::Status(const HostBlock&)>& before_release) {
  const uint64_t size = (bytes + unit_ - 1) / unit_ * unit_;
  if (size < bytes || size > budget_ - used_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes, " bytes do not fit the host budget of ", budget_));
  }
  if (HostBlock* block = BestFree(size, size + size / 4); block != nullptr) {
    block->free = false;
    used_ += block->bytes;
    return block;
  }
  while (size > budget_ - held_) {
    // Free blocks hold the rest: used + size fits the budget.
    HostBlock* victim = BestFree(0, ~uint64_t{0});
    if (absl::Status status = before_release(*victim); !status.ok()) return status;
    if (absl::Status status = memory_->FreeHost(victim->data); !status.ok()) return status;
    held_ -= victim->bytes;
    spare_ids_.push_back(victim->id);
    blocks_[victim->id] = nullptr;
  }
  absl::StatusOr<void*> data = memory_->AllocateHost(size);
  if (!data.ok()) return data.status();
  auto block = std::make_unique<HostBlock>();
  block->data = *data;
  block->bytes = size;
  if (spare_ids_.empty()) {
    block->id = static_cast<uint32_t>(blocks_.size());
    blocks_.emplace_back();
  } else {
    block->id = spare_ids_.back();
    spare_ids_.pop_back();
  }
  held_ += size;
  used_ += size;
  peak_ = std::max(peak_, held_);
  HostBlock* taken = block.get();
  blocks_[taken->id] = std::move(block);
  return taken;
}

void HostPool::GiveBack(HostBlock* block) {
  block->free = true;
  used_ -= block->bytes;
}

}  // namespace tidepool
