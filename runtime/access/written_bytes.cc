#include "runtime/access/written_bytes.h"

#include <algorithm>

namespace tidepool {
namespace {

// Ranges that repeats are written out to, at most.
constexpr size_t kMaxRanges = size_t{1} << 18;
constexpr Wide kMaxOffset = Wide{1} << 60;

}  // namespace

void WrittenBytes::Merge(std::vector<ByteRange>* ranges) {
  std::sort(ranges->begin(), ranges->end(),
            [](const ByteRange& a, const ByteRange& b) { return a.first < b.first; });
  size_t kept = 0;
  for (const ByteRange& range : *ranges) {
    if (kept > 0 && range.first <= (*ranges)[kept - 1].end) {
      (*ranges)[kept - 1].end = std::max((*ranges)[kept - 1].end, range.end);
    } else {
      (*ranges)[kept++] = range;
    }
  }
  ranges->resize(kept);
}

void WrittenBytes::Add(const AffineForm& form, const Box& box, uint32_t bytes) {
  const Interval range = RangeOf(form, box);
  if (range.min < -kMaxOffset || range.max > kMaxOffset) return;
  ByteRange start{static_cast<int64_t>(range.min), static_cast<int64_t>(range.min) + bytes};
  Repeats repeats;
  for (int i = 0; i < kCoordinates; ++i) {
    const Wide c = form.coefficient[i];
    if (c == 0 || box.IsFixed(i)) continue;
    // From the lowest address on, whichever way the coordinate runs.
    repeats.push_back({static_cast<int64_t>(c < 0 ? -c : c), box.hi[i] - box.lo[i] + 1});
  }
  std::sort(repeats.begin(), repeats.end());
  size_t inner = 0;
  while (inner < repeats.size() && repeats[inner].stride <= start.end - start.first) {
    start.end += repeats[inner].stride * (repeats[inner].count - 1);
    ++inner;
  }
  repeats.erase(repeats.begin(), repeats.begin() + static_cast<ptrdiff_t>(inner));
  std::vector<ByteRange>& group = groups_[repeats];
  group.push_back(start);
  size_t& limit = merge_at_.try_emplace(repeats, 4096).first->second;
  if (group.size() >= limit) {
    Merge(&group);
    limit = std::max<size_t>(4096, 2 * group.size());
  }
}

std::vector<ByteRange> WrittenBytes::Ranges() {
  // Innermost repeat first; the group with the longest list first, so that what it turns into meets
  // what was there.
  while (!groups_.empty()) {
    auto it = std::max_element(groups_.begin(), groups_.end(), [](const auto& a, const auto& b) {
      return a.first.size() < b.first.size();
    });
    if (it->first.empty()) break;
    const Repeats repeats = it->first;
    std::vector<ByteRange> ranges = std::move(it->second);
    groups_.erase(it);
    Merge(&ranges);
    const Repeat inner = repeats.front();
    std::vector<ByteRange> out;
    for (const ByteRange& range : ranges) {
      if (inner.stride <= range.end - range.first) {
        out.push_back({range.first, range.end + inner.stride * (inner.count - 1)});
        continue;
      }
      if (static_cast<size_t>(inner.count) > kMaxRanges - std::min(kMaxRanges, out.size()))
        continue;
      for (int64_t k = 0; k < inner.count; ++k) {
        out.push_back({range.first + k * inner.stride, range.end + k * inner.stride});
      }
    }
    std::vector<ByteRange>& group = groups_[Repeats(repeats.begin() + 1, repeats.end())];
    group.insert(group.end(), out.begin(), out.end());
  }
  if (groups_.empty()) return {};
  std::vector<ByteRange> ranges = std::move(groups_.begin()->second);
  groups_.clear();
  Merge(&ranges);
  return ranges;
}

}  // namespace tidepool
