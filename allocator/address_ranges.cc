// Address ranges of the chunk pool: arenas of address space, cut into ranges with a guard page
// behind each, and looked up by page.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "allocator/chunk_pool.h"

namespace tidepool {
namespace {

// Address space is cheap and a reservation is not (2 to 20 us): ask for much, take less if refused.
constexpr uint64_t kArenaBytes = uint64_t{256} << 30;
constexpr uint64_t kMinArenaBytes = uint64_t{64} << 20;
// How many retired ranges, and arenas, are looked at before taking what comes.
constexpr size_t kLooks = 64;

}  // namespace

bool ChunkPool::AllFree(const AddressRange& range) const {
  return std::all_of(range.pages.begin(), range.pages.end(),
                     [&](ChunkId chunk) { return chunk != kNoChunk && chunks_[chunk].free; });
}

absl::StatusOr<ChunkPool::Arena*> ChunkPool::ArenaWithRoom(uint64_t bytes) {
  for (size_t looked = 0; looked < std::min(kLooks, with_room_.size()); ++looked) {
    Arena* arena = with_room_[with_room_.size() - 1 - looked];
    if (arena->bytes - arena->used >= bytes) return arena;
  }
  uint64_t size = std::max(kArenaBytes / chunk_bytes_ * chunk_bytes_, bytes);
  for (;;) {
    ++calls_.reserve;
    absl::StatusOr<uint64_t> address = device_->Reserve(size);
    if (address.ok()) {
      auto arena = std::make_unique<Arena>();
      arena->address = *address;
      arena->bytes = size;
      Arena* result = arena.get();
      auto after =
          std::upper_bound(arenas_.begin(), arenas_.end(), *address,
                           [](uint64_t left, const auto& right) { return left < right->address; });
      arenas_.insert(after, std::move(arena));
      with_room_.push_back(result);
      return result;
    }
    if (size == bytes) return address.status();
    size /= 4;
    size = size < kMinArenaBytes ? bytes : std::max(bytes, size / chunk_bytes_ * chunk_bytes_);
  }
}

absl::StatusOr<AddressRange*> ChunkPool::AcquireRange(uint64_t bytes, bool fresh) {
  const uint64_t pages =
      std::max<uint64_t>(1, bytes / chunk_bytes_ + (bytes % chunk_bytes_ != 0 ? 1 : 0));
  if (auto it = retired_.find(pages); !fresh && it != retired_.end() && !it->second.empty()) {
    auto& ranges = it->second;
    // Training repeats: the range that was taken longest ago is the one that stood at this place in
    // the last iteration, and shows the chunk that is free at this point of it. So taken in the
    // order of that time; a few are looked at for one whose memory can be had without a driver
    // call.
    auto best = ranges.begin();
    size_t looked = 0;
    for (auto at = ranges.begin(); at != ranges.end() && looked < kLooks; ++at, ++looked) {
      if (!AllFree(*at->second)) continue;
      best = at;
      break;
    }
    AddressRange* range = best->second;
    ranges.erase(best);
    range->acquired = ++acquisitions_;
    return range;
  }
  // More than 2^56 bytes is beyond every device's addresses, and near 2^64 sizes would wrap.
  if (pages > (uint64_t{1} << 56) / chunk_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("no address space for ", bytes, " bytes"));
  }
  const uint64_t wanted = (pages + 1) * chunk_bytes_;  // a guard page behind it
  absl::StatusOr<Arena*> arena = ArenaWithRoom(wanted);
  if (!arena.ok()) return arena.status();
  auto range = std::make_unique<AddressRange>();
  range->address = (*arena)->address + (*arena)->used;
  range->page_count = pages;
  range->acquired = ++acquisitions_;
  range->pages.assign(pages, kNoChunk);
  range->slots.assign(pages, 0);
  (*arena)->used += wanted;
  (*arena)->owners.insert((*arena)->owners.end(), pages, range.get());
  (*arena)->owners.push_back(nullptr);
  if ((*arena)->bytes - (*arena)->used < 2 * chunk_bytes_) std::erase(with_room_, *arena);
  ranges_.push_back(std::move(range));
  return ranges_.back().get();
}

void ChunkPool::RetireRange(AddressRange* range) {
  retired_[range->page_count].emplace(range->acquired, range);
}

const ChunkPool::Arena* ChunkPool::FindArena(uint64_t address) const {
  // Mostly there is one, or two; the loop ends at the first that can hold the address.
  size_t low = 0;
  size_t high = arenas_.size();
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    (address < arenas_[middle]->address ? high : low) = middle;
  }
  if (low == high || address - arenas_[low]->address >= arenas_[low]->bytes) return nullptr;
  return arenas_[low].get();
}

AddressRange* ChunkPool::FindRange(uint64_t address) const {
  const Arena* arena = FindArena(address);
  if (arena == nullptr) return nullptr;
  const uint64_t page = (address - arena->address) / chunk_bytes_;
  return page < arena->owners.size() ? arena->owners[page] : nullptr;
}

bool ChunkPool::InPool(uint64_t address) const { return FindArena(address) != nullptr; }

}  // namespace tidepool
