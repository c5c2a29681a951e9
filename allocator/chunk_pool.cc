#include "allocator/chunk_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tidepool {
namespace {

// Address space is cheap and a reservation is not (2 to 20 us): ask for much, take less if refused.
constexpr uint64_t kArenaBytes = uint64_t{256} << 30;
constexpr uint64_t kMinArenaBytes = uint64_t{64} << 20;

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

ChunkPool::ChunkPool(MemoryDevice* device, uint64_t budget_bytes, uint64_t chunk_bytes)
    : device_(device) {
  const uint64_t granularity = device->Granularity();
  chunk_bytes_ = chunk_bytes == 0 ? granularity : RoundUp(chunk_bytes, granularity);
  budget_chunks_ = budget_bytes / chunk_bytes_;
}

ChunkPool::~ChunkPool() {
  for (auto& [address, range] : ranges_) {
    Unbind(range.get(), 0, range->page_count).IgnoreError();
  }
  for (ChunkId id = 0; id < chunks_.size(); ++id) {
    if (!chunks_[id].released) device_->ReleaseChunk(chunks_[id].handle).IgnoreError();
  }
  for (const Arena& arena : arenas_) device_->Unreserve(arena.address, arena.bytes).IgnoreError();
}

uint64_t ChunkPool::available_chunks() const {
  return free_count_ + (budget_chunks_ - std::min(budget_chunks_, created_chunks()));
}

absl::StatusOr<AddressRange*> ChunkPool::AcquireRange(uint64_t bytes) {
  const uint64_t pages = std::max<uint64_t>(1, RoundUp(bytes, chunk_bytes_) / chunk_bytes_);
  if (auto it = retired_.find(pages); it != retired_.end() && !it->second.empty()) {
    std::vector<AddressRange*>& ranges = it->second;
    // The latest first; a few are looked at for one whose memory can be had without a driver call.
    size_t best = ranges.size() - 1;
    for (size_t looked = 0; looked < std::min<size_t>(8, ranges.size()); ++looked) {
      const AddressRange& range = *ranges[ranges.size() - 1 - looked];
      const bool ready = std::all_of(range.pages.begin(), range.pages.end(), [&](ChunkId chunk) {
        return chunk != kNoChunk && chunks_[chunk].free;
      });
      if (ready) {
        best = ranges.size() - 1 - looked;
        break;
      }
    }
    AddressRange* range = ranges[best];
    ranges.erase(ranges.begin() + static_cast<ptrdiff_t>(best));
    return range;
  }
  const uint64_t wanted = (pages + 1) * chunk_bytes_;  // a guard page behind it
  if (arenas_.empty() || arenas_.back().bytes - arenas_.back().used < wanted) {
    absl::Status refused;
    for (uint64_t size = std::max(RoundUp(kArenaBytes, chunk_bytes_), wanted);;) {
      ++calls_.reserve;
      absl::StatusOr<uint64_t> address = device_->Reserve(size);
      if (address.ok()) {
        arenas_.push_back({*address, size, 0});
        break;
      }
      if (size == wanted) return address.status();
      size = size / 4 < kMinArenaBytes ? wanted : std::max(wanted, RoundUp(size / 4, chunk_bytes_));
    }
  }
  Arena& arena = arenas_.back();
  auto range = std::make_unique<AddressRange>();
  range->address = arena.address + arena.used;
  range->page_count = pages;
  range->pages.assign(pages, kNoChunk);
  arena.used += wanted;
  AddressRange* result = range.get();
  ranges_.emplace(result->address, std::move(range));
  return result;
}

void ChunkPool::RetireRange(AddressRange* range) { retired_[range->page_count].push_back(range); }

AddressRange* ChunkPool::FindRange(uint64_t address) const {
  auto it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) return nullptr;
  AddressRange* range = std::prev(it)->second.get();
  return address - range->address < range->page_count * chunk_bytes_ ? range : nullptr;
}

bool ChunkPool::InPool(uint64_t address) const {
  return std::any_of(arenas_.begin(), arenas_.end(),
                     [&](const Arena& arena) { return address - arena.address < arena.bytes; });
}

void ChunkPool::PushFree(ChunkId id) {
  Chunk& chunk = chunks_[id];
  chunk.free = true;
  chunk.older = newest_free_;
  chunk.newer = kNoChunk;
  (newest_free_ == kNoChunk ? oldest_free_ : chunks_[newest_free_].newer) = id;
  newest_free_ = id;
  ++free_count_;
}

void ChunkPool::RemoveFree(ChunkId id) {
  Chunk& chunk = chunks_[id];
  chunk.free = false;
  (chunk.older == kNoChunk ? oldest_free_ : chunks_[chunk.older].newer) = chunk.newer;
  (chunk.newer == kNoChunk ? newest_free_ : chunks_[chunk.newer].older) = chunk.older;
  --free_count_;
}

absl::StatusOr<ChunkId> ChunkPool::Create() {
  ++calls_.create;
  absl::StatusOr<uint64_t> handle = device_->CreateChunk(chunk_bytes_);
  if (!handle.ok()) return handle.status();
  ChunkId id = static_cast<ChunkId>(chunks_.size());
  if (released_.empty()) {
    chunks_.emplace_back();
  } else {
    id = released_.back();
    released_.pop_back();
  }
  chunks_[id] = Chunk();
  chunks_[id].handle = *handle;
  peak_created_ = std::max(peak_created_, created_chunks());
  return id;
}

absl::Status ChunkPool::Take(const AddressRange& range, uint64_t first_page,
                             std::span<ChunkId> out) {
  if (out.size() > available_chunks()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no ", out.size(), " chunks of ", chunk_bytes_, " bytes left in the budget"));
  }
  size_t missing = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const ChunkId mapped = range.pages[first_page + i];
    const bool usable = mapped != kNoChunk && chunks_[mapped].free;
    out[i] = usable ? mapped : kNoChunk;
    if (usable) {
      RemoveFree(mapped);
    } else {
      ++missing;
    }
  }
  for (size_t i = 0; i < out.size() && missing > 0; ++i) {
    if (out[i] != kNoChunk) continue;
    --missing;
    if (oldest_free_ != kNoChunk) {
      out[i] = oldest_free_;
      RemoveFree(out[i]);
      continue;
    }
    absl::StatusOr<ChunkId> made = Create();
    if (!made.ok()) {
      for (ChunkId& chunk : out) {
        if (chunk != kNoChunk) PushFree(chunk);
        chunk = kNoChunk;
      }
      return made.status();
    }
    out[i] = *made;
  }
  return absl::OkStatus();
}

void ChunkPool::GiveBack(std::span<const ChunkId> chunks) {
  for (ChunkId chunk : chunks) PushFree(chunk);
}

bool ChunkPool::IsBound(const AddressRange& range, uint64_t first_page,
                        std::span<const ChunkId> chunks) const {
  return std::equal(chunks.begin(), chunks.end(),
                    range.pages.begin() + static_cast<ptrdiff_t>(first_page));
}

uint64_t ChunkPool::PagesToUnmap(const AddressRange& range, uint64_t first_page,
                                 std::span<const ChunkId> chunks) const {
  uint64_t count = 0;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const ChunkId mapped = range.pages[first_page + i];
    count += mapped != kNoChunk && mapped != chunks[i] ? 1 : 0;
  }
  return count;
}

absl::Status ChunkPool::Unmap(AddressRange* range, uint64_t page) {
  ++calls_.unmap;
  absl::Status status = device_->Unmap(range->address + page * chunk_bytes_, chunk_bytes_);
  if (!status.ok()) return status;
  std::erase(chunks_[range->pages[page]].mappings, std::pair(range, page));
  range->pages[page] = kNoChunk;
  return absl::OkStatus();
}

absl::Status ChunkPool::Bind(AddressRange* range, uint64_t first_page,
                             std::span<const ChunkId> chunks,
                             const std::function<absl::Status()>& before_unmap) {
  if (PagesToUnmap(*range, first_page, chunks) > 0) {
    if (absl::Status status = before_unmap(); !status.ok()) return status;
  }
  for (size_t i = 0; i < chunks.size();) {
    // A run of pages to map; one call gives access to all of it.
    size_t end = i;
    absl::Status status = absl::OkStatus();
    for (; end < chunks.size() && range->pages[first_page + end] != chunks[end]; ++end) {
      const uint64_t page = first_page + end;
      if (range->pages[page] != kNoChunk) status = Unmap(range, page);
      if (status.ok()) {
        ++calls_.map;
        status = device_->Map(range->address + page * chunk_bytes_, chunk_bytes_,
                              chunks_[chunks[end]].handle);
      }
      if (!status.ok()) break;
      range->pages[page] = chunks[end];
      chunks_[chunks[end]].mappings.emplace_back(range, page);
    }
    if (end > i) {
      ++calls_.set_access;
      absl::Status access = device_->SetAccess(range->address + (first_page + i) * chunk_bytes_,
                                               (end - i) * chunk_bytes_);
      if (!access.ok()) {
        // Mapped without access is worth nothing: show nothing instead.
        for (size_t k = i; k < end; ++k) Unmap(range, first_page + k).IgnoreError();
        return access;
      }
    }
    if (!status.ok()) return status;
    i = std::max(end, i + 1);
  }
  return absl::OkStatus();
}

absl::Status ChunkPool::Unbind(AddressRange* range, uint64_t first_page, uint64_t page_count) {
  for (uint64_t page = first_page; page < first_page + page_count; ++page) {
    if (range->pages[page] == kNoChunk) continue;
    if (absl::Status status = Unmap(range, page); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ChunkPool::Trim(uint64_t keep) {
  while (free_count_ > keep) {
    const ChunkId id = oldest_free_;
    Chunk& chunk = chunks_[id];
    while (!chunk.mappings.empty()) {
      const auto [range, page] = chunk.mappings.back();
      if (absl::Status status = Unmap(range, page); !status.ok()) return status;
    }
    ++calls_.release;
    if (absl::Status status = device_->ReleaseChunk(chunk.handle); !status.ok()) return status;
    RemoveFree(id);
    chunk.released = true;
    released_.push_back(id);
  }
  return absl::OkStatus();
}

}  // namespace tidepool
