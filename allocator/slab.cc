#include "allocator/slab.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace tidepool {
namespace {

constexpr uint64_t kUnits = 32;  // of a slab: the width of its map of free ones
constexpr uint32_t kNoSlot = 0xffffffffu;

struct SizeClass {
  uint32_t index = 0;
  uint64_t block_bytes = 0;
};

SizeClass ClassOf(uint64_t bytes) {
  const uint64_t n = (bytes + kSlabAlignment - 1) / kSlabAlignment;
  if (n <= 8) return {static_cast<uint32_t>(n - 1), n * kSlabAlignment};
  // 9..16 in steps of 2, 17..32 in steps of 4, ...
  const int shift = static_cast<int>(std::bit_width(n - 1)) - 3;
  const uint64_t steps = (n + (uint64_t{1} << shift) - 1) >> shift;  // 5..8
  return {static_cast<uint32_t>(8 + (shift - 1) * 4 + static_cast<int>(steps) - 5),
          (steps << shift) * kSlabAlignment};
}

struct Slab;

struct Span {
  Slab* slab = nullptr;
  uint64_t address = 0;
  uint32_t first_unit = 0;
  uint32_t units = 0;
  SizeClass size_class;
  uint32_t live = 0;
  uint32_t room_slot = kNoSlot;       // among the spans of its class that have room
  std::vector<uint32_t> free_blocks;  // the last freed on top
  std::vector<uint64_t> requested;    // by block; 0: free
};

struct Slab {
  AddressRange* range = nullptr;
  ChunkId chunk = kNoChunk;
  uint32_t free_units = 0;   // a bit for each
  uint32_t longest_run = 0;  // of free units
  uint32_t slot = kNoSlot;   // among the slabs with such a run
  std::array<std::unique_ptr<Span>, kUnits> spans;
  std::array<uint8_t, kUnits> span_of = {};  // by unit: the first unit of its span
};

// Where the lowest run of `count` set bits starts; there must be one.
uint32_t FindRun(uint32_t bits, uint32_t count) {
  for (uint32_t have = 1; have < count;) {
    const uint32_t step = std::min(have, count - have);
    bits &= bits >> step;
    have += step;
  }
  return static_cast<uint32_t>(std::countr_zero(bits));
}

uint32_t LongestRun(uint32_t bits) {
  uint32_t length = 0;
  for (; bits != 0; bits &= bits >> 1) ++length;
  return length;
}

uint32_t UnitMask(uint32_t first, uint32_t count) {
  return (count == 32 ? ~uint32_t{0} : (uint32_t{1} << count) - 1) << first;
}

// Lists whose members know their place, for removal by swapping.
template <typename T>
void PushTo(std::vector<T*>* list, T* item, uint32_t T::*slot) {
  item->*slot = static_cast<uint32_t>(list->size());
  list->push_back(item);
}

template <typename T>
void RemoveFrom(std::vector<T*>* list, T* item, uint32_t T::*slot) {
  T* last = list->back();
  (*list)[item->*slot] = last;
  last->*slot = item->*slot;
  list->pop_back();
  item->*slot = kNoSlot;
}

}  // namespace

struct SlabAllocator::Impl {
  ChunkPool* pool = nullptr;
  BeforeUnmap before_unmap;
  uint64_t unit_bytes = 0;
  uint32_t units = 0;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Slab>> slabs;  // by address
  std::array<std::vector<Slab*>, kUnits + 1> by_run;           // by longest run of free units
  std::vector<std::vector<Span*>> with_room;                   // by size class
  uint64_t allocated = 0;

  Span* SpanAt(uint64_t address) const {
    const AddressRange* range = pool->FindRange(address);
    if (range == nullptr) return nullptr;
    auto it = slabs.find(range->address);
    if (it == slabs.end()) return nullptr;
    const uint64_t unit = (address - range->address) / unit_bytes;
    if (unit >= units || ((it->second->free_units >> unit) & 1) != 0) return nullptr;
    return it->second->spans[it->second->span_of[unit]].get();
  }

