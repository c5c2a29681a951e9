#include "runtime/intercept/registry.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>

#include "absl/strings/str_cat.h"
#include "ptx/fatbin.h"
#include "ptx/parser.h"
#include "runtime/access/kernel_name.h"
#include "runtime/intercept/annotations.h"

namespace tidepool {
namespace {

// The PTX of one loaded image, analysed when the first kernel of it is asked for.
struct Code {
  std::string ptx;
  std::string why_unknown;
  bool analysed = false;
  std::map<std::string, KernelAccess> kernels;
  std::map<std::string, std::shared_ptr<const KernelFootprint>> footprints;
  std::map<std::string, bool> written;  // variables that some kernel may write
  std::set<std::string> seen_written;   // those that the PTX shows to be written
  std::set<std::string> managed;        // variables that the host writes without a call
  std::set<std::string> address_kept;   // those whose address lies in memory
  std::set<std::string> in_graphs;      // those that kernels in graphs use
  bool any_in_graphs = false;           // a kernel in a graph may use any of them
  struct HostVariable {
    Region region;
    bool watched = false;
  };
  std::map<std::string, HostVariable> known_to_host;
  size_t host_variable_changes = 0;

  void Analyse() {
    if (analysed) return;
    analysed = true;
    if (ptx.empty()) return;
    absl::StatusOr<ptx::Module> module = ptx::Parse(ptx);
    if (!module.ok()) {
      why_unknown = std::string(module.status().message());
      return;
    }
    ModuleAccess access = AnalyzeModule(*module);
    for (KernelAccess& kernel : access.kernels) {
      for (const VariableAccess& variable : kernel.variables) {
        if (Writes(variable.mode) || variable.escapes) seen_written.insert(variable.name);
      }
      if (!kernel.opaque) {
        footprints[kernel.name] =
            KernelFootprint::Build(*module, *module->FindFunction(kernel.name));
      }
      kernels[kernel.name] = std::move(kernel);
    }
    for (const ModuleVariableUse& use : access.variables) {
      written[use.name] = use.written;
      if (use.managed) managed.insert(use.name);
      if (use.address_kept) address_kept.insert(use.name);
    }
    ptx.clear();
    ptx.shrink_to_fit();
  }
};

struct Handle {
  std::shared_ptr<Code> code;
  std::string name;
  bool is_kernel = false;
  std::shared_ptr<KernelRecord> record;
  size_t variables_known = 0;      // changes seen by the record
  uint64_t annotations_known = 0;  // likewise
};

}  // namespace

struct Registry::Impl {
  std::mutex mutex;
  std::map<void*, std::shared_ptr<Code>> modules;
  std::map<void*, Handle> kernels;
  uint32_t device_sm = 0;
};

Registry& Registry::Get() {
  static Registry* registry = new Registry;
  return *registry;
}

Registry::Registry() : impl_(new Impl) {}

void Registry::OnLoad(void* module, const void* image) {
  auto code = std::make_shared<Code>();
  absl::StatusOr<ptx::Image> read = ptx::ReadImage(image);
  if (!read.ok()) {
    code->why_unknown = std::string(read.status().message());
  } else {
    uint32_t sm = 0;
    for (const ptx::FatbinEntry& entry : read->entries) {
      if (entry.kind == ptx::FatbinEntry::Kind::kPtx) sm += 1;
    }
    // The PTX describes what runs only if the driver compiles it, or runs machine code that was
    // made from the same source for the same architecture.
    const ptx::Selection selection =
        ptx::SelectForDevice(read->entries, impl_->device_sm != 0 ? impl_->device_sm : 90);
    if (read->kind == ptx::Image::Kind::kPtxText) {
      code->ptx = read->entries[0].ptx;
    } else if (selection.ptx != nullptr && sm > 0) {
      code->ptx = selection.ptx->ptx;
    } else {
      code->why_unknown = "no PTX for the code that runs";
    }
  }
  std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->modules[module] = std::move(code);
}

void Registry::OnLoadFile(void* module, const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  text.push_back('\0');
  if (file) OnLoad(module, text.data());
}

void Registry::OnAlias(void* made, void* of) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  auto it = impl_->modules.find(of);
  if (it == impl_->modules.end()) return;
  std::shared_ptr<Code> code = it->second;
  impl_->modules[made] = std::move(code);
}

void Registry::OnUnload(void* module) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  auto it = impl_->modules.find(module);
  if (it == impl_->modules.end()) return;
  // Handles of its kernels may come again for other code.
  const std::shared_ptr<Code> code = it->second;
  std::erase_if(impl_->kernels, [&](const auto& entry) { return entry.second.code == code; });
  impl_->modules.erase(it);
}

const void* Registry::CodeOf(void* module) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  auto it = impl_->modules.find(module);
  return it == impl_->modules.end() ? nullptr : it->second.get();
}

void Registry::OnKernel(void* kernel, void* module, const char* name, bool is_kernel) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  auto it = impl_->modules.find(module);
  Handle& handle = impl_->kernels[kernel];
  std::shared_ptr<Code> code = it == impl_->modules.end() ? nullptr : it->second;
  if (handle.code == code && handle.name == name) return;
  handle = Handle();
  handle.code = std::move(code);
  handle.name = name;
  handle.is_kernel = is_kernel;
}

void Registry::OnKernelAlias(void* function, void* kernel) {
  if (function == kernel) return;
  std::lock_guard<std::mutex> lock(impl_->mutex);
  auto it = impl_->kernels.find(kernel);
  if (it == impl_->kernels.end()) return;
  Handle copy = it->second;
  copy.is_kernel = false;
  copy.record = nullptr;
  Handle& handle = impl_->kernels[function];
  if (handle.code != copy.code || handle.name != copy.name) handle = std::move(copy);
}

