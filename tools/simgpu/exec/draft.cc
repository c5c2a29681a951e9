// From drafts to code: liveness, places in the register file, and the tables the interpreter's
// loop runs by.
#include "tools/simgpu/exec/draft.h"

#include <algorithm>
#include <cstring>
#include <queue>

namespace simgpu {
namespace {

using Bits = std::vector<uint64_t>;

bool Test(const Bits& bits, size_t i) { return (bits[i / 64] >> (i % 64) & 1) != 0; }
void SetBit(Bits* bits, size_t i) { (*bits)[i / 64] |= uint64_t{1} << (i % 64); }
void ClearBit(Bits* bits, size_t i) { (*bits)[i / 64] &= ~(uint64_t{1} << (i % 64)); }

bool EndsBlock(const Instr& in) {
  switch (in.control) {
    case Control::kBranch:
    case Control::kBranchTable:
    case Control::kReturn:
    case Control::kExit:
    case Control::kTrap:
      return true;
    default:
      return false;
  }
}

class Finisher {
 public:
  Finisher(DraftCode* draft, Code* code) : draft_(*draft), code_(*code) {}
  void Run();

 private:
  struct BasicBlock {
    uint32_t begin = 0, end = 0;
    std::vector<uint32_t> next;
    Bits in, out;
  };
  struct Interval {
    Ref value = 0;
    uint32_t start = ~0u, end = 0;
  };

  template <typename F>
  void ForUses(const Draft& draft, F f) const;
  template <typename F>
  void ForDefinitions(const Draft& draft, F f) const;
  void ResolveTargets();
  void FindBlocks();
  void FindLiveness();
  void StepBack(const Draft& draft, Bits* live) const;
  void DropUnusedResults();
  void FindIntervals();
  void Touch(Ref value, uint32_t position);
  void Allocate();
  void AllocateClass(ValueClass kind, uint32_t lane_bytes, uint32_t* top);
  void Emit();
  void FindRuns();
  void FindSpins();

  DraftCode& draft_;
  Code& code_;
  std::vector<BasicBlock> blocks_;
  std::vector<uint32_t> block_of_;  // by draft
  std::vector<Interval> intervals_;
  std::vector<Ref> places_;  // by value
};

template <typename F>
void Finisher::ForUses(const Draft& draft, F f) const {
  const Instr& in = draft.instr;
  for (const Ref ref : {in.a, in.b, in.c, in.f, in.guard}) {
    if (ref != kNoRef) f(ref);
  }
  if (!draft.list_written) {
    for (const Ref ref : draft.list) f(ref);
  }
}

template <typename F>
void Finisher::ForDefinitions(const Draft& draft, F f) const {
  for (const Ref ref : {draft.instr.d, draft.instr.e}) {
    if (ref != kNoRef) f(ref);
  }
  if (draft.list_written) {
    for (const Ref ref : draft.list) {
      if (ref != kNoRef) f(ref);
    }
  }
}

void Finisher::ResolveTargets() {
  const auto resolve = [&](uint32_t body_index) {
    return draft_.starts[std::min<size_t>(body_index, draft_.starts.size() - 1)];
  };
  for (Draft& draft : draft_.drafts) {
    if (draft.instr.control == Control::kBranch) {
      draft.instr.target = resolve(draft.instr.target);
    }
  }
  for (const std::vector<uint32_t>& table : draft_.branch_tables) {
    std::vector<uint32_t> targets;
    targets.reserve(table.size());
    for (const uint32_t index : table) targets.push_back(resolve(index));
    code_.branch_tables.push_back(std::move(targets));
  }
}

void Finisher::FindBlocks() {
  const auto count = static_cast<uint32_t>(draft_.drafts.size());
  std::vector<bool> leads(count + 1, false);
  leads[0] = true;
  for (uint32_t i = 0; i < count; ++i) {
    const Instr& in = draft_.drafts[i].instr;
    if (in.control == Control::kBranch) leads[in.target] = true;
    if (EndsBlock(in)) leads[i + 1] = true;
  }
  for (const auto& table : code_.branch_tables) {
    for (const uint32_t target : table) leads[target] = true;
  }
  block_of_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (leads[i]) blocks_.push_back({i, i, {}, {}, {}});
    blocks_.back().end = i + 1;
    block_of_[i] = static_cast<uint32_t>(blocks_.size() - 1);
  }
  for (BasicBlock& block : blocks_) {
    const Instr& last = draft_.drafts[block.end - 1].instr;
    const bool goes_on = !EndsBlock(last) || last.guard != kNoRef;
    if (goes_on && block.end < count) block.next.push_back(block_of_[block.end]);
    if (last.control == Control::kBranch) block.next.push_back(block_of_[last.target]);
    if (last.control == Control::kBranchTable) {
      for (const uint32_t target : code_.branch_tables[last.target]) {
        block.next.push_back(block_of_[target]);
      }
    }
  }
}

// From what is live behind an instruction to what is live before it. Under a guard a value is
// written for some lanes only, and lives on for the others.
void Finisher::StepBack(const Draft& draft, Bits* live) const {
  if (draft.instr.guard == kNoRef || draft.instr.control == Control::kBranch) {
    ForDefinitions(draft, [&](Ref ref) { ClearBit(live, static_cast<size_t>(ref)); });
  }
  ForUses(draft, [&](Ref ref) { SetBit(live, static_cast<size_t>(ref)); });
}

void Finisher::FindLiveness() {
  const size_t words = (draft_.values.size() + 63) / 64;
  for (BasicBlock& block : blocks_) {
    block.in.assign(words, 0);
    block.out.assign(words, 0);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = blocks_.size(); b-- > 0;) {
      BasicBlock& block = blocks_[b];
      Bits live(words, 0);
      for (const uint32_t next : block.next) {
        for (size_t w = 0; w < words; ++w) live[w] |= blocks_[next].in[w];
      }
      block.out = live;
      for (uint32_t i = block.end; i-- > block.begin;) StepBack(draft_.drafts[i], &live);
      if (live != block.in) {
        block.in = std::move(live);
        changed = true;
      }
    }
  }
}

