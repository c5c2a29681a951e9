// Buffers smaller than a page share slabs: ranges of one chunk, always resident. A slab is cut into
// spans of 1/32 chunk or a few of these, a span into blocks of one size class (multiples of 512
// bytes up to 4 KiB, then four classes per doubling: at most a fifth of a block is wasted), so that
// many sizes share one chunk. Blocks are 512-byte aligned and never overlap; an address is reused
// only after Free, the one freed last first.
//
// All calls are O(1); a new span goes where the shortest run of free units holds it. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/chunk_pool.h"

namespace tidepool {

inline constexpr uint64_t kSlabAlignment = 512;

class SlabAllocator {
 public:
  // Waits until the device no longer uses what the range shows; called before a new slab replaces
  // the mapping of a buffer that is gone.
  using BeforeUnmap = std::function<absl::Status(const AddressRange&)>;

  // Slabs are taken from `pool`, which must outlive this. Without `before_unmap` a slab never
  // replaces a mapping: it takes address space that was never used instead.
  explicit SlabAllocator(ChunkPool* pool, BeforeUnmap before_unmap = nullptr);
  ~SlabAllocator();  // gives all slabs back to the pool
  SlabAllocator(const SlabAllocator&) = delete;
  SlabAllocator& operator=(const SlabAllocator&) = delete;

  // Largest request served, in bytes: half a chunk (larger ones are buffers of their own).
  uint64_t max_bytes() const;

  // A block of at least `bytes` (1..max_bytes, otherwise InvalidArgument). Errors: the pool's
  // (ResourceExhausted when a new slab does not fit: the caller may evict one chunk and try again),
  // the device's and before_unmap's; nothing has changed then.
  absl::StatusOr<uint64_t> Allocate(uint64_t bytes);
  // False if `address` is not the start of a live block. A slab whose last block goes is given
  // back.
  bool Free(uint64_t address);
  struct Block {
    uint64_t address = 0;
    uint64_t bytes = 0;  // as requested
  };
  // The live block that contains `address`.
  std::optional<Block> Find(uint64_t address) const;

  uint64_t slab_bytes() const;       // physical bytes held
  uint64_t allocated_bytes() const;  // requested and live

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidepool
