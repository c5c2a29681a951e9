// Buffers smaller than a page share slabs: ranges of one chunk or a few, always resident, from
// which blocks of size classes are handed out. Blocks are 512-byte aligned and never overlap; an
// address is reused only after Free. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "allocator/chunk_pool.h"

namespace tidepool {

inline constexpr uint64_t kSlabAlignment = 512;

class SlabAllocator {
 public:
  // Slabs are taken from `pool`, which must outlive this.
  explicit SlabAllocator(ChunkPool* pool);

  // Largest request served, in bytes: half a chunk (larger ones are buffers of their own).
  uint64_t max_bytes() const;

  // A block of at least `bytes` (1..max_bytes). Errors: the pool's (ResourceExhausted when a new
  // slab does not fit: the caller may evict one chunk and try again).
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
  std::shared_ptr<Impl> impl_;
};

}  // namespace tidepool
