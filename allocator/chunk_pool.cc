// Chunks: who has them, and where they are mapped. Address ranges are in address_ranges.cc.
#include "allocator/chunk_pool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tidepool {

ChunkPool::ChunkPool(MemoryDevice* device, uint64_t budget_bytes, uint64_t chunk_bytes)
    : device_(device) {
  const uint64_t granularity = device->Granularity();
  // Rounded up to the granularity, which need not be a power of two.
  chunk_bytes_ = granularity * std::max<uint64_t>(1, (chunk_bytes + granularity - 1) / granularity);
  budget_chunks_ = std::min<uint64_t>(budget_bytes / chunk_bytes_, kNoChunk);
}

ChunkPool::~ChunkPool() {
  for (const auto& range : ranges_) Unbind(range.get(), 0, range->page_count).IgnoreError();
  for (const Chunk& chunk : chunks_) {
    if (!chunk.released) device_->ReleaseChunk(chunk.handle).IgnoreError();
  }
  for (const auto& arena : arenas_) {
    device_->Unreserve(arena->address, arena->bytes).IgnoreError();
  }
}

uint64_t ChunkPool::available_chunks() const {
  return free_count_ + (budget_chunks_ - created_chunks());
}

void ChunkPool::PushNewest(ChunkId id) {
  Chunk& chunk = chunks_[id];
  chunk.free = true;
  chunk.older = newest_free_;
  chunk.newer = kNoChunk;
  (newest_free_ == kNoChunk ? oldest_free_ : chunks_[newest_free_].newer) = id;
  newest_free_ = id;
  ++free_count_;
}

void ChunkPool::PushOldest(ChunkId id) {
  Chunk& chunk = chunks_[id];
  chunk.free = true;
  chunk.older = kNoChunk;
  chunk.newer = oldest_free_;
  (oldest_free_ == kNoChunk ? newest_free_ : chunks_[oldest_free_].older) = id;
  oldest_free_ = id;
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
  auto id = static_cast<ChunkId>(chunks_.size());
  if (released_.empty()) {
    chunks_.emplace_back();
  } else {
    id = released_.back();
    released_.pop_back();
    chunks_[id] = Chunk();
  }
  chunks_[id].handle = *handle;
  peak_created_ = std::max(peak_created_, created_chunks());
  return id;
}

absl::Status ChunkPool::Take(const AddressRange& range, uint64_t first_page,
                             std::span<ChunkId> out) {
  std::fill(out.begin(), out.end(), kNoChunk);
  if (out.size() > available_chunks()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no ", out.size(), " chunks of ", chunk_bytes_, " bytes left in the budget"));
  }
  // All that can fail comes first. Nothing ever used a new chunk, so there is nothing to wait for:
  // it is the best of the free ones.
  while (free_count_ < out.size()) {
    absl::StatusOr<ChunkId> made = Create();
    if (!made.ok()) return made.status();
    PushOldest(*made);
  }
  // The chunks that are there already, before any of them is given to another page.
  size_t missing = out.size();
  for (size_t i = 0; i < out.size(); ++i) {
    const ChunkId mapped = range.pages[first_page + i];
    if (mapped == kNoChunk || !chunks_[mapped].free) continue;
    RemoveFree(mapped);
    out[i] = mapped;
    --missing;
  }
  for (size_t i = 0; missing > 0; ++i) {
    if (out[i] != kNoChunk) continue;
    out[i] = oldest_free_;
    RemoveFree(out[i]);
    --missing;
  }
  return absl::OkStatus();
}

void ChunkPool::GiveBack(std::span<const ChunkId> chunks) {
  for (ChunkId chunk : chunks) {
    if (!chunks_[chunk].free) PushNewest(chunk);
  }
}

bool ChunkPool::Shows(const AddressRange& range, uint64_t page, ChunkId chunk) const {
  if (range.pages[page] != chunk) return false;
  return no_access_.empty() || !no_access_.contains(Page(const_cast<AddressRange*>(&range), page));
}

