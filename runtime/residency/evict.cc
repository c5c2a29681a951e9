// Chunks for new values: what is given up for them, and what has to be waited for.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/residency/engine_impl.h"

namespace tidepool {
namespace {

// Of showing another chunk at a page: unmap, map, set access. Measured by others for pages of 2 MiB
// on an A100 (docs/allocator.md). Not measured here, so that decisions do not depend on the host.
constexpr uint64_t kRemapNs = 64'000;

}  // namespace

void Engine::Impl::Lock(Value* value) {
  if (value->locks++ == 0 && value->in_policy) policy_->Lock(value->id);
}

void Engine::Impl::Unlock(Value* value) {
  if (--value->locks == 0 && value->in_policy) policy_->Unlock(value->id);
}

absl::Status Engine::Impl::HostWait(const UseSet& uses) {
  const uint64_t start = Now();
  bool waited = false;
  absl::Status status = streams_->HostWait(uses, &waited);
  if (waited) {
    const uint64_t duration = Now() - start;
    stats_.stall_time_ns += duration;
    RecordEvent(EventKind::kStall, "wait before unmap", 0, 0, 0, start, duration);
  }
  return status;
}

void Engine::Impl::GiveBackChunks(std::vector<ChunkId>* chunks,
                                  const std::shared_ptr<UseSet>& uses) {
  for (ChunkId chunk : *chunks) {
    if (chunk_uses_.size() <= chunk) chunk_uses_.resize(chunk + 1);
    chunk_uses_[chunk] = uses;
  }
  resident_chunks_ -= chunks->size();
  pool_->GiveBack(*chunks);
  chunks->clear();
}

void Engine::Impl::ReturnUnused(std::vector<ChunkId>* chunks) {
  resident_chunks_ -= chunks->size();
  pool_->GiveBack(*chunks);
  chunks->clear();
}

void Engine::Impl::GiveBack(Value* value) {
  GiveBackChunks(&value->chunks, value->uses);
  value->resident = false;
  // The next owner of the chunks gets the old set; this value starts anew.
  value->uses = std::make_shared<UseSet>();
  value->inserted.Clear();
}

absl::Status Engine::Impl::Drop(Value* value) {
  if (absl::Status status = MakeRestorable(value); !status.ok()) return status;
  Buffer* buffer = value->buffer;
  if (options_.strict) {
    // A use that was missed must fault, not read the next owner's value.
    bool bound = false;
    for (size_t i = 0; i < value->chunks.size(); ++i) {
      bound = bound || buffer->range->pages[i] == value->chunks[i];
    }
    if (bound) {
      if (absl::Status status = HostWait(*buffer->uses); !status.ok()) return status;
      const uint64_t calls = pool_->calls().total();
      absl::Status status = pool_->Unbind(buffer->range, 0, value->chunks.size());
      stats_.hot_driver_calls += pool_->calls().total() - calls;
      if (!status.ok()) return status;
    }
  }
  if (value->host != nullptr) {
    ++stats_.swaps_out;
    RecordEvent(EventKind::kSwapOut, "", 0, buffer->bytes, buffer->id, Now());
  } else if (value->current) {
    ++stats_.drops;
    stats_.dropped_bytes += buffer->bytes;
    RecordEvent(EventKind::kDrop, value->recipe->name != nullptr ? *value->recipe->name : "", 0,
                buffer->bytes, buffer->id, Now());
  }
  zombies_.erase(value->id);
  GiveBack(value);
  if (value->in_policy) policy_->OnDrop(value->id);
  return absl::OkStatus();
}

absl::StatusOr<bool> Engine::Impl::EvictOne(uint64_t bytes_wanted) {
  for (;;) {
    std::optional<policy::ValueId> victim = policy_->SelectVictim(clock_ns_, bytes_wanted);
    if (!victim.has_value()) return false;
    // Ids are never reused and OnValueDead removes a value from the policy, so it is alive.
    Value* value = by_policy_id_.at(*victim);
    absl::Status status = Drop(value);
    if (status.ok()) return true;
    if (value->in_policy) return status;
    // A root for which the host has no room: it is no candidate any more, the next one is asked.
  }
}

void Engine::Impl::NoteOwner(const Value& value) {
  for (ChunkId chunk : value.chunks) {
    if (chunk_owner_.size() <= chunk) chunk_owner_.resize(chunk + 1, 0);
    chunk_owner_[chunk] = value.id;
  }
}

absl::Status Engine::Impl::EvictAtHome(const Buffer& buffer) {
  const uint64_t count = ChunkCount(buffer);
  if (pool_->available_chunks() >= count) return absl::OkStatus();
  // Who holds how many of the pages, in the order of the pages: one look at each page, since a
  // buffer may have thousands.
  absl::flat_hash_map<policy::ValueId, uint64_t> held;
  std::vector<policy::ValueId> owners;
  for (uint64_t page = 0; page < count; ++page) {
    const ChunkId chunk = buffer.range->pages[page];
    if (chunk == kNoChunk || pool_->IsFree(chunk) || chunk >= chunk_owner_.size()) continue;
    if (held[chunk_owner_[chunk]]++ == 0) owners.push_back(chunk_owner_[chunk]);
  }
  for (policy::ValueId id : owners) {
    if (pool_->available_chunks() >= count) break;
    auto it = by_policy_id_.find(id);
    if (it == by_policy_id_.end()) continue;
    Value* owner = it->second;
    if (!owner->resident || owner->locks > 0) continue;
    const std::optional<policy::ValueId> victim = policy_->SelectVictim(clock_ns_, 0);
    if (!victim.has_value()) break;
    if (!policy_->Prefers(id, *victim, held[id] * kRemapNs, clock_ns_)) continue;
    // (One for which the host has no room is no candidate any more.)
    if (absl::Status status = Drop(owner); !status.ok() && owner->in_policy) return status;
  }
  return absl::OkStatus();
}

absl::Status Engine::Impl::MakeAvailable(uint64_t chunks) {
  while (pool_->available_chunks() < chunks) {
    // By-products of rebuilding first: nobody can miss them but the rebuild that is going on.
    bool dropped = false;
    for (size_t i = 0; i < temporaries_.size() && !dropped; ++i) {
      Value* value = temporaries_[i];
      if (value->locks > 0) continue;
      temporaries_.erase(temporaries_.begin() + static_cast<ptrdiff_t>(i));
      // Consumed by an update meanwhile, or a root by now (then it is a zombie, and not to be
      // dropped).
      if (!value->resident || !value->restorable()) {
        --i;
        continue;
      }
      if (absl::Status status = Drop(value); !status.ok()) return status;
      dropped = true;
    }
    if (dropped) continue;
    const uint64_t wanted = (chunks - pool_->available_chunks()) * pool_->chunk_bytes();
    absl::StatusOr<bool> evicted = EvictOne(wanted);
    if (!evicted.ok()) return evicted.status();
    if (*evicted || ForgetOneZombie()) continue;
    return absl::ResourceExhaustedError(
        absl::StrCat(FormatBytes(wanted), " more than can be given up"));
  }
  return absl::OkStatus();
}

absl::Status Engine::Impl::TakeChunks(Buffer* buffer, std::vector<ChunkId>* out, UseSet* before) {
  const uint64_t count = ChunkCount(*buffer);
  if (absl::Status status = EvictAtHome(*buffer); !status.ok()) return status;
  for (;;) {
    if (absl::Status status = MakeAvailable(count); !status.ok()) return status;
    out->assign(count, kNoChunk);
    absl::Status status = pool_->Take(*buffer->range, 0, std::span<ChunkId>(*out));
    if (status.ok()) break;
    out->clear();
    if (!absl::IsResourceExhausted(status)) return status;
    // The device has less left than the budget says (another process, or memory that the program
    // took past Tidepool): make do with the chunks that exist.
    if (pool_->free_chunks() >= count) return status;
    const uint64_t free_before = pool_->free_chunks();
    absl::StatusOr<bool> evicted = EvictOne(count * pool_->chunk_bytes());
    if (!evicted.ok()) return evicted.status();
    if (!*evicted && !ForgetOneZombie()) return status;
    if (pool_->free_chunks() <= free_before) return status;
  }
  resident_chunks_ += count;
  const UseSet* last = nullptr;
  for (ChunkId chunk : *out) {
    if (chunk >= chunk_uses_.size() || chunk_uses_[chunk] == nullptr) continue;
    if (chunk_uses_[chunk].get() != last) {  // runs of chunks mostly come from one value
      last = chunk_uses_[chunk].get();
      before->Merge(*last);
    }
  }
  return absl::OkStatus();
}

absl::Status Engine::Impl::Bind(Buffer* buffer, const std::vector<ChunkId>& chunks) {
  if (pool_->IsBound(*buffer->range, 0, chunks)) return absl::OkStatus();
  const uint64_t calls = pool_->calls().total();
  absl::Status status = pool_->Bind(buffer->range, 0, chunks,
                                    [&]() -> absl::Status { return HostWait(*buffer->uses); });
  stats_.hot_driver_calls += pool_->calls().total() - calls;
  RecordEvent(EventKind::kBind, "", 0, buffer->bytes, buffer->id, Now());
  return status;
}

void Engine::Impl::EvictToLowWatermark() {
  if (options_.high_watermark >= 1.0) return;
  const auto budget = static_cast<double>(pool_->budget_chunks());
  const auto high = static_cast<uint64_t>(budget * options_.high_watermark);
  const auto low = static_cast<uint64_t>(budget * options_.low_watermark);
  if (pool_->used_chunks() <= high) return;
  while (pool_->used_chunks() > low) {
    // Failing to make room ahead of need is no failure: whoever needs it will try again.
    absl::StatusOr<bool> evicted = EvictOne(0);
    if (!evicted.ok() || !*evicted) return;
  }
}

}  // namespace tidepool
