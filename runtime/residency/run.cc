// One op of the program: operands made resident, the driver called, lineage recorded.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/residency/capture_mode.h"
#include "runtime/residency/engine_impl.h"

namespace tidepool {
namespace {

// A chain of in-place updates longer than this is not worth replaying from its start: the value
// becomes a root, which also bounds the lineage of a buffer that is updated for ever.
constexpr uint32_t kMaxVersionDepth = 128;

// The same for a chain through any buffers (a recurrence whose states are allocated and freed): far
// more than one training step of a deep network, and a bound on what lineage can grow to.
constexpr uint32_t kMaxDepth = 16384;

}  // namespace

Operands Engine::Impl::ResolveOperands(const OpRequest& request, bool* unknown) {
  Operands operands;
  for (const Region& region : request.regions) {
    if (region.mode == AccessMode::kNone) continue;
    absl::InlinedVector<Buffer*, 2> buffers = VariablesIn(region.address, region.bytes);
    if (buffers.empty()) {
      buffers = BuffersAt(region.address);
      // Freed, or beside a buffer: the program's own business, but not replayable.
      if (FindBuffer(region.address) == nullptr) *unknown = true;
    } else if (region.bytes > 0 &&
               (region.address < buffers[0]->address ||
                region.address + region.bytes > buffers[0]->address + buffers[0]->bytes)) {
      *unknown = true;  // reaches beyond the variable
    }
    for (Buffer* buffer : buffers) {
      const bool covers = region.covers && region.mode == AccessMode::kWrite &&
                          region.address == buffer->address && region.bytes >= buffer->bytes;
      auto it = std::find_if(operands.begin(), operands.end(),
                             [&](const Operand& o) { return o.buffer == buffer; });
      if (it == operands.end()) {
        Operand& operand = operands.emplace_back();
        operand.buffer = buffer;
        operand.mode = region.mode;
        operand.covers = covers;
      } else {
        it->mode = it->mode | region.mode;
        it->covers = (it->covers || covers) && !Reads(it->mode);
      }
    }
  }
  return operands;
}

absl::Status Engine::Impl::BeforeOverwrite(const OpRequest& request, Operands& operands,
                                           uint32_t stream, bool* recordable) {
  // Losing one value may take another one's recipe away, which then cannot be brought back either:
  // go on until every operand that is gone for good has been seen to.
  absl::InlinedVector<bool, 8> seen(operands.size(), false);
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < operands.size(); ++i) {
      Operand& operand = operands[i];
      Buffer* buffer = operand.buffer;
      Value* current = buffer->current;
      if (!operand.writes() || current == nullptr || seen[i]) continue;
      if (!buffer->small() && current->recipe != nullptr) continue;
      seen[i] = again = true;
      // (Not where the lock is released during the call: a replay would put the snapshot back while
      // the new content is being written.)
      if (buffer->small() && buffer->pin_reasons == 0 && !request.blocking &&
          WorthSnapshot(*current, operands, *recordable)) {
        absl::Status kept = Snapshot(current, stream);
        if (kept.ok()) continue;
        if (!absl::IsResourceExhausted(kept)) return kept;
      }
      // With a copy on the host it can come back already.
      absl::StatusOr<bool> preserved = false;
      if (current->host == nullptr) preserved = BeforeLoss(current, stream, &operand.fresh);
      if (!preserved.ok()) return preserved.status();
      // (An update of a root is not recorded, copy or no copy: it would chain each step of a
      // training run to the one before, with all that they read.)
      if (!*preserved && operand.in != nullptr) *recordable = false;
    }
  }
  for (const Operand& operand : operands) {
    if (operand.in == nullptr) continue;
    if (operand.writes() && operand.buffer->version_depth >= kMaxVersionDepth) *recordable = false;
    if (operand.in->recipe != nullptr && operand.in->depth >= kMaxDepth) *recordable = false;
  }
  return absl::OkStatus();
}

