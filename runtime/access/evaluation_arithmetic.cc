#include <algorithm>

#include "runtime/access/evaluation.h"

namespace tidepool {

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

}  // namespace tidepool
