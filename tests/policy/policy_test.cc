// What each policy prefers, and what it must survive.
#include "runtime/policy/policy.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace tidepool::policy {
namespace {

std::unique_ptr<Policy> Make(std::string_view name, uint64_t seed = 1) {
  auto made = MakePolicy(name, seed);
  EXPECT_TRUE(made.ok()) << made.status();
  return std::move(*made);
}

TEST(MakePolicy, KnowsItsNames) {
  ASSERT_EQ(PolicyNames().size(), 6u);
  for (std::string_view name : PolicyNames()) EXPECT_EQ(Make(name)->name(), name);
  const auto unknown = MakePolicy("belady");
  ASSERT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(unknown.status().message());
  EXPECT_NE(message.find("belady"), std::string::npos);
  for (std::string_view name : PolicyNames()) {
    EXPECT_NE(message.find(std::string(name)), std::string::npos) << message;
  }
}

TEST(Policy, EachPrefersWhatItsNameSays) {
  // 1: old, small, dear. 2: young, large, dear. 3: young, small, cheap.
  const auto choice = [](std::string_view name) {
    auto policy = Make(name);
    policy->Add(1, 1 << 20, 100'000'000, 0);
    policy->Add(2, 64 << 20, 100'000'000, 900'000);
    policy->Add(3, 1 << 20, 1'000, 900'000);
    return policy->SelectVictim(1'000'000, 1 << 20).value();
  };
  EXPECT_EQ(choice("lru"), 1u);
  EXPECT_EQ(choice("size"), 2u);
  EXPECT_EQ(choice("dtr-local"), 3u);
  EXPECT_EQ(choice("dtr-eq"), 3u);
  EXPECT_EQ(choice("msps"), 3u);
}

TEST(Policy, WorkThatIsSparedTipsTheScales) {
  for (std::string_view name : {"dtr-eq", "dtr-local", "msps"}) {
    auto policy = Make(name);
    policy->Add(1, 1 << 20, 10'000, 0);
    policy->Add(2, 1 << 20, 50'000, 0);
    EXPECT_EQ(policy->SelectVictim(100, 0), 1u) << name;
    EXPECT_FALSE(policy->Prefers(2, 1, 30'000, 100)) << name;
    EXPECT_TRUE(policy->Prefers(2, 1, 50'000, 100)) << name;
    EXPECT_TRUE(policy->Prefers(1, 2, 0, 100)) << name;
    policy->Lock(2);
    EXPECT_FALSE(policy->Prefers(2, 1, 50'000, 100)) << name;  // no candidate
    EXPECT_FALSE(policy->Prefers(3, 1, 50'000, 100)) << name;  // unknown
  }
  auto lru = Make("lru");
  lru->Add(1, 1 << 20, 10'000, 0);
  lru->Add(2, 1 << 20, 10'000, 50);
  EXPECT_FALSE(lru->Prefers(2, 1, 1'000'000, 100));
}

TEST(Policy, TheDroppedNeighbourhoodCounts) {
  // 1 -> 2 -> 3 -> 4, all alike; 5 stands alone and costs twice as much.
  for (std::string_view name : {"dtr-eq", "msps"}) {
    auto policy = Make(name);
    for (ValueId id = 1; id <= 4; ++id) policy->Add(id, 1 << 20, 1000, 0);
    policy->Add(5, 1 << 20, 2000, 0);
    for (ValueId id = 1; id <= 3; ++id) policy->Link(id, id + 1);
    policy->OnDrop(1);
    policy->OnDrop(2);
    // 3 would cost 3000 (with 1 and 2), 4 only 1000.
    EXPECT_EQ(policy->SelectVictim(100, 0), 4u);
    policy->OnDrop(4);
    // 3 would join both sides: 4000 against 2000.
    EXPECT_EQ(policy->SelectVictim(100, 0), 5u);
    policy->OnRebuild(2, 0);
    policy->OnRebuild(1, 0);
    policy->OnRebuild(4, 0);
    policy->Lock(1);
    policy->Lock(2);
    policy->Lock(4);
    // Nothing is dropped any more: 3 costs 1000 again.
    EXPECT_EQ(policy->SelectVictim(100, 0), 3u);
  }
}

TEST(Policy, AClassIsCountedOnceHoweverManyLinksLeadToIt) {
  auto policy = Make("msps");
  // 1 and 2 feed 3, which feeds 4 and 5; 9 costs more than one class, less than two.
  for (ValueId id = 1; id <= 3; ++id) policy->Add(id, 1 << 20, 1000, 0);
  policy->Add(9, 1 << 20, 6000, 0);
  policy->Link(1, 2);
  policy->Link(1, 3);
  policy->Link(2, 3);
  policy->Link(2, 3);
  policy->OnDrop(1);
  policy->OnDrop(2);
  // 3: 1000 + (1000 + 1000), not 1000 + 3 * 2000.
  EXPECT_EQ(policy->SelectVictim(0, 0), 3u);
}

TEST(Policy, AClassThatFallsIsNoticedAroundIt) {
  auto policy = Make("dtr-eq");
  // A dropped chain 1..100; 200 + i hangs on i; 500 stands alone.
  for (ValueId id = 1; id <= 100; ++id) policy->Add(id, 1 << 20, 1'000'000, 0);
  for (ValueId id = 1; id < 100; ++id) policy->Link(id, id + 1);
  for (ValueId id = 1; id <= 100; ++id) policy->OnDrop(id);
  for (ValueId id = 1; id <= 100; ++id) {
    policy->Add(200 + id, 1 << 20, 1000, 0);
    policy->Link(id, 200 + id);
  }
  policy->Add(500, 1 << 20, 2'100'000, 0);
  // The others have to be seen as dear first: 100 ms each.
  EXPECT_EQ(policy->SelectVictim(1000, 0), 500u);
  // All of the chain but its last value becomes resident and is in use.
  for (ValueId id = 1; id <= 99; ++id) {
    policy->OnRebuild(id, 1000);
    policy->Lock(id);
    policy->Lock(200 + id);
  }
  // 300 hangs on the last one: 1 001 000 against 2 100 000.
  EXPECT_EQ(policy->SelectVictim(1000, 0), 300u);
}

TEST(Policy, LocksNestAndOutliveDropAndRebuild) {
  auto policy = Make("dtr-eq");
  policy->Add(1, 100, 100, 0);
  policy->Lock(1);
  policy->Lock(1);
  policy->Unlock(1);
  EXPECT_EQ(policy->SelectVictim(10, 0), std::nullopt);
  policy->OnDrop(1);
  policy->Unlock(1);
  EXPECT_EQ(policy->candidates(), 0u);  // unlocked, but dropped
  policy->OnRebuild(1, 5);
  EXPECT_EQ(policy->SelectVictim(10, 0), 1u);
  policy->Unlock(1);  // one too many: nothing happens
  policy->Lock(1);
  EXPECT_EQ(policy->candidates(), 0u);
}

TEST(Policy, UnknownValuesAreNobodysBusiness) {
  for (std::string_view name : PolicyNames()) {
    auto policy = Make(name);
    policy->Add(1, 100, 100, 0);
    policy->Link(1, 2);
    policy->Link(3, 1);
    policy->Link(1, 1);
    policy->Remove(2);
    policy->OnDrop(2);
    policy->OnRebuild(2, 1);
    policy->OnAccess(2, 1);
    policy->SetCost(2, 1);
    policy->Lock(2);
    policy->Unlock(2);
    policy->OnRebuild(1, 1);  // resident already
    EXPECT_EQ(policy->candidates(), 1u);
    EXPECT_EQ(policy->SelectVictim(10, 0), 1u);
    policy->OnDrop(1);
    policy->OnDrop(1);
    EXPECT_EQ(policy->SelectVictim(10, 0), std::nullopt);
    policy->Remove(1);
    EXPECT_EQ(policy->candidates(), 0u);
  }
}

TEST(Policy, ExtremeCostsSizesAndTimes) {
  for (std::string_view name : PolicyNames()) {
    auto policy = Make(name);
    const uint64_t max = ~uint64_t{0};
    ValueId id = 1;
    for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, max}) {
      for (uint64_t cost : {uint64_t{0}, uint64_t{1}, max}) {
        for (uint64_t time : {uint64_t{0}, max}) {
          policy->Add(id, bytes, cost, time);
          if (id > 1) policy->Link(id - 1, id);
          ++id;
        }
      }
    }
    std::map<ValueId, int> chosen;
    while (auto victim = policy->SelectVictim(1000, max)) {
      ++chosen[*victim];
      policy->OnDrop(*victim);
      ASSERT_LE(chosen.size(), id);
    }
    EXPECT_EQ(chosen.size(), id - 1) << name;
    for (ValueId each = 1; each < id; ++each) policy->Remove(each);
    EXPECT_EQ(policy->candidates(), 0u);
  }
}

std::vector<ValueId> Choices(std::string_view name, uint64_t seed) {
  auto policy = Make(name, seed);
  for (ValueId id = 0; id < 100; ++id) {
    policy->Add(id, 100 + id % 3, 50 + id % 7, id);
    if (id > 0) policy->Link(id - 1, id);
  }
  std::vector<ValueId> result;
  while (auto victim = policy->SelectVictim(1000, 0)) {
    result.push_back(*victim);
    policy->OnDrop(*victim);
  }
  return result;
}

TEST(Policy, SameHistorySameChoices) {
  for (std::string_view name : PolicyNames()) {
    EXPECT_EQ(Choices(name, 3), Choices(name, 3)) << name;
    EXPECT_EQ(Choices(name, 3).size(), 100u);
  }
  EXPECT_NE(Choices("random", 3), Choices("random", 4));
}

TEST(Policy, RandomReachesAll) {
  auto policy = Make("random");
  for (ValueId id = 0; id < 10; ++id) policy->Add(id, 100, 100, 0);
  std::map<ValueId, int> chosen;
  for (int i = 0; i < 1000; ++i) ++chosen[policy->SelectVictim(0, 0).value()];
  EXPECT_EQ(chosen.size(), 10u);
}

}  // namespace
}  // namespace tidepool::policy
