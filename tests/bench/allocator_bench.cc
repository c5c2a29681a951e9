// What the allocator itself costs: a device whose calls cost nothing.
#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <vector>

#include "allocator/chunk_pool.h"
#include "allocator/slab.h"

namespace tidepool {
namespace {

constexpr uint64_t kPage = 2 << 20;

class FreeDevice final : public MemoryDevice {
 public:
  uint64_t Granularity() const override { return kPage; }
  absl::StatusOr<uint64_t> CreateChunk(uint64_t) override { return ++handle_; }
  absl::Status ReleaseChunk(uint64_t) override { return absl::OkStatus(); }
  absl::StatusOr<uint64_t> Reserve(uint64_t bytes) override { return address_ += bytes + kPage; }
  absl::Status Unreserve(uint64_t, uint64_t) override { return absl::OkStatus(); }
  absl::Status Map(uint64_t, uint64_t, uint64_t) override { return absl::OkStatus(); }
  absl::Status SetAccess(uint64_t, uint64_t) override { return absl::OkStatus(); }
  absl::Status Unmap(uint64_t, uint64_t) override { return absl::OkStatus(); }

 private:
  uint64_t handle_ = 0, address_ = uint64_t{1} << 40;
};

struct Fixture {
  FreeDevice device;
  ChunkPool pool{&device, uint64_t{1} << 40};
  SlabAllocator slab{&pool};
};

// One free and one allocation of the same size.
void SlabHotPair(benchmark::State& state) {
  Fixture f;
  uint64_t block = *f.slab.Allocate(4096);
  const uint64_t keeps_the_slab = *f.slab.Allocate(4096);
  while (state.KeepRunning()) {
    f.slab.Free(block);
    block = *f.slab.Allocate(4096);
  }
  benchmark::DoNotOptimize(keeps_the_slab);
}
BENCHMARK(SlabHotPair);

// The same with many live blocks of sizes from 1 byte to 1 MiB, a random one replaced each time.
void SlabRandomPair(benchmark::State& state) {
  Fixture f;
  std::mt19937_64 random(1);
  const auto live = static_cast<uint64_t>(state.range(0));
  std::vector<uint64_t> sizes(1 << 16);
  for (uint64_t& size : sizes) size = 1 + random() % (uint64_t{1} << (random() % 21));
  std::vector<uint64_t> blocks;
  size_t next = 0;
  for (uint64_t i = 0; i < live; ++i) blocks.push_back(*f.slab.Allocate(sizes[next++ & 0xffff]));
  while (state.KeepRunning()) {
    uint64_t& block = blocks[random() % live];
    f.slab.Free(block);
    block = *f.slab.Allocate(sizes[next++ & 0xffff]);
  }
  state.counters["held/asked"] =
      static_cast<double>(f.slab.slab_bytes()) / static_cast<double>(f.slab.allocated_bytes());
}
BENCHMARK(SlabRandomPair)->Arg(64)->Arg(1024)->Arg(8192)->Arg(100000);

// A chunk-sized buffer's memory given up and taken again at its own address: no driver call.
void TakeWhatIsThere(benchmark::State& state) {
  Fixture f;
  const auto pages = static_cast<uint64_t>(state.range(0));
  AddressRange* range = *f.pool.AcquireRange(pages * kPage);
  std::vector<ChunkId> chunks(pages);
  f.pool.Take(*range, 0, std::span(chunks)).IgnoreError();
  f.pool.Bind(range, 0, chunks, nullptr).IgnoreError();
  const uint64_t calls = f.pool.calls().total();
  while (state.KeepRunning()) {
    f.pool.GiveBack(chunks);
    f.pool.Take(*range, 0, std::span(chunks)).IgnoreError();
    if (!f.pool.IsBound(*range, 0, chunks)) state.SkipWithError("not where it was");
  }
  state.counters["driver_calls"] = static_cast<double>(f.pool.calls().total() - calls);
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(pages));
}
BENCHMARK(TakeWhatIsThere)->Arg(1)->Arg(16)->Arg(256);

// Memory that changes its address each time: bookkeeping of a map and an unmap per page.
void Rebind(benchmark::State& state) {
  Fixture f;
  const auto pages = static_cast<uint64_t>(state.range(0));
  AddressRange* range = *f.pool.AcquireRange(pages * kPage);
  std::vector<std::vector<ChunkId>> chunks(2, std::vector<ChunkId>(pages));
  for (auto& each : chunks) f.pool.Take(*range, 0, std::span(each)).IgnoreError();
  size_t turn = 0;
  while (state.KeepRunning()) f.pool.Bind(range, 0, chunks[++turn % 2], nullptr).IgnoreError();
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(pages));
}
BENCHMARK(Rebind)->Arg(1)->Arg(16)->Arg(256);

