// Runs one block: its warps in turn, each until it reaches a barrier or its end; within a warp the
// split that is furthest behind first, so that lanes come together again where control does.
#include <algorithm>
#include <bit>
#include <cstring>

#include "tools/simgpu/exec/code.h"

namespace simgpu {
namespace {

// Taken backward branches after which a split that keeps others waiting lets them run, and after
// which a warp lets the other warps run: a lane may spin for what another one does.
constexpr uint32_t kPatience = 20000;
// Rounds over all warps without any of them ending or reaching a barrier: nobody will come.
constexpr uint32_t kMaxIdleRounds = 20000;

std::shared_ptr<Frame> NewFrame(const Code* code) {
  auto frame = std::make_shared<Frame>();
  frame->code = code;
  const size_t params = static_cast<size_t>(code->param_bytes) * kLanes;
  frame->storage.resize(code->register_bytes + params + 64);
  auto base = reinterpret_cast<uintptr_t>(frame->storage.data());
  frame->registers = reinterpret_cast<uint8_t*>((base + 31) & ~uintptr_t{31});
  frame->params = frame->registers + code->register_bytes;
  frame->constants = code->constants.data();
  return frame;
}

class WarpRunner {
 public:
  explicit WarpRunner(Warp& warp) : w_(warp) {}
  // Until the warp is done, waits at the barrier, or has been patient enough.
  void Run();

 private:
  bool Pick();  // chooses the next split; false: none can run
  void MergeEqual();
  void Enter(size_t split);  // makes it the running one
  void Exit(uint32_t lanes);
  void Return(uint32_t lanes);
  void Call(const Instr& in, uint32_t lanes);
  bool Converged(const Instr& in);
  void Branch(uint32_t taken, uint32_t target);
  uint32_t StopPc() const;

