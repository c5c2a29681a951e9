// Rebuilding dropped values by replaying ops: inputs first, with an explicit stack.
//
// Order and locks decide how little memory this takes. A frame waits for its inputs one at a time,
// oldest value first (what others are made from comes before them, so that nothing is rebuilt
// twice); an input is locked when it arrives, inputs that were resident all along only when
// everything is there; what was rebuilt on the way and cannot be reached by the program is the
// first to go when room is needed.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/residency/engine_impl.h"

namespace tidepool {
namespace {

struct Frame {
  Op* op = nullptr;         // null: the bottom frame, whose inputs are what the caller wants
  Value* target = nullptr;  // why the op is replayed
  std::vector<Value*> inputs;
  std::vector<Value*> held;

  bool Holds(const Value* value) const {
    return std::find(held.begin(), held.end(), value) != held.end();
  }
};

void AddUnique(std::vector<Value*>* list, Value* value) {
  if (std::find(list->begin(), list->end(), value) == list->end()) list->push_back(value);
}

}  // namespace

// Ways of rebuilding, tried one after another until one fits. What is resident and needed is best
// locked at once, lest making room for the rest drops it; but the locks of a deep recursion can
// fill the budget (the known cause of DTR's early end), so later tries lock later, and take the
// deepest inputs, which need the most room, while nothing else is held.
struct RebuildStrategy {
  bool lock_wanted_early;  // what the caller wants
  bool lock_inputs_early;  // inputs of replayed ops
  bool deepest_first;      // instead of oldest first, which never rebuilds anything twice
};

namespace {

constexpr RebuildStrategy kStrategies[] = {
    {true, true, false}, {true, false, false}, {true, false, true}, {false, false, true}};

}  // namespace

absl::Status Engine::Impl::EnsureResident(const std::vector<Value*>& wanted, uint32_t stream) {
  if (calls_under_way > 0 && std::any_of(wanted.begin(), wanted.end(),
                                         [](const Value* value) { return !value->resident; })) {
    return absl::UnavailableError("calls are under way");
  }
  absl::Status status = absl::OkStatus();
  for (const RebuildStrategy& strategy : kStrategies) {
    status = TryResident(wanted, stream, strategy);
    if (!absl::IsResourceExhausted(status)) break;
  }
  // What is left of the by-products goes now: the program cannot reach it, and the next allocation
  // can use the memory without an eviction.
  std::vector<Value*> rest;
  rest.swap(temporaries_);
  for (Value* value : rest) {
    if (value->locks > 0 || !value->resident || !value->restorable()) continue;
    absl::Status dropped = Drop(value);
    if (!dropped.ok() && status.ok()) status = dropped;
  }
  return status;
}

absl::Status Engine::Impl::TryResident(const std::vector<Value*>& wanted, uint32_t stream,
                                       const RebuildStrategy& strategy) {
  std::vector<Frame> stack(1);
  for (Value* value : wanted) AddUnique(&stack[0].inputs, value);
  // A strategy that rebuilds the same again and again is given up: no more replays than this.
  uint64_t replays_left = 16 * lineage_->op_count() + 1024;
  auto before = [&](const Value* a, const Value* b) {
    return strategy.deepest_first ? a->depth > b->depth : a->id < b->id;
  };
  auto lock_resident = [&](Frame& frame) {
    for (Value* value : frame.inputs) {
      if (!value->resident || frame.Holds(value)) continue;
      Lock(value);
      frame.held.push_back(value);
    }
  };
  if (strategy.lock_wanted_early) lock_resident(stack[0]);
  absl::Status status = absl::OkStatus();
  for (;;) {
    Frame& frame = stack.back();
    Value* missing = nullptr;
    for (Value* value : frame.inputs) {
      if (!value->resident && (missing == nullptr || before(value, missing))) missing = value;
    }
    if (missing != nullptr && missing->host != nullptr) {
      status = SwapIn(missing, stream);
      if (!status.ok()) break;
      Lock(missing);
      frame.held.push_back(missing);
      continue;
    }
    if (missing != nullptr) {
      if (missing->recipe == nullptr) {
        status = absl::InternalError("a value without recipe or copy is not resident");
        break;
      }
      Frame next;
      next.op = missing->recipe;
      next.target = missing;
      for (const OpUse& use : next.op->uses) {
        if (use.in != nullptr) AddUnique(&next.inputs, use.in);
      }
      if (strategy.lock_inputs_early) lock_resident(next);
      stack.push_back(std::move(next));
      continue;
    }
    lock_resident(frame);
    if (frame.op == nullptr) return absl::OkStatus();  // all there, and locked for the caller

    if (replays_left-- == 0) {
      status = absl::ResourceExhaustedError("rebuilding goes round in circles");
      break;
    }
    status = Replay(frame.op, stream);
    if (!status.ok()) break;
    Frame done = std::move(stack.back());
    stack.pop_back();
    Frame& parent = stack.back();
    Lock(done.target);
    parent.held.push_back(done.target);
    for (Value* value : done.held) Unlock(value);
    ++stats_.rebuilds;
  }
  for (Frame& frame : stack) {
    for (Value* value : frame.held) Unlock(value);
  }
  return status;
}

absl::Status Engine::Impl::Duplicate(Value* value, uint32_t stream, std::vector<ChunkId>* out) {
  Buffer* buffer = value->buffer;
  Lock(value);
  absl::StatusOr<AddressRange*> scratch = pool_->AcquireRange(buffer->bytes);
  absl::Status status = scratch.status();
  UseSet before;
  if (status.ok()) {
    // A buffer at the scratch address, only for taking and binding.
    Buffer copy;
    copy.address = (*scratch)->address;
    copy.bytes = buffer->bytes;
    copy.range = *scratch;
    *copy.uses = FormerUses(copy.address, false);
    status = TakeChunks(&copy, out, &before);
    if (status.ok()) status = Bind(&copy, *out);
    if (status.ok()) status = Bind(buffer, value->chunks);
    before.Merge(*value->uses);
    if (status.ok()) status = streams_->WaitFor(stream, before);
    if (status.ok()) {
      status =
          DriverStatus(api_, "cuMemcpyDtoDAsync",
                       api_.MemcpyDtoDAsync(copy.address, buffer->address, buffer->content_bytes(),
                                            streams_->Handle(stream)));
    }
    const uint64_t sequence = streams_->Commit(stream);
    value->uses->Add(stream, sequence);
    value->inserted.Add(stream, sequence);
    buffer->uses->Add(stream, sequence);
    before.Add(stream, sequence);
    copy.uses->Add(stream, sequence);
    if (status.ok()) {
      bool waited = false;
      status = streams_->HostWait(before, &waited);
    }
    // Whoever gets the range next comes behind everything that ran at its address, whether or not
    // this copy had to wait for it.
    address_uses_[copy.address] = copy.uses;
    pool_->RetireRange(*scratch);
    if (!status.ok() && !out->empty()) GiveBackChunks(out, std::make_shared<UseSet>(before));
  }
  Unlock(value);
  return status;
}

namespace {

// Saved content of a small buffer that a replay overwrites although it holds a newer value.
struct Saved {
  uint64_t address = 0;  // of the buffer
  uint64_t copy = 0;     // in a slab
  uint64_t bytes = 0;
  UseSet former;  // what ran in that block before
};

// What a replay does with one use of a chunked buffer.
struct Plan {
  const OpUse* use = nullptr;
  std::vector<ChunkId> chunks;  // shown at the buffer's address during the op
  bool taken = false;           // taken for this replay
  bool consumes = false;        // the input's own chunks become the output's
};

}  // namespace

absl::Status Engine::Impl::Replay(Op* op, uint32_t stream) {
  const uint64_t start = Now();
  std::vector<Plan> plans;
  std::vector<Saved> saved;
  UseSet before;
  absl::Status status = absl::OkStatus();

  // By buffer, since an op may use one through several words (the engine merged them when it
  // recorded).
  for (const OpUse& use : op->uses) {
    if (use.in != nullptr) before.Merge(*use.in->uses);
    if (use.buffer->small()) {
      const Value* holds = use.buffer->holds;
      const bool restores = use.in != nullptr && use.in != holds && use.in->snapshot != nullptr;
      if (restores) before.Merge(*use.in->snapshot->uses);
      if (holds != nullptr && (restores || (use.writes && holds != use.out))) {
        absl::StatusOr<uint64_t> copy = AllocateSmall(use.buffer->content_bytes());
        if (!copy.ok()) {
          status = copy.status();
          break;
        }
        saved.push_back(
            {use.buffer->address, *copy, use.buffer->content_bytes(), FormerUses(*copy, true)});
        before.Merge(saved.back().former);
      }
      before.Merge(*use.buffer->uses);
      continue;
    }
    Plan plan;
    plan.use = &use;
    if (!use.writes) {
      // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): what is not written is read
      plan.chunks = use.in->chunks;
    } else if (use.in != nullptr) {
      // An update. Its input may be consumed only if nobody else holds it and it can be rebuilt
      // again.
      if (use.in->locks == 1 && use.in->restorable() && !use.in->current) {
        plan.chunks = use.in->chunks;
        plan.consumes = true;
      } else {
        status = Duplicate(use.in, stream, &plan.chunks);
        plan.taken = true;
      }
    } else if (use.out != nullptr && use.out->resident) {
      plan.chunks = use.out->chunks;  // the same bits over themselves
      before.Merge(*use.out->uses);
      Lock(use.out);  // until the end: making room for others must not take it
    } else {
      status = TakeChunks(use.buffer, &plan.chunks, &before);
      plan.taken = true;
    }
    plans.push_back(std::move(plan));
    if (!status.ok()) break;
  }
  for (const Plan& plan : plans) {
    if (status.ok()) status = Bind(plan.use->buffer, plan.chunks);
  }
  if (status.ok()) status = streams_->WaitFor(stream, before);
  CUstream handle = streams_->Handle(stream);
  for (const Saved& save : saved) {
    if (!status.ok()) break;
    status = DriverStatus(api_, "cuMemcpyDtoDAsync",
                          api_.MemcpyDtoDAsync(save.copy, save.address, save.bytes, handle));
  }
  for (const OpUse& use : op->uses) {
    if (!status.ok()) break;
    if (use.in == nullptr || use.in->snapshot == nullptr || use.in == use.buffer->holds) continue;
    const Buffer& snapshot = *use.in->snapshot;
    status = DriverStatus(
        api_, "cuMemcpyDtoDAsync",
        api_.MemcpyDtoDAsync(use.buffer->address, snapshot.address, snapshot.bytes, handle));
  }
  if (status.ok()) {
    status = DriverStatus(api_, op->name->c_str(), op->replay->Issue(handle));
  }
  for (const Saved& save : saved) {
    if (!status.ok()) break;
    status = DriverStatus(api_, "cuMemcpyDtoDAsync",
                          api_.MemcpyDtoDAsync(save.address, save.copy, save.bytes, handle));
  }
  const uint64_t sequence = streams_->Commit(stream);

  // Even after a failure some of it may be running.
  auto used = [&](Value* value) {
    value->uses->Add(stream, sequence);
    value->inserted.Add(stream, sequence);
  };
  for (const OpUse& use : op->uses) {
    use.buffer->uses->Add(stream, sequence);
    if (use.in != nullptr) used(use.in);
    if (!use.buffer->small()) continue;
    if (use.in != nullptr && use.in->snapshot != nullptr) {
      use.in->snapshot->uses->Add(stream, sequence);
    }
    if (use.buffer->holds != nullptr) used(use.buffer->holds);
    if (use.out != nullptr && use.out != use.buffer->holds) used(use.out);
  }
  for (Plan& plan : plans) {
    const OpUse& use = *plan.use;
    Value* out = use.out;
    if (!use.writes) continue;
    const bool in_place = use.in == nullptr && !plan.taken;
    if (in_place) {
      used(out);
      Unlock(out);
      continue;
    }
    auto uses = std::make_shared<UseSet>(before);
    uses->Add(stream, sequence);
    if (!status.ok() || out == nullptr || out->resident) {
      if (plan.consumes && status.ok()) {
        // The input is gone (it was transformed), and its output is there already or not wanted.
        GiveBack(use.in);
        if (use.in->in_policy) policy_->OnDrop(use.in->id);
      } else if (plan.taken && !plan.chunks.empty()) {
        GiveBackChunks(&plan.chunks, uses);
      }
      continue;
    }
    if (plan.consumes) {
      use.in->chunks.clear();
      use.in->resident = false;
      use.in->uses = std::make_shared<UseSet>();
      use.in->inserted.Clear();
      if (use.in->in_policy) policy_->OnDrop(use.in->id);
    }
    out->chunks = std::move(plan.chunks);
    NoteOwner(*out);
    out->resident = true;
    out->uses = uses;
    out->inserted = UseSet();
    out->inserted.Add(stream, sequence);
    if (out->in_policy) policy_->OnRebuild(out->id, clock_ns_);
    if (!out->current) temporaries_.push_back(out);
  }
  for (const Saved& save : saved) {
    // The block may be handed out again while the copies are in flight; its next user is not
    // ordered behind them, so they must be over.
    UseSet copies;
    copies.Add(stream, sequence);
    absl::Status waited = HostWait(copies);
    if (status.ok()) status = waited;
    if (!status.ok()) address_uses_[save.copy] = std::make_shared<UseSet>(save.former);
    slab_->Free(save.copy);
  }
  if (status.ok()) {
    ++stats_.rebuilt_ops;
    stats_.rebuild_time_ns += op->cost_ns;
    clock_ns_ += op->cost_ns;
    RecordEvent(EventKind::kRebuild, *op->name, stream, 0, 0, start, Now() - start);
  }
  return status;
}

}  // namespace tidepool
