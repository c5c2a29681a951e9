#include "runtime/policy/bucket_policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "runtime/policy/candidates.h"
#include "runtime/policy/classes.h"

namespace tidepool::policy {
namespace {

constexpr int kBucketsPerDoubling = 4;
constexpr int kBucketOfOne = 260;  // w from 2^-65 to 2^79: all of 64-bit costs and sizes
constexpr double kFall = 1.4142135623730951;
constexpr uint64_t kMaxCost = uint64_t{1} << 50;  // 13 days: sums of costs cannot overflow
constexpr uint32_t kNoEntry = 0xffffffffu;

// The lower edges of the buckets.
const std::array<double, Candidates::kBuckets>& Edges() {
  static const std::array<double, Candidates::kBuckets> edges = [] {
    std::array<double, Candidates::kBuckets> result = {};
    for (int i = 0; i < Candidates::kBuckets; ++i) {
      result[i] = std::exp2(static_cast<double>(i - kBucketOfOne) / kBucketsPerDoubling);
    }
    return result;
  }();
  return edges;
}

// One end of a link; the other end is links[back] of `entry`.
struct LinkEnd {
  uint32_t entry = 0;
  uint32_t back = 0;
};

struct Entry {
  ValueId id = 0;
  uint64_t bytes = 0;
  uint64_t cost_ns = 0;
  uint64_t last_access_ns = 0;
  absl::InlinedVector<LinkEnd, 2> links;  // values it is made from, and values made from it
  uint32_t locks = 0;
  uint32_t node = Classes::kNone;  // in the union-find, while dropped
  bool resident() const { return node == Classes::kNone; }
};

class BucketPolicy final : public Policy {
 public:
  BucketPolicy(std::string_view name, Score score, uint64_t seed)
      : name_(name), score_(score), random_(seed), edges_(Edges()) {}

  std::string_view name() const override { return name_; }

  void Add(ValueId value, uint64_t bytes, uint64_t cost_ns, uint64_t now_ns) override {
    Remove(value);
    uint32_t index = static_cast<uint32_t>(entries_.size());
    if (unused_.empty()) {
      entries_.emplace_back();
    } else {
      index = unused_.back();
      unused_.pop_back();
    }
    Entry& entry = entries_[index];
    entry.id = value;
    entry.bytes = std::max<uint64_t>(1, bytes);
    entry.cost_ns = std::min(cost_ns, kMaxCost);
    entry.last_access_ns = now_ns;
    entry.locks = 0;
    entry.node = Classes::kNone;
    index_[value] = index;
    InsertIfCandidate(index);
  }

  void Remove(ValueId value) override {
    const uint32_t index = Find(value);
    if (index == kNoEntry) return;
    Entry& entry = entries_[index];
    if (candidates_.Contains(index)) candidates_.Erase(index);
    // What is gone costs nothing any more.
    if (!entry.resident()) LeaveClass(index);
    for (const LinkEnd& link : entry.links) Unlink(link);
    entry.links.clear();
    unused_.push_back(index);
    index_.erase(value);
  }

  void Link(ValueId from, ValueId to) override {
    const uint32_t a = Find(from);
    const uint32_t b = Find(to);
    if (a == kNoEntry || b == kNoEntry || a == b) return;
    Entry& left = entries_[a];
    Entry& right = entries_[b];
    const auto left_slot = static_cast<uint32_t>(left.links.size());
    const auto right_slot = static_cast<uint32_t>(right.links.size());
    left.links.push_back({b, right_slot});
    right.links.push_back({a, left_slot});
    if (!left.resident() && !right.resident()) classes_.Merge(left.node, right.node);
  }

  void SetCost(ValueId value, uint64_t cost_ns) override {
    const uint32_t index = Find(value);
    if (index == kNoEntry) return;
    Entry& entry = entries_[index];
    cost_ns = std::min(cost_ns, kMaxCost);
    if (!entry.resident()) {
      classes_.ChangeCost(entry.node, entry.cost_ns, cost_ns);
      SettleIfFallen(classes_.Find(entry.node));
    }
    entry.cost_ns = cost_ns;
    Rebucket(index);
  }

