#include "runtime/lineage/lineage.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace tidepool {
namespace {

uint64_t FootprintOf(const Op& op) {
  return sizeof(Op) + op.uses.capacity() * sizeof(OpUse) +
         (op.replay != nullptr ? op.replay->footprint() : 0);
}

void RemoveOne(std::vector<Op*>* list, const Op* op) {
  // The newest readers are the likeliest to go, so search from the back; order does not matter.
  for (size_t i = list->size(); i-- > 0;) {
    if ((*list)[i] == op) {
      (*list)[i] = list->back();
      list->pop_back();
      return;
    }
  }
}

bool Needed(const Value& value) {
  return value.current || value.locks > 0 || !value.readers.empty();
}

}  // namespace

Lineage::~Lineage() {
  for (Op* op : ops_) delete op;
  for (Value* value : values_) delete value;
  for (Buffer* buffer : buffers_) delete buffer;
}

Buffer* Lineage::NewBuffer(uint64_t address, uint64_t bytes, AddressRange* range) {
  auto* buffer = new Buffer;
  buffer->id = next_id_++;
  buffer->address = address;
  buffer->bytes = bytes;
  buffer->range = range;
  buffer->references = 1;
  buffers_.insert(buffer);
  return buffer;
}

void Lineage::FreeBuffer(Buffer* buffer) {
  buffer->freed = true;
  Value* last = std::exchange(buffer->current, nullptr);
  if (last != nullptr) {
    last->current = false;
    Collect(last);
  }
  DropReference(buffer);
}

Value* Lineage::NewValue(Buffer* buffer) {
  auto* value = new Value;
  value->id = next_id_++;
  value->buffer = buffer;
  ++buffer->references;
  values_.insert(value);
  footprint_ += sizeof(Value);
  return value;
}

void Lineage::SetCurrent(Buffer* buffer, Value* value) {
  Value* before = std::exchange(buffer->current, value);
  value->current = true;
  if (buffer->small()) buffer->holds = value;
  if (before != nullptr && before != value) {
    before->current = false;
    Collect(before);
  }
}

Op* Lineage::Record(const std::string* name, std::shared_ptr<const Replay> replay,
                    std::vector<OpUse> uses, uint64_t cost_ns, uint64_t cost_key) {
  auto* op = new Op;
  op->id = next_id_++;
  op->name = name;
  op->replay = std::move(replay);
  op->uses = std::move(uses);
  op->cost_ns = cost_ns;
  op->cost_key = cost_key;
  uint32_t depth = 0;
  for (const OpUse& use : op->uses) {
    if (use.in != nullptr && use.in->recipe != nullptr) depth = std::max(depth, use.in->depth);
  }
  for (const OpUse& use : op->uses) {
    ++use.buffer->references;
    use.buffer->mentions.push_back(op);
    if (use.in != nullptr) use.in->readers.push_back(op);
    if (use.out != nullptr) {
      use.out->recipe = op;
      use.out->depth = depth + 1;
      ++op->live_outputs;
    }
  }
  ops_.insert(op);
  footprint_ += FootprintOf(*op);
  return op;
}

void Lineage::AddInput(Op* op, Value* value) {
  footprint_ -= FootprintOf(*op);
  op->uses.push_back({value->buffer, value, nullptr, false});
  footprint_ += FootprintOf(*op);
  ++value->buffer->references;
  value->buffer->mentions.push_back(op);
  value->readers.push_back(op);
}

LossPlan Lineage::PlanLoss(const std::vector<Op*>& seeds) const {
  // Everything that is made by these ops without passing through a value that is resident or on
  // host stops being rebuildable. Such values on the rim become roots; dropped ones that the
  // program may read must be rescued; the rest is lineage that nobody will miss once the rim
  // consists of roots.
  LossPlan plan;
  absl::flat_hash_set<const Op*> seen;
  std::vector<Op*> work(seeds.begin(), seeds.end());
  while (!work.empty()) {
    Op* op = work.back();
    work.pop_back();
    if (!seen.insert(op).second) continue;
    plan.invalid.push_back(op);
    for (const OpUse& use : op->uses) {
      Value* out = use.out;
      if (out == nullptr || out->resident || out->host != nullptr) continue;
      if (out->current) {
        // Once rescued it is resident: what is made from it stays rebuildable.
        plan.rescue.push_back(out);
        plan.rescue_bytes += out->buffer->bytes;
        continue;
      }
      work.insert(work.end(), out->readers.begin(), out->readers.end());
    }
  }
  return plan;
}

void Lineage::Invalidate(const std::vector<Op*>& ops) {
  // An op may be collected while an earlier one is forgotten, so first take every output's recipe
  // away and hold the outputs, then collect.
  std::vector<Value*> work;
  for (Op* op : ops) {
    for (OpUse& use : op->uses) {
      if (use.out == nullptr) continue;
      Value* out = std::exchange(use.out, nullptr);
      out->recipe = nullptr;
      --op->live_outputs;
      observer_->OnRoot(out);
      work.push_back(out);
    }
  }
  for (Op* op : ops) ForgetOp(op, &work);
  CollectAll(std::move(work));
}

void Lineage::Collect(Value* value) { CollectAll({value}); }

void Lineage::CollectAll(std::vector<Value*> work) {
  // The list may hold a value twice (two uses of one op): the set says which are gone already.
  absl::flat_hash_set<const Value*> dead;
  while (!work.empty()) {
    Value* value = work.back();
    work.pop_back();
    if (dead.contains(value) || Needed(*value)) continue;
    dead.insert(value);
    observer_->OnValueDead(value);
    if (Op* op = value->recipe; op != nullptr) {
      for (OpUse& use : op->uses) {
        if (use.out == value) use.out = nullptr;
      }
      if (--op->live_outputs == 0) ForgetOp(op, &work);
    }
    Buffer* buffer = value->buffer;
    if (buffer->holds == value) buffer->holds = nullptr;
    values_.erase(value);
    footprint_ -= sizeof(Value);
    delete value;
    DropReference(buffer);
  }
}

void Lineage::ForgetOp(Op* op, std::vector<Value*>* work) {
  for (const OpUse& use : op->uses) {
    if (use.in != nullptr) {
      RemoveOne(&use.in->readers, op);
      if (!Needed(*use.in)) work->push_back(use.in);
    }
  }
  for (const OpUse& use : op->uses) {
    RemoveOne(&use.buffer->mentions, op);
    DropReference(use.buffer);
  }
  ops_.erase(op);
  footprint_ -= FootprintOf(*op);
  delete op;
}

void Lineage::DropReference(Buffer* buffer) {
  if (--buffer->references > 0) return;
  observer_->OnBufferDead(buffer);
  buffers_.erase(buffer);
  delete buffer;
}

std::vector<Op*> Lineage::OpsWhere(absl::FunctionRef<bool(const Op&)> condition) const {
  std::vector<Op*> found;
  for (Op* op : ops_) {
    if (condition(*op)) found.push_back(op);
  }
  // In the order in which they ran, so that what follows does not depend on a hash.
  std::sort(found.begin(), found.end(), [](const Op* a, const Op* b) { return a->id < b->id; });
  return found;
}

}  // namespace tidepool