absl::Status Engine::Impl::Prepare(const OpRequest& request, Operands& operands, uint32_t stream,
                                   bool* recordable) {
  std::vector<Value*> inputs;
  for (Operand& operand : operands) {
    if (operand.covers || operand.buffer->current == nullptr) continue;
    operand.in = operand.buffer->current;
    inputs.push_back(operand.in);
  }
  if (absl::Status status = EnsureResident(inputs, stream); !status.ok()) {
    for (Operand& operand : operands) operand.in = nullptr;  // nothing is locked
    return status;
  }
  UseSet before;
  for (Operand& operand : operands) {
    Buffer* buffer = operand.buffer;
    if (buffer->pin_reasons != 0) *recordable = false;
    // An op that writes a fresh buffer and reads it too (its own output, as a rule) depends on
    // nothing: what was there is undefined.
    if (buffer->current != nullptr || operand.writes()) continue;
    // Reads what was never written: undefined, but it must have memory, and what is read is a
    // value.
    std::vector<ChunkId> chunks;
    if (!buffer->small()) {
      if (absl::Status status = TakeChunks(buffer, &chunks, &before); !status.ok()) return status;
    }
    Value* value = lineage_->NewValue(buffer);
    value->resident = true;
    value->chunks = std::move(chunks);
    NoteOwner(*value);
    lineage_->SetCurrent(buffer, value);
    operand.in = value;
    Lock(value);
  }
  auto lock_covered = [&] {
    for (Operand& operand : operands) {
      Value* current = operand.buffer->current;
      if (!operand.writes() || operand.in != nullptr || operand.overwritten != nullptr) continue;
      if (current == nullptr || !current->resident) continue;
      operand.overwritten = current;  // its chunks are reused in place
      Lock(current);
    }
  };
  lock_covered();
  if (absl::Status status = BeforeOverwrite(request, operands, stream, recordable); !status.ok()) {
    return status;
  }
  lock_covered();  // a rescue may have brought one back that is to be overwritten
  for (Operand& operand : operands) {
    if (!operand.writes()) continue;
    Buffer* buffer = operand.buffer;
    const Value* current = buffer->current;
    if (buffer->small() || !operand.fresh.empty() || (current != nullptr && current->resident)) {
      continue;
    }
    if (absl::Status status = TakeChunks(buffer, &operand.fresh, &before); !status.ok()) {
      return status;
    }
  }
  for (Operand& operand : operands) {
    Buffer* buffer = operand.buffer;
    const Value* shown = operand.in != nullptr ? operand.in : operand.overwritten;
    if (shown != nullptr) {
      before.Merge(shown->inserted);
    } else if (buffer->small()) {
      before.Merge(*buffer->uses);  // by whoever had the block before
    }
    if (buffer->small()) continue;
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): what has no value yet has fresh chunks
    const std::vector<ChunkId>& chunks = !operand.fresh.empty() ? operand.fresh : shown->chunks;
    if (absl::Status status = Bind(buffer, chunks); !status.ok()) return status;
  }
  (void)request;
  return streams_->WaitFor(stream, before);
}

void Engine::Impl::Abort(Operands& operands) {
  for (Operand& operand : operands) {
    if (!operand.fresh.empty()) ReturnUnused(&operand.fresh);
    for (Value* value : {operand.in, operand.overwritten}) {
      if (value == nullptr) continue;
      Unlock(value);
      lineage_->Collect(value);
    }
  }
}