  Warp& w_;
  uint32_t patience_ = kPatience;
};

bool Before(const Split& a, const Split& b) {
  if (a.frame->depth != b.frame->depth) return a.frame->depth > b.frame->depth;
  return a.pc < b.pc;
}

void WarpRunner::MergeEqual() {
  std::vector<Split>& splits = w_.splits;
  for (size_t i = 0; i < splits.size(); ++i) {
    for (size_t k = i + 1; k < splits.size();) {
      if (splits[i].pc == splits[k].pc && splits[i].frame == splits[k].frame &&
          splits[i].at_barrier == splits[k].at_barrier) {
        splits[i].mask |= splits[k].mask;
        splits[i].blocked = false;  // look again: the others may be here now
        splits.erase(splits.begin() + static_cast<ptrdiff_t>(k));
      } else {
        ++k;
      }
    }
  }
}

bool WarpRunner::Pick() {
  MergeEqual();
  size_t best = w_.splits.size();
  // First those that can go on; then those that have spun for long; then, if everybody waits for
  // lanes that will not come, the first goes on without them.
  for (int pass = 0; pass < 3 && best == w_.splits.size(); ++pass) {
    for (size_t i = 0; i < w_.splits.size(); ++i) {
      const Split& split = w_.splits[i];
      if (split.at_barrier || (pass == 0 && split.tired) || (pass < 2 && split.blocked)) continue;
      if (best == w_.splits.size() || Before(split, w_.splits[best])) best = i;
    }
  }
  if (best == w_.splits.size()) return false;
  Enter(best);
  return true;
}

void WarpRunner::Enter(size_t index) {
  w_.running = index;
  Split& split = w_.splits[index];
  w_.mask = split.mask;
  w_.frame = split.frame.get();
  w_.registers = w_.frame->registers;
  w_.constants = w_.frame->constants;
}

// Where the running split has to look for others: the least pc among those in the same frame.
uint32_t WarpRunner::StopPc() const {
  uint32_t stop = ~0u;
  const Split& self = w_.splits[w_.running];
  for (size_t i = 0; i < w_.splits.size(); ++i) {
    const Split& split = w_.splits[i];
    if (i == w_.running || split.at_barrier || split.tired) continue;
    if (split.frame->depth > self.frame->depth && !split.blocked) return 0;
    if (split.frame == self.frame && split.pc >= self.pc) stop = std::min(stop, split.pc);
    if (split.frame == self.frame && split.pc < self.pc && !split.blocked) return 0;
  }
  return stop;
}

void WarpRunner::Exit(uint32_t lanes) {
  w_.exited |= lanes;
  Split& self = w_.splits[w_.running];
  self.mask &= ~lanes;
  if (self.mask == 0) w_.splits.erase(w_.splits.begin() + static_cast<ptrdiff_t>(w_.running));
  for (Split& split : w_.splits) split.blocked = false;
}

void WarpRunner::Return(uint32_t lanes) {
  Split self = w_.splits[w_.running];
  Frame& frame = *self.frame;
  if (frame.caller == nullptr) {
    Exit(lanes);
    return;
  }
  const CallSite& site = *frame.site;
  Frame& caller = *frame.caller;
  const uint32_t from_stride = frame.code->param_bytes, to_stride = caller.code->param_bytes;
  for (size_t r = 0; r < site.results.size() && r < frame.code->returns.size(); ++r) {
    const Code::Formal& from = frame.code->returns[r];
    const Code::Formal& to = site.results[r];
    const uint32_t bytes = std::min(from.bytes, to.bytes);
    for (int i = 0; i < kLanes; ++i) {
      if (!(lanes >> i & 1)) continue;
      const uint8_t* source =
          from.reg != kNoRef ? frame.registers + from.reg + i * (from.bytes == 8 ? 8 : 4)
                             : frame.params + static_cast<size_t>(i) * from_stride + from.offset;
      std::memcpy(caller.params + static_cast<size_t>(i) * to_stride + to.offset, source, bytes);
    }
  }
  Split back;
  back.pc = frame.return_pc;
  back.mask = lanes;
  back.frame = frame.caller;
  w_.splits[w_.running].mask &= ~lanes;
  if (w_.splits[w_.running].mask == 0) {
    w_.splits[w_.running] = std::move(back);
  } else {
    w_.splits.push_back(std::move(back));
  }
}

void WarpRunner::Call(const Instr& in, uint32_t lanes) {
  const auto& site = *static_cast<const CallSite*>(in.extra);
  Split& self = w_.splits[w_.running];
  if (site.builtin == CallSite::Builtin::kPrintf) {
    DevicePrintf(w_, lanes, site);
    ++self.pc;
    return;
  }
  if (site.builtin == CallSite::Builtin::kAssert) {
    throw FaultError{Fault::kAssert, 0, std::countr_zero(lanes), "assertion failed"};
  }
  const Code* callee = site.callee;
  uint32_t going = lanes;
  if (callee == nullptr) {
    // Indirect: the lanes that call the same function go together; the rest come again.
    const auto* tokens = Lane<uint64_t>(w_, site.callee_register);
    const uint64_t token = tokens[std::countr_zero(lanes)];
    going = 0;
    for (int i = 0; i < kLanes; ++i) {
      if ((lanes >> i & 1) && tokens[i] == token) going |= 1u << i;
    }
    callee = FunctionByToken(w_, token);
    if (callee == nullptr) {
      throw FaultError{Fault::kTrap, token, std::countr_zero(lanes), "call of no function"};
    }
  }
  Frame& caller = *self.frame;
  std::shared_ptr<Frame> frame = NewFrame(callee);
  frame->caller = self.frame;
  frame->site = &site;
  frame->depth = caller.depth + 1;
  frame->return_pc = self.pc + 1;
  frame->local_base = caller.local_base + caller.code->local_bytes;
  if (frame->depth > 1000) {
    throw FaultError{Fault::kIllegalAddress, 0, std::countr_zero(lanes), "call stack overflow"};
  }
  for (size_t a = 0; a < site.arguments.size() && a < callee->formals.size(); ++a) {
    const Code::Formal& from = site.arguments[a];
    const Code::Formal& to = callee->formals[a];
    const uint32_t bytes = std::min(from.bytes, to.bytes);
    for (int i = 0; i < kLanes; ++i) {
      if (!(going >> i & 1)) continue;
      const uint8_t* source =
          caller.params + static_cast<size_t>(i) * caller.code->param_bytes + from.offset;
      uint8_t* target =
          to.reg != kNoRef
              ? frame->registers + to.reg + i * (to.bytes == 8 ? 8 : 4)
              : frame->params + static_cast<size_t>(i) * callee->param_bytes + to.offset;
      std::memcpy(target, source, bytes);
    }
  }
  Split inside;
  inside.mask = going;
  inside.frame = std::move(frame);
  if (going == self.mask) {
    self = std::move(inside);
  } else {
    // The others stay at the call (indirect) or go past it (a guard).
    self.mask &= ~going;
    if (going == lanes) ++self.pc;
    w_.splits.push_back(std::move(inside));
  }
}

bool WarpRunner::Converged(const Instr& in) {
  if (w_.splits.size() == 1) return true;
  const auto* masks = Lane<uint32_t>(w_, static_cast<Ref>(in.target));
  const uint32_t members = masks[std::countr_zero(w_.mask)] & ~w_.exited;
  return (members & ~w_.mask) == 0 || w_.splits[w_.running].blocked;
}

void WarpRunner::Branch(uint32_t taken, uint32_t target) {
  Split& self = w_.splits[w_.running];
  const uint32_t all = self.mask;
  if (target <= self.pc && patience_ > 0) --patience_;
  if (taken == all) {
    self.pc = target;
    return;
  }
  if (taken == 0) {
    ++self.pc;
    return;
  }
  Split other = self;
  other.mask = taken;
  other.pc = target;
  self.mask = all & ~taken;
  ++self.pc;
  w_.splits.push_back(std::move(other));
}

void WarpRunner::Run() {
  ExecStats& stats = w_.block->stats;
  while (!w_.splits.empty()) {
    if (!Pick()) {
      w_.waiting = true;
      return;
    }
    uint32_t stop = StopPc();
    Split* self = &w_.splits[w_.running];
    const Instr* code = self->frame->code->instrs.data();
    uint32_t pc = self->pc;
    const uint32_t active = self->mask;
    const auto lanes = static_cast<uint32_t>(std::popcount(active));
    uint64_t executed = 0, flops = 0, read = 0, written = 0;
    bool again = false;
    while (!again) {
      if (pc >= stop && pc != self->pc) break;  // somebody waits here: merge
      const Instr& in = code[pc];
      uint32_t mask = active;
      if (in.guard != kNoRef) {
        const uint32_t p = *reinterpret_cast<const uint32_t*>(w_.registers + in.guard);
        mask &= in.guard_negated ? ~p : p;
      }
      ++executed;
      if (in.control == Control::kNone) {
        if (mask != 0) {
          w_.mask = mask;
          w_.current = &in;
          in.handler(w_, in);
          flops += in.flops;
          if (in.bytes_read | in.bytes_written) {
            const auto on = static_cast<uint32_t>(std::popcount(mask));
            read += in.bytes_read * on;
            written += in.bytes_written * on;
            stats.atomics += in.atomic ? on : 0;
          }
          w_.mask = active;
        }
        ++pc;
        continue;
      }
      w_.current = &in;
      self->pc = pc;
      switch (in.control) {
        case Control::kBranch:
          if (in.guard == kNoRef && in.target > pc && in.target < stop) {
            pc = in.target;  // the common jump ahead that meets nobody
            self->pc = pc;
            continue;
          }
          if (mask == active && in.target <= pc && w_.splits.size() == 1 && patience_ > 0) {
            --patience_;
            pc = in.target;
            self->pc = pc;
            continue;
          }
          Branch(mask, in.target);
          again = true;
          break;
        case Control::kBranchIndexed: {
          const auto* index = Lane<uint32_t>(w_, in.a);
          const std::vector<uint32_t>& targets = self->frame->code->targets[in.target];
          const uint32_t first = index[std::countr_zero(mask)];
          uint32_t same = 0;
          for (int i = 0; i < kLanes; ++i) {
            if ((mask >> i & 1) && index[i] == first) same |= 1u << i;
          }
          if (first >= targets.size()) {
            throw FaultError{Fault::kTrap, first, std::countr_zero(mask), "brx.idx out of range"};
          }
          if (same == active) {
            self->pc = targets[first];
          } else {
            Split other = *self;
            other.mask = same;
            other.pc = targets[first];
            self->mask &= ~same;
            w_.splits.push_back(std::move(other));
          }
          again = true;
          break;
        }
        case Control::kReturn:
        case Control::kExit:
          if (mask != active) {  // the others go on
            Split rest = *self;
            rest.mask = active & ~mask;
            rest.pc = pc + 1;
            self->mask = mask;
            w_.splits.push_back(std::move(rest));
          }
          if (mask != 0) {
            if (in.control == Control::kExit) {
              Exit(mask);
            } else {
              Return(mask);
            }
          } else {
            w_.splits.erase(w_.splits.begin() + static_cast<ptrdiff_t>(w_.running));
          }
          again = true;
          break;
        case Control::kBarrier:
          if (mask == 0) {
            self->pc = pc + 1;
          } else if (mask == active) {
            self->at_barrier = true;
          } else {
            Split rest = *self;
            rest.mask = active & ~mask;
            rest.pc = pc + 1;
            self->mask = mask;
            self->at_barrier = true;
            w_.splits.push_back(std::move(rest));
          }
          again = true;
          break;
        case Control::kConverge:
          if (mask == 0) {
            ++pc;
            self->pc = pc;
            continue;
          }
          w_.mask = mask;
          if (!Converged(in)) {
            self->blocked = true;
            again = true;
            break;
          }
          in.handler(w_, in);
          w_.mask = active;
          self->blocked = false;
          ++pc;
          self->pc = pc;
          continue;
        case Control::kCall:
          if (mask == 0) {
            ++pc;
            self->pc = pc;
            continue;
          }
          Call(in, mask);
          again = true;
          break;
        case Control::kTrap:
          if (mask != 0) throw FaultError{Fault::kTrap, 0, std::countr_zero(mask), "trap"};
          ++pc;
          continue;
        case Control::kNone:
          break;
      }
    }
    if (!again) self->pc = pc;
    stats.warp_instructions += executed;
    stats.lane_instructions += executed * lanes;
    stats.flops += flops * lanes;
    stats.global_read_bytes += read;
    stats.global_written_bytes += written;
    w_.block->clock += executed;
    if (patience_ == 0) {
      // Fairness: a lane may spin for what another one, or another warp, has yet to do.
      patience_ = kPatience;
      for (Split& split : w_.splits) split.blocked = split.tired = false;
      if (w_.splits.size() > 1) w_.splits[std::min(w_.running, w_.splits.size() - 1)].tired = true;
      return;
    }
  }
  w_.done = true;
}

}  // namespace

void StartWarp(Warp* warp, const Code* code, const uint8_t* params, size_t param_bytes) {
  Split split;
  split.mask = ~warp->exited;
  split.frame = NewFrame(code);
  for (int i = 0; i < kLanes; ++i) {
    std::memcpy(split.frame->params + static_cast<size_t>(i) * code->param_bytes, params,
                std::min<size_t>(param_bytes, code->param_bytes));
  }
  warp->splits.push_back(std::move(split));
}

void RunBlock(Block* block) {
  uint32_t idle = 0;
  for (;;) {
    bool progress = false, all_done = true, all_waiting = true;
    for (Warp& warp : block->warps) {
      if (warp.done) continue;
      if (!warp.waiting) {
        WarpRunner(warp).Run();
        progress |= warp.done || warp.waiting;
      }
      all_done &= warp.done;
      all_waiting &= warp.done || warp.waiting;
    }
    if (all_done) return;
    if (all_waiting) {
      for (Warp& warp : block->warps) {
        warp.waiting = false;
        for (Split& split : warp.splits) {
          if (!split.at_barrier) continue;
          split.at_barrier = false;
          ++split.pc;
        }
      }
      continue;
    }
    idle = progress ? 0 : idle + 1;
    if (idle > kMaxIdleRounds) {
      throw FaultError{Fault::kTimeout, 0, 0, "every warp waits for one that does not come"};
    }
  }
}

}  // namespace simgpu