std::optional<PinReason> Registry::OnVariable(void* module, const char* name, CUdeviceptr address,
                                              uint64_t bytes, bool watched) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  auto it = impl_->modules.find(module);
  if (it == impl_->modules.end() || it->second == nullptr) return std::nullopt;
  Code& code = *it->second;
  code.Analyse();
  std::optional<PinReason> pin;
  if (code.address_kept.contains(name)) pin = PinReason::kEscapes;
  if (code.any_in_graphs || code.in_graphs.contains(name)) pin = PinReason::kGraph;
  auto [variable, inserted] = code.known_to_host.try_emplace(name);
  const Code::HostVariable now = {{address, bytes, AccessMode::kRead, false}, watched};
  if (inserted) {
    variable->second = now;
  } else if (variable->second.region.address != address || variable->second.region.bytes != bytes ||
             variable->second.watched != watched) {
    if (!variable->second.watched) return pin;
    variable->second.watched = false;  // one in each of several contexts
  } else {
    return pin;
  }
  ++code.host_variable_changes;
  return pin;
}

void Registry::OnGraphUses(const KernelRecord& record) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  for (const auto& [module, code] : impl_->modules) {
    if (code.get() != record.code.get()) continue;
    code->any_in_graphs |= !record.variables_complete;
    for (const VariableAccess& variable : record.access.variables) {
      code->in_graphs.insert(variable.name);
    }
  }
}

std::shared_ptr<const KernelRecord> Registry::Find(const DriverApi& api, CUfunction function) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  Handle& handle = impl_->kernels[function];
  const size_t variables = handle.code != nullptr ? handle.code->host_variable_changes : 0;
  const uint64_t annotations = Annotations::Get().generation();
  if (handle.record != nullptr && handle.variables_known == variables &&
      handle.annotations_known == annotations) {
    return handle.record;
  }
  auto record = std::make_shared<KernelRecord>();
  handle.variables_known = variables;
  handle.annotations_known = annotations;
  record->name = handle.name.empty() ? "a kernel" : ShortKernelName(handle.name);
  record->code = handle.code;
  // The layout: INVALID_VALUE ends the list, any other failure means that it is not known.
  for (size_t i = 0;; ++i) {
    size_t offset = 0, bytes = 0;
    CUresult result = CUDA_ERROR_NOT_FOUND;
    if (handle.is_kernel && api.KernelGetParamInfo != nullptr) {
      result = api.KernelGetParamInfo(reinterpret_cast<CUkernel>(function), i, &offset, &bytes);
    } else if (api.FuncGetParamInfo != nullptr) {
      result = api.FuncGetParamInfo(function, i, &offset, &bytes);
    }
    if (result == CUDA_SUCCESS) {
      record->params.push_back({offset, bytes});
      record->param_bytes = std::max<uint64_t>(record->param_bytes, offset + bytes);
      continue;
    }
    record->has_layout = result == CUDA_ERROR_INVALID_VALUE;
    break;
  }
  bool has_ptx = false;
  if (handle.code != nullptr) {
    handle.code->Analyse();
    auto it = handle.code->kernels.find(handle.name);
    has_ptx = it != handle.code->kernels.end();
    if (has_ptx) {
      record->access = it->second;
      record->footprint = handle.code->footprints[handle.name];
    }
  }
  if (!has_ptx) record->access.opaque = true;
  record->annotated = Annotations::Get().Apply(handle.name, record->params, &record->access);
  record->known = !record->access.opaque;
  if (handle.code == nullptr) {
    record->no_replay = "its code was not seen";
  } else if (!has_ptx && !record->known) {
    record->no_replay =
        handle.code->why_unknown.empty() ? "no PTX of this kernel" : handle.code->why_unknown;
  } else {
    record->no_replay = record->annotated.no_replay;
    if (record->no_replay.empty()) record->no_replay = record->access.NotReplayableReason();
    const bool stated = record->annotated.only_stated && record->no_replay.empty();
    // A variable is constant if no kernel of the module writes it and the host cannot. What the
    // host can change has versions.
    for (const VariableAccess& variable : record->access.variables) {
      if (!record->no_replay.empty()) break;
      auto host = handle.code->known_to_host.find(variable.name);
      if (host != handle.code->known_to_host.end()) {
        if (!host->second.watched || handle.code->managed.contains(variable.name)) {
          record->no_replay =
              "reads module variable " + variable.name + ", which the host can change unseen";
          continue;
        }
      }
      if (stated ? handle.code->seen_written.contains(variable.name)
                 : handle.code->written[variable.name]) {
        record->no_replay = "reads module variable " + variable.name + ", which a kernel writes";
      }
    }
    if (stated && !record->no_replay.empty()) {
      Annotations::Get().RefuseReplay(handle.name, record->annotated, record->no_replay);
    }
  }
  // Whatever it does with them, those that are watched are used in an order that has to be kept.
  record->variables_complete = has_ptx && record->known && !record->access.unbased;
  for (const auto& [name, variable] :
       handle.code != nullptr ? handle.code->known_to_host : decltype(Code::known_to_host)()) {
    if (!variable.watched) continue;
    Region region = variable.region;
    region.mode = AccessMode::kUpdate;
    if (record->variables_complete) {
      const auto& uses = record->access.variables;
      const auto use = std::find_if(uses.begin(), uses.end(),
                                    [&](const VariableAccess& v) { return v.name == name; });
      if (use == uses.end()) continue;
      if (!Writes(use->mode)) region.mode = AccessMode::kRead;
    }
    record->variables.push_back(region);
  }
  handle.record = record;
  return record;
}

}  // namespace tidepool
