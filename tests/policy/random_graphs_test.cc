// Random histories of values through each policy and through the reference: the chosen value is a
// candidate, and its exact score is within the documented bound of the least.
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <memory>
#include <random>

#include "runtime/policy/bucket_policy.h"
#include "tests/policy/reference.h"

namespace tidepool::policy {
namespace {

struct Shape {
  const char* policy;
  double bound;
  bool chains;  // mostly long chains, as of layers; otherwise any graph
};

class RandomGraphs : public ::testing::TestWithParam<Shape> {};

TEST_P(RandomGraphs, ChoosesWithinTheBoundOfTheLeastScore) {
  const Shape shape = GetParam();
  uint64_t choices = 0;
  uint64_t exact = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    auto made = MakePolicy(shape.policy, seed);
    ASSERT_TRUE(made.ok());
    Policy& policy = **made;
    Reference reference(shape.policy);
    std::map<ValueId, uint32_t> locks;
    uint64_t now = 0;
    ValueId next = 1;
    const auto any = [&]() -> ValueId {
      auto it = reference.values.lower_bound(random() % next);
      return it == reference.values.end() ? reference.values.begin()->first : it->first;
    };
    const auto magnitude = [&](int bits) {  // of any order of magnitude
      return random() >> (64 - 1 - random() % static_cast<uint64_t>(bits));
    };
    for (int step = 0; step < 600; ++step) {
      now += magnitude(24);
      const uint64_t what = random() % 100;
      if (reference.values.size() < 3 || what < 28) {
        Reference::Value value;
        value.bytes = 1 + magnitude(32);
        value.cost = magnitude(30);
        value.last = now;
        policy.Add(next, value.bytes, value.cost, now);
        reference.values[next] = value;
        const uint64_t inputs = shape.chains ? 1 : random() % 4;
        for (uint64_t i = 0; i < inputs && next > 1; ++i) {
          const ValueId from = shape.chains ? next - 1 : any();
          if (from == next || reference.values.count(from) == 0) continue;
          policy.Link(from, next);
          reference.Link(from, next);
        }
        ++next;
      } else if (what < 50) {
        const auto victim = policy.SelectVictim(now, 1 << 20);
        ASSERT_EQ(victim.has_value(), reference.Candidates() > 0);
        if (!victim.has_value()) continue;
        const Reference::Value& value = reference.values.at(*victim);
        ASSERT_TRUE(value.resident && value.locks == 0);
        const double least = reference.Least(now);
        const double score = reference.Score(*victim, now);
        ASSERT_LE(score, least * shape.bound * (1 + 1e-9)) << "seed " << seed << " step " << step;
        ++choices;
        exact += score <= least * (1 + 1e-9) ? 1 : 0;
        policy.OnDrop(*victim);
        reference.Drop(*victim);
      } else if (what < 64) {
        const ValueId id = any();
        if (reference.values.at(id).resident) continue;
        policy.OnRebuild(id, now);
        reference.Rebuild(id, now);
      } else if (what < 74) {
        const ValueId id = any();
        policy.OnAccess(id, now);
        reference.values.at(id).last = now;
      } else if (what < 80) {
        const ValueId id = any();
        const uint64_t cost = magnitude(30);
        policy.SetCost(id, cost);
        reference.values.at(id).cost = cost;
      } else if (what < 85) {
        const ValueId id = any();
        policy.Lock(id);
        ++reference.values.at(id).locks;
      } else if (what < 92) {
        const ValueId id = any();
        policy.Unlock(id);
        uint32_t& count = reference.values.at(id).locks;
        count -= count > 0 ? 1 : 0;
      } else if (what < 94) {
        const ValueId id = any();  // dropped while in use, or not chosen by the policy
        if (!reference.values.at(id).resident) continue;
        policy.OnDrop(id);
        reference.Drop(id);
      } else {
        const ValueId id = any();
        policy.Remove(id);
        reference.Remove(id);
      }
      ASSERT_EQ(policy.candidates(), reference.Candidates());
    }
  }
  EXPECT_GT(choices, 2000u);
  // The bound is the worst case; mostly the very best is found.
  EXPECT_GT(exact * 10, choices * 7) << exact << " of " << choices;
}

const double kWidth = std::pow(2.0, 0.25);

INSTANTIATE_TEST_SUITE_P(Policies, RandomGraphs,
                         ::testing::Values(Shape{"dtr-eq", kScoreBound, false},
                                           Shape{"dtr-eq", kScoreBound, true},
                                           Shape{"msps", kScoreBound, false},
                                           Shape{"dtr-local", kWidth, false},
                                           Shape{"size", kWidth, false}, Shape{"lru", 1.0, false}));

}  // namespace
}  // namespace tidepool::policy