  // As few units as leave an eighth or less behind the last block.
  uint32_t UnitsFor(uint64_t block_bytes) const {
    uint32_t best = units;
    uint64_t best_waste = pool->chunk_bytes();
    for (auto count = static_cast<uint32_t>((block_bytes + unit_bytes - 1) / unit_bytes);
         count <= units; ++count) {
      const uint64_t bytes = count * unit_bytes;
      const uint64_t waste = bytes % block_bytes;
      if (waste * 8 <= bytes) return count;
      if (waste * best < best_waste * count) {
        best = count;
        best_waste = waste;
      }
    }
    return best;
  }

  absl::Status Show(AddressRange* range, const ChunkId& chunk) {
    const std::function<absl::Status()> wait = [&] {
      return before_unmap ? before_unmap(*range) : absl::OkStatus();
    };
    return pool->Bind(range, 0, std::span<const ChunkId>(&chunk, 1), wait);
  }

  absl::StatusOr<Slab*> NewSlab() {
    absl::StatusOr<AddressRange*> range = pool->AcquireRange(pool->chunk_bytes());
    if (!range.ok()) return range.status();
    ChunkId chunk = kNoChunk;
    absl::Status status = pool->Take(**range, 0, std::span<ChunkId>(&chunk, 1));
    if (!status.ok()) {
      pool->RetireRange(*range);
      return status;
    }
    if (!before_unmap && (*range)->pages[0] != kNoChunk && (*range)->pages[0] != chunk) {
      // Ops of the range's former buffer may be running on the old mapping.
      pool->RetireRange(*range);
      range = pool->AcquireRange(pool->chunk_bytes(), /*fresh=*/true);
      status = range.status();
    }
    if (status.ok()) {
      status = Show(*range, chunk);
      if (!status.ok()) pool->RetireRange(*range);
    }
    if (!status.ok()) {
      pool->GiveBack(std::span<const ChunkId>(&chunk, 1));
      return status;
    }
    auto slab = std::make_unique<Slab>();
    slab->range = *range;
    slab->chunk = chunk;
    slab->free_units = UnitMask(0, units);
    slab->longest_run = units;
    Slab* result = slab.get();
    PushTo(&by_run[units], result, &Slab::slot);
    slabs.emplace((*range)->address, std::move(slab));
    return result;
  }

  void GiveBack(Slab* slab) {
    pool->GiveBack(std::span<const ChunkId>(&slab->chunk, 1));
    pool->RetireRange(slab->range);
    RemoveFrom(&by_run[slab->longest_run], slab, &Slab::slot);
    slabs.erase(slab->range->address);
  }

  void SetFreeUnits(Slab* slab, uint32_t bits) {
    slab->free_units = bits;
    const uint32_t run = LongestRun(bits);
    if (run == slab->longest_run) return;
    RemoveFrom(&by_run[slab->longest_run], slab, &Slab::slot);
    slab->longest_run = run;
    PushTo(&by_run[run], slab, &Slab::slot);
  }

  absl::StatusOr<Span*> NewSpan(SizeClass size_class) {
    const uint32_t count = UnitsFor(size_class.block_bytes);
    // Best fit: the slab with the shortest sufficient run, so that long runs stay whole.
    uint32_t run = count;
    while (run <= units && by_run[run].empty()) ++run;
    if (run > units) {
      if (absl::StatusOr<Slab*> made = NewSlab(); !made.ok()) return made.status();
      run = units;
    }
    Slab* slab = by_run[run].back();
    const uint32_t first = FindRun(slab->free_units, count);
    auto span = std::make_unique<Span>();
    span->slab = slab;
    span->first_unit = first;
    span->units = count;
    span->address = slab->range->address + span->first_unit * unit_bytes;
    span->size_class = size_class;
    const auto blocks = static_cast<uint32_t>(count * unit_bytes / size_class.block_bytes);
    span->requested.assign(blocks, 0);
    span->free_blocks.reserve(blocks);
    for (uint32_t i = blocks; i-- > 0;) span->free_blocks.push_back(i);
    SetFreeUnits(slab, slab->free_units & ~UnitMask(first, count));
    for (uint32_t i = 0; i < count; ++i) {
      slab->span_of[span->first_unit + i] = static_cast<uint8_t>(first);
    }
    Span* result = span.get();
    slab->spans[span->first_unit] = std::move(span);
    PushTo(&with_room[size_class.index], result, &Span::room_slot);
    return result;
  }

