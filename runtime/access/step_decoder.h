// What one PTX instruction means to a footprint: internal to runtime/access. A pure function of the
// syntax tree; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/ast.h"
#include "runtime/access/footprint_program.h"

namespace tidepool {

class StepDecoder {
 public:
  explicit StepDecoder(const ptx::Function& entry) : entry_(entry) {}
  // Steps of one instruction, by its meaning.
  std::vector<Step> Decode(const ptx::Instruction& in) const;

 private:
  static bool Arithmetic(const ptx::Instruction& in, Step* step);
  static bool Predicate(const ptx::Instruction& in, Step* step);
  std::vector<Step> ParameterLoad(const ptx::Instruction& in) const;
  static void Defines(const ptx::Operand& operand, std::vector<uint32_t>* out);

  const ptx::Function& entry_;
};

}  // namespace tidepool
