// Coverage of buffers by a launch: static evidence put to the launch's numbers. Thread-safe.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "runtime/intercept/registry.h"
#include "runtime/residency/engine.h"

namespace tidepool {

// Marks those of `regions` whose whole buffer the launch is certain to write. `words[i]`: the
// offset of the parameter word that region i comes from; all words that are addresses in the pool
// are among them.
void MarkCovered(const Engine& engine, const KernelRecord& record, const CUlaunchConfig& config,
                 const std::vector<uint8_t>& block, const std::vector<uint32_t>& words,
                 std::vector<Region>* regions);

}  // namespace tidepool
