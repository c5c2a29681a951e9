// The chunk pool's promises, one at a time.
#include "allocator/chunk_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/allocator/fake_device.h"

namespace tidepool::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kPage = 2 << 20;

class ChunkPoolTest : public ::testing::Test {
 protected:
  ChunkPool& Pool(uint64_t budget_chunks, uint64_t chunk_bytes = 0) {
    pool_.emplace(&device_, budget_chunks * std::max(kPage, chunk_bytes), chunk_bytes);
    return *pool_;
  }
  void TearDown() override {
    pool_.reset();
    EXPECT_THAT(device_.violations(), IsEmpty());
    EXPECT_EQ(device_.physical_bytes(), 0u);
    EXPECT_EQ(device_.reservation_count(), 0u);
  }
  AddressRange* Range(uint64_t pages) {
    auto range = pool_->AcquireRange(pages * pool_->chunk_bytes());
    EXPECT_TRUE(range.ok()) << range.status();
    return *range;
  }
  std::vector<ChunkId> Take(const AddressRange& range, uint64_t count) {
    std::vector<ChunkId> chunks(count, kNoChunk);
    EXPECT_TRUE(pool_->Take(range, 0, std::span(chunks)).ok());
    return chunks;
  }
  absl::Status Bind(AddressRange* range, const std::vector<ChunkId>& chunks) {
    return pool_->Bind(range, 0, chunks, [this] {
      ++waits_;
      return absl::OkStatus();
    });
  }
  std::vector<ChunkId> TakeAndBind(AddressRange* range) {
    std::vector<ChunkId> chunks = Take(*range, range->page_count);
    EXPECT_TRUE(Bind(range, chunks).ok());
    return chunks;
  }

  FakeDevice device_{kPage};
  std::optional<ChunkPool> pool_;
  int waits_ = 0;
};

TEST_F(ChunkPoolTest, SizesAreWholeChunks) {
  EXPECT_EQ(Pool(3).chunk_bytes(), kPage);
  EXPECT_EQ(pool_->budget_chunks(), 3u);
  EXPECT_EQ(Pool(2, 5 << 20).chunk_bytes(), 6u << 20);
  EXPECT_EQ(pool_->budget_chunks(), 1u);  // 10 MiB
  EXPECT_EQ(Range(1)->page_count, 1u);
  EXPECT_EQ((*pool_->AcquireRange((6 << 20) + 1))->page_count, 2u);
  EXPECT_EQ((*pool_->AcquireRange(1))->page_count, 1u);
}

TEST_F(ChunkPoolTest, NothingIsCreatedBeyondTheBudgetAndATakeIsAllOrNone) {
  Pool(4);
  AddressRange* range = Range(8);
  std::vector<ChunkId> chunks = Take(*range, 3);
  std::vector<ChunkId> more(2, 7);
  EXPECT_TRUE(absl::IsResourceExhausted(pool_->Take(*range, 3, std::span(more))));
  EXPECT_THAT(more, ElementsAre(kNoChunk, kNoChunk));
  EXPECT_EQ(pool_->used_chunks(), 3u);
  EXPECT_EQ(pool_->available_chunks(), 1u);
  pool_->GiveBack(chunks);
  EXPECT_EQ(pool_->available_chunks(), 4u);
  EXPECT_EQ(pool_->free_chunks(), 3u);
  EXPECT_EQ(Take(*range, 4).size(), 4u);
  EXPECT_EQ(pool_->created_chunks(), 4u);
  EXPECT_EQ(pool_->peak_physical_bytes(), 4 * kPage);
  EXPECT_EQ(device_.peak_physical_bytes(), 4 * kPage);
}

TEST_F(ChunkPoolTest, TheChunkThatIsThereWinsThenTheOneFreedLongestAgo) {
  Pool(8);
  AddressRange* a = Range(3);
  AddressRange* b = Range(3);
  const std::vector<ChunkId> of_a = TakeAndBind(a);
  const std::vector<ChunkId> of_b = TakeAndBind(b);
  pool_->GiveBack(of_b);
  pool_->GiveBack(of_a);
  EXPECT_EQ(Take(*a, 3), of_a);  // though b's were freed before
  pool_->GiveBack(of_a);
  const AddressRange* c = Range(2);
  EXPECT_THAT(Take(*c, 2), ElementsAre(of_b[0], of_b[1]));
  // The third is still there; the others come from those freed longest ago.
  EXPECT_THAT(Take(*b, 3), ElementsAre(of_a[0], of_a[1], of_b[2]));
  EXPECT_EQ(pool_->created_chunks(), 6u);  // free ones first
}