// An atomic whose result nobody reads is a reduction, and its order does not show.
void Finisher::DropUnusedResults() {
  for (const BasicBlock& block : blocks_) {
    Bits live = block.out;
    for (uint32_t i = block.end; i-- > block.begin;) {
      Draft& draft = draft_.drafts[i];
      if (draft.ordered_if_used && draft.instr.d != kNoRef) {
        if (Test(live, static_cast<size_t>(draft.instr.d))) {
          draft.ordered = true;
        } else {
          draft.instr.d = kNoRef;
          draft.polls = draft.polls_global = false;
        }
      }
      code_.ordered = code_.ordered || draft.ordered;
      StepBack(draft, &live);
    }
  }
}

void Finisher::Touch(Ref value, uint32_t position) {
  Interval& interval = intervals_[static_cast<size_t>(value)];
  interval.start = std::min(interval.start, position);
  interval.end = std::max(interval.end, position);
}

// Positions: 2i is where instruction i reads, 2i+1 where it writes.
void Finisher::FindIntervals() {
  intervals_.resize(draft_.values.size());
  for (size_t v = 0; v < intervals_.size(); ++v) intervals_[v].value = static_cast<Ref>(v);
  const auto touch_all = [&](const Bits& bits, uint32_t position) {
    for (size_t w = 0; w < bits.size(); ++w) {
      for (uint64_t left = bits[w]; left != 0; left &= left - 1) {
        Touch(static_cast<Ref>(w * 64 + static_cast<size_t>(__builtin_ctzll(left))), position);
      }
    }
  };
  for (const BasicBlock& block : blocks_) {
    touch_all(block.in, 2 * block.begin);
    touch_all(block.out, 2 * block.end - 1);
    for (uint32_t i = block.begin; i < block.end; ++i) {
      const Draft& draft = draft_.drafts[i];
      ForUses(draft, [&](Ref ref) { Touch(ref, 2 * i); });
      ForDefinitions(draft, [&](Ref ref) { Touch(ref, 2 * i + 1); });
    }
  }
}

// Linear scan: an interval gets the place of one that has ended.
void Finisher::AllocateClass(ValueClass kind, uint32_t lane_bytes, uint32_t* top) {
  std::vector<Interval> mine;
  for (const Interval& interval : intervals_) {
    const Value& value = draft_.values[static_cast<size_t>(interval.value)];
    if (value.kind != kind || value.constant) continue;
    if (value.pinned) {
      places_[static_cast<size_t>(interval.value)] = static_cast<Ref>(*top);
      *top += lane_bytes * kLanes;
    } else if (interval.start != ~0u) {
      mine.push_back(interval);
    }
  }
  std::sort(mine.begin(), mine.end(), [](const Interval& a, const Interval& b) {
    return a.start != b.start ? a.start < b.start : a.value < b.value;
  });
  using Active = std::pair<uint32_t, Ref>;  // end, place
  std::priority_queue<Active, std::vector<Active>, std::greater<>> active;
  std::vector<Ref> free;
  uint32_t most = 0;
  for (const Interval& interval : mine) {
    while (!active.empty() && active.top().first < interval.start) {
      free.push_back(active.top().second);
      active.pop();
    }
    Ref place = 0;
    if (!free.empty()) {
      place = free.back();
      free.pop_back();
    } else {
      place = static_cast<Ref>(*top);
      *top += lane_bytes * kLanes;
    }
    places_[static_cast<size_t>(interval.value)] = place;
    active.emplace(interval.end, place);
    most = std::max(most, static_cast<uint32_t>(active.size()));
  }
  code_.live_registers += most * lane_bytes / 4;
}

