// Loading: variables get addresses, functions are compiled, kernels are described.
#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "tools/simgpu/exec/compiler.h"
#include "tools/simgpu/exec/program_impl.h"
#include "tools/simgpu/exec/warp.h"

namespace simgpu {

using tidepool::ptx::Function;
using tidepool::ptx::Module;
using tidepool::ptx::Space;
using tidepool::ptx::Variable;

namespace {

// Local memory for calls whose depth the code does not show: recursion, function pointers. The
// hardware's default stack is 1 KiB, but its frames are smaller.
constexpr uint32_t kStackBytes = 32 << 10;

absl::Status StoreRelocation(const Variable& variable, const tidepool::ptx::Relocation& relocation,
                             const Symbols& symbols, uint8_t* at) {
  uint64_t value = 0;
  if (auto it = symbols.addresses.find(relocation.symbol); it != symbols.addresses.end()) {
    value = it->second;
  } else if (auto token = symbols.function_tokens.find(relocation.symbol);
             token != symbols.function_tokens.end()) {
    value = token->second;
  } else if (auto shared = symbols.shared_offsets.find(relocation.symbol);
             shared != symbols.shared_offsets.end()) {
    value = shared->second + (relocation.generic ? kSharedWindow : 0);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("variable ", variable.name, " refers to unknown ", relocation.symbol));
  }
  value += static_cast<uint64_t>(relocation.addend);
  value >>= 8 * relocation.shift;
  std::memcpy(at + relocation.offset, &value, std::min<size_t>(8, relocation.size));
  return absl::OkStatus();
}

absl::Status Initialize(const Module& module, const Symbols& symbols) {
  for (const Variable& variable : module.variables) {
    auto it = symbols.addresses.find(variable.name);
    if (it == symbols.addresses.end() || variable.size == 0) continue;
    auto* at = reinterpret_cast<uint8_t*>(it->second);
    std::memset(at, 0, variable.size);
    if (!variable.init.empty()) std::memcpy(at, variable.init.data(), variable.init.size());
    for (const tidepool::ptx::Relocation& relocation : variable.relocations) {
      absl::Status status = StoreRelocation(variable, relocation, symbols, at);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

// Everything that a kernel may run.
struct Reach {
  std::set<const Code*> codes;
  bool unbounded = false;  // recursion or indirect calls
  bool indirect = false;
};

// Bytes of local memory of the deepest chain of calls from `code` on.
uint32_t Follow(const Code* code, std::vector<const Code*>* chain,
                std::map<const Code*, uint32_t>* depths, Reach* reach) {
  if (std::find(chain->begin(), chain->end(), code) != chain->end()) {
    reach->unbounded = true;
    return 0;
  }
  if (auto it = depths->find(code); it != depths->end()) return it->second;
  reach->codes.insert(code);
  chain->push_back(code);
  uint32_t deepest = 0;
  for (const CallSite& site : code->sites) {
    if (site.callee != nullptr) {
      deepest = std::max(deepest, Follow(site.callee, chain, depths, reach));
    } else if (site.builtin == CallSite::Builtin::kNone) {
      reach->indirect = reach->unbounded = true;
    }
  }
  chain->pop_back();
  return (*depths)[code] = deepest + code->local_bytes;
}

// Static shared memory. Every kernel has its own, which starts behind what the module declares and
// what device functions declare (those are at the same place whoever calls them).
class SharedLayout {
 public:
  explicit SharedLayout(const Module& module, Symbols* symbols) : symbols_(*symbols) {
    for (const Variable& variable : module.variables) {
      if (variable.space == Space::kShared) Place(variable.name, variable);
    }
    for (const Function& function : module.functions) {
      if (!function.is_entry) PlaceLocals(function);
    }
    common_ = top_;
  }
  // Bytes of static shared memory of `function`; sets where dynamic memory starts.
  uint32_t Enter(const Module& module, const Function& function) {
    top_ = common_;
    if (function.is_entry) PlaceLocals(function);
    top_ = (top_ + 15) / 16 * 16;
    symbols_.dynamic_shared_offset = top_;
    for (const Variable& variable : module.variables) {
      if (variable.space == Space::kShared && IsDynamic(variable)) {
        symbols_.shared_offsets[variable.name] = top_;
      }
    }
    return static_cast<uint32_t>(top_);
  }

 private:
  static bool IsDynamic(const Variable& variable) {
    return variable.is_extern || variable.size == 0;
  }
  void Place(const std::string& key, const Variable& variable) {
    if (IsDynamic(variable)) return;
    const uint64_t align = std::max<uint64_t>(1, variable.align);
    top_ = (top_ + align - 1) / align * align;
    symbols_.shared_offsets[key] = top_;
    top_ += variable.size;
  }
  void PlaceLocals(const Function& function) {
    for (const Variable& variable : function.locals) {
      if (variable.space == Space::kShared) Place(function.name + "\n" + variable.name, variable);
    }
  }

  Symbols& symbols_;
  uint64_t top_ = 0, common_ = 0;
};

template <typename F>
void ForOperands(std::vector<tidepool::ptx::Operand>& operands, F f) {
  for (tidepool::ptx::Operand& operand : operands) {
    f(operand);
    ForOperands(operand.elements, f);
    ForOperands(operand.second, f);
  }
}

// Compilers for the debugger declare a function's stack at module scope. It is the function's: each
// of its activations has one.
absl::Status AdoptLocals(Module* module) {
  for (const Variable& variable : module->variables) {
    if (variable.space != Space::kLocal) continue;
    const Function* owner = nullptr;
    for (Function& function : module->functions) {
      const auto index = static_cast<uint32_t>(function.locals.size());
      bool used = false;
      const auto adopt = [&](tidepool::ptx::Operand& operand) {
        if (operand.name != variable.name || operand.variable != tidepool::ptx::kNoIndex ||
            operand.param != tidepool::ptx::kNoIndex) {
          return;
        }
        operand.variable = index;
        used = true;
      };
      for (tidepool::ptx::Instruction& in : function.body) ForOperands(in.operands, adopt);
      if (!used) continue;
      function.locals.push_back(variable);
      if (owner != nullptr) {
        return absl::UnimplementedError(
            absl::StrCat("PTX line ", variable.line, ": local variable ", variable.name,
                         " is shared by functions ", owner->name, " and ", function.name));
      }
      owner = &function;
    }
  }
  return absl::OkStatus();
}

// Whether anything uses an extern shared array from a device function: its place differs from
// kernel to kernel.
bool UsesDynamicShared(const Module& module, const Function& function) {
  const auto is_dynamic = [](const Variable& v) {
    return v.space == Space::kShared && (v.is_extern || v.size == 0);
  };
  if (std::any_of(function.locals.begin(), function.locals.end(), is_dynamic)) return true;
  std::set<std::string> names;
  for (const Variable& v : module.variables) {
    if (is_dynamic(v)) names.insert(v.name);
  }
  if (names.empty()) return false;
  for (const auto& in : function.body) {
    for (const auto& operand : in.operands) {
      if (names.count(operand.name) != 0) return true;
    }
  }
  return false;
}

std::unique_ptr<Kernel> MakeKernel(const Function& function, const Code* code,
                                   Program::Impl* program) {
  auto kernel = std::make_unique<Kernel>();
  kernel->code = code;
  kernel->program = program;
  Reach reach;
  std::vector<const Code*> chain;
  std::map<const Code*, uint32_t> depths;
  uint32_t local = Follow(code, &chain, &depths, &reach);
  if (reach.indirect) {
    for (const auto& other : program->codes) reach.codes.insert(other.get());
  }
  if (reach.unbounded) {
    local = 0;
    for (const Code* part : reach.codes) local += part->local_bytes;
  }
  uint32_t registers = 0;
  bool grid_sync = false;
  for (const Code* part : reach.codes) {
    kernel->ordered |= part->ordered;
    grid_sync |= part->grid_sync;
    registers = std::max(registers, part->live_registers);
  }
  kernel->local_stride = local + (reach.unbounded ? kStackBytes : 0);
  KernelInfo& info = kernel->info;
  info.name = function.name;
  info.params = function.params;
  info.param_bytes = function.param_bytes;
  info.static_shared_bytes = code->shared_bytes;
  info.local_bytes = local;
  info.registers = std::clamp<uint32_t>((registers + 7) / 8 * 8 + 8, 16, 255);
  info.uses_grid_sync = grid_sync;
  const uint32_t* limit =
      function.req_threads[0] != 0 ? function.req_threads : function.max_threads;
  if (limit[0] != 0) {
    info.max_threads = limit[0] * std::max(1u, limit[1]) * std::max(1u, limit[2]);
  }
  return kernel;
}

}  // namespace

Program::Program(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Program::~Program() = default;

absl::StatusOr<std::unique_ptr<Program>> Program::Load(Module module,
                                                       const VariableAllocator& allocate) {
  auto impl = std::make_unique<Impl>();
  Symbols symbols;
  if (absl::Status status = AdoptLocals(&module); !status.ok()) return status;
  for (const Variable& variable : module.variables) {
    if (variable.space == Space::kShared || variable.space == Space::kLocal) continue;
    absl::StatusOr<uint64_t> address = allocate(variable);
    if (!address.ok()) return address.status();
    symbols.addresses[variable.name] = *address;
    impl->variables.push_back(
        {variable.name, *address, variable.size, variable.space == Space::kConst});
  }
  SharedLayout shared(module, &symbols);
  std::vector<std::pair<const Function*, Code*>> bodies;
  for (const Function& function : module.functions) {
    if (!function.has_body) continue;
    impl->codes.push_back(std::make_unique<Code>());
    Code* code = impl->codes.back().get();
    code->index = static_cast<uint32_t>(impl->codes.size() - 1);
    symbols.functions[function.name] = code;
    const uint64_t token = kFunctionTokens + 16 * impl->codes.size();
    symbols.function_tokens[function.name] = token;
    impl->by_token[token] = code;
    bodies.emplace_back(&function, code);
  }
  uint64_t most_shared = 0;
  for (const auto& [function, code] : bodies) {
    code->shared_bytes = shared.Enter(module, *function);
    if (function->is_entry) most_shared = std::max<uint64_t>(most_shared, code->shared_bytes);
  }
  const bool functions_use_dynamic =
      std::any_of(bodies.begin(), bodies.end(), [&](const auto& body) {
        return !body.first->is_entry && UsesDynamicShared(module, *body.first);
      });
  for (const auto& [function, code] : bodies) {
    code->shared_bytes = shared.Enter(module, *function);
    if (functions_use_dynamic) {
      // One place for dynamic memory that suits every kernel.
      code->shared_bytes = static_cast<uint32_t>(most_shared);
      symbols.dynamic_shared_offset = most_shared;
      for (const Variable& variable : module.variables) {
        if (variable.space == Space::kShared && (variable.is_extern || variable.size == 0)) {
          symbols.shared_offsets[variable.name] = most_shared;
        }
      }
    }
    absl::Status status = Compiler(*function, symbols, code).Compile();
    if (!status.ok()) return status;
  }
  if (absl::Status status = Initialize(module, symbols); !status.ok()) return status;
  for (const auto& [function, code] : bodies) {
    if (function->is_entry) {
      impl->kernels[function->name] = MakeKernel(*function, code, impl.get());
    }
  }
  return std::unique_ptr<Program>(new Program(std::move(impl)));
}

const Kernel* Program::FindKernel(std::string_view name) const {
  auto it = impl_->kernels.find(std::string(name));
  return it == impl_->kernels.end() ? nullptr : it->second.get();
}

std::vector<std::string> Program::KernelNames() const {
  std::vector<std::string> names;
  names.reserve(impl_->kernels.size());
  for (const auto& [name, kernel] : impl_->kernels) names.push_back(name);
  return names;
}

const std::vector<ProgramVariable>& Program::variables() const { return impl_->variables; }

const KernelInfo& Info(const Kernel& kernel) { return kernel.info; }

const Code* FunctionByToken(const Warp& warp, uint64_t token) {
  const auto& table = warp.block->launch->kernel->program->by_token;
  auto it = table.find(token);
  return it == table.end() ? nullptr : it->second;
}

}  // namespace simgpu
