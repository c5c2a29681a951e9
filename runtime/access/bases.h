// The abstract value of the access analysis: what a register may have been computed from. A small
// sorted set; the order of sets is inclusion, and they only grow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tidepool {

// Numbers of bases: these, then the words of the parameter block, then module variables.
enum FixedBase : uint32_t {
  kLoadedBase,  // a 64-bit value loaded from memory, or put together from narrower pieces: maybe a
                // pointer
  kPieceBase,   // a narrower value loaded from memory, or cut out of such a 64-bit value: maybe a
                // part of a pointer
  kLocalBase,   // an address of local memory
  kSharedBase,  // an address of shared memory
  kFirstBase,
};

class Bases {
 public:
  bool Has(uint32_t base) const { return std::binary_search(set_.begin(), set_.end(), base); }
  bool empty() const { return set_.empty(); }
  // True if the set grew.
  bool Add(uint32_t base) {
    auto it = std::lower_bound(set_.begin(), set_.end(), base);
    if (it != set_.end() && *it == base) return false;
    set_.insert(it, base);
    return true;
  }
  bool Merge(const Bases& other) {
    bool grew = false;
    for (uint32_t base : other.set_) grew |= Add(base);
    return grew;
  }
  void Remove(uint32_t base) {
    auto it = std::lower_bound(set_.begin(), set_.end(), base);
    if (it != set_.end() && *it == base) set_.erase(it);
  }
  auto begin() const { return set_.begin(); }
  auto end() const { return set_.end(); }

 private:
  std::vector<uint32_t> set_;
};

}  // namespace tidepool
