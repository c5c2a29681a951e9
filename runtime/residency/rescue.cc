// Rescue: before a value's content is destroyed that no replay can bring back, what depends on it
// is made safe. Three ways, the cheapest that there is room for: keep the content in a copy on the
// device or on the host, or rebuild the dependents now.
#include <algorithm>

#include "runtime/residency/engine_impl.h"

namespace tidepool {

absl::Status Engine::Impl::RescueAndInvalidate(const std::vector<Op*>& seeds, uint32_t stream) {
  // Whatever these ops make and still matters has to be resident, all at once, when their recipes
  // go: what is resident now is locked so that making room for the rest does not drop it again.
  std::vector<Op*> left = seeds;
  std::vector<Value*> held;
  absl::Status status = absl::OkStatus();
  for (;;) {
    // Making room may have forgotten some of the ops (ForgetOneZombie).
    std::erase_if(left, [&](Op* op) { return !lineage_->Contains(op); });
    LossPlan plan = lineage_->PlanLoss(left);
    for (const Op* op : plan.invalid) {
      for (const OpUse& use : op->uses) {
        if (use.out == nullptr || !use.out->resident) continue;
        Lock(use.out);
        held.push_back(use.out);
      }
    }
    if (plan.rescue.empty()) {
      lineage_->Invalidate(plan.invalid);
      break;
    }
    status = EnsureResident(plan.rescue, stream);
    if (!status.ok()) break;
    held.insert(held.end(), plan.rescue.begin(), plan.rescue.end());
    stats_.rescues += plan.rescue.size();
    for (Value* value : plan.rescue) {
      RecordEvent(EventKind::kRescue, "rebuild", stream, value->buffer->bytes, value->buffer->id,
                  Now());
    }
  }
  // The list may hold a value more than once, once per lock; collect when all locks are gone.
  for (Value* value : held) Unlock(value);
  std::sort(held.begin(), held.end());
  held.erase(std::unique(held.begin(), held.end()), held.end());
  for (Value* value : held) lineage_->Collect(value);
  return status;
}

absl::Status Engine::Impl::ForgetOpsWhere(absl::FunctionRef<bool(const Op&)> condition) {
  const std::vector<Op*> ops = lineage_->OpsWhere(condition);
  return ops.empty() ? absl::OkStatus() : RescueAndInvalidate(ops, WorkStream());
}

CUresult Engine::Impl::ResultOfForgetting(std::string_view what, const absl::Status& status) {
  if (status.ok()) return CUDA_SUCCESS;
  ++stats_.out_of_memory;
  ReportOutOfMemory(what, {}, status);
  return absl::IsResourceExhausted(status) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN;
}

absl::Status Engine::Impl::SealBuffer(Buffer* buffer, uint32_t stream) {
  // A copy: the list changes while ops are forgotten.
  return RescueAndInvalidate(std::vector<Op*>(buffer->mentions), stream);
}

bool Engine::Impl::WorthSnapshot(const Value& value, const Operands& operands,
                                 bool recordable) const {
  constexpr uint64_t kMostOfChunk = 8;  // larger ones would fill the budget with their versions
  if (value.buffer->bytes > pool_->chunk_bytes() / kMostOfChunk) return false;
  for (const Op* op : value.readers) {
    for (const OpUse& use : op->uses) {
      if (use.out != nullptr && !use.buffer->small()) return true;
    }
  }
  return recordable && std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
           return operand.writes() && !operand.buffer->small();
         });
}

absl::Status Engine::Impl::Snapshot(Value* value, uint32_t stream) {
  if (value->snapshot != nullptr) return absl::OkStatus();
  Buffer* buffer = value->buffer;
  absl::StatusOr<uint64_t> address = AllocateSmall(buffer->content_bytes());
  if (!address.ok()) return address.status();
  Buffer* copy = lineage_->NewBuffer(*address, buffer->content_bytes(), nullptr);
  *copy->uses = FormerUses(copy->address, true);
  UseSet before = *copy->uses;
  before.Merge(value->inserted);
  absl::Status status = streams_->WaitFor(stream, before);
  if (status.ok()) {
    status = DriverStatus(api_, "cuMemcpyDtoDAsync",
                          api_.MemcpyDtoDAsync(copy->address, buffer->address, copy->bytes,
                                               streams_->Handle(stream)));
  }
  const uint64_t sequence = streams_->Commit(stream);
  copy->uses->Add(stream, sequence);
  buffer->uses->Add(stream, sequence);
  value->uses->Add(stream, sequence);
  if (!status.ok()) {
    lineage_->FreeBuffer(copy);
    return status;
  }
  value->snapshot = copy;
  ++stats_.rescues;
  RecordEvent(EventKind::kRescue, "snapshot", stream, buffer->bytes, buffer->id, Now());
  return absl::OkStatus();
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
  // Room that is about to be needed is none: the copy would have to be moved again.
  const bool room = !buffer->small() &&
                    pool_->available_chunks() >= ChunkCount(*buffer) + pool_->budget_chunks() / 8;
  if (!room && value->resident && CanSwap(*buffer)) {
    absl::Status status = CopyToHost(value);
    if (status.ok()) {
      ++stats_.rescues;
      RecordEvent(EventKind::kRescue, "copy to host", stream, buffer->bytes, buffer->id, Now());
      return false;  // the content goes, and can come back
    }
    if (!absl::IsResourceExhausted(status)) return status;
  }
  if (!buffer->small() && value->resident && buffer->bytes <= plan.rescue_bytes) {
    std::vector<ChunkId> copy;
    absl::Status status = Duplicate(value, stream, &copy);
    if (status.ok()) {
      ++stats_.rescues;
      RecordEvent(EventKind::kRescue, "copy", stream, buffer->bytes, buffer->id, Now());
      *moved = std::exchange(value->chunks, std::move(copy));
      NoteOwner(*value);
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
    // A locked value is in use by the op or the replay that room is being made for, which counts on
    // its recipe (to overwrite it, or to consume it).
    bool in_use = false;
    for (const Op* op : plan.invalid) {
      for (const OpUse& use : op->uses) in_use |= use.out != nullptr && use.out->locks > 0;
    }
    if (in_use) continue;
    // Its readers' outputs become roots; with them gone nobody needs the zombie, and it is
    // collected.
    lineage_->Invalidate(plan.invalid);
    return true;
  }
  return false;
}

}  // namespace tidepool
