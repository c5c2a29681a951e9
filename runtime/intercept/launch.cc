#include "runtime/intercept/launch.h"

#include <algorithm>
#include <cstring>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"

namespace tidepool {
namespace {

class LaunchReplay final : public Replay {
 public:
  LaunchReplay(const DriverApi* api, CUfunction function, const CUlaunchConfig& config,
               std::vector<CUlaunchAttribute> attributes, std::vector<uint8_t> block)
      : api_(api),
        function_(function),
        config_(config),
        attributes_(std::move(attributes)),
        block_(std::move(block)) {}

  CUresult Issue(CUstream stream) const override {
    CUlaunchConfig config = config_;
    config.hStream = stream;
    config.attrs =
        attributes_.empty() ? nullptr : const_cast<CUlaunchAttribute*>(attributes_.data());
    config.numAttrs = static_cast<unsigned>(attributes_.size());
    size_t bytes = block_.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<uint8_t*>(block_.data()),
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    return api_->LaunchKernelEx(&config, function_, nullptr, bytes == 0 ? nullptr : extra);
  }
  uint64_t footprint() const override { return sizeof(*this) + block_.capacity(); }

 private:
  const DriverApi* api_;
  CUfunction function_;
  CUlaunchConfig config_;
  std::vector<CUlaunchAttribute> attributes_;
  std::vector<uint8_t> block_;
};

uint64_t WordAt(const std::vector<uint8_t>& block, uint64_t offset, uint32_t bytes) {
  uint64_t word = 0;
  if (offset + bytes <= block.size())
    std::memcpy(&word, block.data() + offset, std::min(bytes, 8u));
  return word;
}

// Attributes that a replay keeps; `*replayable` is cleared by those that it cannot have.
std::vector<CUlaunchAttribute> KeptAttributes(const CUlaunchConfig& config, const char** obstacle) {
  std::vector<CUlaunchAttribute> kept;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        // The kernel may overlap the one before it: its inputs are not ordered by the stream.
        *obstacle = "launched with programmatic overlap";
        break;
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        *obstacle = "launched with an event or a graph node of its own";
        break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        if (attribute.value.cooperative != 0) *obstacle = "a cooperative launch";
        break;
      default:
        kept.push_back(attribute);
    }
  }
  return kept;
}

}  // namespace

CUresult RunLaunch(Engine* engine, const DriverApi& api, const LaunchCall& call,
                   absl::FunctionRef<CUresult()> issue) {
  const std::shared_ptr<const KernelRecord> record = Registry::Get().Find(api, call.function);
  std::vector<uint8_t> block;
  if (!PackParameters(*record, call.params, call.extra, &block)) {
    // What the launch names cannot be seen: everything has to be there. Arguments that are not
    // valid come here too; the driver then refuses them, and nothing was lost but the freedom to
    // evict.
    if (CUresult result = engine->PinAll(PinReason::kOpaqueKernel); result != CUDA_SUCCESS) {
      return result;
    }
    return issue();
  }
  OpRequest request;
  request.kind = OpKind::kLaunch;
  request.name = record->name;
  request.stream = {call.config.hStream, call.per_thread};
  const char* obstacle = call.cooperative ? "a cooperative launch" : nullptr;
  std::vector<CUlaunchAttribute> attributes = KeptAttributes(call.config, &obstacle);
  std::string_view reason = record->no_replay;
  if (reason.empty() && obstacle != nullptr) reason = obstacle;

  bool opaque = !record->known;
  if (!opaque) {
    bool narrow = false, wide = false;
    for (const WordAccess& word : record->access.words) {
      if (word.bytes < 8) {
        narrow = narrow || word.mode != AccessMode::kNone;
        continue;
      }
      const uint64_t value = WordAt(block, word.offset, 8);
      if (!engine->InPool(value)) {
        // Memory that nobody versions (mapped host memory, another context's), unless it is only an
        // index.
        BufferInfo info;
        if (value != 0 && word.mode != AccessMode::kNone && value > 0xffffffffull &&
            reason.empty()) {
          reason = "uses memory outside of the pool";
        }
        (void)info;
        continue;
      }
      wide = true;
      if (word.escapes) {
        if (CUresult result = engine->Pin(value, PinReason::kEscapes); result != CUDA_SUCCESS) {
          return result;
        }
      }
      if (word.mode != AccessMode::kNone) request.regions.push_back({value, 0, word.mode, false});
    }
    // Accesses with none but narrow words in their addresses: a pointer in two halves.
    opaque =
        narrow && !wide && record->access.words.size() > 0 && !record->access.variables.empty();
    opaque = opaque || (record->access.unbased && !wide && narrow);
  }
  if (opaque) {
    // The code cannot be followed: whatever lies in the pool may be read, written, and kept.
    request.regions.clear();
    for (uint64_t offset = 0; offset + 8 <= block.size(); offset += 4) {
      const uint64_t value = WordAt(block, offset, 8);
      BufferInfo info;
      if (!engine->InPool(value) || !engine->Find(value, &info)) continue;
      if (CUresult result = engine->Pin(value, PinReason::kOpaqueKernel); result != CUDA_SUCCESS) {
        return result;
      }
      request.regions.push_back({value, 0, AccessMode::kUpdate, false});
    }
    if (reason.empty()) reason = "opaque kernel";
  }
  const CUlaunchConfig& c = call.config;
  if (reason.empty() && api.LaunchKernelEx == nullptr) reason = "the driver lacks cuLaunchKernelEx";
  if (reason.empty()) {
    CUlaunchConfig config = c;
    config.attrs = nullptr;
    config.numAttrs = 0;
    request.replay = std::make_shared<LaunchReplay>(&api, call.function, config,
                                                    std::move(attributes), std::move(block));
  }
  request.no_replay_reason = reason;
  request.cost_key = absl::HashOf(call.function, c.gridDimX, c.gridDimY, c.gridDimZ, c.blockDimX,
                                  c.blockDimY, c.blockDimZ) |
                     1;
  return engine->Run(request, issue);
}

}  // namespace tidepool
