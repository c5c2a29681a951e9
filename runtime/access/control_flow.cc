#include "runtime/access/control_flow.h"

#include <algorithm>

namespace tidepool {
namespace {

using ptx::Instruction;
using ptx::Operand;

bool EndsBlock(const Instruction& in) {
  return in.opcode == "bra" || in.opcode == "brx" || in.opcode == "ret" || in.opcode == "exit" ||
         in.opcode == "trap";
}

}  // namespace

ControlFlow::ControlFlow(const ptx::Function& function) {
  const std::vector<Instruction>& body = function.body;
  const auto size = static_cast<uint32_t>(body.size());
  std::vector<bool> starts(size + 1, false);
  starts[0] = true;
  const auto targets = [&](const Instruction& in) {
    std::vector<uint32_t> indices;
    for (const Operand& operand : in.operands) {
      if (operand.kind == Operand::Kind::kLabel) {
        indices.push_back(static_cast<uint32_t>(operand.bits));
      }
      if (in.opcode != "brx") continue;
      for (const ptx::Function::TargetList& list : function.target_lists) {
        if (list.name != operand.name) continue;
        indices.insert(indices.end(), list.indices.begin(), list.indices.end());
      }
    }
    return indices;
  };
  for (uint32_t i = 0; i < size; ++i) {
    if (!EndsBlock(body[i])) continue;
    starts[i + 1] = true;
    for (uint32_t target : targets(body[i])) starts[std::min(target, size)] = true;
  }
  std::vector<uint32_t> block_of(size + 1, 0);
  for (uint32_t i = 0; i < size; ++i) {
    if (starts[i]) {
      blocks_.emplace_back();
      blocks_.back().begin = i;
    }
    block_of[i] = static_cast<uint32_t>(blocks_.size()) - 1;
    blocks_.back().end = i + 1;
  }
  block_of[size] = exit();
  for (BasicBlock& block : blocks_) {
    const Instruction& last = body[block.end - 1];
    const uint32_t next = block_of[block.end];
    const bool guarded = last.guard != ptx::kNoIndex;
    if (last.opcode == "bra" || last.opcode == "brx") {
      for (uint32_t target : targets(last)) block.successors.push_back(block_of[target]);
      block.indexed = last.opcode == "brx";
    } else if (last.opcode == "ret" || last.opcode == "exit") {
      block.successors.push_back(exit());
    } else if (last.opcode != "trap") {
      block.successors.push_back(next);
      continue;
    }
    if (!guarded) continue;
    block.conditional = last.opcode != "trap" && !block.indexed;
    block.successors.push_back(next);
  }
  FindPostdominators();
}

void ControlFlow::FindPostdominators() {
  // Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm", on the reversed graph.
  const uint32_t count = exit() + 1;
  std::vector<std::vector<uint32_t>> before(count);
  for (uint32_t b = 0; b < exit(); ++b) {
    for (uint32_t s : blocks_[b].successors) before[s].push_back(b);
  }
  std::vector<uint32_t> order;  // postorder of the reversed graph, from the exit
  std::vector<uint32_t> number(count, kNoBlock);
  std::vector<std::pair<uint32_t, size_t>> stack = {{exit(), 0}};
  std::vector<bool> seen(count, false);
  seen[exit()] = true;
  while (!stack.empty()) {
    auto& [block, next] = stack.back();
    if (next < before[block].size()) {
      const uint32_t to = before[block][next++];
      if (!seen[to]) {
        seen[to] = true;
        stack.emplace_back(to, 0);
      }
      continue;
    }
    number[block] = static_cast<uint32_t>(order.size());
    order.push_back(block);
    stack.pop_back();
  }
  std::vector<uint32_t> dominator(count, kNoBlock);
  dominator[exit()] = exit();
  for (bool again = true; again;) {
    again = false;
    for (size_t i = order.size() - 1; i-- > 0;) {
      const uint32_t block = order[i];
      uint32_t meet = kNoBlock;
      for (uint32_t s : blocks_[block].successors) {
        if (dominator[s] == kNoBlock) continue;
        uint32_t other = s;
        if (meet == kNoBlock) {
          meet = other;
          continue;
        }
        while (meet != other) {
          while (number[meet] < number[other]) meet = dominator[meet];
          while (number[other] < number[meet]) other = dominator[other];
        }
      }
      if (meet != dominator[block]) {
        dominator[block] = meet;
        again = true;
      }
    }
  }
  for (uint32_t b = 0; b < exit(); ++b) blocks_[b].postdominator = dominator[b];
}

std::vector<uint32_t> ControlFlow::Region(uint32_t block) const {
  std::vector<bool> seen(exit() + 1, false);
  std::vector<uint32_t> region, work(blocks_[block].successors);
  while (!work.empty()) {
    const uint32_t b = work.back();
    work.pop_back();
    if (b == exit() || b == blocks_[block].postdominator || seen[b]) continue;
    seen[b] = true;
    region.push_back(b);
    work.insert(work.end(), blocks_[b].successors.begin(), blocks_[b].successors.end());
  }
  return region;
}

}  // namespace tidepool