  void OnAccess(ValueId value, uint64_t now_ns) override {
    const uint32_t index = Find(value);
    if (index == kNoEntry) return;
    entries_[index].last_access_ns = now_ns;
    if (candidates_.Contains(index)) candidates_.Touch(index, now_ns);
  }

  void OnDrop(ValueId value) override {
    const uint32_t index = Find(value);
    if (index == kNoEntry || !entries_[index].resident()) return;
    if (candidates_.Contains(index)) candidates_.Erase(index);
    Entry& entry = entries_[index];
    entry.node = classes_.Make(index, entry.cost_ns);
    for (const LinkEnd& link : entry.links) {
      const Entry& other = entries_[link.entry];
      if (!other.resident()) classes_.Merge(entry.node, other.node);
    }
  }

  void OnRebuild(ValueId value, uint64_t now_ns) override {
    const uint32_t index = Find(value);
    if (index == kNoEntry || entries_[index].resident()) return;
    LeaveClass(index);
    entries_[index].last_access_ns = now_ns;
    InsertIfCandidate(index);
  }

  void Lock(ValueId value) override {
    const uint32_t index = Find(value);
    if (index == kNoEntry) return;
    ++entries_[index].locks;
    if (candidates_.Contains(index)) candidates_.Erase(index);
  }

  void Unlock(ValueId value) override {
    const uint32_t index = Find(value);
    if (index == kNoEntry || entries_[index].locks == 0) return;
    --entries_[index].locks;
    InsertIfCandidate(index);
  }

  std::optional<ValueId> SelectVictim(uint64_t now_ns, uint64_t /*bytes_wanted*/) override {
    if (candidates_.count() == 0) return std::nullopt;
    if (score_ == Score::kRandom) {
      const std::vector<Candidates::Item>& all = candidates_.Items(kBucketOfOne);
      return entries_[all[random_() % all.size()].entry].id;
    }
    // The bucket whose head may score least, until its head stands where it belongs. A head that
    // was moved stands right, so this ends.
    uint32_t best = kNoEntry;
    int best_bucket = Candidates::kNoBucket;
    for (;;) {
      double least = 0;
      best = kNoEntry;
      candidates_.ForEachBucket([&](int bucket) {
        const Candidates::Item& head = candidates_.Stalest(bucket);
        const double score = Scored(edges_[bucket], head.last_access_ns, now_ns);
        if (best != kNoEntry && score >= least) return;
        least = score;
        best = head.entry;
        best_bucket = bucket;
      });
      if (!Rebucket(best)) break;
    }
    // Other heads may still be better by their exact scores.
    double best_score = ExactScore(best, now_ns);
    candidates_.ForEachBucket([&](int bucket) {
      const Candidates::Item& head = candidates_.Stalest(bucket);
      if (bucket == best_bucket ||
          Scored(edges_[bucket], head.last_access_ns, now_ns) >= best_score) {
        return;
      }
      const double score = ExactScore(head.entry, now_ns);
      if (score >= best_score) return;
      best_score = score;
      best = head.entry;
    });
    return entries_[best].id;
  }

  bool Prefers(ValueId value, ValueId victim, uint64_t spared_ns, uint64_t now_ns) override {
    const uint32_t a = Find(value);
    const uint32_t b = Find(victim);
    if (!KnowsCosts() || a == kNoEntry || b == kNoEntry || !candidates_.Contains(a)) return false;
    const Entry& other = entries_[b];
    const double spared = static_cast<double>(spared_ns) / static_cast<double>(other.bytes);
    return ExactScore(a, now_ns) <= Scored(Weight(other) + spared, other.last_access_ns, now_ns);
  }

  uint64_t candidates() const override { return candidates_.count(); }

 private:
  uint32_t Find(ValueId value) const {
    auto it = index_.find(value);
    return it == index_.end() ? kNoEntry : it->second;
  }

  bool KnowsCosts() const { return CountsNeighbourhood() || score_ == Score::kDtrLocal; }
  bool CountsNeighbourhood() const { return score_ == Score::kDtrEq || score_ == Score::kMsps; }

