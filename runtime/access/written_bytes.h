// Unions of images of boxes: which bytes the stores of a launch hit. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "runtime/access/affine.h"

namespace tidepool {

struct ByteRange {
  int64_t first = 0, end = 0;  // [first, end)
  bool operator==(const ByteRange&) const = default;
};

// Collects stores. What it reports as written is written; where the union gets too complicated, a
// part of it is left out.
class WrittenBytes {
 public:
  // `bytes` at form, by every thread of the box. The form's base is not looked at.
  void Add(const AffineForm& form, const Box& box, uint32_t bytes);
  // Disjoint, sorted, neither overlapping nor touching.
  std::vector<ByteRange> Ranges();

 private:
  // Copies of a set of ranges at multiples of a stride.
  struct Repeat {
    int64_t stride = 0, count = 0;
    auto operator<=>(const Repeat&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  using Repeats = std::vector<Repeat>;  // by stride, ascending
  static void Merge(std::vector<ByteRange>* ranges);

  std::map<Repeats, std::vector<ByteRange>> groups_;
  std::map<Repeats, size_t> merge_at_;  // sizes at which a group is merged again
};

}  // namespace tidepool