void Lookup(benchmark::State& state, bool inside) {
  Fixture f;
  std::mt19937_64 random(1);
  std::vector<uint64_t> words(1 << 14);
  std::vector<AddressRange*> ranges;
  for (int64_t i = 0; i < state.range(0); ++i) {
    ranges.push_back(*f.pool.AcquireRange((1 + random() % 16) * kPage));
  }
  for (uint64_t& word : words) {
    const AddressRange* range = ranges[random() % ranges.size()];
    word = inside ? range->address + random() % kPage : random() >> 20;
  }
  size_t next = 0;
  while (state.KeepRunning()) {
    const uint64_t word = words[next++ & 0x3fff];
    benchmark::DoNotOptimize(f.pool.InPool(word) ? f.pool.FindRange(word) : nullptr);
  }
}
BENCHMARK_CAPTURE(Lookup, pointers, true)->Arg(100)->Arg(10000)->Arg(100000);
BENCHMARK_CAPTURE(Lookup, other_words, false)->Arg(10000);

// Training steps that are all the same: activations made forwards, every third given up when memory
// is short, made again and freed backwards, with gradients in turn. How many of the last step's
// takes still need driver calls.
void RebindsPerStep(benchmark::State& state) {
  constexpr int kLayers = 60;
  constexpr int kGradients = 3;
  uint64_t takes = 0;
  uint64_t rebinds = 0;
  while (state.KeepRunning()) {
    FreeDevice device;
    ChunkPool pool(&device, static_cast<uint64_t>(state.range(0)) * 4 * kPage);
    std::vector<AddressRange*> ranges;
    ranges.reserve(kLayers + kGradients);
    for (int i = 0; i < kLayers + kGradients; ++i) ranges.push_back(*pool.AcquireRange(4 * kPage));
    std::vector<std::vector<ChunkId>> held(ranges.size());
    const auto free = [&](int i) {
      pool.GiveBack(held[i]);
      held[i].clear();
    };
    // `keep` and its neighbours are in use.
    const auto need = [&](int i, int keep) {
      if (!held[i].empty()) return;
      for (int pass = 0; pass < 3 && pool.available_chunks() < 4; ++pass) {
        for (int x = (pass + 1) % 3; x < kLayers && pool.available_chunks() < 4; x += 3) {
          if (x < keep - 2 || x > keep + 2) free(x);
        }
      }
      held[i].resize(4);
      pool.Take(*ranges[i], 0, std::span(held[i])).IgnoreError();
      ++takes;
      rebinds += pool.IsBound(*ranges[i], 0, held[i]) ? 0 : 1;
      pool.Bind(ranges[i], 0, held[i], nullptr).IgnoreError();
    };
    for (int step = 0; step < 20; ++step) {
      takes = rebinds = 0;
      for (int i = 0; i < kLayers; ++i) need(i, i);
      for (int i = kLayers - 1; i >= 0; --i) {
        int from = i;
        while (from > 0 && held[from].empty()) --from;
        for (; from <= i; ++from) need(from, from);
        need(kLayers + i % kGradients, i);
        free(i);
        if (i < kLayers - 1) free(kLayers + (i + 1) % kGradients);
      }
      for (size_t i = 0; i < held.size(); ++i) free(static_cast<int>(i));
    }
  }
  state.counters["takes"] = static_cast<double>(takes);
  state.counters["rebinds"] = static_cast<double>(rebinds);
}
BENCHMARK(RebindsPerStep)->Arg(20)->Arg(30)->Arg(40)->Arg(50);

}  // namespace
}  // namespace tidepool
