#include "runtime/access/footprint.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "runtime/access/footprint_program.h"

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
// Answers kept per kernel.
constexpr size_t kMaxKnown = 1024;

// A register's value for all threads of the box.
struct Value {
  enum class Kind : uint8_t { kUnknown, kForm, kPredicate } kind = Kind::kUnknown;
  bool truth = false;
  AffineForm form;  // congruent to the register's content, modulo its width
};

// The threads of a box at one point of the program.
struct Path {
  Box box;
  uint32_t block = 0;
  uint32_t step = 0;
  std::vector<Value> registers;
};

// Thrown nowhere: an operation either has a value, or says where the box must be cut.
struct Result {
  Value value;
  std::optional<Cut> cut;
};

Wide PowerOfTwo(int bits) { return Wide{1} << bits; }

class Evaluation {
 public:
  Evaluation(const FootprintProgram& program, const LaunchShape& shape,
             std::span<const uint8_t> parameters, std::span<const uint32_t> pointers)
      : program_(program), shape_(shape), parameters_(parameters), pointers_(pointers) {}

  Footprint Run();

 private:
  // Goes on until the path ends or has been cut in two.
  void Follow(Path path);
  Result Execute(const Step& step, const Path& path);
  Result Arithmetic(const Step& step, const Path& path);
  Value Read(const Source& source, const Path& path) const;
  Value Parameter(const Step& step) const;
  void Store(const Step& step, const Path& path);
  // The form as a number of so many bits, signed or not; its range is within the type's.
  Result Typed(const Value& value, int bits, bool is_signed, const Box& box) const;
  void Divide(Path path, Cut cut);

  static Result Unknown() { return {}; }
  static Result Of(std::optional<AffineForm> form) {
    Result result;
    if (form.has_value()) {
      result.value.kind = Value::Kind::kForm;
      result.value.form = *form;
    }
    return result;
  }
  static Result Of(bool truth) {
    Result result;
    result.value.kind = Value::Kind::kPredicate;
    result.value.truth = truth;
    return result;
  }
  static Result At(Cut cut) {
    Result result;
    result.cut = cut;
    return result;
  }
  static Result Floor(const AffineForm& form, Wide divisor, const Box& box) {
    if (form.base != kNoBase) return Unknown();
    Decision<AffineForm> quotient = DivideFloor(form, divisor, box);
    return quotient.answer.has_value() ? Of(*quotient.answer) : At(quotient.cut);
  }
  // form modulo `divisor`.
  static Result Modulo(const AffineForm& form, Wide divisor, const Box& box) {
    Result quotient = Floor(form, divisor, box);
    if (quotient.cut.has_value() || quotient.value.kind != Value::Kind::kForm) return quotient;
    const std::optional<AffineForm> whole = Multiply(quotient.value.form, divisor);
    return whole.has_value() ? Of(Subtract(form, *whole)) : Unknown();
  }
  Result Masked(const AffineForm& form, uint64_t mask, int bits, const Box& box) const;
  Result Compare(const Step& step, const Path& path);

  const FootprintProgram& program_;
  const LaunchShape& shape_;
  std::span<const uint8_t> parameters_;
  std::span<const uint32_t> pointers_;
  std::vector<Path> waiting_;
  uint64_t steps_ = 0;
  std::map<uint32_t, WrittenBytes> written_;  // by parameter word
};

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

Result Evaluation::Typed(const Value& value, int bits, bool is_signed, const Box& box) const {
  if (value.kind != Value::Kind::kForm) return Unknown();
  if (value.form.base != kNoBase)
    return Of(value.form);  // an address: what is done with it decides
  const Wide modulus = PowerOfTwo(bits);
  const Wide lowest = is_signed ? -modulus / 2 : 0;
  AffineForm shifted = value.form;
  shifted.constant -= lowest;
  const Interval range = RangeOf(shifted, box);
  const Wide turns = FloorDivide(range.min, modulus);
  if (turns == FloorDivide(range.max, modulus)) {
    AffineForm form = value.form;
    form.constant -= turns * modulus;
    return Of(form);
  }
  // It wraps somewhere in the box.
  Decision<AffineForm> quotient = DivideFloor(shifted, modulus, box);
  if (!quotient.answer.has_value()) return At(quotient.cut);
  const std::optional<AffineForm> whole = Multiply(*quotient.answer, modulus);
  return whole.has_value() ? Of(Subtract(value.form, *whole)) : Unknown();
}

