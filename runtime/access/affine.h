// Affine forms over the coordinates of a launch's threads, and the boxes of threads that they are
// looked at in. Value types; not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace tidepool {

// Exact: no arithmetic here may wrap, so coefficients are kept below kMaxCoefficient.
using Wide = __int128;
inline constexpr Wide kMaxCoefficient = Wide{1} << 80;

// The coordinates: tid.x, tid.y, tid.z, ctaid.x, ctaid.y, ctaid.z.
inline constexpr int kCoordinates = 6;

// Threads with lo[i] <= coordinate i <= hi[i]; never empty.
struct Box {
  std::array<int64_t, kCoordinates> lo{}, hi{};
  bool IsFixed(int i) const { return lo[i] == hi[i]; }
};

inline constexpr int32_t kNoBase = -1;

// base + constant + sum of coefficient[i] * coordinate i, an integer without bounds. `base` names
// the parameter word whose value is added (its offset in the parameter block), or kNoBase.
struct AffineForm {
  int32_t base = kNoBase;
  Wide constant = 0;
  std::array<Wide, kCoordinates> coefficient{};

  bool IsConstant() const {
    if (base != kNoBase) return false;
    for (Wide c : coefficient) {
      if (c != 0) return false;
    }
    return true;
  }
};

inline AffineForm Constant(Wide value) {
  AffineForm form;
  form.constant = value;
  return form;
}

// Without its base.
struct Interval {
  Wide min = 0, max = 0;
};
Interval RangeOf(const AffineForm& form, const Box& box);

// Coordinates that the box fixes become part of the constant.
AffineForm Reduced(const AffineForm& form, const Box& box);

// Nothing if a coefficient grows too large, or if bases do not allow it.
std::optional<AffineForm> Add(const AffineForm& a, const AffineForm& b);
std::optional<AffineForm> Subtract(const AffineForm& a, const AffineForm& b);
std::optional<AffineForm> Multiply(const AffineForm& a, Wide factor);

Wide FloorDivide(Wide a, Wide b);  // b > 0

// A place to cut the box in two: coordinate `axis`, the second part starting at `at`.
struct Cut {
  int axis = 0;
  int64_t at = 0;
};

// Answers about all threads of a box: either one that holds for all of them, or where to cut the
// box so that its parts come nearer to one.
template <typename T>
struct Decision {
  std::optional<T> answer;
  Cut cut;  // if there is no answer
};

// Whether form >= 0.
Decision<bool> IsNonNegative(const AffineForm& form, const Box& box);
// floor(form / divisor), divisor > 0. The form has no base.
Decision<AffineForm> DivideFloor(const AffineForm& form, Wide divisor, const Box& box);

}  // namespace tidepool
