#include "tools/simgpu/driver/module.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>

#include "ptx/fatbin.h"
#include "ptx/parser.h"
#include "tools/simgpu/driver/memory.h"

namespace simgpu {
namespace {

constexpr uint32_t kDeviceSm = 90;

void Complain(const std::string& text) {
  const std::string line = "simgpu: " + text + "\n";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

// Separately compiled texts are linked by putting them together: definitions first, declarations
// and repeated weak ones dropped.
tidepool::ptx::Module Link(std::vector<tidepool::ptx::Module> parts) {
  tidepool::ptx::Module whole = std::move(parts[0]);
  std::set<std::string> functions, variables;
  auto defined = [](const tidepool::ptx::Variable& v) { return !v.is_extern; };
  for (const auto& f : whole.functions) {
    if (f.has_body) functions.insert(f.name);
  }
  for (const auto& v : whole.variables) {
    if (defined(v)) variables.insert(v.name);
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    for (auto& f : parts[i].functions) {
      if (f.has_body && functions.insert(f.name).second) whole.functions.push_back(std::move(f));
    }
    for (auto& v : parts[i].variables) {
      const bool shared = v.space == tidepool::ptx::Space::kShared && v.is_extern;
      if (shared || (defined(v) && variables.insert(v.name).second)) {
        whole.variables.push_back(std::move(v));
      }
    }
  }
  std::erase_if(whole.variables, [&](const auto& v) {
    return !defined(v) && v.space != tidepool::ptx::Space::kShared && variables.contains(v.name);
  });
  return whole;
}

}  // namespace

Modules& Modules::Get() {
  static Modules* modules = new Modules;
  return *modules;
}

CUresult Modules::LoadTexts(const std::vector<std::string>& texts, Module** out) {
  std::vector<tidepool::ptx::Module> parts;
  for (const std::string& text : texts) {
    absl::StatusOr<tidepool::ptx::Module> parsed = tidepool::ptx::Parse(text);
    if (!parsed.ok()) {
      Complain(std::string(parsed.status().message()));
      return CUDA_ERROR_INVALID_PTX;
    }
    parts.push_back(*std::move(parsed));
  }
  auto module = std::make_unique<Module>();
  module->sm = parts[0].sm;
  absl::StatusOr<std::unique_ptr<Program>> program = Program::Load(
      Link(std::move(parts)),
      [](const tidepool::ptx::Variable& variable) -> absl::StatusOr<uint64_t> {
        if (variable.is_extern) {
          return absl::NotFoundError("unresolved variable " + variable.name);
        }
        const uint64_t at = DeviceMemory::Get().AllocVariable(variable.size, variable.align);
        if (at == 0) return absl::ResourceExhaustedError("no memory for variables");
        return at;
      });
  if (!program.ok()) {
    Complain(std::string(program.status().message()));
    return absl::IsUnimplemented(program.status()) ? CUDA_ERROR_NOT_SUPPORTED
                                                   : CUDA_ERROR_INVALID_PTX;
  }
  for (const std::string& name : (*program)->KernelNames()) {
    auto function = std::make_unique<Function>();
    function->kernel = (*program)->FindKernel(name);
    function->module = module.get();
    function->name = name;
    module->functions[name] = std::move(function);
  }
  for (const ProgramVariable& variable : (*program)->variables()) {
    module->variables[variable.name] = variable;
  }
  module->programs.push_back(*std::move(program));
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [name, function] : module->functions) functions_[function.get()] = function.get();
  *out = module.get();
  modules_[*out] = std::move(module);
  return CUDA_SUCCESS;
}

CUresult Modules::Load(const void* image, Module** out) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  absl::StatusOr<tidepool::ptx::Image> read = tidepool::ptx::ReadImage(image);
  if (!read.ok()) {
    Complain(std::string(read.status().message()));
    return CUDA_ERROR_INVALID_IMAGE;
  }
  // The best PTX not above the device; with separate compilation one from each part.
  std::vector<std::string> texts;
  if (read->kind == tidepool::ptx::Image::Kind::kPtxText) {
    texts.push_back(read->entries[0].ptx);
  } else {
    uint32_t best = 0;
    for (const tidepool::ptx::FatbinEntry& entry : read->entries) {
      if (entry.kind == tidepool::ptx::FatbinEntry::Kind::kPtx && entry.arch <= kDeviceSm &&
          !entry.arch_specific && !entry.family_specific) {
        best = std::max(best, entry.arch);
      }
    }
    for (const tidepool::ptx::FatbinEntry& entry : read->entries) {
      if (entry.kind == tidepool::ptx::FatbinEntry::Kind::kPtx && entry.arch == best &&
          !entry.arch_specific && !entry.family_specific) {
        texts.push_back(entry.ptx);
      }
    }
  }
  if (texts.empty()) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  return LoadTexts(texts, out);
}

CUresult Modules::LoadFile(const char* path, Module** out) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  text.push_back('\0');
  return Load(text.data(), out);
}

CUresult Modules::Unload(void* handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = modules_.find(handle);
  if (it == modules_.end()) return CUDA_ERROR_INVALID_HANDLE;
  for (auto& [name, function] : it->second->functions) functions_.erase(function.get());
  // Kernels in flight hold pointers into the program: it is kept, only its handles die.
  (void)it->second.release();
  modules_.erase(it);
  return CUDA_SUCCESS;
}

Module* Modules::FindModule(void* handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = modules_.find(handle);
  return it == modules_.end() ? nullptr : it->second.get();
}

Function* Modules::FindFunction(void* handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = functions_.find(handle);
  return it == functions_.end() ? nullptr : it->second;
}

}  // namespace simgpu