Result Evaluation::Masked(const AffineForm& form, uint64_t mask, int bits, const Box& box) const {
  if (form.base != kNoBase) return Unknown();
  if (bits < 64) mask &= (uint64_t{1} << bits) - 1;
  if (mask == 0) return Of(Constant(0));
  // One run of ones, from bit `low` up to `high`.
  const int low = __builtin_ctzll(mask);
  const uint64_t run = mask >> low;
  if ((run & (run + 1)) != 0) return Unknown();
  const int high = low + 64 - __builtin_clzll(run);
  Result upper = high >= bits ? Typed({Value::Kind::kForm, false, form}, bits, false, box)
                              : Modulo(form, PowerOfTwo(high), box);
  if (low == 0 || upper.cut.has_value() || upper.value.kind != Value::Kind::kForm) return upper;
  Result lower = Modulo(upper.value.form, PowerOfTwo(low), box);
  if (lower.cut.has_value() || lower.value.kind != Value::Kind::kForm) return lower;
  return Of(Subtract(upper.value.form, lower.value.form));
}

Result Evaluation::Compare(const Step& step, const Path& path) {
  const auto joined = [&](bool truth) -> Result {
    if (step.join == Join::kNone) return Of(truth);
    const Value other = Read(step.c, path);
    const bool known = other.kind == Value::Kind::kPredicate;
    if (step.join == Join::kAnd && !truth) return Of(false);
    if (step.join == Join::kOr && truth) return Of(true);
    if (!known) return Unknown();
    if (step.join == Join::kXor) return Of(truth != other.truth);
    return Of(other.truth);
  };
  // (a AND an unknown predicate that is known to be false needs no comparison.)
  if (step.join == Join::kAnd || step.join == Join::kOr) {
    const Value other = Read(step.c, path);
    if (other.kind == Value::Kind::kPredicate && other.truth == (step.join == Join::kOr)) {
      return Of(other.truth);
    }
  }
  const Result a = Typed(Read(step.a, path), step.bits, step.is_signed, path.box);
  if (a.cut.has_value() || a.value.kind != Value::Kind::kForm) return a;
  const Result b = Typed(Read(step.b, path), step.bits, step.is_signed, path.box);
  if (b.cut.has_value() || b.value.kind != Value::Kind::kForm) return b;
  const std::optional<AffineForm> difference = Subtract(a.value.form, b.value.form);
  // (Of addresses it is not known whether they wrap.)
  if (!difference.has_value() || a.value.form.base != kNoBase || b.value.form.base != kNoBase) {
    return Unknown();
  }
  const auto sign = [&](const AffineForm& form) { return IsNonNegative(form, path.box); };
  AffineForm less = *difference;  // a - b - 1 >= 0 means a > b
  less.constant -= 1;
  switch (step.compare) {
    case Comparison::kLess:
    case Comparison::kGreaterEqual: {
      const Decision<bool> d = sign(*difference);
      if (!d.answer.has_value()) return At(d.cut);
      return joined(*d.answer == (step.compare == Comparison::kGreaterEqual));
    }
    case Comparison::kLessEqual:
    case Comparison::kGreater: {
      const Decision<bool> d = sign(less);
      if (!d.answer.has_value()) return At(d.cut);
      return joined(*d.answer == (step.compare == Comparison::kGreater));
    }
    case Comparison::kEqual:
    case Comparison::kNotEqual: {
      const Decision<bool> not_below = sign(*difference);
      if (!not_below.answer.has_value()) return At(not_below.cut);
      bool equal = false;
      if (*not_below.answer) {
        const Decision<bool> above = sign(less);
        if (!above.answer.has_value()) return At(above.cut);
        equal = !*above.answer;
      }
      return joined(equal == (step.compare == Comparison::kEqual));
    }
  }
  return Unknown();
}

