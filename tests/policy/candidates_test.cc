// Buckets and heaps against an ordered set per bucket.
#include "runtime/policy/candidates.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace tidepool::policy {
namespace {

TEST(Candidates, TiesGoToTheSmallerNumber) {
  Candidates candidates;
  candidates.Insert(7, 3, 100);
  candidates.Insert(2, 3, 100);
  candidates.Insert(5, 3, 100);
  EXPECT_EQ(candidates.Stalest(3).entry, 2u);
  candidates.Touch(2, 101);
  EXPECT_EQ(candidates.Stalest(3).entry, 5u);
  candidates.Touch(2, 99);
  EXPECT_EQ(candidates.Stalest(3).entry, 2u);
}

TEST(Candidates, RandomOperationsAgreeWithOrderedSets) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    Candidates candidates;
    std::map<int, std::set<std::pair<uint64_t, uint32_t>>> model;
    std::map<uint32_t, std::pair<int, uint64_t>> where;
    for (int step = 0; step < 5000; ++step) {
      const uint32_t entry = random() % 200;
      const uint64_t time = random() % 1000;
      auto it = where.find(entry);
      ASSERT_EQ(candidates.Contains(entry), it != where.end());
      if (it == where.end()) {
        const int bucket = random() % 5 == 0 ? Candidates::kBuckets - 1 : random() % 130;
        candidates.Insert(entry, bucket, time);
        model[bucket].insert({time, entry});
        where[entry] = {bucket, time};
      } else {
        const auto [bucket, old_time] = it->second;
        ASSERT_EQ(candidates.BucketOf(entry), bucket);
        model[bucket].erase({old_time, entry});
        if (random() % 2 == 0) {
          candidates.Touch(entry, time);
          model[bucket].insert({time, entry});
          it->second.second = time;
        } else {
          candidates.Erase(entry);
          where.erase(it);
          if (model[bucket].empty()) model.erase(bucket);
        }
      }
      ASSERT_EQ(candidates.count(), where.size());
      std::vector<int> buckets;
      candidates.ForEachBucket([&](int bucket) { buckets.push_back(bucket); });
      ASSERT_EQ(buckets.size(), model.size());
      size_t i = 0;
      for (const auto& [bucket, entries] : model) {
        ASSERT_EQ(buckets[i++], bucket);
        ASSERT_EQ(candidates.Stalest(bucket).entry, entries.begin()->second) << "seed " << seed;
        ASSERT_EQ(candidates.Items(bucket).size(), entries.size());
      }
    }
  }
}

}  // namespace
}  // namespace tidepool::policy