  // Of dropping it, in ns: its own, and that of each class of dropped values beside it, once.
  double Cost(const Entry& entry) {
    uint64_t cost = entry.cost_ns;
    if (CountsNeighbourhood()) {
      roots_.clear();
      for (const LinkEnd& link : entry.links) {
        const Entry& other = entries_[link.entry];
        if (other.resident()) continue;
        const uint32_t root = classes_.Find(other.node);
        if (std::find(roots_.begin(), roots_.end(), root) == roots_.end()) roots_.push_back(root);
      }
      for (uint32_t root : roots_) cost += classes_.Cost(root);
    }
    return static_cast<double>(cost);
  }

  // The part of the score that does not depend on time. One nanosecond is added so that of values
  // that cost nothing the larger and the staler go first.
  double Weight(const Entry& entry) {
    switch (score_) {
      case Score::kDtrEq:
      case Score::kDtrLocal:
      case Score::kMsps:
        return (Cost(entry) + 1) / static_cast<double>(entry.bytes);
      case Score::kSize:
        return 1 / static_cast<double>(entry.bytes);
      case Score::kLru:
      case Score::kRandom:
        break;
    }
    return 1;
  }

  double Scored(double weight, uint64_t last_access_ns, uint64_t now_ns) const {
    if (score_ == Score::kMsps || score_ == Score::kSize) return weight;
    const uint64_t staleness = now_ns > last_access_ns ? now_ns - last_access_ns : 0;
    return weight / (static_cast<double>(staleness) + 1);
  }

  double ExactScore(uint32_t index, uint64_t now_ns) {
    const Entry& entry = entries_[index];
    return Scored(Weight(entry), entry.last_access_ns, now_ns);
  }

  int BucketFor(const Entry& entry) {
    const double doublings = std::log2(Weight(entry));
    return kBucketOfOne + static_cast<int>(std::floor(doublings * kBucketsPerDoubling));
  }

  void InsertIfCandidate(uint32_t index) {
    const Entry& entry = entries_[index];
    if (!entry.resident() || entry.locks > 0 || candidates_.Contains(index)) return;
    candidates_.Insert(index, BucketFor(entry), entry.last_access_ns);
  }

  // True if it stood in the wrong bucket.
  bool Rebucket(uint32_t index) {
    const int bucket = candidates_.BucketOf(index);
    if (bucket == Candidates::kNoBucket) return false;
    const Entry& entry = entries_[index];
    const int wanted = BucketFor(entry);
    if (wanted == bucket) return false;
    candidates_.Erase(index);
    candidates_.Insert(index, wanted, entry.last_access_ns);
    return true;
  }

  void RebucketNeighbours(uint32_t index) {
    if (!CountsNeighbourhood()) return;
    for (const LinkEnd& link : entries_[index].links) Rebucket(link.entry);
  }

  void LeaveClass(uint32_t index) {
    Entry& entry = entries_[index];
    const uint32_t root = classes_.Remove(entry.node, entry.cost_ns);
    entry.node = Classes::kNone;
    RebucketNeighbours(index);
    if (root != Classes::kNone) SettleIfFallen(root);
  }

  // Candidates around a class that costs much less than when they were put into their buckets go
  // where they belong now.
  void SettleIfFallen(uint32_t root) {
    if (static_cast<double>(classes_.Cost(root)) * kFall >=
        static_cast<double>(classes_.Peak(root))) {
      return;
    }
    classes_.Settle(root);
    classes_.ForEachOwner(root, [&](uint32_t owner) { RebucketNeighbours(owner); });
  }

  void Unlink(const LinkEnd& link) {
    auto& links = entries_[link.entry].links;
    const LinkEnd last = links.back();
    links.pop_back();
    if (link.back == links.size()) return;
    links[link.back] = last;
    entries_[last.entry].links[last.back].back = link.back;
  }

  const std::string name_;
  const Score score_;
  std::mt19937_64 random_;
  const std::array<double, Candidates::kBuckets>& edges_;
  absl::flat_hash_map<ValueId, uint32_t> index_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> unused_;
  Candidates candidates_;
  Classes classes_;
  std::vector<uint32_t> roots_;
};

}  // namespace

std::unique_ptr<Policy> MakeBucketPolicy(std::string_view name, Score score, uint64_t seed) {
  return std::make_unique<BucketPolicy>(name, score, seed);
}

}  // namespace tidepool::policy
