#include "runtime/intercept/coverage.h"

#include <algorithm>

namespace tidepool {

void MarkCovered(const Engine& engine, const KernelRecord& record, const CUlaunchConfig& config,
                 const std::vector<uint8_t>& block, const std::vector<uint32_t>& words,
                 std::vector<Region>* regions) {
  for (size_t i = 0; i < regions->size(); ++i) {
    // The program's claim; it is about the whole buffer only where the address is.
    Region& region = (*regions)[i];
    const bool claimed =
        std::any_of(record.access.words.begin(), record.access.words.end(),
                    [&](const WordAccess& w) { return w.offset == words[i] && w.covers; });
    BufferInfo info;
    if (claimed && region.mode == AccessMode::kWrite && engine.Find(region.address, &info) &&
        info.address == region.address) {
      region = {info.address, info.bytes, AccessMode::kWrite, true};
    }
  }
  if (record.footprint == nullptr) return;
  const bool useful = std::any_of(regions->begin(), regions->end(), [](const Region& region) {
    return region.mode == AccessMode::kWrite;
  });
  if (!useful) return;
  const LaunchShape shape = {{config.gridDimX, config.gridDimY, config.gridDimZ},
                             {config.blockDimX, config.blockDimY, config.blockDimZ}};
  const auto footprint = record.footprint->Evaluate(shape, block, words);
  for (size_t i = 0; i < regions->size(); ++i) {
    Region& region = (*regions)[i];
    BufferInfo info;
    if (region.mode != AccessMode::kWrite || !engine.Find(region.address, &info)) continue;
    const auto first = static_cast<int64_t>(info.address - region.address);
    const auto covers = [&](const WordFootprint& word) {
      return word.offset == words[i] &&
             word.Covers(first, first + static_cast<int64_t>(info.bytes));
    };
    if (std::any_of(footprint->begin(), footprint->end(), covers)) {
      region = {info.address, info.bytes, AccessMode::kWrite, true};
    }
  }
}

}  // namespace tidepool
