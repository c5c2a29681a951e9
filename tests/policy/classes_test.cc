// The union-find against a model that splits nothing either: sets of members with a cost each.
#include "runtime/policy/classes.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

namespace tidepool::policy {
namespace {

TEST(Classes, CostsAddUpAndLeave) {
  Classes classes;
  const uint32_t a = classes.Make(1, 10);
  const uint32_t b = classes.Make(2, 20);
  const uint32_t c = classes.Make(3, 40);
  classes.Merge(a, b);
  classes.Merge(b, c);
  classes.Merge(a, c);
  EXPECT_EQ(classes.Find(a), classes.Find(c));
  EXPECT_EQ(classes.Cost(classes.Find(b)), 70u);
  EXPECT_NE(classes.Remove(b, 20), Classes::kNone);
  EXPECT_EQ(classes.Cost(classes.Find(a)), 50u);
  EXPECT_EQ(classes.Peak(classes.Find(a)), 70u);
  classes.ChangeCost(a, 10, 5);
  EXPECT_EQ(classes.Cost(classes.Find(c)), 45u);
  classes.Settle(classes.Find(c));
  EXPECT_EQ(classes.Peak(classes.Find(c)), 45u);
  EXPECT_NE(classes.Remove(a, 5), Classes::kNone);
  EXPECT_EQ(classes.Remove(c, 40), Classes::kNone);
  EXPECT_EQ(classes.nodes(), 0u);
}

// A candidate beside both was judged by what both cost at their peaks.
TEST(Classes, AMergedClassRemembersThePeaksOfBoth) {
  Classes classes;
  const uint32_t a = classes.Make(1, 100);
  const uint32_t b = classes.Make(2, 200);
  classes.ChangeCost(a, 100, 10);
  classes.ChangeCost(b, 200, 20);
  classes.Merge(a, b);
  EXPECT_EQ(classes.Cost(classes.Find(a)), 30u);
  EXPECT_EQ(classes.Peak(classes.Find(a)), 300u);
}

TEST(Classes, ALongChainNeitherRecursesNorStays) {
  Classes classes;
  constexpr uint32_t kCount = 1000000;
  std::vector<uint32_t> nodes;
  nodes.reserve(kCount);
  for (uint32_t i = 0; i < kCount; ++i) {
    nodes.push_back(classes.Make(i, 1));
    if (i > 0) classes.Merge(nodes[i - 1], nodes[i]);
  }
  EXPECT_EQ(classes.Cost(classes.Find(nodes[0])), kCount);
  for (uint32_t i = 0; i < kCount; ++i) classes.Remove(nodes[i], 1);
  EXPECT_EQ(classes.nodes(), 0u);
}

TEST(Classes, RandomOperationsAgreeWithSets) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    std::mt19937 random(seed);
    Classes classes;
    struct Member {
      uint32_t node;
      uint64_t cost;
      int set;
    };
    std::map<uint32_t, Member> members;  // by owner
    int next_set = 0;
    uint32_t next_owner = 0;
    const auto any = [&] {
      auto it = members.lower_bound(random() % (next_owner + 1));
      return it == members.end() ? members.begin() : it;
    };
    for (int step = 0; step < 2000; ++step) {
      const uint32_t what = random() % 100;
      if (members.empty() || what < 35) {
        const uint64_t cost = random() % 1000;
        members[next_owner] = {classes.Make(next_owner, cost), cost, next_set++};
        ++next_owner;
      } else if (what < 60) {
        const Member a = any()->second;
        const Member b = any()->second;
        classes.Merge(a.node, b.node);
        for (auto& [owner, member] : members) {
          if (member.set == b.set) member.set = a.set;
        }
      } else if (what < 70) {
        Member& member = any()->second;
        const uint64_t cost = random() % 1000;
        classes.ChangeCost(member.node, member.cost, cost);
        member.cost = cost;
      } else {
        auto it = any();
        const Member member = it->second;
        members.erase(it);
        bool last = true;
        for (const auto& [owner, other] : members) last = last && other.set != member.set;
        ASSERT_EQ(classes.Remove(member.node, member.cost) == Classes::kNone, last);
      }
      std::map<int, std::pair<uint64_t, std::set<uint32_t>>> sets;
      for (const auto& [owner, member] : members) {
        sets[member.set].first += member.cost;
        sets[member.set].second.insert(owner);
      }
      std::set<uint32_t> roots;
      for (const auto& [owner, member] : members) {
        const uint32_t root = classes.Find(member.node);
        ASSERT_EQ(classes.Cost(root), sets[member.set].first) << "seed " << seed;
        ASSERT_GE(classes.Peak(root), classes.Cost(root));
        if (!roots.insert(root).second) continue;
        std::set<uint32_t> owners;
        classes.ForEachOwner(root, [&](uint32_t each) { owners.insert(each); });
        ASSERT_EQ(owners, sets[member.set].second);
      }
      ASSERT_EQ(roots.size(), sets.size());
      // Nodes without an owner have children; union by size keeps them few.
      ASSERT_LE(classes.nodes(), 2 * members.size() + 1);
    }
  }
}

}  // namespace
}  // namespace tidepool::policy
