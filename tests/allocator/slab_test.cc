// Slabs: blocks that never overlap, wherever the sizes fall, and nothing kept that is not needed.
#include "allocator/slab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "tests/allocator/fake_device.h"

namespace tidepool::testing {
namespace {

constexpr uint64_t kPage = 2 << 20;

TEST(Slab, RequestsOutOfBoundsAreRefused) {
  FakeDevice device(kPage);
  ChunkPool pool(&device, 8 * kPage);
  SlabAllocator slab(&pool);
  EXPECT_EQ(slab.max_bytes(), kPage / 2);
  EXPECT_TRUE(absl::IsInvalidArgument(slab.Allocate(0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(slab.Allocate(slab.max_bytes() + 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(slab.Allocate(~uint64_t{0}).status()));
  EXPECT_TRUE(slab.Allocate(slab.max_bytes()).ok());
  EXPECT_EQ(slab.slab_bytes(), kPage);
}

TEST(Slab, ForeignAndDoubleFreesAreTold) {
  FakeDevice device(kPage);
  ChunkPool pool(&device, 8 * kPage);
  SlabAllocator slab(&pool);
  const uint64_t a = *slab.Allocate(1000);
  const uint64_t b = *slab.Allocate(1000);
  AddressRange* range = *pool.AcquireRange(3 * kPage);
  EXPECT_FALSE(slab.Free(a + 512));
  EXPECT_FALSE(slab.Free(a + 1));
  EXPECT_FALSE(slab.Free(0));
  EXPECT_FALSE(slab.Free(range->address));
  EXPECT_FALSE(slab.Free(a + kPage / 2));  // a part of the slab that no span has
  EXPECT_TRUE(slab.Free(a));
  EXPECT_FALSE(slab.Free(a));
  EXPECT_TRUE(slab.Free(b));
  EXPECT_FALSE(slab.Free(b));  // the slab is gone
  EXPECT_EQ(slab.slab_bytes(), 0u);
  EXPECT_EQ(pool.used_chunks(), 0u);
  EXPECT_EQ(pool.free_chunks(), 1u);
}

TEST(Slab, FindKnowsTheBytesAskedFor) {
  FakeDevice device(kPage);
  ChunkPool pool(&device, 8 * kPage);
  SlabAllocator slab(&pool);
  const uint64_t a = *slab.Allocate(700);
  ASSERT_TRUE(slab.Find(a + 699).has_value());
  EXPECT_EQ(slab.Find(a + 699)->address, a);
  EXPECT_EQ(slab.Find(a)->bytes, 700u);
  EXPECT_FALSE(slab.Find(a + 700).has_value());  // in the block, behind what was asked for
  EXPECT_FALSE(slab.Find(a - 1).has_value());
  EXPECT_FALSE(slab.Find(a + 1024).has_value());
  EXPECT_FALSE(slab.Find(a + kPage).has_value());
  slab.Free(a);
  EXPECT_FALSE(slab.Find(a).has_value());
}

TEST(Slab, ManySizesShareAChunk) {
  FakeDevice device(kPage);
  ChunkPool pool(&device, 8 * kPage);
  SlabAllocator slab(&pool);
  for (uint64_t bytes = 4; bytes <= 64 << 10; bytes *= 2) {
    ASSERT_TRUE(slab.Allocate(bytes).ok());
    ASSERT_TRUE(slab.Allocate(bytes * 3 / 2).ok());
  }
  EXPECT_EQ(slab.slab_bytes(), kPage);
}

TEST(Slab, LittleIsWasted) {
  for (const uint64_t page : {uint64_t{4096}, uint64_t{65536}, kPage, uint64_t{20} << 20}) {
    FakeDevice device(page);
    for (uint64_t bytes = 1; bytes <= page / 2; bytes = bytes * 9 / 8 + 1) {
      ChunkPool pool(&device, 64 * page);
      SlabAllocator slab(&pool);
      uint64_t count = 0;
      while (slab.slab_bytes() <= page && count < 100000) {
        ASSERT_EQ(slab.Allocate(bytes).status(), absl::OkStatus()) << bytes << " of " << page;
        ++count;
      }
      // All but the last fitted one chunk: a fifth of each block and an eighth of each span may go,
      // and what is left over when a chunk is cut into spans.
      const uint64_t rounded = (bytes + 511) / 512 * 512;
      EXPECT_GE((count - 1) * rounded * 2, page) << bytes << " of " << page;
      if (rounded * 32 <= page) {
        EXPECT_GE((count - 1) * rounded * 10, page * 6) << bytes << " of " << page;
      }
    }
    EXPECT_TRUE(device.violations().empty()) << device.violations()[0];
  }
}

TEST(Slab, AFullPoolLeavesAllAsItWas) {
  FakeDevice device(kPage);
  ChunkPool pool(&device, 2 * kPage);
  SlabAllocator slab(&pool);
  std::vector<uint64_t> blocks;
  for (;;) {
    auto block = slab.Allocate(kPage / 2);
    if (!block.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(block.status()));
      break;
    }
    blocks.push_back(*block);
  }
  EXPECT_EQ(blocks.size(), 4u);
  EXPECT_EQ(slab.allocated_bytes(), 2 * kPage);
  EXPECT_TRUE(slab.Free(blocks[1]));
  EXPECT_EQ(*slab.Allocate(kPage / 2), blocks[1]);
}

TEST(Slab, EachDeviceCallMadeToFailLeavesAllAsItWas) {
  for (uint64_t n = 1; n <= 8; ++n) {
    FakeDevice device(kPage);
    {
      ChunkPool pool(&device, 2 * kPage);
      SlabAllocator slab(&pool);
      device.FailCall(n);
      auto block = slab.Allocate(100);
      if (!block.ok()) {
        EXPECT_EQ(slab.slab_bytes(), 0u);
        EXPECT_EQ(slab.allocated_bytes(), 0u);
        EXPECT_EQ(pool.used_chunks(), 0u);
        device.FailCall(0);
        block = slab.Allocate(100);
      }
      ASSERT_TRUE(block.ok()) << n;
      EXPECT_TRUE(device.At(*block)->access);
      device.FailCall(0);
    }
    EXPECT_EQ(device.physical_bytes(), 0u);
    EXPECT_TRUE(device.violations().empty()) << device.violations()[0];
  }
}

// A range whose old chunk has another owner: the mapping may still be in use by running ops.
void RetireInUse(ChunkPool* pool, AddressRange** range, std::vector<ChunkId>* chunk) {
  *range = *pool->AcquireRange(kPage);
  chunk->assign(1, kNoChunk);
  ASSERT_TRUE(pool->Take(**range, 0, std::span(*chunk)).ok());
  ASSERT_TRUE(pool->Bind(*range, 0, *chunk, nullptr).ok());
  pool->RetireRange(*range);
}

TEST(Slab, WithoutAWaitNoMappingIsReplaced) {
  FakeDevice device(kPage);
  ChunkPool pool(&device, 4 * kPage);
  AddressRange* range = nullptr;
  std::vector<ChunkId> chunk;
  RetireInUse(&pool, &range, &chunk);
  SlabAllocator slab(&pool);
  const uint64_t block = *slab.Allocate(100);
  EXPECT_NE(pool.FindRange(block), range);
  EXPECT_EQ(range->pages[0], chunk[0]);
  EXPECT_EQ(pool.calls().unmap, 0u);
}

TEST(Slab, TheWaitComesBeforeAMappingIsReplaced) {
  FakeDevice device(kPage);
  ChunkPool pool(&device, 4 * kPage);
  AddressRange* range = nullptr;
  std::vector<ChunkId> chunk;
  RetireInUse(&pool, &range, &chunk);
  const AddressRange* waited = nullptr;
  absl::Status answer = absl::InternalError("dead");
  SlabAllocator slab(&pool, [&](const AddressRange& each) {
    EXPECT_EQ(each.pages[0], chunk[0]);
    waited = &each;
    return answer;
  });
  EXPECT_EQ(slab.Allocate(100).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(pool.used_chunks(), 1u);
  answer = absl::OkStatus();
  const uint64_t block = *slab.Allocate(100);
  EXPECT_EQ(waited, range);
  EXPECT_EQ(pool.FindRange(block), range);
}

TEST(Slab, GivesAllBackAtTheEnd) {
  FakeDevice device(kPage);
  ChunkPool pool(&device, 4 * kPage);
  {
    SlabAllocator slab(&pool);
    ASSERT_TRUE(slab.Allocate(100).ok());
    ASSERT_TRUE(slab.Allocate(kPage / 2).ok());
    EXPECT_EQ(pool.used_chunks(), 1u);
  }
  EXPECT_EQ(pool.used_chunks(), 0u);
}

TEST(Slab, RandomBlocksNeverOverlap) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const uint64_t page = seed % 3 == 0 ? 4096 : seed % 3 == 1 ? 65536 : kPage;
    FakeDevice device(page);
    ChunkPool pool(&device, (16 + random() % 64) * page);
    SlabAllocator slab(&pool);
    std::map<uint64_t, uint64_t> live;  // address, bytes
    uint64_t live_bytes = 0;
    const uint64_t wanted = seed % 2 == 0 ? 400 : 40;
    for (int step = 0; step < 8000; ++step) {
      if (live.size() < wanted ? random() % 3 != 0 : random() % 3 == 0) {
        const uint64_t bytes = 1 + random() % (uint64_t{1} << (random() % 21)) % slab.max_bytes();
        auto block = slab.Allocate(bytes);
        if (!block.ok()) {
          ASSERT_TRUE(absl::IsResourceExhausted(block.status()));
          continue;
        }
        ASSERT_EQ(*block % kSlabAlignment, 0u);
        auto next = live.lower_bound(*block);
        ASSERT_TRUE(next == live.end() || *block + bytes <= next->first);
        if (next != live.begin()) {
          --next;
          ASSERT_LE(next->first + next->second, *block);
        }
        const AddressRange* range = pool.FindRange(*block);
        ASSERT_NE(range, nullptr);
        ASSERT_EQ(pool.FindRange(*block + bytes - 1), range);
        ASSERT_TRUE(device.At(range->address)->access);
        live[*block] = bytes;
        live_bytes += bytes;
      } else if (!live.empty()) {
        auto it = live.lower_bound(std::next(live.begin(), random() % live.size())->first);
        const uint64_t inside = it->first + random() % it->second;
        ASSERT_EQ(slab.Find(inside)->address, it->first);
        ASSERT_EQ(slab.Find(inside)->bytes, it->second);
        ASSERT_TRUE(slab.Free(it->first));
        ASSERT_FALSE(slab.Free(it->first));
        live_bytes -= it->second;
        live.erase(it);
      }
      ASSERT_EQ(slab.allocated_bytes(), live_bytes);
      ASSERT_EQ(slab.slab_bytes(), pool.used_chunks() * page);
      std::set<const AddressRange*> slabs;
      if (step % 50 != 0) continue;
      for (const auto& [address, bytes] : live) slabs.insert(pool.FindRange(address));
      ASSERT_EQ(slabs.size() * page, slab.slab_bytes());
    }
    while (!live.empty()) {
      ASSERT_TRUE(slab.Free(live.begin()->first));
      live.erase(live.begin());
    }
    ASSERT_EQ(slab.slab_bytes(), 0u);
    ASSERT_TRUE(device.violations().empty()) << device.violations()[0];
  }
}

}  // namespace
}  // namespace tidepool::testing
