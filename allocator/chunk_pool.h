// Physical memory: chunks of one size under a hard budget, recycled and never given back while the
// pool lives (except by Trim), and the address ranges that they are mapped at.
//
// A chunk may be mapped at several addresses at once; an address page shows one chunk at a time.
// The pool knows both sides, so that memory can change owner without a driver call when the chunk
// is already mapped where it is wanted. It knows nothing of values, streams or policy: who may take
// a chunk, and when a mapping may be replaced, is the caller's business.
//
// Not thread-safe: the runtime holds its lock around every call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/memory_device.h"

namespace tidepool {

using ChunkId = uint32_t;
inline constexpr ChunkId kNoChunk = 0xffffffffu;

// An address range reserved for one buffer. `pages[i]` is the chunk mapped at page i, or kNoChunk.
struct AddressRange {
  uint64_t address = 0;
  uint64_t page_count = 0;
  std::vector<ChunkId> pages;
  // The pool's own: where page i stands in its chunk's list of mappings, and when it was acquired.
  std::vector<uint32_t> slots;
  uint64_t acquired = 0;
};

// Driver calls made, for the report.
struct PoolCalls {
  uint64_t create = 0, release = 0, map = 0, unmap = 0, set_access = 0, reserve = 0;
  uint64_t total() const { return create + release + map + unmap + set_access + reserve; }
};

class ChunkPool {
 public:
  // `budget_bytes` is rounded down to whole chunks. `chunk_bytes`: 0 takes the device's
  // granularity.
  ChunkPool(MemoryDevice* device, uint64_t budget_bytes, uint64_t chunk_bytes = 0);
  ~ChunkPool();  // unmaps, releases and unreserves everything; errors are ignored
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  uint64_t chunk_bytes() const { return chunk_bytes_; }
  uint64_t budget_chunks() const { return budget_chunks_; }
  uint64_t created_chunks() const { return chunks_.size() - released_.size(); }
  uint64_t free_chunks() const { return free_count_; }
  // Chunks that Take can hand out without anybody giving one back: free ones and ones not created
  // yet.
  uint64_t available_chunks() const;
  uint64_t used_chunks() const { return created_chunks() - free_count_; }
  uint64_t peak_physical_bytes() const { return peak_created_ * chunk_bytes_; }
  const PoolCalls& calls() const { return calls_; }

  // --- Address ranges ---

  // A range of ceil(bytes / chunk) pages with an unmapped guard page behind it: of the retired ones
  // of that page count one whose mapped chunks are free, else the one acquired longest ago; `fresh`
  // asks for one that never was mapped. Errors: ResourceExhausted if no address space is left.
  absl::StatusOr<AddressRange*> AcquireRange(uint64_t bytes, bool fresh = false);
  // Gives the range up for reuse; its mappings stay. No chunk mapped there may be used through it
  // any more.
  void RetireRange(AddressRange* range);
  // The range, in use or retired, that contains `address`, or null.
  AddressRange* FindRange(uint64_t address) const;
  // True if `address` lies in any arena reserved by the pool: a few compares.
  bool InPool(uint64_t address) const;

  // --- Chunks ---

  // Takes `out.size()` chunks for pages [first_page, ...) of `range`: for each page the chunk
  // mapped there if it is free; otherwise a free chunk, the one freed longest ago first. Chunks are
  // created only when all free ones together do not suffice. Takes all or none; chunks created
  // before the device refused another stay, free. O(1) per page. Errors: ResourceExhausted when
  // fewer than asked for are available; the device's when it refuses more (`out` is then all
  // kNoChunk).
  absl::Status Take(const AddressRange& range, uint64_t first_page, std::span<ChunkId> out);
  // Chunks that are free already are passed over.
  void GiveBack(std::span<const ChunkId> chunks);
  bool IsFree(ChunkId chunk) const { return chunks_[chunk].free; }

  // --- Mappings ---

  // True if every page from `first_page` already shows the wanted chunk.
  bool IsBound(const AddressRange& range, uint64_t first_page,
               std::span<const ChunkId> chunks) const;
  // Pages among these that show another chunk (binding would have to unmap it first).
  uint64_t PagesToUnmap(const AddressRange& range, uint64_t first_page,
                        std::span<const ChunkId> chunks) const;
  // Makes the pages show the chunks: one SetAccess per run of pages that change. `before_unmap` is
  // called once, before the first unmap, if one is needed: the caller waits there for the device's
  // last use of this range. On error each page shows what was wanted, what it showed before, or
  // nothing, and the error is before_unmap's or the device's.
  absl::Status Bind(AddressRange* range, uint64_t first_page, std::span<const ChunkId> chunks,
                    const std::function<absl::Status()>& before_unmap);
  // Unmaps the pages that show anything, one call per run of them. Goes on after an error; returns
  // the first.
  absl::Status Unbind(AddressRange* range, uint64_t first_page, uint64_t page_count);

  // Releases free chunks (unmapping them everywhere; the caller has waited for the device) until at
  // most `keep` are free.
  absl::Status Trim(uint64_t keep);

 private:
  using Page = std::pair<AddressRange*, uint64_t>;
  struct Chunk {
    uint64_t handle = 0;
    bool free = false;
    bool released = false;
    // The list of free chunks, by when they became free.
    ChunkId older = kNoChunk, newer = kNoChunk;
    std::vector<Page> mappings;  // where it is mapped
  };
  struct Arena {
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint64_t used = 0;
    std::vector<AddressRange*> owners;  // by page, as far as used; null: a guard page
  };

  absl::StatusOr<Arena*> ArenaWithRoom(uint64_t bytes);
  const Arena* FindArena(uint64_t address) const;
  bool AllFree(const AddressRange& range) const;

  void PushNewest(ChunkId id);
  void PushOldest(ChunkId id);
  void RemoveFree(ChunkId id);
  absl::StatusOr<ChunkId> Create();

  bool Shows(const AddressRange& range, uint64_t page, ChunkId chunk) const;
  void AddMapping(AddressRange* range, uint64_t page, ChunkId chunk);
  void RemoveMapping(AddressRange* range, uint64_t page);
  absl::Status MapRun(AddressRange* range, uint64_t first_page, std::span<const ChunkId> chunks);

  MemoryDevice* device_;
  uint64_t chunk_bytes_ = 0;
  uint64_t budget_chunks_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<ChunkId> released_;
  uint64_t free_count_ = 0;
  ChunkId oldest_free_ = kNoChunk, newest_free_ = kNoChunk;
  uint64_t peak_created_ = 0;
  PoolCalls calls_;
  std::vector<std::unique_ptr<Arena>> arenas_;  // by address
  std::vector<Arena*> with_room_;               // the latest last
  std::vector<std::unique_ptr<AddressRange>> ranges_;
  // By page count, and by when they were acquired.
  absl::flat_hash_map<uint64_t, absl::btree_map<uint64_t, AddressRange*>> retired_;
  uint64_t acquisitions_ = 0;
  // Pages that a failing device left mapped without access: they count as showing nothing usable.
  absl::flat_hash_set<Page> no_access_;
};

}  // namespace tidepool
