#include "runtime/intercept/launch.h"

#include <algorithm>
#include <cstring>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "runtime/intercept/coverage.h"
#include "runtime/intercept/graph.h"
#include "runtime/intercept/host_memory.h"
#include "runtime/intercept/state.h"

namespace tidepool {
namespace {

class LaunchReplay final : public Replay {
 public:
  LaunchReplay(const DriverApi* api, CUfunction function, const CUlaunchConfig& config,
               std::vector<CUlaunchAttribute> attributes, std::vector<uint8_t> block,
               std::shared_ptr<const KernelRecord> record)
      : api_(api),
        record_(std::move(record)),
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
  const void* code() const override { return record_->code.get(); }
  bool ReadsVariable(std::string_view name) const override {
    const auto& variables = record_->access.variables;
    return std::any_of(variables.begin(), variables.end(),
                       [&](const VariableAccess& variable) { return variable.name == name; });
  }

 private:
  const DriverApi* api_;
  std::shared_ptr<const KernelRecord> record_;
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
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
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

CUlaunchConfig WithoutOverlap(const CUlaunchConfig& config,
                              std::vector<CUlaunchAttribute>* storage) {
  CUlaunchConfig ordered = config;
  if (config.attrs == nullptr) return ordered;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) continue;
    storage->push_back(attribute);
  }
  ordered.attrs = storage->data();
  ordered.numAttrs = static_cast<unsigned>(storage->size());
  return ordered;
}

namespace {

// A kernel that follows addresses from memory can reach what no look at its parameters shows. Every
// road by which an address gets to the device's memory pins what it names; what the host writes
// where both can reach is seen by nobody. True if this launch may find such addresses.
bool MayFindUnseenPointers(const Engine& engine, const KernelRecord& record,
                           const std::vector<uint8_t>& block) {
  HostMemory& memory = HostMemory::Get();
  const bool known = record.known;
  // (An address that nothing known went into: a number, or a pointer packed into fewer bits, which
  // no look at what was uploaded finds.)
  if (known && record.access.unbased) return true;
  if (known && !record.access.indirect) return false;
  if (memory.unseen_pointers()) return true;
  if (!known) {
    for (uint64_t offset = 0; offset + 8 <= block.size(); offset += 4) {
      if (memory.Contains(WordAt(block, offset, 8))) return true;
    }
    return false;
  }
  for (const WordAccess& word : record.access.words) {
    if (word.bytes < 8 || word.mode == AccessMode::kNone) continue;
    const uint64_t value = WordAt(block, word.offset, 8);
    if (!engine.InPool(value) && memory.IsShared(value)) return true;
  }
  return false;
}

// Whether an annotation says what lies at any of the eight bytes from `offset` on.
bool IsStated(const Annotated& annotated, uint64_t offset) {
  return std::any_of(annotated.stated.begin(), annotated.stated.end(), [&](const ParamSlot& slot) {
    return offset < slot.offset + slot.bytes && slot.offset < offset + 8;
  });
}

}  // namespace

CUresult RunLaunch(Engine* engine, const DriverApi& api, const LaunchCall& call,
                   absl::FunctionRef<CUresult()> issue) {
  // In a graph it runs later, as often as the graph does, and is not seen then.
  const bool to_graph = call.to_graph || Capturing(call.config.hStream, call.per_thread);
  const uint64_t watched_variables = engine->watched_variables();
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
  if (MayFindUnseenPointers(*engine, *record, block)) {
    if (CUresult result = engine->PinAll(PinReason::kPointerInMemory); result != CUDA_SUCCESS) {
      return result;
    }
  }
  if (to_graph && (!record->known || record->access.indirect)) OnGraphFollowsPointers();
  OpRequest request;
  request.kind = OpKind::kLaunch;
  request.watched_variables = watched_variables;
  request.name = record->name;
  request.stream = {call.config.hStream, call.per_thread};
  const char* obstacle = call.cooperative ? "a cooperative launch" : nullptr;
  std::vector<CUlaunchAttribute> attributes = KeptAttributes(call.config, &obstacle);
  std::string_view reason = record->no_replay;
  if (reason.empty() && obstacle != nullptr) reason = obstacle;

  bool opaque = !record->known;
  std::vector<uint32_t> words;  // where the regions come from
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
        if (value != 0 && word.mode != AccessMode::kNone && value > 0xffffffffull &&
            reason.empty()) {
          reason = "uses memory outside of the pool";
        }
        // Stored to memory, it may be found there by the next kernel.
        if (word.escapes && HostMemory::Get().Contains(value)) {
          HostMemory::Get().OnUnseenPointers();
        }
        continue;
      }
      wide = true;
      if (word.escapes) {
        if (CUresult result = engine->Pin(value, PinReason::kEscapes); result != CUDA_SUCCESS) {
          return result;
        }
      }
      // (One whose mode is none is an address all the same, to the footprint.)
      request.regions.push_back({value, 0, word.mode, false});
      words.push_back(word.offset);
    }
    // What an annotation does not state is as opaque as it would be without.
    for (uint64_t offset = 0; record->annotated.only_stated && offset + 8 <= block.size();
         offset += 4) {
      const uint64_t value = WordAt(block, offset, 8);
      if (IsStated(record->annotated, offset) || !engine->InPool(value)) continue;
      if (CUresult result = engine->Pin(value, PinReason::kOpaqueKernel); result != CUDA_SUCCESS) {
        return result;
      }
      request.regions.push_back({value, 0, AccessMode::kUpdate, false});
      words.push_back(static_cast<uint32_t>(offset));
      if (reason.empty()) reason = "an annotation that does not state all of its parameters";
    }
    // Accesses with none but narrow words in their addresses: a pointer in two halves.
    opaque = narrow && !wide && !record->access.words.empty() && !record->access.variables.empty();
    opaque = opaque || (record->access.unbased && !wide && narrow);
  }
  if (opaque) {
    // The code cannot be followed: whatever lies in the pool may be read, written, and kept.
    request.regions.clear();
    for (uint64_t offset = 0; offset + 8 <= block.size(); offset += 4) {
      const uint64_t value = WordAt(block, offset, 8);
      if (!engine->InPool(value)) continue;
      if (CUresult result =
              engine->Pin(value, to_graph ? PinReason::kGraph : PinReason::kOpaqueKernel);
          result != CUDA_SUCCESS) {
        return result;
      }
      request.regions.push_back({value, 0, AccessMode::kUpdate, false});
    }
    if (reason.empty()) reason = "opaque kernel";
  }
  for (uint64_t offset = 0; record->annotated.pin && offset + 8 <= block.size(); offset += 4) {
    const uint64_t value = WordAt(block, offset, 8);
    if (!engine->InPool(value)) continue;
    if (CUresult result = engine->Pin(value, PinReason::kUser); result != CUDA_SUCCESS) {
      return result;
    }
  }
  if (to_graph) {
    Registry::Get().OnGraphUses(*record);
    request.regions.insert(request.regions.end(), record->variables.begin(),
                           record->variables.end());
    for (const Region& region : request.regions) {
      CUresult result = engine->Pin(region.address, PinReason::kGraph);
      if (result != CUDA_SUCCESS) return result;
    }
    return issue();
  }
  const CUlaunchConfig& c = call.config;
  if (!opaque) MarkCovered(*engine, *record, c, block, words, &request.regions);
  request.regions.insert(request.regions.end(), record->variables.begin(), record->variables.end());
  if (reason.empty() && api.LaunchKernelEx == nullptr) reason = "the driver lacks cuLaunchKernelEx";
  if (reason.empty()) {
    CUlaunchConfig config = c;
    config.attrs = nullptr;
    config.numAttrs = 0;
    request.replay = std::make_shared<LaunchReplay>(
        &api, call.function, config, std::move(attributes), std::move(block), record);
  }
  request.no_replay_reason = reason;
  request.cost_key = absl::HashOf(call.function, c.gridDimX, c.gridDimY, c.gridDimZ, c.blockDimX,
                                  c.blockDimY, c.blockDimZ) |
                     1;
  return engine->Run(request, issue);
}

}  // namespace tidepool