TEST_F(ChunkPoolTest, AChunkMappedAtTwoPagesOfARangeIsGivenOnce) {
  Pool(4);
  AddressRange* range = Range(2);
  const std::vector<ChunkId> one = Take(*range, 1);
  ASSERT_TRUE(Bind(range, {one[0], one[0]}).ok());
  pool_->GiveBack(one);
  const std::vector<ChunkId> two = Take(*range, 2);
  EXPECT_NE(two[0], two[1]);
  EXPECT_TRUE(two[0] == one[0] || two[1] == one[0]);
}

TEST_F(ChunkPoolTest, RepeatingAProgramMakesNoDriverCall) {
  // Two thirds of what the buffers need: each pass takes memory from earlier ones.
  Pool(8);
  std::vector<AddressRange*> ranges;
  ranges.reserve(6);
  for (int i = 0; i < 6; ++i) ranges.push_back(Range(2));
  std::vector<std::vector<ChunkId>> held(6);
  uint64_t calls = 0;
  for (int pass = 0; pass < 4; ++pass) {
    calls = pool_->calls().total();
    for (int i = 0; i < 6; ++i) {
      if (i >= 4) pool_->GiveBack(held[i - 4]);
      held[i] = TakeAndBind(ranges[i]);
    }
    for (int i = 2; i < 6; ++i) pool_->GiveBack(held[i]);
  }
  EXPECT_EQ(pool_->calls().total(), calls);
}

TEST_F(ChunkPoolTest, AProgramWhoseAddressesOutliveTheirMemoryMakesNoDriverCall) {
  // Memory is recycled within an iteration, and addresses only after it (lineage mentions them), so
  // that each chunk is mapped at many: the right one is the one that stood at the same place
  // before.
  Pool(4);
  uint64_t calls = 0;
  for (int iteration = 0; iteration < 4; ++iteration) {
    calls = pool_->calls().total();
    std::vector<AddressRange*> ranges;
    std::vector<std::vector<ChunkId>> live;
    for (int i = 0; i < 40; ++i) {
      if (live.size() == 4 || (!live.empty() && i % 3 == 0)) {
        const size_t at = static_cast<size_t>(i * 7) % live.size();
        pool_->GiveBack(live[at]);
        live.erase(live.begin() + static_cast<ptrdiff_t>(at));
      }
      ranges.push_back(Range(1));
      live.push_back(TakeAndBind(ranges.back()));
    }
    for (const auto& chunks : live) pool_->GiveBack(chunks);
    // Retired in whatever order lineage lets go of them.
    for (size_t i = 0; i < ranges.size(); ++i) pool_->RetireRange(ranges[(i * 13 + 5) % 40]);
  }
  EXPECT_EQ(pool_->calls().total(), calls);
}

TEST_F(ChunkPoolTest, OneAccessCallPerRunAndOneWaitPerBind) {
  Pool(16);
  AddressRange* range = Range(6);
  std::vector<ChunkId> chunks = TakeAndBind(range);
  EXPECT_EQ(pool_->calls().map, 6u);
  EXPECT_EQ(pool_->calls().set_access, 1u);
  EXPECT_EQ(pool_->calls().unmap, 0u);
  EXPECT_EQ(waits_, 0);
  ASSERT_TRUE(Bind(range, chunks).ok());
  EXPECT_EQ(pool_->calls().map, 6u);
  const AddressRange* other = Range(3);
  const std::vector<ChunkId> fresh = Take(*other, 3);
  chunks[1] = fresh[0];
  chunks[2] = fresh[1];
  chunks[5] = fresh[2];
  EXPECT_FALSE(pool_->IsBound(*range, 0, chunks));
  EXPECT_EQ(pool_->PagesToUnmap(*range, 0, chunks), 3u);
  ASSERT_TRUE(Bind(range, chunks).ok());
  EXPECT_TRUE(pool_->IsBound(*range, 0, chunks));
  EXPECT_EQ(pool_->calls().map, 9u);
  EXPECT_EQ(pool_->calls().set_access, 3u);
  EXPECT_EQ(pool_->calls().unmap, 2u);
  EXPECT_EQ(waits_, 1);
  ASSERT_TRUE(pool_->Unbind(range, 0, 6).ok());
  EXPECT_EQ(pool_->calls().unmap, 3u);
  EXPECT_EQ(device_.mapping_count(), 0u);
  ASSERT_TRUE(pool_->Unbind(range, 0, 6).ok());  // nothing to do
  EXPECT_EQ(pool_->calls().unmap, 3u);
}

