// The pool of host memory: within its budget, blocks used again, released only when asked about.
#include "allocator/host_pool.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>

namespace tidepool::testing {
namespace {

constexpr uint64_t kUnit = 4096;

class FakeHost final : public HostMemory {
 public:
  absl::StatusOr<void*> AllocateHost(uint64_t bytes) override {
    if (refuse) return absl::ResourceExhaustedError("the host has no more");
    void* data = std::malloc(bytes);
    live.insert(data);
    ++allocations;
    return data;
  }
  absl::Status FreeHost(void* data) override {
    EXPECT_EQ(live.erase(data), 1u);
    std::free(data);
    return absl::OkStatus();
  }
  std::set<void*> live;
  int allocations = 0;
  bool refuse = false;
};

absl::Status Fine(const HostBlock&) { return absl::OkStatus(); }

TEST(HostPool, BlocksAreUsedAgain) {
  FakeHost host;
  HostPool pool(&host, 10 * kUnit, kUnit);
  HostBlock* a = *pool.Take(4 * kUnit - 5, Fine);
  EXPECT_EQ(a->bytes, 4 * kUnit);
  pool.GiveBack(a);
  EXPECT_EQ(*pool.Take(4 * kUnit, Fine), a);
  EXPECT_EQ(host.allocations, 1);
  EXPECT_EQ(pool.used_bytes(), 4 * kUnit);
}

TEST(HostPool, AFreeBlockThatIsMuchLargerIsNotWasted) {
  FakeHost host;
  HostPool pool(&host, 10 * kUnit, kUnit);
  HostBlock* large = *pool.Take(6 * kUnit, Fine);
  pool.GiveBack(large);
  EXPECT_NE(*pool.Take(kUnit, Fine), large);
  EXPECT_EQ(*pool.Take(5 * kUnit, Fine), large);
}

TEST(HostPool, FreeBlocksMakeRoomAfterTheirLastUse) {
  FakeHost host;
  HostPool pool(&host, 4 * kUnit, kUnit);
  HostBlock* a = *pool.Take(2 * kUnit, Fine);
  HostBlock* b = *pool.Take(kUnit, Fine);
  const uint32_t id = a->id;
  pool.GiveBack(a);
  std::vector<uint32_t> asked;
  absl::StatusOr<HostBlock*> c = pool.Take(3 * kUnit, [&](const HostBlock& block) {
    asked.push_back(block.id);
    return absl::OkStatus();
  });
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(asked, std::vector<uint32_t>{id});
  EXPECT_EQ(pool.held_bytes(), 4 * kUnit);
  EXPECT_EQ(pool.peak_bytes(), 4 * kUnit);
  EXPECT_NE(*c, b);
}

TEST(HostPool, WhatDoesNotFitIsRefusedAndLosesNothing) {
  FakeHost host;
  HostPool pool(&host, 4 * kUnit, kUnit);
  HostBlock* a = *pool.Take(3 * kUnit, Fine);
  EXPECT_TRUE(absl::IsResourceExhausted(pool.Take(2 * kUnit, Fine).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(pool.Take(~uint64_t{0}, Fine).status()));
  host.refuse = true;
  EXPECT_TRUE(absl::IsResourceExhausted(pool.Take(kUnit, Fine).status()));
  host.refuse = false;
  EXPECT_EQ(pool.used_bytes(), 3 * kUnit);
  pool.GiveBack(a);
  // The caller cannot wait for the device: the block stays.
  EXPECT_FALSE(
      pool.Take(2 * kUnit, [](const HostBlock&) { return absl::InternalError("dead"); }).ok());
  EXPECT_EQ(pool.held_bytes(), 3 * kUnit);
}

TEST(HostPool, RandomTakesStayWithinTheBudget) {
  std::mt19937 random(7);
  FakeHost host;
  {
    HostPool pool(&host, 64 * kUnit, kUnit);
    std::vector<HostBlock*> taken;
    uint64_t used = 0;
    for (int i = 0; i < 5000; ++i) {
      if (random() % 2 == 0 && !taken.empty()) {
        const size_t at = random() % taken.size();
        used -= taken[at]->bytes;
        pool.GiveBack(taken[at]);
        taken.erase(taken.begin() + static_cast<ptrdiff_t>(at));
      } else {
        const uint64_t bytes = 1 + random() % (12 * kUnit);
        absl::StatusOr<HostBlock*> block = pool.Take(bytes, Fine);
        const bool fits = (bytes + kUnit - 1) / kUnit * kUnit + used <= 64 * kUnit;
        ASSERT_EQ(block.ok(), fits);
        if (!block.ok()) continue;
        ASSERT_GE((*block)->bytes, bytes);
        for (HostBlock* other : taken) ASSERT_NE(other->data, (*block)->data);
        used += (*block)->bytes;
        taken.push_back(*block);
      }
      ASSERT_EQ(pool.used_bytes(), used);
      ASSERT_LE(pool.held_bytes(), 64 * kUnit);
    }
  }
  EXPECT_TRUE(host.live.empty());
}

}  // namespace
}  // namespace tidepool::testing