Result Evaluation::Arithmetic(const Step& step, const Path& path) {
  const Box& box = path.box;
  const Value a = Read(step.a, path), b = Read(step.b, path), c = Read(step.c, path);
  const bool has_a = a.kind == Value::Kind::kForm, has_b = b.kind == Value::Kind::kForm;
  if (!has_a) return Unknown();
  const auto constant = [&](const Value& value, int bits, bool is_signed) -> std::optional<Wide> {
    const Result typed = Typed(value, bits, is_signed, box);
    if (typed.cut.has_value() || typed.value.kind != Value::Kind::kForm) return std::nullopt;
    const AffineForm reduced = Reduced(typed.value.form, box);
    if (!reduced.IsConstant()) return std::nullopt;
    return reduced.constant;
  };
  // + c, for the multiply-adds.
  const auto plus = [&](std::optional<AffineForm> product) -> Result {
    if (step.c.kind == Source::Kind::kNone || !product.has_value()) return Of(product);
    if (c.kind != Value::Kind::kForm) return Unknown();
    return Of(Add(*product, c.form));
  };
  // The product of two operands as numbers of the type.
  const auto product = [&](std::optional<AffineForm>* out) -> std::optional<Cut> {
    const Result x = Typed(a, step.bits, step.is_signed, box);
    if (x.cut.has_value()) return x.cut;
    const Result y = Typed(b, step.bits, step.is_signed, box);
    if (y.cut.has_value()) return y.cut;
    if (x.value.kind != Value::Kind::kForm || y.value.kind != Value::Kind::kForm) return {};
    const AffineForm fx = Reduced(x.value.form, box), fy = Reduced(y.value.form, box);
    if (fy.IsConstant()) {
      *out = Multiply(fx, fy.constant);
    } else if (fx.IsConstant()) {
      *out = Multiply(fy, fx.constant);
    }
    return {};
  };
  switch (step.kind) {
    case StepKind::kMove:
      return Of(a.form);
    case StepKind::kAdd:
      return has_b ? Of(Add(a.form, b.form)) : Unknown();
    case StepKind::kSubtract:
      return has_b ? Of(Subtract(a.form, b.form)) : Unknown();
    case StepKind::kMultiply: {
      // Modulo the width the signs do not matter: the smaller numbers are taken.
      if (!has_b) return Unknown();
      if (auto factor = constant(b, step.bits, true)) return plus(Multiply(a.form, *factor));
      if (auto factor = constant(a, step.bits, true)) return plus(Multiply(b.form, *factor));
      return Unknown();
    }
    case StepKind::kWide: {
      std::optional<AffineForm> value;
      if (auto cut = product(&value)) return At(*cut);
      return plus(value);
    }
    case StepKind::kHigh: {
      std::optional<AffineForm> value;
      if (auto cut = product(&value)) return At(*cut);
      if (!value.has_value()) return Unknown();
      Result high = Floor(*value, PowerOfTwo(step.bits), box);
      if (high.cut.has_value() || high.value.kind != Value::Kind::kForm) return high;
      return plus(high.value.form);
    }
    case StepKind::kShiftLeft: {
      const std::optional<Wide> by = constant(b, 32, false);
      if (!by.has_value()) return Unknown();
      if (*by >= step.bits) return Of(Constant(0));
      return Of(Multiply(a.form, PowerOfTwo(static_cast<int>(*by))));
    }
    case StepKind::kShiftRight: {
      const std::optional<Wide> by = constant(b, 32, false);
      if (!by.has_value()) return Unknown();
      const Result x = Typed(a, step.bits, step.is_signed, box);
      if (x.cut.has_value() || x.value.kind != Value::Kind::kForm) return x;
      const auto bits = static_cast<int>(std::min<Wide>(*by, step.bits));
      return Floor(x.value.form, PowerOfTwo(bits), box);
    }
    case StepKind::kDivide:
    case StepKind::kRemainder: {
      const std::optional<Wide> by = constant(b, step.bits, step.is_signed);
      if (!by.has_value() || *by <= 0) return Unknown();
      const Result x = Typed(a, step.bits, step.is_signed, box);
      if (x.cut.has_value() || x.value.kind != Value::Kind::kForm) return x;
      if (x.value.form.base != kNoBase) return Unknown();
      const Decision<bool> positive = IsNonNegative(x.value.form, box);
      if (!positive.answer.has_value()) return At(positive.cut);
      // Towards zero: a negative number is divided with its sign taken off.
      const std::optional<AffineForm> size =
          *positive.answer ? x.value.form : Multiply(x.value.form, -1);
      if (!size.has_value()) return Unknown();
      const Result q = Floor(*size, *by, box);
      if (q.cut.has_value() || q.value.kind != Value::Kind::kForm) return q;
      const std::optional<AffineForm> quotient =
          *positive.answer ? q.value.form : Multiply(q.value.form, -1);
      if (step.kind == StepKind::kDivide || !quotient.has_value()) return Of(quotient);
      const std::optional<AffineForm> whole = Multiply(*quotient, *by);
      return whole.has_value() ? Of(Subtract(x.value.form, *whole)) : Unknown();
    }
    case StepKind::kAnd: {
      if (auto mask = constant(b, step.bits, false)) {
        return Masked(a.form, static_cast<uint64_t>(*mask), step.bits, box);
      }
      if (auto mask = constant(a, step.bits, false); mask.has_value() && has_b) {
        return Masked(b.form, static_cast<uint64_t>(*mask), step.bits, box);
      }
      return Unknown();
    }
    case StepKind::kOr: {
      // Where the bits of the two never meet it is an addition.
      if (!has_b) return Unknown();
      for (const auto& [high, low] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
        const Result h = Typed(*high, step.bits, false, box);
        const Result l = Typed(*low, step.bits, false, box);
        if (h.cut.has_value() || l.cut.has_value()) continue;
        if (h.value.form.base != kNoBase || l.value.form.base != kNoBase) return Unknown();
        const Interval range = RangeOf(l.value.form, box);
        const AffineForm x = Reduced(h.value.form, box);
        Wide multiple = x.constant;
        for (Wide coefficient : x.coefficient) multiple |= coefficient;
        // The lowest set bit of all that the form is made of divides it.
        const Wide unit = multiple == 0 ? PowerOfTwo(step.bits) : multiple & -multiple;
        if (range.min >= 0 && range.max < unit) return Of(Add(h.value.form, l.value.form));
      }
      return Unknown();
    }
    case StepKind::kNot: {
      std::optional<AffineForm> minus = Multiply(a.form, -1);
      return minus.has_value() ? Of(Add(*minus, Constant(-1))) : Unknown();
    }
    case StepKind::kNegate:
      return Of(Multiply(a.form, -1));
    case StepKind::kMin:
    case StepKind::kMax: {
      const Result x = Typed(a, step.bits, step.is_signed, box);
      if (x.cut.has_value() || x.value.kind != Value::Kind::kForm) return x;
      const Result y = Typed(b, step.bits, step.is_signed, box);
      if (y.cut.has_value() || y.value.kind != Value::Kind::kForm) return y;
      if (x.value.form.base != kNoBase || y.value.form.base != kNoBase) return Unknown();
      const std::optional<AffineForm> difference = Subtract(x.value.form, y.value.form);
      if (!difference.has_value()) return Unknown();
      const Decision<bool> larger = IsNonNegative(*difference, box);
      if (!larger.answer.has_value()) return At(larger.cut);
      return *larger.answer == (step.kind == StepKind::kMax) ? x : y;
    }
    case StepKind::kConvert: {
      Result x = a.form.base != kNoBase && step.bits == 64
                     ? Of(a.form)
                     : Typed(a, step.bits, step.is_signed, box);
      if (x.cut.has_value() || x.value.kind != Value::Kind::kForm) return x;
      if (step.to_bits >= 32) {
        // (An address cut to 32 bits is none any more.)
        return x.value.form.base != kNoBase && step.to_bits < 64 ? Unknown() : x;
      }
      if (x.value.form.base != kNoBase) return Unknown();
      return Typed(x.value, step.to_bits, step.to_signed, box);
    }
    case StepKind::kExtract: {
      const std::optional<Wide> position = constant(b, 32, false), length = constant(c, 32, false);
      if (!position.has_value() || !length.has_value() || *position + *length > step.bits ||
          *length == 0) {
        return Unknown();
      }
      const Result x = Typed(a, step.bits, false, box);
      if (x.cut.has_value() || x.value.kind != Value::Kind::kForm) return x;
      const Result shifted = Floor(x.value.form, PowerOfTwo(static_cast<int>(*position)), box);
      if (shifted.cut.has_value() || shifted.value.kind != Value::Kind::kForm) return shifted;
      return Modulo(shifted.value.form, PowerOfTwo(static_cast<int>(*length)), box);
    }
    default:
      return Unknown();
  }
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

}  // namespace

