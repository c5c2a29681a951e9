#include "runtime/access/affine.h"

#include <algorithm>

namespace tidepool {
namespace {

Wide Magnitude(Wide value) { return value < 0 ? -value : value; }

Wide Extent(const AffineForm& form, const Box& box, int i) {
  return Magnitude(form.coefficient[i]) * (box.hi[i] - box.lo[i]);
}

// The axis along which the form varies most; -1 if it does not vary.
int WidestAxis(const AffineForm& form, const Box& box) {
  int widest = -1;
  for (int i = 0; i < kCoordinates; ++i) {
    if (Extent(form, box, i) == 0) continue;
    if (widest < 0 || Extent(form, box, i) > Extent(form, box, widest)) widest = i;
  }
  return widest;
}

Wide CeilDivide(Wide a, Wide b) { return -FloorDivide(-a, b); }

// The first coordinate along the axis, above lo, from which on the sign of `rest + c * x` differs
// from that at lo; nothing if it does not change.
std::optional<int64_t> SignChange(Wide rest, Wide c, int64_t lo, int64_t hi) {
  // c > 0: the first x with rest + c x >= 0. c < 0: the first x with rest + c x < 0.
  const Wide at = c > 0 ? CeilDivide(-rest, c) : FloorDivide(rest, -c) + 1;
  if (at <= lo || at > hi) return std::nullopt;
  return static_cast<int64_t>(at);
}

}  // namespace

Wide FloorDivide(Wide a, Wide b) {
  const Wide q = a / b;
  return a % b < 0 ? q - 1 : q;
}

Interval RangeOf(const AffineForm& form, const Box& box) {
  Interval range{form.constant, form.constant};
  for (int i = 0; i < kCoordinates; ++i) {
    const Wide c = form.coefficient[i];
    range.min += c * (c > 0 ? box.lo[i] : box.hi[i]);
    range.max += c * (c > 0 ? box.hi[i] : box.lo[i]);
  }
  return range;
}

AffineForm Reduced(const AffineForm& form, const Box& box) {
  AffineForm out = form;
  for (int i = 0; i < kCoordinates; ++i) {
    if (out.coefficient[i] == 0 || !box.IsFixed(i)) continue;
    out.constant += out.coefficient[i] * box.lo[i];
    out.coefficient[i] = 0;
  }
  return out;
}

namespace {

std::optional<AffineForm> Checked(const AffineForm& form) {
  if (Magnitude(form.constant) > kMaxCoefficient) return std::nullopt;
  for (Wide c : form.coefficient) {
    if (Magnitude(c) > kMaxCoefficient) return std::nullopt;
  }
  return form;
}

}  // namespace

std::optional<AffineForm> Add(const AffineForm& a, const AffineForm& b) {
  if (a.base != kNoBase && b.base != kNoBase) return std::nullopt;
  AffineForm out = a;
  out.base = a.base != kNoBase ? a.base : b.base;
  out.constant += b.constant;
  for (int i = 0; i < kCoordinates; ++i) out.coefficient[i] += b.coefficient[i];
  return Checked(out);
}

std::optional<AffineForm> Subtract(const AffineForm& a, const AffineForm& b) {
  if (b.base != kNoBase && a.base != b.base) return std::nullopt;
  AffineForm out = a;
  if (b.base != kNoBase) out.base = kNoBase;  // the same base goes
  out.constant -= b.constant;
  for (int i = 0; i < kCoordinates; ++i) out.coefficient[i] -= b.coefficient[i];
  return Checked(out);
}

std::optional<AffineForm> Multiply(const AffineForm& a, Wide factor) {
  if (factor == 1) return a;
  if (a.base != kNoBase) return std::nullopt;
  const Wide limit = factor == 0 ? kMaxCoefficient : kMaxCoefficient / Magnitude(factor);
  AffineForm out = a;
  if (Magnitude(out.constant) > limit) return std::nullopt;
  out.constant *= factor;
  for (Wide& c : out.coefficient) {
    if (Magnitude(c) > limit) return std::nullopt;
    c *= factor;
  }
  return out;
}

Decision<bool> IsNonNegative(const AffineForm& form, const Box& box) {
  const Interval range = RangeOf(form, box);
  if (range.min >= 0) return {true, {}};
  if (range.max < 0) return {false, {}};
  // Cut where the sign changes along one axis for the most favourable or the least favourable rest.
  const int widest = WidestAxis(form, box);
  for (int k = -1; k < kCoordinates; ++k) {
    const int i = k < 0 ? widest : k;
    const Wide c = form.coefficient[i];
    if (c == 0 || box.IsFixed(i)) continue;
    const Wide rest_min = range.min - c * (c > 0 ? box.lo[i] : box.hi[i]);
    const Wide rest_max = range.max - c * (c > 0 ? box.hi[i] : box.lo[i]);
    for (Wide rest : {rest_max, rest_min}) {
      if (auto at = SignChange(rest, c, box.lo[i], box.hi[i])) return {std::nullopt, {i, *at}};
    }
  }
  return {std::nullopt, {widest, box.lo[widest] + (box.hi[widest] - box.lo[widest] + 1) / 2}};
}

Decision<AffineForm> DivideFloor(const AffineForm& form, Wide divisor, const Box& box) {
  const AffineForm reduced = Reduced(form, box);
  AffineForm quotient, rest;
  const auto part = [&](Wide value, Wide* q, Wide* r) {
    *q = FloorDivide(value, divisor);
    *r = value - *q * divisor;
    if (*r > divisor / 2) {  // the nearer multiple keeps the rest small
      *r -= divisor;
      *q += 1;
    }
  };
  for (int i = 0; i < kCoordinates; ++i) {
    part(reduced.coefficient[i], &quotient.coefficient[i], &rest.coefficient[i]);
  }
  quotient.constant = FloorDivide(reduced.constant, divisor);
  rest.constant = reduced.constant - quotient.constant * divisor;
  const Interval range = RangeOf(rest, box);
  const Wide low = FloorDivide(range.min, divisor);
  if (low == FloorDivide(range.max, divisor)) {
    quotient.constant += low;
    return {quotient, {}};
  }
  // Cut where the rest passes a multiple of the divisor along its widest axis.
  const int i = WidestAxis(rest, box);
  const Wide c = rest.coefficient[i];
  const Wide others = range.min - c * (c > 0 ? box.lo[i] : box.hi[i]);
  const Wide start = others + c * box.lo[i];
  const Wide level = FloorDivide(start, divisor);
  const Wide threshold = c > 0 ? (level + 1) * divisor : level * divisor;
  if (auto at = SignChange(others - threshold, c, box.lo[i], box.hi[i])) {
    return {std::nullopt, {i, *at}};
  }
  return {std::nullopt, {i, box.lo[i] + (box.hi[i] - box.lo[i] + 1) / 2}};
}

}  // namespace tidepool
