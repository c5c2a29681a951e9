// Random histories of the chunk pool against a plain model, on a device that keeps the driver's
// rules: with a device that works, with one whose calls fail at random, and with each call of a
// history made to fail in turn.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "allocator/chunk_pool.h"
#include "tests/allocator/fake_device.h"

namespace tidepool::testing {
namespace {

constexpr uint64_t kGranule = 4096;

struct Buffer {
  AddressRange* range = nullptr;
  std::vector<ChunkId> chunks;  // empty: nothing taken
};

class History {
 public:
  History(uint32_t seed, uint64_t budget_chunks, uint64_t granules, int failures_per_mille)
      : random_(seed),
        failures_(failures_per_mille),
        device_(kGranule, budget_chunks * granules * kGranule),
        pool_(std::make_unique<ChunkPool>(&device_, budget_chunks * granules * kGranule,
                                          granules * kGranule)) {
    device_.LimitAddresses(uint64_t{1} << 28, uint64_t{1} << 34);
  }

  FakeDevice& device() { return device_; }

  void Run(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFatalFailure(); ++step) {
      const bool faulty = Random(1000) < static_cast<uint64_t>(failures_);
      if (faulty) device_.FailCall(1 + Random(4));
      Step();
      if (faulty) device_.FailCall(0);
      Check();
    }
  }

  // Everything comes down and nothing is left.
  void End() {
    device_.FailCall(0);
    pool_ = nullptr;
    EXPECT_EQ(device_.physical_bytes(), 0u);
    EXPECT_EQ(device_.reservation_count(), 0u);
    EXPECT_EQ(device_.mapping_count(), 0u);
    EXPECT_TRUE(device_.violations().empty()) << device_.violations()[0];
  }

  int takes() const { return takes_; }

 private:
  uint64_t Random(uint64_t below) { return random_() % below; }

  void Step() {
    const uint64_t what = Random(100);
    if (buffers_.empty() || what < 15) {
      auto range = pool_->AcquireRange(1 + Random(6 * pool_->chunk_bytes()));
      if (range.ok()) {
        for (const Buffer& other : buffers_) ASSERT_NE(other.range, *range);
        ranges_.insert(*range);
        buffers_.push_back({*range, {}});
      }
      return;
    }
    Buffer& buffer = buffers_[Random(buffers_.size())];
    if (what < 45) {
      if (buffer.chunks.empty()) Take(&buffer);
    } else if (what < 60) {
      if (!buffer.chunks.empty()) Bind(&buffer, buffer.chunks);
    } else if (what < 80) {
      GiveBack(&buffer);
    } else if (what < 88) {
      GiveBack(&buffer);
      pool_->RetireRange(buffer.range);
      buffer = buffers_.back();
      buffers_.pop_back();
    } else if (what < 93) {
      const uint64_t first = Random(buffer.range->page_count);
      const uint64_t count = 1 + Random(buffer.range->page_count - first);
      absl::Status status = pool_->Unbind(buffer.range, first, count);
      if (status.ok()) {
        for (uint64_t i = first; i < first + count; ++i) {
          ASSERT_EQ(buffer.range->pages[i], kNoChunk);
        }
      }
    } else if (what < 96) {
      // Another buffer's value at this address, as for a replay.
      const Buffer& other = buffers_[Random(buffers_.size())];
      if (!other.chunks.empty() && other.chunks.size() == buffer.range->page_count) {
        Bind(&buffer, other.chunks);
      }
    } else {
      const uint64_t keep = Random(8);
      if (pool_->Trim(keep).ok()) {
        ASSERT_LE(pool_->free_chunks(), std::max(keep, uint64_t{0}));
      }
      std::erase_if(free_, [&](ChunkId chunk) { return !Exists(chunk); });
    }
  }

  // Trim lets go of the chunks freed longest ago.
  bool Exists(ChunkId chunk) const {
    const auto at = std::find(free_.begin(), free_.end(), chunk) - free_.begin();
    return static_cast<uint64_t>(at) + pool_->free_chunks() >= free_.size();
  }

  void Take(Buffer* buffer) {
    const uint64_t pages = buffer->range->page_count;
    std::vector<ChunkId> chunks(pages, 12345);
    const uint64_t created = pool_->created_chunks();
    const uint64_t available = pool_->available_chunks();
    absl::Status status = pool_->Take(*buffer->range, 0, std::span(chunks));
    if (!status.ok()) {
      ASSERT_TRUE(pages > available || failures_ > 0 || one_failure_) << status;
      for (ChunkId chunk : chunks) ASSERT_EQ(chunk, kNoChunk);
      // What was created before the refusal is free, and the first to go.
      for (uint64_t i = created; i < pool_->created_chunks(); ++i) ++unknown_;
      return;
    }
    ++takes_;
    ASSERT_LE(pages, available);
    std::set<ChunkId> distinct(chunks.begin(), chunks.end());
    ASSERT_EQ(distinct.size(), pages);
    for (ChunkId chunk : chunks) ASSERT_EQ(owned_.count(chunk), 0u);
    const bool exact = pool_->created_chunks() == created && unknown_ == 0;
    // First those that are there, then the oldest.
    std::vector<bool> here(pages, false);
    std::deque<ChunkId> free = free_;
    for (uint64_t i = 0; i < pages; ++i) {
      const ChunkId mapped = buffer->range->pages[i];
      auto at = std::find(free.begin(), free.end(), mapped);
      if (mapped == kNoChunk || at == free.end()) continue;
      ASSERT_EQ(chunks[i], mapped);
      free.erase(at);
      here[i] = true;
    }
    for (uint64_t i = 0; i < pages && exact; ++i) {
      if (here[i]) continue;
      ASSERT_EQ(chunks[i], free.front());
      free.pop_front();
    }
    for (ChunkId chunk : chunks) {
      auto at = std::find(free_.begin(), free_.end(), chunk);
      if (at != free_.end()) {
        free_.erase(at);
      } else {
        unknown_ -= pool_->created_chunks() == created ? 1 : 0;
      }
      owned_.insert(chunk);
    }
    if (pool_->created_chunks() > created) {
      ASSERT_EQ(pool_->free_chunks(), 0u);  // nothing is created while any is free
      ASSERT_TRUE(free_.empty());
      unknown_ = 0;
    }
    buffer->chunks = chunks;
  }