void Finisher::Allocate() {
  places_.assign(draft_.values.size(), kNoRef);
  uint32_t top = 0;
  for (size_t v = 0; v < draft_.values.size(); ++v) {
    const Value& value = draft_.values[v];
    if (value.kind != ValueClass::kPredicate || value.constant) continue;
    places_[v] = static_cast<Ref>(top);
    top += 4;
  }
  top = (top + 63) / 64 * 64;
  AllocateClass(ValueClass::k64, 8, &top);
  AllocateClass(ValueClass::k32, 4, &top);
  code_.constant_offset = top;
  // Constants stand behind the registers, the same in every frame.
  for (const ValueClass kind : {ValueClass::k64, ValueClass::k32, ValueClass::kPredicate}) {
    const uint32_t bytes = kind == ValueClass::k64 ? 8 : 4;
    const uint32_t lanes = kind == ValueClass::kPredicate ? 1 : kLanes;
    for (size_t v = 0; v < draft_.values.size(); ++v) {
      const Value& value = draft_.values[v];
      if (value.kind != kind || !value.constant || intervals_[v].start == ~0u) continue;
      places_[v] = static_cast<Ref>(top);
      for (uint32_t i = 0; i < lanes; ++i) {
        const size_t at = code_.constants.size();
        code_.constants.resize(at + bytes);
        std::memcpy(code_.constants.data() + at, &value.bits, bytes);
      }
      top += bytes * lanes;
    }
  }
  code_.register_bytes = (top + 63) / 64 * 64;
  // What may be read before it is written must not show what was there.
  for (size_t v = 0; v < draft_.values.size(); ++v) {
    const Value& value = draft_.values[v];
    if (value.constant || places_[v] == kNoRef || !Test(blocks_[0].in, v)) continue;
    const uint32_t bytes = value.kind == ValueClass::kPredicate ? 4
                           : value.kind == ValueClass::k64      ? 8 * kLanes
                                                                : 4 * kLanes;
    code_.undefined.emplace_back(static_cast<uint32_t>(places_[v]), bytes);
  }
}

void Finisher::Emit() {
  const auto place = [&](Ref* ref) {
    if (*ref != kNoRef) *ref = places_[static_cast<size_t>(*ref)];
  };
  code_.before.resize(draft_.drafts.size() + 1);
  for (size_t i = 0; i < draft_.drafts.size(); ++i) {
    Draft& draft = draft_.drafts[i];
    Instr in = draft.instr;
    for (Ref* ref : {&in.d, &in.e, &in.a, &in.b, &in.c, &in.f, &in.guard}) place(ref);
    if (!draft.list.empty()) {
      in.target = static_cast<uint32_t>(code_.lists.size());
      for (Ref ref : draft.list) {
        place(&ref);
        code_.lists.push_back(ref);
      }
    }
    code_.instrs.push_back(in);
    const Cost& before = code_.before[i];
    code_.before[i + 1] = {before.flops + draft.cost.flops, before.read + draft.cost.read,
                           before.written + draft.cost.written,
                           before.atomics + draft.cost.atomics};
  }
  for (auto* formals : {&code_.formals, &code_.returns}) {
    for (Formal& formal : *formals) place(&formal.reg);
  }
}

void Finisher::FindRuns() {
  code_.run.assign(code_.instrs.size(), 0);
  for (size_t i = code_.instrs.size() - 1; i-- > 0;) {
    if (code_.instrs[i].control == Control::kPlain) code_.run[i] = code_.run[i + 1] + 1;
  }
}

// A jump back over an instruction that reads what others write may be a loop that waits for them.
void Finisher::FindSpins() {
  const size_t count = draft_.drafts.size();
  std::vector<uint32_t> polls(count + 1, 0), global(count + 1, 0);
  for (size_t i = 0; i < count; ++i) {
    polls[i + 1] = polls[i] + (draft_.drafts[i].polls ? 1 : 0);
    global[i + 1] = global[i] + (draft_.drafts[i].polls_global ? 1 : 0);
  }
  code_.spins.assign(count, 0);
  for (size_t i = 0; i < count; ++i) {
    const Instr& in = code_.instrs[i];
    if (in.control != Control::kBranch || in.target > i) continue;
    code_.spins[i] = polls[i + 1] != polls[in.target];
    // How often it goes round depends on the other blocks, and so would the counts.
    code_.ordered = code_.ordered || global[i + 1] != global[in.target];
  }
}

void Finisher::Run() {
  ResolveTargets();
  FindBlocks();
  FindLiveness();
  DropUnusedResults();
  FindIntervals();
  Allocate();
  Emit();
  FindRuns();
  FindSpins();
}

}  // namespace

void FinishCode(DraftCode* draft, Code* code) { Finisher(draft, code).Run(); }

}  // namespace simgpu