TEST_F(ChunkPoolTest, AFailedWaitChangesNothing) {
  Pool(4);
  AddressRange* range = Range(1);
  const std::vector<ChunkId> first = TakeAndBind(range);
  const std::vector<ChunkId> second = Take(*Range(1), 1);
  absl::Status status =
      pool_->Bind(range, 0, second, [] { return absl::InternalError("the context is dead"); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(pool_->IsBound(*range, 0, first));
}

TEST_F(ChunkPoolTest, ADeviceThatRefusesMoreLeavesTheTakerWithNothing) {
  Pool(8);
  device_.SetCapacity(3 * kPage);  // another process has the rest
  AddressRange* range = Range(4);
  const std::vector<ChunkId> chunks = TakeAndBind(Range(2));
  std::vector<ChunkId> out(4);
  EXPECT_TRUE(absl::IsResourceExhausted(pool_->Take(*range, 0, std::span(out))));
  EXPECT_EQ(pool_->used_chunks(), 2u);
  EXPECT_EQ(pool_->created_chunks() * kPage, device_.physical_bytes());
  pool_->GiveBack(chunks);
  const std::vector<ChunkId> all = Take(*range, 3);
  // What was created in vain goes first: nothing has to be waited for.
  EXPECT_THAT(all, ElementsAre(::testing::Not(::testing::AnyOf(chunks[0], chunks[1])), chunks[0],
                               chunks[1]));
}

TEST_F(ChunkPoolTest, AccessRefusedShowsNothing) {
  Pool(4);
  AddressRange* range = Range(2);
  const std::vector<ChunkId> chunks = Take(*range, 2);
  device_.FailNext(Call::kSetAccess, 1);
  EXPECT_FALSE(Bind(range, chunks).ok());
  EXPECT_THAT(range->pages, ElementsAre(kNoChunk, kNoChunk));
  EXPECT_EQ(device_.mapping_count(), 0u);
  EXPECT_TRUE(Bind(range, chunks).ok());
}

TEST_F(ChunkPoolTest, MappedWithoutAccessIsNotBound) {
  Pool(4);
  AddressRange* range = Range(2);
  const std::vector<ChunkId> chunks = Take(*range, 2);
  device_.FailNext(Call::kSetAccess, 1);
  device_.FailNext(Call::kUnmap, 1);  // and it cannot even be taken back
  EXPECT_FALSE(Bind(range, chunks).ok());
  EXPECT_EQ(device_.mapping_count(), 2u);
  EXPECT_FALSE(pool_->IsBound(*range, 0, chunks));
  ASSERT_TRUE(Bind(range, chunks).ok());
  EXPECT_TRUE(pool_->IsBound(*range, 0, chunks));
  for (uint64_t page = 0; page < 2; ++page) {
    EXPECT_TRUE(device_.At(range->address + page * kPage)->access);
  }
}

TEST_F(ChunkPoolTest, RetiredRangesComeBackTheReadyOnesFirst) {
  Pool(8);
  AddressRange* a = Range(2);
  AddressRange* b = Range(2);
  AddressRange* c = Range(3);
  const std::vector<ChunkId> of_a = TakeAndBind(a);
  const std::vector<ChunkId> of_b = TakeAndBind(b);
  pool_->GiveBack(of_a);
  pool_->RetireRange(a);
  pool_->RetireRange(b);  // its chunks are still in use
  pool_->RetireRange(c);
  EXPECT_EQ(pool_->FindRange(b->address), b);  // retired ones are found
  AddressRange* first = Range(2);
  EXPECT_EQ(first, a);
  EXPECT_EQ(Range(2), b);
  EXPECT_EQ(Range(3), c);
  pool_->RetireRange(a);
  EXPECT_NE(*pool_->AcquireRange(2 * kPage, /*fresh=*/true), a);
  EXPECT_EQ(Range(2), a);
}

TEST_F(ChunkPoolTest, AddressesFindTheirRangeAndGuardPagesDoNot) {
  Pool(4);
  std::vector<AddressRange*> ranges;
  for (uint64_t pages = 1; pages < 40; ++pages) ranges.push_back(Range(pages));
  for (const AddressRange* range : ranges) {
    const uint64_t end = range->address + range->page_count * kPage;
    EXPECT_EQ(pool_->FindRange(range->address), range);
    EXPECT_EQ(pool_->FindRange(end - 1), range);
    EXPECT_EQ(pool_->FindRange(end), nullptr);
    EXPECT_EQ(pool_->FindRange(end + kPage - 1), nullptr);
    EXPECT_TRUE(pool_->InPool(range->address));
    EXPECT_TRUE(pool_->InPool(end - 1));
  }
  for (uint64_t address : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, ranges[0]->address - 1}) {
    EXPECT_EQ(pool_->FindRange(address), nullptr);
    EXPECT_FALSE(pool_->InPool(address));
  }
}

TEST_F(ChunkPoolTest, SmallArenasWhenLargeOnesAreRefused) {
  device_.LimitAddresses(64 * kPage, 1024 * kPage);
  Pool(4);
  std::vector<AddressRange*> ranges;
  uint64_t pages = 0;
  for (;;) {
    auto range = pool_->AcquireRange((1 + ranges.size() % 30) * kPage);
    if (!range.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(range.status()));
      break;
    }
    ranges.push_back(*range);
    pages += (*range)->page_count + 1;
  }
  EXPECT_GT(pages, 512u);  // not much is wasted
  EXPECT_GT(device_.reservation_count(), 10u);
  std::map<uint64_t, uint64_t> by_address;
  for (const AddressRange* range : ranges) {
    by_address[range->address] = range->page_count * kPage;
    EXPECT_EQ(pool_->FindRange(range->address + range->page_count * kPage - 1), range);
  }
  ASSERT_EQ(by_address.size(), ranges.size());
  uint64_t end = 0;
  for (const auto& [address, bytes] : by_address) {
    EXPECT_GE(address, end);
    end = address + bytes + kPage;
  }
  // A range larger than what is left is refused; what was retired is still there.
  pool_->RetireRange(ranges[29]);
  EXPECT_EQ(Range(30), ranges[29]);
}

