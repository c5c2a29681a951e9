// The values that may be dropped now, in buckets, and within a bucket in a heap by last access: the
// head of a bucket is its stalest. Entries are small dense numbers chosen by the caller.
//
// O(log n) per call, and O(1) to insert what was accessed last. Deterministic: ties go to the
// smaller number. Not thread-safe.
#pragma once

#include <stddef.h>

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace tidepool::policy {

class Candidates {
 public:
  static constexpr int kBuckets = 576;
  static constexpr int kNoBucket = -1;

  void Insert(uint32_t entry, int bucket, uint64_t last_access_ns) {
    if (entry >= places_.size()) places_.resize(entry + 1);
    Heap& heap = heaps_[bucket];
    places_[entry].bucket = bucket;
    heap.push_back({last_access_ns, entry});
    occupied_[bucket / 64] |= uint64_t{1} << (bucket % 64);
    Up(heap, heap.size() - 1, {last_access_ns, entry});
    ++count_;
  }

  void Erase(uint32_t entry) {
    const Place place = places_[entry];
    Heap& heap = heaps_[place.bucket];
    const Item last = heap.back();
    heap.pop_back();
    if (last.entry != entry) Restore(heap, place.position, last);
    if (heap.empty()) {
      occupied_[place.bucket / 64] &= ~(uint64_t{1} << (place.bucket % 64));
      if (heap.capacity() > 1024) heap.shrink_to_fit();
    }
    places_[entry].bucket = kNoBucket;
    --count_;
  }

  void Touch(uint32_t entry, uint64_t last_access_ns) {
    const Place place = places_[entry];
    Restore(heaps_[place.bucket], place.position, {last_access_ns, entry});
  }

  bool Contains(uint32_t entry) const { return BucketOf(entry) != kNoBucket; }
  int BucketOf(uint32_t entry) const {
    return entry < places_.size() ? places_[entry].bucket : kNoBucket;
  }
  uint64_t count() const { return count_; }

  struct Item {
    uint64_t last_access_ns = 0;
    uint32_t entry = 0;
    bool operator<(const Item& other) const {
      return last_access_ns != other.last_access_ns ? last_access_ns < other.last_access_ns
                                                    : entry < other.entry;
    }
  };
  // Of a bucket that is not empty.
  const Item& Stalest(int bucket) const { return heaps_[bucket].front(); }
  // All of a bucket, in no useful order.
  const std::vector<Item>& Items(int bucket) const { return heaps_[bucket]; }

  // Calls visit(bucket) for each bucket that is not empty, the lowest first.
  template <typename Visit>
  void ForEachBucket(Visit visit) const {
    for (size_t word = 0; word < occupied_.size(); ++word) {
      for (uint64_t bits = occupied_[word]; bits != 0; bits &= bits - 1) {
        visit(static_cast<int>(word * 64) + std::countr_zero(bits));
      }
    }
  }

 private:
  using Heap = std::vector<Item>;  // four children to a node: shallow, and a node's in one line
  struct Place {
    int bucket = kNoBucket;
    uint32_t position = 0;
  };

  void Put(Heap& heap, size_t at, const Item& item) {
    heap[at] = item;
    places_[item.entry].position = static_cast<uint32_t>(at);
  }

  // `item` goes to `at` or above, where a hole is; or below.
  void Up(Heap& heap, size_t at, Item item) {
    while (at > 0 && item < heap[(at - 1) / 4]) {
      Put(heap, at, heap[(at - 1) / 4]);
      at = (at - 1) / 4;
    }
    Put(heap, at, item);
  }
  void Restore(Heap& heap, size_t at, Item item) {
    if (at > 0 && item < heap[(at - 1) / 4]) return Up(heap, at, item);
    for (;;) {
      const size_t first = at * 4 + 1;
      size_t least = first;
      for (size_t child = first + 1; child < first + 4 && child < heap.size(); ++child) {
        if (heap[child] < heap[least]) least = child;
      }
      if (first >= heap.size() || !(heap[least] < item)) break;
      Put(heap, at, heap[least]);
      at = least;
    }
    Put(heap, at, item);
  }

  std::array<Heap, kBuckets> heaps_;
  std::array<uint64_t, (kBuckets + 63) / 64> occupied_ = {};
  std::vector<Place> places_;
  uint64_t count_ = 0;
};

}  // namespace tidepool::policy
