// The slice of a kernel that decides where it stores: internal to runtime/access.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ptx/ast.h"
#include "runtime/access/control_flow.h"

namespace tidepool {

struct Source {
  enum class Kind : uint8_t {
    kNone,
    kRegister,
    kNumber,
    kCoordinate,  // `number`: 0 to 5, as in affine.h
    kBlockDim,    // `number`: 0 to 2
    kGridDim,
    kLane,
    kUnknown,
  };
  Kind kind = Kind::kNone;
  bool negated = false;  // predicates
  uint32_t reg = 0;
  int64_t number = 0;
};

enum class StepKind : uint8_t {
  kMove,      // d = a
  kParam,     // d = the parameter block at `number`
  kAdd,       // d = a + b
  kSubtract,  // d = a - b
  kMultiply,  // d = low part of a * b, + c if given
  kWide,      // d = a * b in twice the width, + c if given
  kHigh,      // d = high part of a * b, + c if given
  kShiftLeft,
  kShiftRight,
  kDivide,
  kRemainder,
  kAnd,
  kOr,
  kNot,
  kNegate,
  kMin,
  kMax,
  kConvert,  // d = a, read as `bits` wide; kept as `to_bits`
  kExtract,  // bfe: d = b bits wide field at c... (a, position b, length c)
  kCompare,  // d = a ? b, `compare`
  kSelect,   // d = c ? a : b
  kPredicateAnd,
  kPredicateOr,
  kPredicateXor,
  kPredicateNot,
  kStore,    // `bytes` at a + number
  kUnknown,  // d and d2 are unknown
};
enum class Comparison : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
enum class Join : uint8_t { kNone, kAnd, kOr, kXor };  // setp with a predicate operand

struct Step {
  StepKind kind = StepKind::kUnknown;
  Comparison compare = Comparison::kEqual;
  Join join = Join::kNone;
  bool is_signed = false;
  bool to_signed = false;
  uint8_t bits = 32;  // width of the operation
  uint8_t to_bits = 32;
  uint32_t d = ptx::kNoIndex, d2 = ptx::kNoIndex;
  Source a, b, c;
  Source guard;  // kNone: always
  int64_t number = 0;
  uint32_t bytes = 0;
};

struct SlicedBlock {
  std::vector<Step> steps;
  std::vector<uint32_t> successors;
  uint32_t postdominator = kNoBlock;
  // The branch at the end: kNone goes to the first successor. One that decides nothing in the slice
  // is passed over: `skips`.
  Source condition;
  bool decided = true;  // false: an indexed branch, never followed
  bool skips = false;
  std::vector<uint32_t> region_defines;  // registers that become unknown where it is not followed
};

struct ParameterUse {
  uint32_t offset = 0, bytes = 0;
  bool operator<(const ParameterUse& other) const {
    return offset != other.offset ? offset < other.offset : bytes < other.bytes;
  }
};

struct FootprintProgram {
  std::vector<SlicedBlock> blocks;
  uint32_t exit = 0;
  uint32_t registers = 0;
  std::vector<ParameterUse> parameters;  // that the slice reads
};

// Null if there is nothing to follow.
std::unique_ptr<FootprintProgram> Slice(const ptx::Module& module, const ptx::Function& entry);

}  // namespace tidepool