  void Bind(Buffer* buffer, const std::vector<ChunkId>& chunks) {
    const std::vector<ChunkId> before = buffer->range->pages;
    const bool must_wait = pool_->PagesToUnmap(*buffer->range, 0, chunks) > 0;
    int waits = 0;
    const uint64_t unmaps = pool_->calls().unmap;
    absl::Status status = pool_->Bind(buffer->range, 0, chunks, [&] {
      ++waits;
      EXPECT_EQ(pool_->calls().unmap, unmaps);
      return absl::OkStatus();
    });
    ASSERT_EQ(waits, must_wait ? 1 : 0);
    if (status.ok()) {
      ASSERT_TRUE(pool_->IsBound(*buffer->range, 0, chunks));
      return;
    }
    ASSERT_TRUE(failures_ > 0 || one_failure_) << status;
    for (uint64_t i = 0; i < chunks.size(); ++i) {
      const ChunkId shown = buffer->range->pages[i];
      ASSERT_TRUE(shown == kNoChunk || shown == chunks[i] || shown == before[i]);
    }
  }

  void GiveBack(Buffer* buffer) {
    pool_->GiveBack(buffer->chunks);
    for (ChunkId chunk : buffer->chunks) {
      owned_.erase(chunk);
      free_.push_back(chunk);
    }
    buffer->chunks.clear();
  }

  void Check() {
    if (::testing::Test::HasFatalFailure()) return;
    ASSERT_TRUE(device_.violations().empty()) << device_.violations()[0];
    ASSERT_LE(pool_->created_chunks(), pool_->budget_chunks());
    ASSERT_EQ(device_.physical_bytes(), pool_->created_chunks() * pool_->chunk_bytes());
    ASSERT_EQ(device_.peak_physical_bytes(), pool_->peak_physical_bytes());
    ASSERT_EQ(pool_->used_chunks(), owned_.size());
    ASSERT_EQ(pool_->free_chunks() + pool_->used_chunks(), pool_->created_chunks());
    // The pool's table is the device's: a chunk is one handle everywhere.
    std::map<ChunkId, uint64_t> handle_of;
    uint64_t mapped = 0;
    for (const AddressRange* range : ranges_) {
      for (uint64_t page = 0; page < range->page_count; ++page) {
        const FakeDevice::Mapping* mapping =
            device_.At(range->address + page * pool_->chunk_bytes());
        const ChunkId chunk = range->pages[page];
        ASSERT_EQ(mapping == nullptr, chunk == kNoChunk);
        if (mapping == nullptr) continue;
        ++mapped;
        ASSERT_EQ(handle_of.try_emplace(chunk, mapping->handle).first->second, mapping->handle);
        ASSERT_EQ(mapping->access, pool_->IsBound(*range, page, std::span(&chunk, 1)));
      }
    }
    ASSERT_EQ(device_.mapping_count(), mapped);
    std::set<uint64_t> handles;
    for (const auto& [chunk, handle] : handle_of) handles.insert(handle);
    ASSERT_EQ(handles.size(), handle_of.size());
  }

 public:
  bool one_failure_ = false;  // one call is made to fail by the test

 private:
  std::mt19937 random_;
  const int failures_;
  FakeDevice device_;
  std::unique_ptr<ChunkPool> pool_;
  std::vector<Buffer> buffers_;
  std::set<const AddressRange*> ranges_;
  std::set<ChunkId> owned_;
  std::deque<ChunkId> free_;  // known ones, the one freed longest ago first
  uint64_t unknown_ = 0;      // free ones whose number has not been seen
  int takes_ = 0;
};

TEST(ChunkPoolRandom, AgreesWithTheModel) {
  int takes = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed, 4 + seed, 1 + seed % 3, 0);
    history.Run(600);
    if (HasFatalFailure()) return;
    takes += history.takes();
    history.End();
  }
  EXPECT_GT(takes, 1000);
}

TEST(ChunkPoolRandom, SurvivesADeviceThatFails) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed, 4 + seed, 1 + seed % 2, 250);
    history.Run(600);
    if (HasFatalFailure()) return;
    history.End();
  }
}

TEST(ChunkPoolRandom, EachCallMadeToFailInTurn) {
  constexpr int kSteps = 120;
  uint64_t calls = 0;
  {
    History history(11, 10, 1, 0);
    history.Run(kSteps);
    calls = history.device().calls();
    history.End();
  }
  ASSERT_GT(calls, 50u);
  for (uint64_t n = 1; n <= calls; ++n) {
    SCOPED_TRACE(n);
    History history(11, 10, 1, 0);
    history.one_failure_ = true;
    history.device().FailCall(n);
    history.Run(kSteps);
    if (HasFatalFailure()) return;
    history.End();
  }
}

}  // namespace
}  // namespace tidepool::testing
