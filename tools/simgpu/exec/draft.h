// Code in the making: instructions whose operands are numbered values. FinishCode finds out how
// long each value lives and gives it a place in the register file, so that a function needs as
// few lane arrays as it has values alive at once.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "tools/simgpu/exec/code.h"

namespace simgpu {

enum class ValueClass : uint8_t { kPredicate, k32, k64 };

struct Value {
  ValueClass kind = ValueClass::k32;
  bool constant = false;
  bool pinned = false;  // has a place of its own, for it is used behind the code's back
  uint64_t bits = 0;    // of a constant
};

// Instr's operands are indices of values here; `target` of a branch is an index of the PTX body.
struct Draft {
  Instr instr;
  Cost cost;
  // More operands (vector loads and stores).
  std::vector<Ref> list;
  bool list_written = false;
  bool polls = false;            // reads what another thread may change: a loop round it may wait
  bool polls_global = false;     // ... a thread of another block
  bool ordered = false;          // its effect depends on the order of blocks
  bool ordered_if_used = false;  // ... where somebody uses its result
};

class DraftCode {
 public:
  Ref NewValue(ValueClass kind) {
    values.push_back({kind, false, false, 0});
    return static_cast<Ref>(values.size() - 1);
  }
  Ref Constant(ValueClass kind, uint64_t bits) {
    if (kind != ValueClass::k64) bits &= 0xffffffffu;
    auto [it, inserted] = constants_.try_emplace({kind, bits}, 0);
    if (inserted) {
      it->second = NewValue(kind);
      values.back().constant = true;
      values.back().bits = bits;
    }
    return it->second;
  }

  std::vector<Value> values;
  std::vector<Draft> drafts;
  std::vector<uint32_t> starts;  // the first draft of each PTX instruction, and one at the end
  std::vector<std::vector<uint32_t>> branch_tables;  // of PTX body indices

 private:
  std::map<std::pair<ValueClass, uint64_t>, Ref> constants_;
};

// Fills code->instrs and everything that follows from them.
void FinishCode(DraftCode* draft, Code* code);

}  // namespace simgpu
