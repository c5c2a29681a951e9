#include "runtime/access/step_decoder.h"

#include <optional>
#include <string>

namespace tidepool {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

bool IsInteger(Type type) {
  switch (type) {
    case Type::kB8:
    case Type::kB16:
    case Type::kB32:
    case Type::kB64:
    case Type::kU8:
    case Type::kU16:
    case Type::kU32:
    case Type::kU64:
    case Type::kS8:
    case Type::kS16:
    case Type::kS32:
    case Type::kS64:
      return true;
    default:
      return false;
  }
}

bool IsSigned(Type type) {
  return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 || type == Type::kS64;
}

bool IsGlobalStore(const Instruction& in) {
  return in.opcode == "st" && (in.space == Space::kGlobal || in.space == Space::kGeneric);
}

Source SourceOf(const Operand& operand) {
  Source source;
  source.kind = Source::Kind::kUnknown;
  if (operand.kind == Operand::Kind::kRegister) {
    source.kind = Source::Kind::kRegister;
    source.reg = operand.reg;
    source.negated = operand.negated;
  } else if (operand.kind == Operand::Kind::kInteger) {
    source.kind = Source::Kind::kNumber;
    source.number = static_cast<int64_t>(operand.bits);
  } else if (operand.kind == Operand::Kind::kSpecial) {
    const std::string& name = operand.name;
    const auto axis = [&](size_t prefix) -> int64_t {
      return name.size() == prefix + 2 && name[prefix] == '.' && name.back() >= 'x' &&
                     name.back() <= 'z'
                 ? name.back() - 'x'
                 : -1;
    };
    const struct {
      const char* prefix;
      Source::Kind kind;
      int64_t first;
    } kSpecials[] = {{"%tid", Source::Kind::kCoordinate, 0},
                     {"%ctaid", Source::Kind::kCoordinate, 3},
                     {"%ntid", Source::Kind::kBlockDim, 0},
                     {"%nctaid", Source::Kind::kGridDim, 0}};
    for (const auto& special : kSpecials) {
      const std::string prefix = special.prefix;
      if (!name.starts_with(prefix) || axis(prefix.size()) < 0) continue;
      source.kind = special.kind;
      source.number = special.first + axis(prefix.size());
    }
    if (name == "%laneid") source.kind = Source::Kind::kLane;
  }
  return source;
}

std::optional<Comparison> ComparisonOf(const Instruction& in) {
  for (const auto& [mod, comparison] :
       {std::pair<const char*, Comparison>{"eq", Comparison::kEqual},
        {"ne", Comparison::kNotEqual},
        {"lt", Comparison::kLess},
        {"lo", Comparison::kLess},
        {"le", Comparison::kLessEqual},
        {"ls", Comparison::kLessEqual},
        {"gt", Comparison::kGreater},
        {"hi", Comparison::kGreater},
        {"ge", Comparison::kGreaterEqual},
        {"hs", Comparison::kGreaterEqual}}) {
    if (!in.mods.empty() && in.mods.front() == mod) return comparison;
  }
  return std::nullopt;
}

}  // namespace

void StepDecoder::Defines(const Operand& operand, std::vector<uint32_t>* out) {
  if (operand.kind == Operand::Kind::kRegister) out->push_back(operand.reg);
  for (const Operand& element : operand.elements) Defines(element, out);
  for (const Operand& second : operand.second) Defines(second, out);
}

std::vector<Step> StepDecoder::ParameterLoad(const Instruction& in) const {
  const Operand& to = in.operands[0];
  const Operand& from = in.operands[1];
  const bool known = from.reg == ptx::kNoIndex && from.param != ptx::kNoIndex &&
                     !from.is_return_param && IsInteger(in.type());
  std::vector<const Operand*> targets;
  if (to.kind == Operand::Kind::kVector) {
    for (const Operand& element : to.elements) targets.push_back(&element);
  } else {
    targets.push_back(&to);
  }
  std::vector<Step> steps;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i]->kind != Operand::Kind::kRegister) continue;
    Step step;
    step.d = targets[i]->reg;
    if (known) {
      step.kind = StepKind::kParam;
      step.bytes = ptx::SizeOf(in.type());
      step.is_signed = IsSigned(in.type());
      step.number = static_cast<int64_t>(entry_.params[from.param].offset +
                                         static_cast<uint64_t>(from.offset) + i * step.bytes);
      if (step.number < 0 || static_cast<uint64_t>(step.number) + step.bytes > entry_.param_bytes) {
        step.kind = StepKind::kUnknown;
      }
    }
    steps.push_back(step);
  }
  return steps;
}

