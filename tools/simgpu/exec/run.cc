// Runs a block: its warps in turn, each until it waits or ends; within a warp the split that is
// furthest behind first, so that lanes come together again where control does.
#include <algorithm>
#include <bit>

#include "absl/strings/str_format.h"
#include "tools/simgpu/exec/barriers.h"
#include "tools/simgpu/exec/lanes.h"
#include "tools/simgpu/exec/warp.h"

namespace simgpu {
namespace {

// How often a loop that may wait for other threads goes round before the others get a turn, and a
// loop that does not look so.
constexpr uint32_t kSpinPatience = 16;
constexpr uint32_t kLongPatience = 1 << 16;
// Jumps that a split gets while those behind it rest from spinning.
constexpr uint32_t kQuantum = 64;

enum class Stop : uint8_t { kDone, kBlocked, kSpinning, kLong };

class WarpRunner {
 public:
  explicit WarpRunner(Warp& warp) : w_(warp), block_(*warp.block) {}
  Stop Run();

 private:
  enum class Yield : uint8_t { kNo, kSpinning, kLong };

  Split& Self() { return w_.splits[w_.running]; }
  void MergeEqual();
  bool Pick();
  bool ForceOne();
  uint32_t StopPc();
  void RunSplit();
  void Leave(const Instr& in, uint32_t mask);
  void Account(const Code& code, uint32_t from, uint32_t to, uint64_t lanes);
  bool Spent(bool spin);
  void Diverge(uint32_t lanes, uint32_t target);
  void Part(uint32_t lanes);
  void BranchTable(const Instr& in);
  void Exit(uint32_t lanes);
  bool Converge(const Instr& in, uint32_t lanes);
  void WarpBarrier(const Instr& in);
  void WaitForOthers();
  void Untire();