bool WordFootprint::Covers(int64_t first, int64_t end) const {
  return std::any_of(written.begin(), written.end(), [&](const ByteRange& range) {
    return range.first <= first && range.end >= end;
  });
}

KernelFootprint::KernelFootprint(std::unique_ptr<FootprintProgram> program)
    : program_(std::move(program)) {}
KernelFootprint::~KernelFootprint() = default;

std::shared_ptr<KernelFootprint> KernelFootprint::Build(const ptx::Module& module,
                                                        const ptx::Function& entry) {
  std::unique_ptr<FootprintProgram> program = Slice(module, entry);
  if (program == nullptr) return nullptr;
  return std::shared_ptr<KernelFootprint>(new KernelFootprint(std::move(program)));
}

std::shared_ptr<const Footprint> KernelFootprint::Evaluate(
    const LaunchShape& shape, std::span<const uint8_t> parameters,
    std::span<const uint32_t> pointers) const {
  std::string key(reinterpret_cast<const char*>(&shape), sizeof(shape));
  for (const ParameterUse& use : program_->parameters) {
    const bool pointer = std::any_of(pointers.begin(), pointers.end(), [&](uint32_t p) {
      return use.offset < p + 8 && p < use.offset + use.bytes;
    });
    key.push_back(pointer ? 'p' : 'n');
    if (pointer || use.offset + use.bytes > parameters.size()) continue;
    key.append(reinterpret_cast<const char*>(parameters.data()) + use.offset, use.bytes);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = known_.find(key);
    if (it != known_.end()) return it->second;
  }
  auto footprint =
      std::make_shared<const Footprint>(Evaluation(*program_, shape, parameters, pointers).Run());
  std::lock_guard<std::mutex> lock(mutex_);
  if (known_.size() >= kMaxKnown) known_.clear();
  known_[std::move(key)] = footprint;
  return footprint;
}

}  // namespace tidepool