TEST_F(ChunkPoolTest, SizesThatNoDeviceHasAreRefused) {
  Pool(4);
  for (uint64_t bytes : {~uint64_t{0}, ~uint64_t{0} - kPage, uint64_t{1} << 60}) {
    EXPECT_TRUE(absl::IsResourceExhausted(pool_->AcquireRange(bytes).status())) << bytes;
  }
  device_.LimitAddresses(uint64_t{1} << 47, uint64_t{1} << 47);
  EXPECT_TRUE(absl::IsResourceExhausted(pool_->AcquireRange(uint64_t{1} << 48).status()));
  EXPECT_EQ(Range(1)->page_count, 1u);
}

TEST_F(ChunkPoolTest, TrimReleasesFreeChunksWhereverTheyAreMapped) {
  Pool(8);
  AddressRange* a = Range(3);
  AddressRange* b = Range(3);
  const std::vector<ChunkId> chunks = TakeAndBind(a);
  ASSERT_TRUE(Bind(b, chunks).ok());
  const std::vector<ChunkId> used = TakeAndBind(Range(2));
  pool_->GiveBack(chunks);
  ASSERT_TRUE(pool_->Trim(1).ok());
  EXPECT_EQ(pool_->free_chunks(), 1u);
  EXPECT_EQ(pool_->created_chunks(), 3u);
  EXPECT_EQ(device_.physical_bytes(), 3 * kPage);
  EXPECT_THAT(a->pages, ElementsAre(kNoChunk, kNoChunk, chunks[2]));
  EXPECT_EQ(a->pages, b->pages);
  EXPECT_EQ(pool_->available_chunks(), 6u);
  // Their numbers come back with new memory.
  EXPECT_EQ(TakeAndBind(a).size(), 3u);
  EXPECT_EQ(pool_->peak_physical_bytes(), 5 * kPage);
  ASSERT_TRUE(pool_->Trim(100).ok());
}

TEST_F(ChunkPoolTest, GivingBackTwiceIsPassedOver) {
  Pool(4);
  const std::vector<ChunkId> chunks = Take(*Range(2), 2);
  pool_->GiveBack(chunks);
  pool_->GiveBack(chunks);
  EXPECT_EQ(pool_->free_chunks(), 2u);
  EXPECT_TRUE(pool_->IsFree(chunks[0]));
}

}  // namespace
}  // namespace tidepool::testing
