// Loading: variables get addresses, functions are compiled, kernels are described.
#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "tools/simgpu/exec/compiler.h"
#include "tools/simgpu/exec/program_impl.h"

namespace simgpu {

using tidepool::ptx::Function;
using tidepool::ptx::Module;
using tidepool::ptx::Space;
using tidepool::ptx::Variable;

const HandlerMap& Handlers() {
  static const HandlerMap* handlers = [] {
    auto* map = new HandlerMap;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      RegisterArithmeticAvx2(map);
    } else {
      RegisterArithmeticBase(map);
    }
    RegisterRounding(map);
    RegisterConversions(map);
    RegisterMemory(map);
    RegisterWarp(map);
    return map;
  }();
  return *handlers;
}

namespace {

// "Addresses" of functions: values that no variable has, for function pointers.
constexpr uint64_t kFunctionTokens = uint64_t{3} << 32;

absl::Status Initialize(const Module& module, const Symbols& symbols) {
  for (const Variable& variable : module.variables) {
    auto it = symbols.addresses.find(variable.name);
    if (it == symbols.addresses.end() || variable.size == 0) continue;
    auto* at = reinterpret_cast<uint8_t*>(it->second);
    if (variable.init.empty()) {
      std::memset(at, 0, variable.size);
    } else {
      std::memcpy(at, variable.init.data(), variable.init.size());
    }
    for (const tidepool::ptx::Relocation& relocation : variable.relocations) {
      uint64_t value = 0;
      if (auto to = symbols.addresses.find(relocation.symbol); to != symbols.addresses.end()) {
        value = to->second;
      } else if (auto token = symbols.function_tokens.find(relocation.symbol);
                 token != symbols.function_tokens.end()) {
        value = token->second;
      } else {
        return absl::InvalidArgumentError(
            absl::StrCat("variable ", variable.name, " refers to unknown ", relocation.symbol));
      }
      value += static_cast<uint64_t>(relocation.addend);
      value >>= 8 * relocation.shift;
      std::memcpy(at + relocation.offset, &value, std::min<size_t>(8, relocation.size));
    }
  }
  return absl::OkStatus();
}

// Everything a function may call, itself included.
void Reach(const Code* code, std::set<const Code*>* seen, bool* indirect) {
  std::vector<const Code*> work = {code};
  while (!work.empty()) {
    const Code* next = work.back();
    work.pop_back();
    if (!seen->insert(next).second) continue;
    for (const auto& site : next->sites) {
      if (site->callee != nullptr) work.push_back(site->callee);
      *indirect |= site->callee == nullptr && site->builtin == CallSite::Builtin::kNone;
    }
  }
}

}  // namespace

Program::Program(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Program::~Program() = default;

absl::StatusOr<std::unique_ptr<Program>> Program::Load(Module module,
                                                       const VariableAllocator& allocate) {
  auto impl = std::make_unique<Impl>();
  Symbols symbols;
  for (const Variable& variable : module.variables) {
    if (variable.space == Space::kShared) continue;
    absl::StatusOr<uint64_t> address = allocate(variable);
    if (!address.ok()) return address.status();
    symbols.addresses[variable.name] = *address;
    impl->variables.push_back(
        {variable.name, *address, variable.size, variable.space == Space::kConst});
  }
  // Static shared memory: one layout for the whole module, so that a function's arrays are at the
  // same place whoever calls it. Dynamic memory follows.
  uint64_t shared = 0;
  auto place = [&](const std::string& key, const Variable& variable) {
    if (variable.is_extern || variable.size == 0) return;
    const uint64_t align = std::max<uint64_t>(1, variable.align);
    shared = (shared + align - 1) / align * align;
    symbols.shared_offsets[key] = shared;
    shared += variable.size;
  };
  // Kernels do not share: each one's own arrays start at 0 behind the module's.
  for (const Variable& variable : module.variables) {
    if (variable.space == Space::kShared) place(variable.name, variable);
  }
  for (const Function& function : module.functions) {
    if (function.is_entry) continue;
    for (const Variable& variable : function.locals) {
      if (variable.space == Space::kShared) place(function.name + "\n" + variable.name, variable);
    }
  }
  const uint64_t common = shared;
  for (const Function& function : module.functions) {
    if (!function.has_body) continue;
    impl->codes.push_back(std::make_unique<Code>());
    Code* code = impl->codes.back().get();
    symbols.functions[function.name] = code;
    const uint64_t token = kFunctionTokens + 16 * impl->codes.size();
    symbols.function_tokens[function.name] = token;
    impl->by_token[token] = code;
  }
  std::vector<std::pair<const Function*, Code*>> entries;
  for (const Function& function : module.functions) {
    if (!function.has_body) continue;
    Code* code = symbols.functions[function.name];
    shared = common;
    if (function.is_entry) {
      for (const Variable& variable : function.locals) {
        if (variable.space == Space::kShared) place(function.name + "\n" + variable.name, variable);
      }
    }
    shared = (shared + 15) / 16 * 16;
    symbols.dynamic_shared_offset = shared;
    for (const Variable& variable : module.variables) {
      if (variable.space == Space::kShared && (variable.is_extern || variable.size == 0)) {
        symbols.shared_offsets[variable.name] = shared;
      }
    }
    code->shared_bytes = static_cast<uint32_t>(shared);
    if (absl::Status status = Compiler(function, symbols, code).Compile(); !status.ok()) {
      return status;
    }
    if (function.is_entry) entries.emplace_back(&function, code);
  }
  if (absl::Status status = Initialize(module, symbols); !status.ok()) return status;
  for (const auto& [function, code] : entries) {
    auto kernel = std::make_unique<Kernel>();
    kernel->code = code;
    kernel->program = impl.get();
    std::set<const Code*> reached;
    bool indirect = false;
    Reach(code, &reached, &indirect);
    if (indirect) {
      for (const auto& other : impl->codes) reached.insert(other.get());
    }
    uint32_t local = 0;
    for (const Code* part : reached) {
      local += part->local_bytes;
      kernel->ordered |= part->ordered_atomics;
    }
    // Recursion: room for a number of activations.
    const bool calls = reached.size() > 1 || !code->sites.empty();
    kernel->local_stride = calls ? std::max<uint32_t>(local * 64, 256) : local;
    KernelInfo& info = kernel->info;
    info.name = function->name;
    info.params = function->params;
    info.param_bytes = function->param_bytes;
    info.static_shared_bytes = code->shared_bytes;
    info.local_bytes = local;
    info.registers =
        std::min<uint32_t>(255, 16 + static_cast<uint32_t>(function->registers.size()) / 8);
    const uint32_t* limit =
        function->req_threads[0] != 0 ? function->req_threads : function->max_threads;
    if (limit[0] != 0) info.max_threads = limit[0] * limit[1] * limit[2];
    impl->kernels[function->name] = std::move(kernel);
  }
  return std::unique_ptr<Program>(new Program(std::move(impl)));
}

const Kernel* Program::FindKernel(std::string_view name) const {
  auto it = impl_->kernels.find(std::string(name));
  return it == impl_->kernels.end() ? nullptr : it->second.get();
}

std::vector<std::string> Program::KernelNames() const {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : impl_->kernels) names.push_back(name);
  return names;
}

const std::vector<ProgramVariable>& Program::variables() const { return impl_->variables; }

const KernelInfo& Info(const Kernel& kernel) { return kernel.info; }

const Code* FunctionByToken(const Warp& warp, uint64_t token) {
  const auto& table = warp.block->kernel->program->by_token;
  auto it = table.find(token);
  return it == table.end() ? nullptr : it->second;
}

}  // namespace simgpu