bool ChunkPool::IsBound(const AddressRange& range, uint64_t first_page,
                        std::span<const ChunkId> chunks) const {
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (!Shows(range, first_page + i, chunks[i])) return false;
  }
  return true;
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

void ChunkPool::AddMapping(AddressRange* range, uint64_t page, ChunkId chunk) {
  std::vector<Page>& mappings = chunks_[chunk].mappings;
  range->pages[page] = chunk;
  range->slots[page] = static_cast<uint32_t>(mappings.size());
  mappings.emplace_back(range, page);
}

void ChunkPool::RemoveMapping(AddressRange* range, uint64_t page) {
  std::vector<Page>& mappings = chunks_[range->pages[page]].mappings;
  const Page last = mappings.back();
  mappings[range->slots[page]] = last;
  last.first->slots[last.second] = range->slots[page];
  mappings.pop_back();
  range->pages[page] = kNoChunk;
  if (!no_access_.empty()) no_access_.erase(Page(range, page));
}

absl::Status ChunkPool::Unbind(AddressRange* range, uint64_t first_page, uint64_t page_count) {
  absl::Status first_error;
  const uint64_t end = first_page + page_count;
  for (uint64_t page = first_page; page < end;) {
    if (range->pages[page] == kNoChunk) {
      ++page;
      continue;
    }
    uint64_t run = page;
    while (run < end && range->pages[run] != kNoChunk) ++run;
    ++calls_.unmap;
    absl::Status status =
        device_->Unmap(range->address + page * chunk_bytes_, (run - page) * chunk_bytes_);
    for (; page < run; ++page) {
      if (status.ok()) RemoveMapping(range, page);
    }
    first_error.Update(status);
  }
  return first_error;
}

absl::Status ChunkPool::MapRun(AddressRange* range, uint64_t first_page,
                               std::span<const ChunkId> chunks) {
  absl::Status status = Unbind(range, first_page, chunks.size());
  if (!status.ok()) return status;
  size_t mapped = 0;
  for (; mapped < chunks.size(); ++mapped) {
    const uint64_t page = first_page + mapped;
    ++calls_.map;
    status = device_->Map(range->address + page * chunk_bytes_, chunk_bytes_,
                          chunks_[chunks[mapped]].handle);
    if (!status.ok()) break;
    AddMapping(range, page, chunks[mapped]);
  }
  if (mapped == 0) return status;
  ++calls_.set_access;
  absl::Status access =
      device_->SetAccess(range->address + first_page * chunk_bytes_, mapped * chunk_bytes_);
  if (access.ok()) return status;
  // Mapped without access is worth nothing: show nothing instead.
  if (!Unbind(range, first_page, mapped).ok()) {
    for (size_t i = 0; i < mapped; ++i) no_access_.insert(Page(range, first_page + i));
  }
  return access;
}

absl::Status ChunkPool::Bind(AddressRange* range, uint64_t first_page,
                             std::span<const ChunkId> chunks,
                             const std::function<absl::Status()>& before_unmap) {
  if (before_unmap && PagesToUnmap(*range, first_page, chunks) > 0) {
    if (absl::Status status = before_unmap(); !status.ok()) return status;
  }
  for (size_t i = 0; i < chunks.size();) {
    size_t end = i;
    while (end < chunks.size() && !Shows(*range, first_page + end, chunks[end])) ++end;
    if (end == i) {
      ++i;
      continue;
    }
    absl::Status status = MapRun(range, first_page + i, chunks.subspan(i, end - i));
    if (!status.ok()) return status;
    i = end;
  }
  return absl::OkStatus();
}

absl::Status ChunkPool::Trim(uint64_t keep) {
  while (free_count_ > keep) {
    const ChunkId id = oldest_free_;
    Chunk& chunk = chunks_[id];
    while (!chunk.mappings.empty()) {
      const auto [range, page] = chunk.mappings.back();
      if (absl::Status status = Unbind(range, page, 1); !status.ok()) return status;
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