bool StepDecoder::Predicate(const Instruction& in, Step* step) {
  const std::string& op = in.opcode;
  if (op == "setp") {
    const std::optional<Comparison> comparison = ComparisonOf(in);
    if (!comparison.has_value() || !IsInteger(in.type()) || in.operands.size() < 3) return false;
    step->kind = StepKind::kCompare;
    step->compare = *comparison;
    step->bits = static_cast<uint8_t>(8 * ptx::SizeOf(in.type()));
    step->is_signed = IsSigned(in.type());
    step->a = SourceOf(in.operands[1]);
    step->b = SourceOf(in.operands[2]);
    if (in.operands.size() > 3) {
      step->c = SourceOf(in.operands[3]);
      step->join = in.Has("and")   ? Join::kAnd
                   : in.Has("or")  ? Join::kOr
                   : in.Has("xor") ? Join::kXor
                                   : Join::kNone;
      if (step->join == Join::kNone) return false;
    }
    return step->d2 == ptx::kNoIndex;  // (the second result is the other comparison's)
  }
  if (in.type() != Type::kPred) return false;
  if (op == "and") step->kind = StepKind::kPredicateAnd;
  if (op == "or") step->kind = StepKind::kPredicateOr;
  if (op == "xor") step->kind = StepKind::kPredicateXor;
  if (op == "not") step->kind = StepKind::kPredicateNot;
  if (op == "mov") step->kind = StepKind::kMove;
  if (step->kind == StepKind::kUnknown || in.operands.size() < 2) return false;
  step->a = SourceOf(in.operands[1]);
  if (in.operands.size() > 2) step->b = SourceOf(in.operands[2]);
  if (op == "mov" && step->a.kind != Source::Kind::kRegister) return false;
  return true;
}

// What the operation does to integers; false if it is not followed.
bool StepDecoder::Arithmetic(const Instruction& in, Step* step) {
  const std::string& op = in.opcode;
  if (in.operands.size() < 2 || in.Has("sat") || in.Has("cc")) return false;
  step->a = SourceOf(in.operands[1]);
  if (in.operands.size() > 2) step->b = SourceOf(in.operands[2]);
  if (in.operands.size() > 3) step->c = SourceOf(in.operands[3]);
  if (op == "cvta") {
    step->kind = StepKind::kMove;
    return in.operands[1].kind == Operand::Kind::kRegister;
  }
  if (op == "cvt") {
    if (in.types.size() != 2 || !IsInteger(in.types[0]) || !IsInteger(in.types[1])) return false;
    step->kind = StepKind::kConvert;
    step->bits = static_cast<uint8_t>(8 * ptx::SizeOf(in.types[1]));
    step->is_signed = IsSigned(in.types[1]);
    step->to_bits = static_cast<uint8_t>(8 * ptx::SizeOf(in.types[0]));
    step->to_signed = IsSigned(in.types[0]);
    return true;
  }
  if (!IsInteger(in.type())) return false;
  step->bits = static_cast<uint8_t>(8 * ptx::SizeOf(in.type()));
  step->is_signed = IsSigned(in.type());
  if (op == "mov") {
    step->kind = StepKind::kMove;
    return true;
  }
  if (op == "mul" || op == "mad") {
    if (in.Has("lo")) {
      step->kind = StepKind::kMultiply;
    } else if (in.Has("wide")) {
      step->kind = StepKind::kWide;
    } else if (in.Has("hi")) {
      step->kind = StepKind::kHigh;
    } else {
      return false;
    }
    return true;
  }
  const struct {
    const char* opcode;
    StepKind kind;
  } kPlain[] = {
      {"add", StepKind::kAdd},        {"sub", StepKind::kSubtract}, {"shl", StepKind::kShiftLeft},
      {"shr", StepKind::kShiftRight}, {"div", StepKind::kDivide},   {"rem", StepKind::kRemainder},
      {"and", StepKind::kAnd},        {"or", StepKind::kOr},        {"not", StepKind::kNot},
      {"neg", StepKind::kNegate},     {"min", StepKind::kMin},      {"max", StepKind::kMax},
      {"selp", StepKind::kSelect}};
  for (const auto& plain : kPlain) {
    if (op == plain.opcode) step->kind = plain.kind;
  }
  if (op == "bfe" && !step->is_signed) step->kind = StepKind::kExtract;
  return step->kind != StepKind::kUnknown;
}

std::vector<Step> StepDecoder::Decode(const Instruction& in) const {
  std::vector<Step> steps;
  if (IsGlobalStore(in)) {
    if (in.operands.empty()) return steps;
    const Operand& address = in.operands[0];
    if (address.reg == ptx::kNoIndex) return steps;  // a variable of the module
    Step step;
    step.kind = StepKind::kStore;
    step.a.kind = Source::Kind::kRegister;
    step.a.reg = address.reg;
    step.number = address.offset;
    step.bytes = ptx::SizeOf(in.type()) * in.vector;
    if (step.bytes > 0) steps.push_back(step);
  } else if (in.opcode == "ld" && in.space == Space::kParam && in.operands.size() == 2) {
    steps = ParameterLoad(in);
  } else if (in.opcode != "st" && in.opcode != "red" && !in.operands.empty()) {
    std::vector<uint32_t> defined;
    Defines(in.operands[0], &defined);
    for (const Operand& operand : in.call_returns) Defines(operand, &defined);
    Step step;
    if (defined.size() == 1 && in.operands[0].kind == Operand::Kind::kRegister &&
        in.opcode != "call") {
      step.d = defined[0];
      if (!Predicate(in, &step)) {
        step.kind = StepKind::kUnknown;
        if (!Arithmetic(in, &step)) step.kind = StepKind::kUnknown;
      }
      steps.push_back(step);
    } else {
      for (uint32_t reg : defined) {
        step.d = reg;
        steps.push_back(step);
      }
    }
  }
  if (in.guard != ptx::kNoIndex) {
    for (Step& step : steps) {
      step.guard.kind = Source::Kind::kRegister;
      step.guard.reg = in.guard;
      step.guard.negated = in.guard_negated;
    }
  }
  return steps;
}

}  // namespace tidepool
