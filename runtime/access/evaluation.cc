#include "runtime/access/evaluation.h"

#include <cstring>

namespace tidepool {
namespace {

// Steps and divisions of one evaluation, after which it stops with what it has.
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
constexpr uint64_t kMaxSteps = uint64_t{1} << 13;  // an instrumented step takes its time
#else
constexpr uint64_t kMaxSteps = uint64_t{1} << 22;
#endif
constexpr size_t kMaxPaths = size_t{1} << 16;
// Registers of all waiting paths together: a kernel may have many thousands of its own.
constexpr size_t kMaxWaitingRegisters = size_t{1} << 21;

}  // namespace

Value Evaluation::Parameter(const Step& step) const {
  Value value;
  const auto at = static_cast<uint32_t>(step.number);
  for (uint32_t pointer : pointers_) {
    if (at >= pointer + 8 || at + step.bytes <= pointer) continue;
    if (at != pointer || step.bytes != 8) return value;  // half an address
    value.kind = Value::Kind::kForm;
    value.form.base = static_cast<int32_t>(pointer);
    return value;
  }
  if (at + step.bytes > parameters_.size()) return value;
  uint64_t bits = 0;
  std::memcpy(&bits, parameters_.data() + at, step.bytes);
  const int shift = 64 - 8 * static_cast<int>(step.bytes);
  const auto extended = static_cast<int64_t>(bits << shift) >> shift;
  value.kind = Value::Kind::kForm;
  value.form = Constant(step.is_signed ? Wide{extended} : Wide{bits});
  return value;
}

Value Evaluation::Read(const Source& source, const Path& path) const {
  Value value;
  switch (source.kind) {
    case Source::Kind::kRegister: {
      value = path.registers[source.reg];
      if (source.negated) value.truth = !value.truth;
      return value;
    }
    case Source::Kind::kNumber:
      value.form = Constant(source.number);
      break;
    case Source::Kind::kCoordinate:
      value.form.coefficient[source.number] = 1;
      break;
    case Source::Kind::kBlockDim:
      value.form = Constant(shape_.block[source.number]);
      break;
    case Source::Kind::kGridDim:
      value.form = Constant(shape_.grid[source.number]);
      break;
    default:
      return value;
  }
  value.kind = Value::Kind::kForm;
  return value;
}

Result Evaluation::Execute(const Step& step, const Path& path) {
  switch (step.kind) {
    case StepKind::kUnknown:
    case StepKind::kStore:
      return Unknown();
    case StepKind::kParam: {
      Result result;
      result.value = Parameter(step);
      return result;
    }
    case StepKind::kCompare:
      return Compare(step, path);
    case StepKind::kSelect: {
      const Value which = Read(step.c, path);
      if (which.kind != Value::Kind::kPredicate) return Unknown();
      Result result;
      result.value = Read(which.truth ? step.a : step.b, path);
      return result;
    }
    case StepKind::kPredicateAnd:
    case StepKind::kPredicateOr:
    case StepKind::kPredicateXor:
    case StepKind::kPredicateNot: {
      const Value a = Read(step.a, path), b = Read(step.b, path);
      const bool has_a = a.kind == Value::Kind::kPredicate,
                 has_b = b.kind == Value::Kind::kPredicate;
      if (step.kind == StepKind::kPredicateNot) return has_a ? Of(!a.truth) : Unknown();
      const bool absorbing = step.kind == StepKind::kPredicateOr;
      if (step.kind != StepKind::kPredicateXor &&
          ((has_a && a.truth == absorbing) || (has_b && b.truth == absorbing))) {
        return Of(absorbing);
      }
      if (!has_a || !has_b) return Unknown();
      if (step.kind == StepKind::kPredicateXor) return Of(a.truth != b.truth);
      return Of(!absorbing);
    }
    case StepKind::kMove:
      if (step.a.kind == Source::Kind::kLane) {
        // The place in the warp: threads are counted along x, then y, then z.
        AffineForm linear;
        linear.coefficient[0] = 1;
        linear.coefficient[1] = shape_.block[0];
        linear.coefficient[2] = Wide{shape_.block[0]} * shape_.block[1];
        return Modulo(linear, 32, path.box);
      }
      if (const Value a = Read(step.a, path); a.kind == Value::Kind::kPredicate) {
        return Of(a.truth);
      }
      return Arithmetic(step, path);
    default:
      return Arithmetic(step, path);
  }
}

void Evaluation::Store(const Step& step, const Path& path) {
  const Value address = Read(step.a, path);
  if (address.kind != Value::Kind::kForm || address.form.base == kNoBase) return;
  AffineForm form = address.form;
  form.constant += step.number;
  written_[static_cast<uint32_t>(form.base)].Add(form, path.box, step.bytes);
}

void Evaluation::Divide(Path path, Cut cut) {
  // Each part keeps at least one thread, so this comes to an end.
  Path rest = path;
  path.box.hi[cut.axis] = cut.at - 1;
  rest.box.lo[cut.axis] = cut.at;
  waiting_.push_back(std::move(rest));
  waiting_.push_back(std::move(path));
}

void Evaluation::Follow(Path path) {
  for (;;) {
    if (path.block == program_.exit) return;
    const SlicedBlock& block = program_.blocks[path.block];
    for (; path.step < block.steps.size(); ++path.step) {
      if (++steps_ > kMaxSteps) return;
      const Step& step = block.steps[path.step];
      if (step.guard.kind != Source::Kind::kNone) {
        const Value guard = Read(step.guard, path);
        if (guard.kind != Value::Kind::kPredicate) {
          if (step.d != ptx::kNoIndex) path.registers[step.d] = Value();
          if (step.d2 != ptx::kNoIndex) path.registers[step.d2] = Value();
          continue;
        }
        if (!guard.truth) continue;
      }
      if (step.kind == StepKind::kStore) {
        Store(step, path);
        continue;
      }
      const Result result = Execute(step, path);
      if (result.cut.has_value()) {
        Divide(std::move(path), *result.cut);
        return;
      }
      if (step.d != ptx::kNoIndex) path.registers[step.d] = result.value;
      if (step.d2 != ptx::kNoIndex) path.registers[step.d2] = Value();
    }
    ++steps_;
    if (block.successors.empty()) return;
    uint32_t next = block.successors[0];
    if (block.skips) {
      next = block.postdominator;
    } else if (block.successors.size() > 1) {
      const Value condition = Read(block.condition, path);
      if (block.decided && condition.kind == Value::Kind::kPredicate) {
        next = block.successors[condition.truth ? 0 : 1];
      } else {
        // Some threads go one way and some the other: what they do there does not count, and what
        // they change is unknown where they meet again.
        for (uint32_t reg : block.region_defines) path.registers[reg] = Value();
        next = block.postdominator;
      }
    }
    if (next == kNoBlock || steps_ > kMaxSteps) return;
    path.block = next;
    path.step = 0;
  }
}

Footprint Evaluation::Run() {
  Path start;
  for (int i = 0; i < 3; ++i) {
    if (shape_.block[i] == 0 || shape_.grid[i] == 0) return {};
    start.box.hi[i] = int64_t{shape_.block[i]} - 1;
    start.box.hi[i + 3] = int64_t{shape_.grid[i]} - 1;
  }
  start.registers.resize(program_.registers);
  waiting_.push_back(std::move(start));
  const size_t max_paths =
      std::min(kMaxPaths, kMaxWaitingRegisters / std::max<size_t>(1, program_.registers));
  while (!waiting_.empty() && steps_ <= kMaxSteps && waiting_.size() <= max_paths) {
    // A path's registers are copied when it is divided.
    steps_ += program_.registers / 16;
    Path path = std::move(waiting_.back());
    waiting_.pop_back();
    Follow(std::move(path));
  }
  Footprint footprint;
  for (auto& [offset, bytes] : written_) footprint.push_back({offset, bytes.Ranges()});
  return footprint;
}

}  // namespace tidepool
