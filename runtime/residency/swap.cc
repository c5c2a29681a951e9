// The host tier: values that no replay can make again, or not cheaply, go to pinned host memory.
//
// A value's content never changes, so its copy on the host stays valid as long as the value lives:
// evicting it a second time costs nothing. Copies out are made by a stream of the engine's own,
// behind the value's uses; whoever gets the chunks next comes behind the copy, by an event.
#include <algorithm>

#include "absl/hash/hash.h"
#include "runtime/residency/capture_mode.h"
#include "runtime/residency/engine_impl.h"

namespace tidepool {
namespace {

uint64_t TransferKey(const char* direction, uint64_t bytes) {
  return absl::HashOf(direction[0], bytes) | 1;
}

// Ops that recomputing a value would replay, as far as they are counted: a longer chain than this
// costs more than a copy.
constexpr int kMaxCountedOps = 64;

}  // namespace

uint64_t Engine::Impl::SwapCost(const Buffer& buffer) {
  return costs_->TransferCost(TransferKey("in", buffer.bytes), buffer.bytes);
}

absl::Status Engine::Impl::MakeSwapStream() {
  if (swap_stream_ != nullptr) return absl::OkStatus();
  absl::Status made = DriverStatus(api_, "cuStreamCreate",
                                   api_.StreamCreate(&swap_stream_, CU_STREAM_NON_BLOCKING));
  if (made.ok()) return made;
  swap_stream_ = nullptr;
  return absl::ResourceExhaustedError(made.message());
}

uint32_t Engine::Impl::WorkStream() {
  // The legacy stream may not be used while a stream that it waits for is captured.
  if (!captures_seen || !MakeSwapStream().ok()) return streams_->Resolve({});
  return streams_->Resolve({swap_stream_, false});
}

absl::Status Engine::Impl::CopyToHost(Value* value) {
  Buffer* buffer = value->buffer;
  if (absl::Status made = MakeSwapStream(); !made.ok()) return made;
  const auto take = [&] {
    return host_->Take(buffer->bytes,
                       [&](const HostBlock& block) { return HostWait(host_uses_[block.id]); });
  };
  absl::StatusOr<HostBlock*> block = take();
  for (auto it = host_copies_.begin(); !block.ok() && it != host_copies_.end();) {
    if (!absl::IsResourceExhausted(block.status())) break;
    // Copies of what is resident again are worth less than the room that is wanted; unless they are
    // what allows an op that is being prepared to overwrite the original, which is locked then.
    Value* other = it->second;
    ++it;
    if (!other->resident || other->locks > 0) continue;
    ReleaseHostCopy(other);
    block = take();
  }
  if (!block.ok()) return block.status();
  if (host_uses_.size() <= (*block)->id) host_uses_.resize((*block)->id + 1);
  UseSet& block_uses = host_uses_[(*block)->id];

  const uint32_t stream = streams_->Resolve({swap_stream_, false});
  UseSet before = block_uses;
  before.Merge(*value->uses);
  before.Merge(value->inserted);
  absl::Status status = Bind(buffer, value->chunks);
  if (status.ok()) status = streams_->WaitFor(stream, before);
  if (status.ok()) {
    status = DriverStatus(
        api_, "cuMemcpyDtoHAsync",
        api_.MemcpyDtoHAsync((*block)->data, buffer->address, buffer->bytes, swap_stream_));
  }
  const uint64_t sequence = streams_->Commit(stream);
  value->uses->Add(stream, sequence);
  value->inserted.Add(stream, sequence);
  buffer->uses->Add(stream, sequence);
  block_uses.Add(stream, sequence);
  if (!status.ok()) {
    host_->GiveBack(*block);
    return status;
  }
  value->host = *block;
  host_copies_[value->id] = value;
  return absl::OkStatus();
}

absl::Status Engine::Impl::SwapIn(Value* value, uint32_t stream) {
  Buffer* buffer = value->buffer;
  std::vector<ChunkId> chunks;
  UseSet before;
  Lock(value);  // making room must not take the copy away, nor forget the value
  absl::Status status = TakeChunks(buffer, &chunks, &before);
  Unlock(value);
  if (!status.ok()) return status;
  status = Bind(buffer, chunks);
  UseSet& block_uses = host_uses_[value->host->id];
  before.Merge(block_uses);
  if (status.ok()) status = streams_->WaitFor(stream, before);
  const uint64_t start = Now();
  if (status.ok()) {
    const uint64_t key = TransferKey("in", buffer->bytes);
    const bool measured = costs_->Begin(key, streams_->Handle(stream));
    status = DriverStatus(api_, "cuMemcpyHtoDAsync",
                          api_.MemcpyHtoDAsync(buffer->address, value->host->data, buffer->bytes,
                                               streams_->Handle(stream)));
    if (measured) {
      if (status.ok()) {
        costs_->End(streams_->Handle(stream));
      } else {
        costs_->Cancel();
      }
    }
  }
  const uint64_t sequence = streams_->Commit(stream);
  buffer->uses->Add(stream, sequence);
  block_uses.Add(stream, sequence);
  auto uses = std::make_shared<UseSet>(before);
  uses->Add(stream, sequence);
  if (!status.ok()) {
    GiveBackChunks(&chunks, uses);
    return status;
  }
  value->chunks = std::move(chunks);
  NoteOwner(*value);
  value->resident = true;
  value->uses = uses;
  value->inserted = UseSet();
  value->inserted.Add(stream, sequence);
  if (value->in_policy) policy_->OnRebuild(value->id, clock_ns_);
  if (!value->current) temporaries_.push_back(value);
  clock_ns_ += SwapCost(*buffer);
  ++stats_.swaps_in;
  RecordEvent(EventKind::kSwapIn, "", stream, buffer->bytes, buffer->id, start);
  return absl::OkStatus();
}

absl::Status Engine::Impl::MakeRestorable(Value* value) {
  if (value->host != nullptr) return absl::OkStatus();
  if (value->recipe != nullptr) {
    // (Nobody but a replay reads a value that is not current: it is not worth a copy.)
    if (!value->current || !CanSwap(*value->buffer)) return absl::OkStatus();
    // What a replay would cost with what is resident now, against a copy back.
    const uint64_t limit = SwapCost(*value->buffer);
    uint64_t cost = 0;
    std::vector<const Op*> work = {value->recipe};
    for (int ops = 0; !work.empty() && cost <= limit && ops < kMaxCountedOps; ++ops) {
      const Op* op = work.back();
      work.pop_back();
      cost += op->cost_ns;
      for (const OpUse& use : op->uses) {
        if (use.in == nullptr || use.in->resident) continue;
        if (use.in->host != nullptr) {
          cost += SwapCost(*use.in->buffer);
        } else if (use.in->recipe != nullptr) {
          work.push_back(use.in->recipe);
        }
      }
    }
    if (work.empty() && cost <= limit) return absl::OkStatus();
    absl::Status status = CopyToHost(value);
    return absl::IsResourceExhausted(status) ? absl::OkStatus() : status;
  }
  absl::Status status = CanSwap(*value->buffer)
                            ? CopyToHost(value)
                            : absl::ResourceExhaustedError("it cannot be swapped");
  if (absl::IsResourceExhausted(status)) {
    RemoveFromPolicy(value);
    unswappable_.push_back(value);
  }
  return status;
}

void Engine::Impl::ReleaseHostCopy(Value* value) {
  if (value->host == nullptr) return;
  host_->GiveBack(value->host);
  value->host = nullptr;
  host_copies_.erase(value->id);
  // There is room again for those that found none.
  std::vector<Value*> waiting;
  waiting.swap(unswappable_);
  for (Value* other : waiting) OfferForSwap(other);
}

void Engine::Impl::OfferForSwap(Value* value) {
  if (value->in_policy || !CanSwap(*value->buffer) || !value->resident) return;
  AddToPolicy(value, SwapCost(*value->buffer), {});
}

}  // namespace tidepool
