// The ops on each stream that used some memory, as (stream, sequence number): "everything on that
// stream up to there". A value object; not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace tidepool {

struct StreamUse {
  uint32_t stream = 0;    // the engine's number of the stream
  uint64_t sequence = 0;  // ops on one stream are numbered from 1
};

class UseSet {
 public:
  void Add(uint32_t stream, uint64_t sequence) {
    for (StreamUse& use : uses_) {
      if (use.stream == stream) {
        if (use.sequence < sequence) use.sequence = sequence;
        return;
      }
    }
    uses_.push_back({stream, sequence});
  }
  void Merge(const UseSet& other) {
    for (const StreamUse& use : other.uses_) Add(use.stream, use.sequence);
  }
  void Clear() { uses_.clear(); }
  bool empty() const { return uses_.empty(); }
  const std::vector<StreamUse>& uses() const { return uses_; }

 private:
  std::vector<StreamUse> uses_;  // a handful: one per stream that touched the memory
};

}  // namespace tidepool