void Engine::Impl::Commit(const OpRequest& request, Operands& operands, uint32_t stream,
                          bool recordable) {
  const uint64_t sequence = streams_->Commit(stream);
  uint64_t bytes = 0;
  for (const Operand& operand : operands) bytes += operand.buffer->bytes;
  const uint64_t cost = costs_->Cost(request.cost_key, bytes);
  clock_ns_ += cost;

  std::vector<OpUse> uses;
  std::vector<Value*> made;
  for (Operand& operand : operands) {
    Buffer* buffer = operand.buffer;
    buffer->uses->Add(stream, sequence);
    if (operand.in != nullptr) {
      operand.in->uses->Add(stream, sequence);
      if (operand.in->in_policy) policy_->OnAccess(operand.in->id, clock_ns_);
    }
    OpUse use{buffer, operand.in, nullptr, operand.writes()};
    if (operand.writes() && !buffer->freed) {
      Value* value = lineage_->NewValue(buffer);
      // During a blocking call another thread may have written other parts of the buffer.
      Value* current = buffer->current;
      value->resident = true;
      if (!operand.fresh.empty()) {
        value->chunks = std::move(operand.fresh);
        operand.fresh.clear();
        value->uses->Add(stream, sequence);
      } else if (current != nullptr && current->snapshot != nullptr) {
        value->inserted = current->inserted;
        value->uses->Add(stream, sequence);
      } else if (current != nullptr) {
        std::swap(value->chunks, current->chunks);
        std::swap(value->uses, current->uses);
        value->inserted = std::move(current->inserted);
        current->inserted = UseSet();
        current->resident = false;
        if (current->in_policy && current->locks == 0) policy_->OnDrop(current->id);
        value->uses->Add(stream, sequence);
      }
      NoteOwner(*value);
      made.push_back(value);
      // With a snapshot of its input the op can be replayed for what else it makes; the new content
      // of the small buffer is always there, and needs no recipe that would keep the one before.
      const bool root = operand.in != nullptr && operand.in->snapshot != nullptr;
      if (!root) use.out = value;
      const bool update = operand.in != nullptr && !root;
      buffer->version_depth = update && recordable ? buffer->version_depth + 1 : 0;
    }
    uses.push_back(use);
  }
  const bool makes_values =
      std::any_of(uses.begin(), uses.end(), [](const OpUse& use) { return use.out != nullptr; });
  if (recordable && makes_values) {
    lineage_->Record(Intern(request.name), request.replay, uses, cost, request.cost_key);
  }
  for (Operand& operand : operands) {
    if (!operand.fresh.empty()) {  // freed by another thread meanwhile
      auto last = std::make_shared<UseSet>(*operand.buffer->uses);
      GiveBackChunks(&operand.fresh, last);
    }
  }
  for (Value* value : made) {
    Buffer* buffer = value->buffer;
    if (recordable && !buffer->small()) {
      AddToPolicy(value, cost, uses);
    } else {
      OfferForSwap(value);
    }
    if (request.kind == OpKind::kUpload) {
      if (buffer->tag == kTagUntouched) SetTag(buffer, kTagInput);
    } else if (buffer->tag != kTagSmall && buffer->tag != kTagState) {
      SetTag(buffer, recordable ? kTagActivation : kTagState);
    }
  }
  for (Value* value : made) lineage_->SetCurrent(value->buffer, value);
  for (Operand& operand : operands) {
    for (Value* value : {operand.in, operand.overwritten}) {
      if (value == nullptr) continue;
      Unlock(value);
      if (value->in_policy && value->locks == 0 && !value->resident) policy_->OnDrop(value->id);
      lineage_->Collect(value);
    }
  }
  if (!recordable && !made.empty()) {
    ++stats_.not_replayable_by_reason[request.no_replay_reason.empty()
                                          ? "its input was overwritten"
                                          : std::string(request.no_replay_reason)];
  }
}

void Engine::Impl::AddToPolicy(Value* value, uint64_t cost_ns, const std::vector<OpUse>& uses) {
  policy_->Add(value->id, ChunkCount(*value->buffer) * pool_->chunk_bytes(), cost_ns, clock_ns_);
  by_policy_id_[value->id] = value;
  value->in_policy = true;
  if (value->locks > 0) policy_->Lock(value->id);
  for (const OpUse& use : uses) {
    if (use.in != nullptr && use.in->in_policy) policy_->Link(use.in->id, value->id);
  }
}

