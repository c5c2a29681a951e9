#include "runtime/access/footprint.h"

#include <algorithm>

#include "runtime/access/evaluation.h"
#include "runtime/access/footprint_program.h"

namespace tidepool {
namespace {

// Answers kept per kernel.
constexpr size_t kMaxKnown = 1024;

}  // namespace

bool WordFootprint::Covers(int64_t first, int64_t end) const {
  return std::any_of(written.begin(), written.end(), [&](const ByteRange& range) {
    return range.first <= first && range.end >= end;
  });
}

KernelFootprint::KernelFootprint(std::unique_ptr<FootprintProgram> program)
    : program_(std::move(program)) {}
KernelFootprint::~KernelFootprint() = default;

std::shared_ptr<KernelFootprint> KernelFootprint::Build(const ptx::Module& module,
                                                        const ptx::Function& entry) {
  std::unique_ptr<FootprintProgram> program = Slice(module, entry);
  if (program == nullptr) return nullptr;
  return std::shared_ptr<KernelFootprint>(new KernelFootprint(std::move(program)));
}

std::shared_ptr<const Footprint> KernelFootprint::Evaluate(
    const LaunchShape& shape, std::span<const uint8_t> parameters,
    std::span<const uint32_t> pointers) const {
  std::string key(reinterpret_cast<const char*>(&shape), sizeof(shape));
  for (const ParameterUse& use : program_->parameters) {
    const bool pointer = std::any_of(pointers.begin(), pointers.end(), [&](uint32_t p) {
      return use.offset < p + 8 && p < use.offset + use.bytes;
    });
    key.push_back(pointer ? 'p' : 'n');
    if (pointer || use.offset + use.bytes > parameters.size()) continue;
    key.append(reinterpret_cast<const char*>(parameters.data()) + use.offset, use.bytes);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = known_.find(key);
    if (it != known_.end()) return it->second;
  }
  auto footprint =
      std::make_shared<const Footprint>(Evaluation(*program_, shape, parameters, pointers).Run());
  std::lock_guard<std::mutex> lock(mutex_);
  if (known_.size() >= kMaxKnown) known_.clear();
  known_[std::move(key)] = footprint;
  return footprint;
}

}  // namespace tidepool
