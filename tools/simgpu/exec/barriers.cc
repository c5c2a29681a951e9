#include "tools/simgpu/exec/barriers.h"

#include <bit>

#include "tools/simgpu/exec/lanes.h"

namespace simgpu {
namespace {

bool Complete(const Block& block, const Barrier& barrier) {
  if (barrier.lanes == 0) return false;
  return barrier.expected == 0 ? barrier.lanes >= block.live_threads
                               : barrier.counted >= barrier.expected;
}

// The result of a reduction, for the lanes that waited for it.
void Deliver(const Split& split, const Barrier& barrier) {
  const Instr& in = split.frame->code->instrs[split.pc];
  uint8_t* registers = split.frame->registers;
  switch (static_cast<BarrierKind>(in.aux)) {
    case BarrierKind::kRedPopc:
      ForLanes(split.mask,
               [&](int i) { reinterpret_cast<uint32_t*>(registers + in.d)[i] = barrier.popc; });
      return;
    case BarrierKind::kRedAnd:
    case BarrierKind::kRedOr: {
      const bool result =
          static_cast<BarrierKind>(in.aux) == BarrierKind::kRedAnd ? barrier.all : barrier.any;
      auto* p = reinterpret_cast<uint32_t*>(registers + in.d);
      *p = (*p & ~split.mask) | (result ? split.mask : 0);
      return;
    }
    case BarrierKind::kSync:
    case BarrierKind::kArrive:
      return;
  }
}

void Release(Block* block, uint8_t id) {
  const Barrier done = block->barriers[id];
  block->barriers[id] = Barrier{};
  for (Warp& warp : block->warps) {
    for (Split& split : warp.splits) {
      if (split.state != Split::State::kBarrier || split.barrier != id) continue;
      Deliver(split, done);
      split.state = Split::State::kReady;
      ++split.pc;
      warp.blocked = false;
    }
  }
}

}  // namespace

// a: which barrier; b: how many threads (none: all); c: a predicate, negated by imm.
void ArriveAtBarrier(Warp& w, const Instr& in) {
  Block* block = w.block;
  Split* self = &w.splits[w.running];
  const int lane = std::countr_zero(self->mask);
  const uint32_t* ids = Lane<uint32_t>(w, in.a);
  const uint32_t id = ids[lane];
  if (id >= kBarriers) ThrowFault(Fault::kTrap, id, lane, "barrier beyond 15");
  uint32_t same = 0;
  ForLanes(self->mask, [&](int i) { same |= static_cast<uint32_t>(ids[i] == id) << i; });
  if (same != self->mask) {  // the others come here again
    Split rest = *self;
    rest.mask &= ~same;
    self->mask = same;
    w.splits.push_back(std::move(rest));
    self = &w.splits[w.running];
  }
  const auto kind = static_cast<BarrierKind>(in.aux);
  const uint32_t expected = in.b == kNoRef ? 0 : Lane<uint32_t>(w, in.b)[lane];
  if (expected % kLanes != 0) {
    ThrowFault(Fault::kTrap, expected, lane, "a barrier's thread count is no multiple of 32");
  }
  Barrier& barrier = block->barriers[id];
  const auto lanes = static_cast<uint32_t>(std::popcount(same));
  barrier.lanes += lanes;
  barrier.counted += (same | w.exited) == kAllLanes ? kLanes : lanes;
  barrier.expected = expected;
  if (in.c != kNoRef) {
    const uint32_t p = (Pred(w, in.c) ^ (in.imm != 0 ? kAllLanes : 0)) & same;
    barrier.popc += static_cast<uint32_t>(std::popcount(p));
    barrier.all = barrier.all && p == same;
    barrier.any = barrier.any || p != 0;
  }
  if (kind == BarrierKind::kArrive) {
    ++self->pc;
  } else {
    self->state = Split::State::kBarrier;
    self->barrier = static_cast<uint8_t>(id);
  }
  if (Complete(*block, barrier)) Release(block, static_cast<uint8_t>(id));
}

void ThreadsExited(Block* block, uint32_t threads) {
  block->live_threads -= threads;
  for (uint8_t id = 0; id < kBarriers; ++id) {
    const Barrier& barrier = block->barriers[id];
    if (barrier.expected == 0 && Complete(*block, barrier)) Release(block, id);
  }
}

}  // namespace simgpu