  void Release(Span* span) {
    Slab* slab = span->slab;
    RemoveFrom(&with_room[span->size_class.index], span, &Span::room_slot);
    SetFreeUnits(slab, slab->free_units | UnitMask(span->first_unit, span->units));
    slab->spans[span->first_unit] = nullptr;
    if (slab->free_units == UnitMask(0, units)) GiveBack(slab);
  }
};

SlabAllocator::SlabAllocator(ChunkPool* pool, BeforeUnmap before_unmap)
    : impl_(std::make_unique<Impl>()) {
  impl_->pool = pool;
  impl_->before_unmap = std::move(before_unmap);
  const uint64_t share = (pool->chunk_bytes() + kUnits - 1) / kUnits;
  impl_->unit_bytes = (share + kSlabAlignment - 1) / kSlabAlignment * kSlabAlignment;
  impl_->units = static_cast<uint32_t>(pool->chunk_bytes() / impl_->unit_bytes);
  impl_->with_room.resize(ClassOf(std::max<uint64_t>(1, max_bytes())).index + 1);
}

SlabAllocator::~SlabAllocator() {
  for (const auto& [address, slab] : impl_->slabs) {
    impl_->pool->GiveBack(std::span<const ChunkId>(&slab->chunk, 1));
    impl_->pool->RetireRange(slab->range);
  }
}

uint64_t SlabAllocator::max_bytes() const { return impl_->pool->chunk_bytes() / 2; }

absl::StatusOr<uint64_t> SlabAllocator::Allocate(uint64_t bytes) {
  if (bytes == 0 || bytes > max_bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a block of ", bytes, " bytes: accepted are 1 to ", max_bytes()));
  }
  const SizeClass size_class = ClassOf(bytes);
  std::vector<Span*>& spans = impl_->with_room[size_class.index];
  if (spans.empty()) {
    if (absl::StatusOr<Span*> made = impl_->NewSpan(size_class); !made.ok()) return made.status();
  }
  Span* span = spans.back();
  const uint32_t index = span->free_blocks.back();
  span->free_blocks.pop_back();
  span->requested[index] = bytes;
  ++span->live;
  if (span->free_blocks.empty()) RemoveFrom(&spans, span, &Span::room_slot);
  impl_->allocated += bytes;
  return span->address + index * size_class.block_bytes;
}

bool SlabAllocator::Free(uint64_t address) {
  Span* span = impl_->SpanAt(address);
  if (span == nullptr) return false;
  const uint64_t offset = address - span->address;
  const uint64_t index = offset / span->size_class.block_bytes;
  if (offset % span->size_class.block_bytes != 0 || index >= span->requested.size() ||
      span->requested[index] == 0) {
    return false;
  }
  impl_->allocated -= span->requested[index];
  span->requested[index] = 0;
  span->free_blocks.push_back(static_cast<uint32_t>(index));
  if (span->room_slot == kNoSlot) {
    PushTo(&impl_->with_room[span->size_class.index], span, &Span::room_slot);
  }
  if (--span->live == 0) impl_->Release(span);
  return true;
}

std::optional<SlabAllocator::Block> SlabAllocator::Find(uint64_t address) const {
  const Span* span = impl_->SpanAt(address);
  if (span == nullptr) return std::nullopt;
  const uint64_t index = (address - span->address) / span->size_class.block_bytes;
  if (index >= span->requested.size()) return std::nullopt;
  const uint64_t start = span->address + index * span->size_class.block_bytes;
  if (address - start >= span->requested[index]) return std::nullopt;
  return Block{start, span->requested[index]};
}

uint64_t SlabAllocator::slab_bytes() const {
  return impl_->slabs.size() * impl_->pool->chunk_bytes();
}

uint64_t SlabAllocator::allocated_bytes() const { return impl_->allocated; }

}  // namespace tidepool
