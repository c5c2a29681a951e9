// Rescue: before a value's content is destroyed that no replay can bring back, what depends on it
// is made safe. Two ways, the cheaper in memory: keep the content in a copy, or rebuild the
// dependents now.
#include "runtime/residency/engine_impl.h"

namespace tidepool {

absl::Status Engine::Impl::RescueAndInvalidate(const std::vector<Op*>& seeds, uint32_t stream) {
  if (seeds.empty()) return absl::OkStatus();
  LossPlan plan = lineage_->PlanLoss(seeds);
  std::vector<Op*> held = seeds;
  if (!plan.rescue.empty()) {
    // All of them together, locked until their recipes are gone: one rebuilt and evicted again for
    // the next would be lost.
    absl::Status status = EnsureResident(plan.rescue, stream);
    if (!status.ok()) return status;
    stats_.rescues += plan.rescue.size();
    for (Value* value : plan.rescue) {
      RecordEvent(EventKind::kRescue, "rebuild", stream, value->buffer->bytes, value->buffer->id,
                  Now());
    }
    const std::vector<Value*> rescued = plan.rescue;
    // Making room may have forgotten some of the ops (ForgetOneZombie): plan anew from what is
    // left.
    std::erase_if(held, [&](Op* op) { return !lineage_->Contains(op); });
    plan = lineage_->PlanLoss(held);
    lineage_->Invalidate(plan.invalid);
    for (Value* value : rescued) Unlock(value);
    return absl::OkStatus();
  }
  lineage_->Invalidate(plan.invalid);
  return absl::OkStatus();
}

absl::Status Engine::Impl::SealBuffer(Buffer* buffer, uint32_t stream) {
  // A copy: the list changes while ops are forgotten.
  return RescueAndInvalidate(std::vector<Op*>(buffer->mentions), stream);
}

absl::StatusOr<bool> Engine::Impl::BeforeLoss(Value* value, uint32_t stream,
                                              std::vector<ChunkId>* moved) {
  if (value->readers.empty()) return false;
  LossPlan plan = lineage_->PlanLoss(value->readers);
  if (plan.rescue.empty()) {
    lineage_->Invalidate(plan.invalid);
    return false;
  }
  Buffer* buffer = value->buffer;
  if (!buffer->small() && value->resident && buffer->bytes <= plan.rescue_bytes) {
    std::vector<ChunkId> copy;
    absl::Status status = Duplicate(value, stream, &copy);
    if (status.ok()) {
      ++stats_.rescues;
      RecordEvent(EventKind::kRescue, "copy", stream, buffer->bytes, buffer->id, Now());
      *moved = std::exchange(value->chunks, std::move(copy));
      // If the op is not issued after all, the chunks go back with the uses that they had.
      auto uses = std::make_shared<UseSet>(*value->uses);
      for (ChunkId chunk : *moved) {
        if (chunk_uses_.size() <= chunk) chunk_uses_.resize(chunk + 1);
        chunk_uses_[chunk] = uses;
      }
      return true;
    }
    if (!absl::IsResourceExhausted(status)) return status;
  }
  std::vector<Op*> seeds = value->readers;
  if (absl::Status status = RescueAndInvalidate(seeds, stream); !status.ok()) return status;
  return false;
}

bool Engine::Impl::ForgetOneZombie() {
  for (const auto& [id, value] : zombies_) {
    if (value->locks > 0) continue;
    LossPlan plan = lineage_->PlanLoss(value->readers);
    if (!plan.rescue.empty()) continue;
    // Its readers' outputs become roots; with them gone nobody needs the zombie, and it is
    // collected.
    lineage_->Invalidate(plan.invalid);
    return true;
  }
  return false;
}

}  // namespace tidepool