void Engine::Impl::ReportOutOfMemory(std::string_view what, const Operands& operands,
                                     const absl::Status& status) {
  RecordEvent(EventKind::kOutOfMemory, what, 0, 0, 0, Now());
  if (out_of_memory_lines_ >= 8) return;  // programs that probe for memory ask often
  ++out_of_memory_lines_;
  uint64_t needs = 0;
  const Operand* largest = nullptr;
  for (const Operand& operand : operands) {
    if (operand.buffer->small()) continue;
    needs += ChunkCount(*operand.buffer) * pool_->chunk_bytes();
    if (largest == nullptr || operand.buffer->bytes > largest->buffer->bytes) largest = &operand;
  }
  std::string line = absl::StrCat("out of memory: ", absl::string_view(what.data(), what.size()));
  if (largest != nullptr) {
    absl::StrAppend(&line, " needs ", FormatBytes(needs),
                    " for its operands at once (the largest is ",
                    FormatBytes(largest->buffer->bytes), ")");
  }
  absl::StrAppend(&line, "; budget ", FormatBytes(options_.budget_bytes), ", pinned ",
                  FormatBytes(PinnedBytes()),
                  ", held by values that cannot be rebuilt or are in use ",
                  FormatBytes(pool_->used_chunks() * pool_->chunk_bytes() -
                              std::min(PinnedBytes(), pool_->used_chunks() * pool_->chunk_bytes())),
                  " (", status.message(), "): raise TIDEPOOL_BUDGET");
  Complain(line);
}

CUresult Engine::Impl::Run(const OpRequest& request, absl::FunctionRef<CUresult()> issue,
                           std::unique_lock<std::mutex>& lock) {
  RelaxedCaptureMode relaxed(api_);
  bool unknown = false;
  Operands operands = ResolveOperands(request, &unknown);
  if (operands.empty()) {
    lock.unlock();
    relaxed.Suspend();
    return issue();
  }
  ++stats_.ops;
  costs_->Poll();
  const uint64_t start = Now();
  const uint32_t stream = streams_->Resolve(request.stream);
  // The host has got the address of a variable since, maybe of one that the op reads.
  const auto outdated = [&] {
    return request.kind == OpKind::kLaunch && request.watched_variables != watched_variables;
  };
  bool recordable = request.replay != nullptr && !unknown && !outdated();
  absl::Status status = Prepare(request, operands, stream, &recordable);
  while (absl::IsUnavailable(status)) {
    Abort(operands);
    WaitForCalls(lock);
    unknown = false;
    operands = ResolveOperands(request, &unknown);
    if (operands.empty()) {  // freed meanwhile
      lock.unlock();
      relaxed.Suspend();
      return issue();
    }
    recordable = request.replay != nullptr && !unknown && !outdated();
    status = Prepare(request, operands, stream, &recordable);
  }
  if (!status.ok()) {
    Abort(operands);
    if (!absl::IsResourceExhausted(status)) {
      Complain(absl::StrCat("preparing ",
                            absl::string_view(request.name.data(), request.name.size()), ": ",
                            status.message()));
      return ResultOf(status);
    }
    ++stats_.out_of_memory;
    ReportOutOfMemory(request.name, operands, status);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  CUresult result = CUDA_SUCCESS;
  bool under_way = false;
  if (request.blocking) {
    for (Operand& operand : operands) lineage_->Retain(operand.buffer);
    const bool counts = std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
      return !operand.buffer->mentions.empty();
    });
    if (counts) ++calls_under_way;
    lock.unlock();
    relaxed.Suspend();
    result = issue();
    relaxed.Resume();
    lock.lock();
    under_way = counts;
  } else {
    const bool measured = costs_->Begin(request.cost_key, streams_->Handle(stream));
    relaxed.Suspend();
    result = issue();
    relaxed.Resume();
    if (measured) {
      if (result == CUDA_SUCCESS) {
        costs_->End(streams_->Handle(stream));
      } else {
        costs_->Cancel();
      }
    }
  }
  if (result == CUDA_SUCCESS) {
    Commit(request, operands, stream, recordable);
    EvictToLowWatermark();
  } else {
    Abort(operands);
  }
  if (under_way && --calls_under_way == 0) calls_done.notify_all();
  if (request.blocking) {
    for (Operand& operand : operands) lineage_->Release(operand.buffer);
  }
  if (recorder_ != nullptr) {
    RecordEvent(EventKind::kOp, request.name, stream, 0, 0, start, Now() - start);
    SampleMemory();
  }
  return result;
}

}  // namespace tidepool
