#include "allocator/slab.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tidepool {
namespace {

// Size classes: multiples of 512 bytes up to 4 KiB, then four per doubling (at most a fifth
// wasted).
uint64_t ClassSize(uint64_t bytes) {
  const uint64_t rounded = (bytes + kSlabAlignment - 1) / kSlabAlignment * kSlabAlignment;
  if (rounded <= 8 * kSlabAlignment) return rounded;
  uint64_t power = 8 * kSlabAlignment;
  while (power * 2 < rounded) power *= 2;
  const uint64_t step = power / 4;
  return (rounded + step - 1) / step * step;
}

struct Slab {
  AddressRange* range = nullptr;
  ChunkId chunk = kNoChunk;
  uint64_t block_bytes = 0;
  uint64_t live = 0;
  std::vector<uint32_t> free_blocks;  // indices, the last freed on top
  std::vector<uint64_t> requested;    // by block; 0: free
};

}  // namespace

struct SlabAllocator::Impl {
  ChunkPool* pool = nullptr;
  std::map<uint64_t, std::unique_ptr<Slab>> slabs;              // by address
  absl::flat_hash_map<uint64_t, std::vector<Slab*>> with_room;  // by class size
  uint64_t allocated = 0;

  Slab* SlabOf(uint64_t address) const {
    auto it = slabs.upper_bound(address);
    if (it == slabs.begin()) return nullptr;
    Slab* slab = std::prev(it)->second.get();
    return address - slab->range->address < pool->chunk_bytes() ? slab : nullptr;
  }
};

SlabAllocator::SlabAllocator(ChunkPool* pool) : impl_(std::make_shared<Impl>()) {
  impl_->pool = pool;
}

uint64_t SlabAllocator::max_bytes() const { return impl_->pool->chunk_bytes() / 2; }

absl::StatusOr<uint64_t> SlabAllocator::Allocate(uint64_t bytes) {
  ChunkPool* pool = impl_->pool;
  const uint64_t block = std::min(ClassSize(bytes), std::max(bytes, max_bytes()));
  std::vector<Slab*>& slabs = impl_->with_room[block];
  if (slabs.empty()) {
    absl::StatusOr<AddressRange*> range = pool->AcquireRange(pool->chunk_bytes());
    if (!range.ok()) return range.status();
    ChunkId chunk = kNoChunk;
    absl::Status status = pool->Take(**range, 0, std::span<ChunkId>(&chunk, 1));
    if (status.ok()) {
      // Whoever had the range before is waited for by the caller before the block is used; a
      // mapping that is replaced here belonged to a buffer that is long free.
      status = pool->Bind(*range, 0, std::span<const ChunkId>(&chunk, 1),
                          [] { return absl::OkStatus(); });
      if (!status.ok()) pool->GiveBack(std::span<const ChunkId>(&chunk, 1));
    }
    if (!status.ok()) {
      pool->RetireRange(*range);
      return status;
    }
    auto slab = std::make_unique<Slab>();
    slab->range = *range;
    slab->chunk = chunk;
    slab->block_bytes = block;
    const auto blocks = static_cast<uint32_t>(pool->chunk_bytes() / block);
    slab->requested.assign(blocks, 0);
    for (uint32_t i = blocks; i-- > 0;) slab->free_blocks.push_back(i);
    slabs.push_back(slab.get());
    impl_->slabs.emplace((*range)->address, std::move(slab));
  }
  Slab* slab = slabs.back();
  const uint32_t index = slab->free_blocks.back();
  slab->free_blocks.pop_back();
  slab->requested[index] = bytes;
  ++slab->live;
  if (slab->free_blocks.empty()) slabs.pop_back();
  impl_->allocated += bytes;
  return slab->range->address + index * block;
}

bool SlabAllocator::Free(uint64_t address) {
  Slab* slab = impl_->SlabOf(address);
  if (slab == nullptr) return false;
  const uint64_t offset = address - slab->range->address;
  const uint64_t index = offset / slab->block_bytes;
  if (offset % slab->block_bytes != 0 || index >= slab->requested.size() ||
      slab->requested[index] == 0) {
    return false;
  }
  impl_->allocated -= slab->requested[index];
  slab->requested[index] = 0;
  slab->free_blocks.push_back(static_cast<uint32_t>(index));
  std::vector<Slab*>& slabs = impl_->with_room[slab->block_bytes];
  if (slab->free_blocks.size() == 1) slabs.push_back(slab);
  if (--slab->live == 0) {
    std::erase(slabs, slab);
    impl_->pool->GiveBack(std::span<const ChunkId>(&slab->chunk, 1));
    impl_->pool->RetireRange(slab->range);
    impl_->slabs.erase(slab->range->address);
  }
  return true;
}

std::optional<SlabAllocator::Block> SlabAllocator::Find(uint64_t address) const {
  const Slab* slab = impl_->SlabOf(address);
  if (slab == nullptr) return std::nullopt;
  const uint64_t index = (address - slab->range->address) / slab->block_bytes;
  if (index >= slab->requested.size() || slab->requested[index] == 0) return std::nullopt;
  const uint64_t start = slab->range->address + index * slab->block_bytes;
  if (address - start >= slab->requested[index]) return std::nullopt;
  return Block{start, slab->requested[index]};
}

uint64_t SlabAllocator::slab_bytes() const {
  return impl_->slabs.size() * impl_->pool->chunk_bytes();
}

uint64_t SlabAllocator::allocated_bytes() const { return impl_->allocated; }

}  // namespace tidepool
