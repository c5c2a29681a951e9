#include "runtime/policy/bucket_policy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "absl/container/flat_hash_map.h"
#include "runtime/policy/classes.h"

namespace tidepool::policy {
namespace {

constexpr int kBucketsPerDoubling = 4;
constexpr int kNoBucket = -1000000;

struct Entry {
  uint64_t bytes = 0;
  uint64_t cost_ns = 0;
  uint64_t last_access_ns = 0;
  uint32_t locks = 0;
  bool resident = true;
  uint32_t node = Classes::kNone;  // in the union-find, while dropped
  std::vector<ValueId> neighbors;  // it is made from them, or they from it
  // Position among the candidates.
  int bucket = kNoBucket;
  Entry* older = nullptr;
  Entry* newer = nullptr;
  ValueId id = 0;
};

struct Bucket {
  Entry* oldest = nullptr;
  Entry* newest = nullptr;
};

class BucketPolicy final : public Policy {
 public:
  BucketPolicy(std::string_view name, Score score, uint64_t seed)
      : name_(name), score_(score), random_(seed) {}

  std::string_view name() const override { return name_; }

  void Add(ValueId value, uint64_t bytes, uint64_t cost_ns, uint64_t now_ns) override {
    auto entry = std::make_unique<Entry>();
    entry->id = value;
    entry->bytes = std::max<uint64_t>(1, bytes);
    entry->cost_ns = cost_ns;
    entry->last_access_ns = now_ns;
    Insert(entry.get());
    entries_[value] = std::move(entry);
  }

  void Remove(ValueId value) override {
    auto it = entries_.find(value);
    if (it == entries_.end()) return;
    Entry* entry = it->second.get();
    Erase(entry);
    // What is gone costs nothing any more. Classes cannot be split; its cost is taken out.
    if (entry->node != Classes::kNone) classes_.Subtract(entry->node, entry->cost_ns);
    for (ValueId neighbor : entry->neighbors) {
      auto other = entries_.find(neighbor);
      if (other == entries_.end()) continue;
      std::vector<ValueId>& list = other->second->neighbors;
      auto at = std::find(list.begin(), list.end(), value);
      if (at != list.end()) {
        *at = list.back();
        list.pop_back();
      }
    }
    entries_.erase(it);
  }

  void Link(ValueId from, ValueId to) override {
    auto a = entries_.find(from), b = entries_.find(to);
    if (a == entries_.end() || b == entries_.end() || from == to) return;
    a->second->neighbors.push_back(to);
    b->second->neighbors.push_back(from);
  }

  void SetCost(ValueId value, uint64_t cost_ns) override {
    Entry* entry = Find(value);
    if (entry == nullptr) return;
    if (entry->node != Classes::kNone) {
      classes_.Subtract(entry->node, entry->cost_ns);
      classes_.AddCost(entry->node, cost_ns);
    }
    entry->cost_ns = cost_ns;
    Refresh(entry);
  }

  void OnAccess(ValueId value, uint64_t now_ns) override {
    Entry* entry = Find(value);
    if (entry == nullptr) return;
    entry->last_access_ns = now_ns;
    Refresh(entry);
  }

  void OnDrop(ValueId value) override {
    Entry* entry = Find(value);
    if (entry == nullptr || !entry->resident) return;
    Erase(entry);
    entry->resident = false;
    entry->node = classes_.Make(entry->cost_ns);
    for (ValueId neighbor : entry->neighbors) {
      const Entry* other = Find(neighbor);
      if (other != nullptr && other->node != Classes::kNone)
        classes_.Merge(entry->node, other->node);
    }
  }

  void OnRebuild(ValueId value, uint64_t now_ns) override {
    Entry* entry = Find(value);
    if (entry == nullptr || entry->resident) return;
    classes_.Subtract(entry->node, entry->cost_ns);
    entry->node = Classes::kNone;
    entry->resident = true;
    entry->last_access_ns = now_ns;
    Insert(entry);
  }

  void Lock(ValueId value) override {
    Entry* entry = Find(value);
    if (entry != nullptr && entry->locks++ == 0) Erase(entry);
  }

  void Unlock(ValueId value) override {
    Entry* entry = Find(value);
    if (entry != nullptr && entry->locks > 0 && --entry->locks == 0) Insert(entry);
  }

  std::optional<ValueId> SelectVictim(uint64_t now_ns, uint64_t) override {
    if (candidates_ == 0) return std::nullopt;
    if (score_ == Score::kRandom) return SelectRandom();
    while (CorrectOneHead()) {
    }
    Entry* best = nullptr;
    double best_score = 0;
    for (const auto& [index, bucket] : buckets_) {
      const double score = ScoreOf(*bucket.oldest, now_ns);
      if (best == nullptr || score < best_score) {
        best = bucket.oldest;
        best_score = score;
      }
    }
    return best->id;
  }

