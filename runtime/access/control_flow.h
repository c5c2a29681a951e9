// The control flow graph of one PTX function: basic blocks and postdominators. A pure function of
// the syntax tree; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/ast.h"

namespace tidepool {

inline constexpr uint32_t kNoBlock = 0xffffffffu;

struct BasicBlock {
  uint32_t begin = 0, end = 0;  // instructions [begin, end) of the body
  // Where it goes. A conditional branch has the taken side first, then the other. Leaving the
  // function goes to ControlFlow::exit(); a trap goes nowhere (the whole launch fails then).
  std::vector<uint32_t> successors;
  // The first block that every way from here to the exit passes; kNoBlock if no way leads there.
  uint32_t postdominator = kNoBlock;
  bool conditional = false;  // ends with a guarded branch, return or exit
  bool indexed = false;      // ends with brx.idx
};

class ControlFlow {
 public:
  explicit ControlFlow(const ptx::Function& function);

  const std::vector<BasicBlock>& blocks() const { return blocks_; }
  uint32_t exit() const { return static_cast<uint32_t>(blocks_.size()); }
  // The blocks on the ways from `block` to its postdominator, both excluded.
  std::vector<uint32_t> Region(uint32_t block) const;

 private:
  void FindPostdominators();
  std::vector<BasicBlock> blocks_;
};

}  // namespace tidepool
