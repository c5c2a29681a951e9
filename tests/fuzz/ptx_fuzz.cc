// PTX: the parser, then the access analysis, then the footprints of launches.
#include <cstring>
#include <vector>

#include "ptx/parser.h"
#include "runtime/access/footprint.h"
#include "runtime/access/kernel_access.h"
#include "tests/fuzz/fuzz.h"

using namespace tidepool;

namespace {

constexpr LaunchShape kShapes[] = {
    {{1, 1, 1}, {1, 1, 1}}, {{7, 1, 1}, {256, 1, 1}}, {{3, 2, 5}, {8, 4, 2}}};

void Evaluate(const ptx::Module& module, const ptx::Function& entry) {
  const auto footprint = KernelFootprint::Build(module, entry);
  if (footprint == nullptr || entry.param_bytes > 4096) return;
  // Counts: none, some, negative or very many.
  for (const uint32_t word : {0u, 777u, ~0u}) {
    std::vector<uint8_t> block(entry.param_bytes);
    for (size_t at = 0; at + 4 <= block.size(); at += 4) std::memcpy(&block[at], &word, 4);
    std::vector<uint32_t> pointers;
    for (uint32_t at = 0; at + 8 <= block.size() && at < 32; at += 8) pointers.push_back(at);
    for (const LaunchShape& shape : kShapes) {
      const auto written = footprint->Evaluate(shape, block, pointers);
      for (const WordFootprint& word : *written) {
        for (const ByteRange& range : word.written) Require(range.first < range.end);
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto module = ptx::Parse(AsText(data, size));
  if (!module.ok()) {
    Require(!module.status().message().empty());
    return 0;
  }
  const ModuleAccess access = AnalyzeModule(*module);
  for (const KernelAccess& kernel : access.kernels) {
    Require(!kernel.opaque || !kernel.opaque_reason.empty());
    Require(!kernel.opaque || !kernel.Replayable());
  }
  for (const ptx::Function& function : module->functions) {
    if (function.is_entry && function.has_body) Evaluate(*module, function);
  }
  return 0;
}