  Warp& w_;
  Block& block_;
  Yield yield_ = Yield::kNo;
  uint32_t spin_left_ = kSpinPatience;
  uint32_t long_left_ = kLongPatience;
  uint32_t quantum_ = 0;  // 0: not limited
};

bool Before(const Split& a, const Split& b) {
  if (a.frame->depth != b.frame->depth) return a.frame->depth > b.frame->depth;
  if (a.pc != b.pc) return a.pc < b.pc;
  return (a.mask & -a.mask) < (b.mask & -b.mask);
}

void WarpRunner::MergeEqual() {
  std::vector<Split>& splits = w_.splits;
  for (size_t i = 0; i + 1 < splits.size(); ++i) {
    for (size_t k = i + 1; k < splits.size();) {
      Split& a = splits[i];
      Split& b = splits[k];
      if (a.pc != b.pc || !(a.frame == b.frame) || a.state == Split::State::kBarrier ||
          b.state == Split::State::kBarrier) {
        ++k;
        continue;
      }
      a.mask |= b.mask;
      a.state = Split::State::kReady;  // look again: those waited for may be here now
      a.tired = a.tired && b.tired;
      splits.erase(splits.begin() + static_cast<ptrdiff_t>(k));
    }
  }
}

void WarpRunner::Untire() {
  for (Split& split : w_.splits) split.tired = false;
}

// Chooses the next split; false: none is ready.
bool WarpRunner::Pick() {
  std::vector<Split>& splits = w_.splits;
  if (splits.size() > 1) MergeEqual();
  size_t best = splits.size();
  bool resting = false;
  for (size_t i = 0; i < splits.size(); ++i) {
    const Split& split = splits[i];
    if (split.state != Split::State::kReady) continue;
    if (split.tired) {
      resting = true;
      continue;
    }
    if (best == splits.size() || Before(split, splits[best])) best = i;
  }
  if (best == splits.size()) {
    if (!resting) return false;
    Untire();
    return Pick();
  }
  quantum_ = resting ? kQuantum : 0;
  w_.running = best;
  Split& split = splits[best];
  Frame& frame = *split.frame;
  w_.mask = split.mask;
  w_.frame = &frame;
  w_.registers = frame.registers;
  w_.lists = frame.code->lists.data();
  return true;
}

// Nobody is ready. If no lane waits at a barrier of the block, the lanes that wait for others will
// wait for ever: the first ones go on with those that are there.
bool WarpRunner::ForceOne() {
  size_t best = w_.splits.size();
  for (size_t i = 0; i < w_.splits.size(); ++i) {
    if (w_.splits[i].state == Split::State::kBarrier) return false;
    if (best == w_.splits.size() || Before(w_.splits[i], w_.splits[best])) best = i;
  }
  w_.splits[best].state = Split::State::kReady;
  w_.splits[best].forced = true;
  return true;
}

// Where the running split meets the next one in its function.
uint32_t WarpRunner::StopPc() {
  uint32_t stop = ~0u;
  const Split& self = Self();
  for (const Split& split : w_.splits) {
    if (split.frame == self.frame && split.pc > self.pc && split.state != Split::State::kBarrier) {
      stop = std::min(stop, split.pc);
    }
  }
  return stop;
}

inline void WarpRunner::Account(const Code& code, uint32_t from, uint32_t to, uint64_t lanes) {
  const Cost& a = code.before[from];
  const Cost& b = code.before[to];
  ExecStats& stats = block_.stats;
  const uint64_t count = to - from;
  stats.warp_instructions += count;
  stats.lane_instructions += count * lanes;
  stats.flops += lanes * (b.flops - a.flops);
  stats.global_read_bytes += lanes * (b.read - a.read);
  stats.global_written_bytes += lanes * (b.written - a.written);
  stats.atomics += lanes * (b.atomics - a.atomics);
  block_.clock += count;
}

// Counts a jump back; true if others should have a turn.
bool WarpRunner::Spent(bool spin) {
  if (spin) {
    if (--spin_left_ == 0) {
      spin_left_ = kSpinPatience;
      yield_ = Yield::kSpinning;
      return true;
    }
  } else if (--long_left_ == 0) {
    long_left_ = kLongPatience;
    yield_ = Yield::kLong;
    return true;
  }
  return false;
}

// The lanes go to the target, the others on.
void WarpRunner::Diverge(uint32_t lanes, uint32_t target) {
  Split other = Self();
  other.mask = lanes;
  other.pc = target;
  Self().mask &= ~lanes;
  ++Self().pc;
  w_.splits.push_back(std::move(other));
}

// Leaves the running split only `lanes`; the others go on behind this instruction.
void WarpRunner::Part(uint32_t lanes) {
  if (lanes == Self().mask) return;
  Split rest = Self();
  rest.mask &= ~lanes;
  ++rest.pc;
  Self().mask = lanes;
  w_.mask = lanes;
  w_.splits.push_back(std::move(rest));
}

void WarpRunner::BranchTable(const Instr& in) {
  const uint32_t* index = Lane<uint32_t>(w_, in.a);
  const std::vector<uint32_t>& targets = Self().frame->code->branch_tables[in.target];
  const uint32_t mask = Self().mask;
  const int lane = std::countr_zero(mask);
  const uint32_t first = index[lane];
  if (first >= targets.size()) {
    ThrowFault(Fault::kTrap, first, lane, "index of brx.idx out of range");
  }
  uint32_t same = 0;
  ForLanes(mask, [&](int i) { same |= static_cast<uint32_t>(index[i] == first) << i; });
  if (same == mask) {
    Self().pc = targets[first];
    return;
  }
  // The rest comes here again.
  Split other = Self();
  other.mask = mask & ~same;
  Self().mask = same;
  Self().pc = targets[first];
  w_.splits.push_back(std::move(other));
}

void WarpRunner::Exit(uint32_t lanes) {
  w_.exited |= lanes;
  Split& self = Self();
  self.mask &= ~lanes;
  if (self.mask == 0) w_.splits.erase(w_.splits.begin() + static_cast<ptrdiff_t>(w_.running));
  // Those that waited for these lanes look again.
  for (Split& split : w_.splits) {
    if (split.state == Split::State::kConverge) split.state = Split::State::kReady;
  }
  ThreadsExited(&block_, static_cast<uint32_t>(std::popcount(lanes)));
}

void WarpRunner::WaitForOthers() { Self().state = Split::State::kConverge; }

// Runs a warp-wide operation for each set of lanes that names the same members and is complete.
// False: some lanes have to wait, and the running split is they.
bool WarpRunner::Converge(const Instr& in, uint32_t lanes) {
  const uint32_t* members = Lane<uint32_t>(w_, in.f);
  const bool forced = Self().forced || w_.splits.size() == 1;
  Self().forced = false;
  uint32_t waiting = 0;
  uint32_t left = lanes;
  while (left != 0) {
    const uint32_t named = members[std::countr_zero(left)];
    uint32_t group = 0;
    ForLanes(left, [&](int i) { group |= static_cast<uint32_t>(members[i] == named) << i; });
    left &= ~group;
    if (!forced && (named & ~w_.exited & ~group) != 0) {
      waiting |= group;
      continue;
    }
    w_.mask = group;
    if (group == kAllLanes) {
      in.full(w_, in);
    } else {
      in.masked(w_, in);
    }
  }
  w_.mask = Self().mask;
  if (waiting == 0) return true;
  Part(waiting);
  WaitForOthers();
  return false;
}

// bar.warp.sync: the members may be at different ones.
void WarpRunner::WarpBarrier(const Instr& in) {
  const uint32_t mask = Self().mask;
  const uint32_t named = Lane<uint32_t>(w_, in.f)[std::countr_zero(mask)];
  const auto waits = [](const Split& split) {
    return split.state == Split::State::kConverge &&
           split.frame->code->instrs[split.pc].control == Control::kWarpBarrier;
  };
  uint32_t here = mask;
  for (const Split& split : w_.splits) {
    if (waits(split)) here |= split.mask;
  }
  const bool forced = Self().forced || w_.splits.size() == 1;
  Self().forced = false;
  if (!forced && (named & ~w_.exited & ~here) != 0) {
    WaitForOthers();
    return;
  }
  for (Split& split : w_.splits) {
    if (waits(split) && (split.mask & named) != 0) {
      split.state = Split::State::kReady;
      ++split.pc;
    }
  }
  ++Self().pc;
}

// Runs the split until the choice of the next one is due.
void WarpRunner::RunSplit() {
  const uint32_t stop = StopPc();
  const Code& code = *Self().frame->code;
  const Instr* const instrs = code.instrs.data();
  const uint32_t active = Self().mask;
  const auto lanes = static_cast<uint64_t>(std::popcount(active));
  uint32_t pc = Self().pc;
  uint32_t from = pc;  // what was executed from here on is not counted yet
  for (;;) {
    if (pc >= stop) {
      Account(code, from, pc, lanes);
      Self().pc = pc;
      return;
    }
    if (const uint32_t run = code.run[pc]; run != 0) {
      const uint32_t end = std::min(pc + run, stop);
      const Instr* at = instrs + pc;
      const Instr* const last = instrs + end;
      if (active == kAllLanes) {
        for (; at != last; ++at) at->full(w_, *at);
      } else {
        for (; at != last; ++at) at->masked(w_, *at);
      }
      pc = end;
      continue;
    }
    const Instr& in = instrs[pc];
    uint32_t mask = active;
    if (in.guard != kNoRef) {
      const uint32_t p = Pred(w_, in.guard);
      mask &= in.guard_negated ? ~p : p;
      if (mask == 0 && in.control != Control::kGuarded) {
        ++pc;
        continue;
      }
    }
    w_.current = &in;
    switch (in.control) {
      case Control::kBranch: {
        const uint32_t target = in.target;
        const bool back = target <= pc;
        Account(code, from, pc + 1, lanes);
        if (mask == active && quantum_ == 0) {  // nearly always
          if (back && Spent(code.spins[pc] != 0)) {
            Self().pc = target;
            return;
          }
          pc = from = target;
          continue;
        }
        Self().pc = pc;
        if (mask == active) {
          Self().pc = target;
        } else {
          Diverge(mask, target);
          // Going round is the affair of the lanes that jumped.
          if (back) w_.running = w_.splits.size() - 1;
        }
        if (quantum_ != 0 && --quantum_ == 0) Untire();
        if (back) Spent(code.spins[pc] != 0);
        return;
      }
      case Control::kGuarded:
        // Counted by itself, for it costs its own lanes only; and what reads a clock has to see
        // everything before it counted.
        Account(code, from, pc, lanes);
        if (mask != 0) {
          w_.mask = mask;
          (mask == kAllLanes ? in.full : in.masked)(w_, in);
          w_.mask = active;
        }
        Account(code, pc, pc + 1, static_cast<uint64_t>(std::popcount(mask)));
        from = ++pc;
        continue;
      case Control::kConverge:
        Self().pc = pc;
        if (Converge(in, mask)) {
          ++pc;
          continue;
        }
        Account(code, from, pc, lanes);
        return;
      default:
        Self().pc = pc;
        Account(code, from, pc + 1, lanes);
        Part(mask);
        Leave(in, mask);
        return;
    }
  }
}

// An instruction after which the next split is to be chosen anew.
void WarpRunner::Leave(const Instr& in, uint32_t mask) {
  switch (in.control) {
    case Control::kWarpBarrier:
      WarpBarrier(in);
      return;
    case Control::kBranchTable:
      BranchTable(in);
      return;
    case Control::kReturn:
      if (Self().frame->depth == 0) {
        Exit(mask);
      } else {
        ReturnFromFunction(w_, mask);
      }
      return;
    case Control::kExit:
      Exit(mask);
      return;
    case Control::kBarrier:
      ArriveAtBarrier(w_, in);
      return;
    case Control::kCall:
      CallFunction(w_, in, mask);
      return;
    case Control::kTrap:
      ThrowFault(Fault::kTrap, 0, std::countr_zero(mask), "trap");
    case Control::kPlain:
    case Control::kGuarded:
    case Control::kConverge:
    case Control::kBranch:
      return;  // RunSplit does these itself
  }
}

Stop WarpRunner::Run() {
  for (;;) {
    if (!Pick()) {
      if (w_.splits.empty()) return Stop::kDone;
      if (!ForceOne()) return Stop::kBlocked;
      continue;
    }
    RunSplit();
    if (yield_ == Yield::kNo) continue;
    const Stop stop = yield_ == Yield::kSpinning ? Stop::kSpinning : Stop::kLong;
    yield_ = Yield::kNo;
    Self().tired = true;
    const bool rested = std::any_of(w_.splits.begin(), w_.splits.end(), [](const Split& split) {
      return split.state == Split::State::kReady && !split.tired;
    });
    if (rested) continue;
    Untire();
    return stop;
  }
}

std::string DescribeDeadlock(const Block& block) {
  uint32_t at_barrier = 0, converging = 0;
  for (const Warp& warp : block.warps) {
    for (const Split& split : warp.splits) {
      (split.state == Split::State::kBarrier ? at_barrier : converging) +=
          static_cast<uint32_t>(std::popcount(split.mask));
    }
  }
  return absl::StrFormat(
      "deadlock: %d threads wait at a barrier that %d others never reach, %d for lanes of their "
      "warp",
      at_barrier, block.live_threads - at_barrier, converging);
}

}  // namespace

BlockState RunBlock(Block* block) {
  for (;;) {
    bool spinning = true, ran = false;
    for (Warp& warp : block->warps) {
      if (warp.splits.empty() || warp.blocked) continue;
      ran = true;
      block->running = &warp;
      const Stop stop = WarpRunner(warp).Run();
      warp.blocked = stop == Stop::kBlocked;
      spinning = spinning && stop == Stop::kSpinning;
    }
    if (block->live_threads == 0) return BlockState::kDone;
    if (!ran) {
      // Where the last warp came to stand is as good a place as any for the message.
      throw FaultError{Fault::kTimeout, 0, -1, DescribeDeadlock(*block)};
    }
    if (spinning) return BlockState::kSpinning;
  }
}

}  // namespace simgpu