  uint64_t candidates() const override { return candidates_; }

 private:
  Entry* Find(ValueId value) {
    auto it = entries_.find(value);
    return it == entries_.end() ? nullptr : it->second.get();
  }

  // What dropping costs, in ns, the classes of dropped neighbours included where the score has
  // them.
  double CostOf(const Entry& entry) {
    auto cost = static_cast<double>(entry.cost_ns);
    if (score_ != Score::kDtrEq && score_ != Score::kMsps) return cost;
    roots_.clear();
    for (ValueId neighbor : entry.neighbors) {
      const Entry* other = Find(neighbor);
      if (other == nullptr || other->node == Classes::kNone) continue;
      const uint32_t root = classes_.Find(other->node);
      if (std::find(roots_.begin(), roots_.end(), root) != roots_.end()) continue;
      roots_.push_back(root);
      cost += static_cast<double>(classes_.Cost(root));
    }
    return cost;
  }

  // The part of the score that does not depend on time.
  double StaticScore(const Entry& entry) {
    switch (score_) {
      case Score::kDtrEq:
      case Score::kDtrLocal:
      case Score::kMsps:
        return (CostOf(entry) + 1) / static_cast<double>(entry.bytes);
      case Score::kSize:
        return 1 / static_cast<double>(entry.bytes);
      case Score::kLru:
      case Score::kRandom:
        break;
    }
    return 1;
  }

  double ScoreOf(const Entry& entry, uint64_t now_ns) {
    const double fixed = StaticScore(entry);
    if (score_ == Score::kMsps || score_ == Score::kSize) return fixed;
    const uint64_t now = std::max(now_ns, entry.last_access_ns);
    return fixed / (static_cast<double>(now - entry.last_access_ns) + 1);
  }

  int BucketOf(const Entry& entry) {
    return static_cast<int>(std::floor(std::log2(StaticScore(entry)) * kBucketsPerDoubling));
  }

  // Moves one bucket head whose neighbourhood has changed to where it belongs; false if all stand
  // right. A moved entry may become a head elsewhere, but it stands right there.
  bool CorrectOneHead() {
    for (const auto& [index, bucket] : buckets_) {
      Entry* head = bucket.oldest;
      if (BucketOf(*head) == index) continue;
      Erase(head);
      Insert(head);
      return true;
    }
    return false;
  }

  void Refresh(Entry* entry) {
    if (entry->bucket == kNoBucket) return;
    Erase(entry);
    Insert(entry);
  }

  // Puts a resident, unlocked entry into its bucket, by last access.
  void Insert(Entry* entry) {
    if (!entry->resident || entry->locks > 0 || entry->bucket != kNoBucket) return;
    entry->bucket = BucketOf(*entry);
    Bucket& bucket = buckets_[entry->bucket];
    // Mostly the newest; a corrected entry walks back to its place.
    Entry* before = bucket.newest;
    while (before != nullptr && before->last_access_ns > entry->last_access_ns) {
      before = before->older;
    }
    entry->older = before;
    entry->newer = before != nullptr ? before->newer : bucket.oldest;
    (entry->older != nullptr ? entry->older->newer : bucket.oldest) = entry;
    (entry->newer != nullptr ? entry->newer->older : bucket.newest) = entry;
    ++candidates_;
  }

  void Erase(Entry* entry) {
    if (entry->bucket == kNoBucket) return;
    auto it = buckets_.find(entry->bucket);
    Bucket& bucket = it->second;
    (entry->older != nullptr ? entry->older->newer : bucket.oldest) = entry->newer;
    (entry->newer != nullptr ? entry->newer->older : bucket.newest) = entry->older;
    entry->older = entry->newer = nullptr;
    entry->bucket = kNoBucket;
    if (bucket.oldest == nullptr) buckets_.erase(it);
    --candidates_;
  }

  std::optional<ValueId> SelectRandom() {
    uint64_t skip = random_() % candidates_;
    for (const auto& [index, bucket] : buckets_) {
      for (const Entry* entry = bucket.oldest; entry != nullptr; entry = entry->newer) {
        if (skip-- == 0) return entry->id;
      }
    }
    return std::nullopt;
  }

  const std::string name_;
  const Score score_;
  std::mt19937_64 random_;
  absl::flat_hash_map<ValueId, std::unique_ptr<Entry>> entries_;
  std::map<int, Bucket> buckets_;
  Classes classes_;
  std::vector<uint32_t> roots_;
  uint64_t candidates_ = 0;
};

}  // namespace

std::unique_ptr<Policy> MakeBucketPolicy(std::string_view name, Score score, uint64_t seed) {
  return std::make_unique<BucketPolicy>(name, score, seed);
}

}  // namespace tidepool::policy
