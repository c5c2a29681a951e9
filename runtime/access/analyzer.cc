#include "runtime/access/analyzer.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace tidepool {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

bool IsFloat(Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kF16x2:
    case Type::kBF16:
    case Type::kBF16x2:
    case Type::kTF32:
    case Type::kF32:
    case Type::kF32x2:
    case Type::kF64:
      return true;
    default:
      return false;
  }
}

// Opcodes that only compute: their results come from their operands and nothing else happens.
bool IsCompute(const std::string& opcode) {
  static const auto* const opcodes = new std::set<std::string>{
      "abs",       "add",       "addc", "and",      "bfe",   "bfi",        "bfind", "bmsk",
      "brev",      "clz",       "cnot", "copysign", "cos",   "cvt",        "cvta",  "div",
      "dp2a",      "dp4a",      "ex2",  "fma",      "fns",   "isspacep",   "lg2",   "lop3",
      "mad",       "mad24",     "madc", "max",      "min",   "mov",        "mul",   "mul24",
      "neg",       "not",       "or",   "popc",     "prmt",  "rcp",        "rem",   "rsqrt",
      "sad",       "selp",      "set",  "setp",     "shf",   "shl",        "shr",   "sin",
      "slct",      "sqrt",      "sub",  "subc",     "tanh",  "testp",      "xor",   "vabsdiff",
      "vabsdiff2", "vabsdiff4", "vadd", "vsub",     "vmin",  "vmax",       "vadd2", "vadd4",
      "mma",       "shfl",      "vote", "match",    "redux", "activemask", "elect", "szext"};
  return opcodes->contains(opcode);
}

// Control and ordering without any effect on what is accessed.
bool IsHarmless(const std::string& opcode) {
  static const auto* const opcodes = new std::set<std::string>{
      "bra",   "brx",       "ret",      "exit",      "bar",     "barrier", "membar",
      "fence", "nanosleep", "prefetch", "prefetchu", "pmevent", "brkpt",   "setmaxnreg"};
  return opcodes->contains(opcode);
}

// Operands that the analysis looks at without asking.
size_t OperandsOf(const std::string& opcode, const Instruction& in) {
  if (opcode == "ld" || opcode == "ldu" || opcode == "st" || opcode == "stmatrix") return 2;
  if (opcode == "wmma") return in.Has("load") ? 2 : in.Has("store") ? 1 : 0;
  if (opcode == "shl") return 3;
  return opcode == "call" || opcode == "ldmatrix" || opcode == "alloca" || opcode == "stacksave"
             ? 1
             : 0;
}

// More than any launch takes: the words are not even listed.
constexpr uint64_t kMaxParamBytes = 1 << 16;

}  // namespace

Analyzer::Analyzer(const ptx::Module& module, const ptx::Function& entry) : entry_(entry) {
  for (const ptx::Function& function : module.functions) {
    const ptx::Function*& slot = functions_[function.name];
    if (slot == nullptr || function.has_body) slot = &function;
  }
  for (const ptx::Variable& variable : module.variables) variables_[variable.name] = &variable;
  result_.name = entry.name;
  result_.param_bytes = entry.param_bytes;
}

Analyzer::FunctionState& Analyzer::StateOf(const ptx::Function* function) {
  auto [it, inserted] = states_.try_emplace(function);
  FunctionState& state = it->second;
  if (inserted) {
    state.function = function;
    state.registers.resize(function->registers.size());
    state.locals.resize(function->locals.size());
    state.params.resize(function->params.size());
    state.returns.resize(function->returns.size());
    order_.push_back(function);
  }
  return state;
}

uint32_t Analyzer::WordBase(uint64_t offset, uint32_t bytes) {
  auto [it, inserted] = word_bases_.try_emplace({offset, bytes}, 0);
  if (inserted) {
    it->second = kFirstBase + static_cast<uint32_t>(bases_.size());
    bases_.push_back({BaseInfo::Kind::kWord, static_cast<uint32_t>(result_.words.size())});
    WordAccess word;
    word.offset = static_cast<uint32_t>(offset);
    word.bytes = bytes;
    result_.words.push_back(word);
  }
  return it->second;
}

uint32_t Analyzer::ParamAddressBase(uint32_t param) {
  auto [it, inserted] = param_bases_.try_emplace(param, 0);
  if (inserted) {
    it->second = kFirstBase + static_cast<uint32_t>(bases_.size());
    bases_.push_back({BaseInfo::Kind::kParamAddress, param});
  }
  return it->second;
}

uint32_t Analyzer::VariableBase(const std::string& name) {
  auto [it, inserted] = variable_bases_.try_emplace(name, 0);
  if (inserted) {
    it->second = kFirstBase + static_cast<uint32_t>(bases_.size());
    bases_.push_back({BaseInfo::Kind::kVariable, static_cast<uint32_t>(result_.variables.size())});
    VariableAccess variable;
    variable.name = name;
    result_.variables.push_back(variable);
  }
  return it->second;
}

void Analyzer::Opaque(const std::string& reason, const Instruction& in) {
  if (result_.opaque) return;
  result_.opaque = true;
  result_.opaque_reason = absl::StrCat(reason, ", line ", in.line);
}

void Analyzer::CheckSpecial(const Operand& operand) {
  if (operand.kind == Operand::Kind::kSpecial) {
    const std::string& name = operand.name;
    if (name.starts_with("%clock") || name.starts_with("%globaltimer")) {
      result_.effects.reads_clock = true;
    } else if (name == "%smid" || name == "%warpid" || name == "%nwarpid" || name == "%nsmid" ||
               name == "%gridid" || name.starts_with("%pm")) {
      result_.effects.reads_placement = true;
    } else if (name.starts_with("%envreg")) {
      result_.effects.grid_sync = true;
    }
  }
  for (const Operand& element : operand.elements) CheckSpecial(element);
}

void Analyzer::CheckOrdering(const Instruction& in) {
  const bool outside = in.space == Space::kGlobal || in.space == Space::kGeneric;
  if (!outside) return;
  for (const std::string& mod : in.mods) {
    if (mod == "volatile" || mod == "relaxed" || mod == "acquire" || mod == "release" ||
        mod == "mmio" || mod == "sys") {
      // Spinning on memory that others write: what it reads depends on when it runs.
      if (in.opcode == "atom" || in.opcode == "red") {
        if (mod == "sys") result_.effects.system_scope = true;
      } else {
        result_.effects.system_scope = true;
      }
    }
  }
}

Bases Analyzer::ValueOf(FunctionState& state, const Operand& operand) {
  Bases bases;
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      return state.registers[operand.reg];
    case Operand::Kind::kVector:
      for (const Operand& element : operand.elements) bases.Merge(ValueOf(state, element));
      return bases;
    case Operand::Kind::kSymbol:
    case Operand::Kind::kAddress:
      return AddressOf(state, operand);
    default:
      return bases;
  }
}

Bases Analyzer::AddressOf(FunctionState& state, const Operand& operand) {
  Bases bases;
  if (operand.reg != ptx::kNoIndex) return state.registers[operand.reg];
  if (operand.variable != ptx::kNoIndex) {
    const Space space = state.function->locals[operand.variable].space;
    if (space == Space::kShared) bases.Add(kSharedBase);
    if (space == Space::kLocal) bases.Add(kLocalBase);
    if (space == Space::kGlobal || space == Space::kConst) {
      bases.Add(VariableBase(state.function->locals[operand.variable].name));
    }
    return bases;
  }
  if (operand.param != ptx::kNoIndex) {
    if (state.function == &entry_) bases.Add(ParamAddressBase(operand.param));
    return bases;
  }
  if (operand.name.empty()) return bases;
  auto it = variables_.find(operand.name);
  if (it != variables_.end()) {
    if (it->second->space == Space::kShared) {
      bases.Add(kSharedBase);
    } else {
      bases.Add(VariableBase(operand.name));
    }
  }
  return bases;
}

bool Analyzer::Define(FunctionState& state, const Operand& operand, const Bases& bases) {
  bool grew = false;
  if (operand.kind == Operand::Kind::kRegister) {
    const Type type = state.function->registers[operand.reg].type;
    // A predicate or a float is no address, whatever it came from.
    if (type != Type::kPred && !IsFloat(type)) grew = state.registers[operand.reg].Merge(bases);
  }
  for (const Operand& element : operand.elements) grew |= Define(state, element, bases);
  for (const Operand& second : operand.second) grew |= Define(state, second, bases);
  return grew;
}

void Analyzer::Access(const Bases& bases, AccessMode mode, bool atomic, const Instruction& in) {
  bool based = false;
  for (uint32_t base : bases) {
    if (base == kLoadedBase) {
      if (!result_.indirect) result_.indirect_line = in.line;
      result_.indirect = true;
      result_.indirect_mode = result_.indirect_mode | mode;
      based = true;
    } else if (base == kLocalBase || base == kSharedBase) {
      based = true;
    } else {
      const BaseInfo& info = bases_[base - kFirstBase];
      if (info.kind == BaseInfo::Kind::kWord) {
        WordAccess& word = result_.words[info.index];
        if (word.mode == AccessMode::kNone) word.line = in.line;
        word.mode = word.mode | mode;
        word.atomics |= atomic;
      } else if (info.kind == BaseInfo::Kind::kVariable) {
        VariableAccess& variable = result_.variables[info.index];
        variable.mode = variable.mode | mode;
      }
      based = true;
    }
  }
  if (!based) result_.unbased = true;
}

bool Analyzer::StoreValue(const Bases& address, const Bases& value, const Instruction& in) {
  bool grew = false;
  if (in.space == Space::kShared) return shared_.Merge(value);
  if (in.space == Space::kLocal) return local_.Merge(value);
  if (address.Has(kSharedBase) || address.Has(kLoadedBase)) grew |= shared_.Merge(value);
  if (address.Has(kLocalBase) || address.Has(kLoadedBase)) grew |= local_.Merge(value);
  const bool global =
      in.space == Space::kGlobal || std::any_of(address.begin(), address.end(), [](uint32_t base) {
        return base != kSharedBase && base != kLocalBase;
      });
  if (!global) return grew;
  for (uint32_t base : value) {
    if (base < kFirstBase) continue;
    const BaseInfo& info = bases_[base - kFirstBase];
    if (info.kind == BaseInfo::Kind::kWord) result_.words[info.index].escapes = true;
    if (info.kind == BaseInfo::Kind::kVariable) result_.variables[info.index].escapes = true;
    if (info.kind == BaseInfo::Kind::kParamAddress)
      Opaque("the address of a parameter is stored", in);
  }
  return grew;
}

bool Analyzer::ParamLoad(FunctionState& state, const Instruction& in) {
  const Operand& to = in.operands[0];
  const Operand& address = in.operands[1];
  const uint32_t bytes = ptx::SizeOf(in.type());
  const auto load_words = [&](uint64_t first, uint64_t end, uint64_t step) {
    Bases bases;
    for (uint64_t at = first; at + bytes <= end; at += step) bases.Add(WordBase(at, bytes));
    return bases;
  };
  if (address.reg == ptx::kNoIndex && address.param != ptx::kNoIndex && !address.is_return_param) {
    if (state.function != &entry_) return Define(state, to, state.params[address.param]);
    const ptx::Param& param = entry_.params[address.param];
    const uint64_t at = param.offset + static_cast<uint64_t>(address.offset);
    if (to.kind != Operand::Kind::kVector) {
      Bases bases;
      bases.Add(WordBase(at, bytes));
      return Define(state, to, bases);
    }
    bool grew = false;
    for (size_t i = 0; i < to.elements.size(); ++i) {
      Bases bases;
      bases.Add(WordBase(at + i * bytes, bytes));
      grew |= Define(state, to.elements[i], bases);
    }
    return grew;
  }
  if (address.reg == ptx::kNoIndex && address.variable != ptx::kNoIndex) {
    return Define(state, to, state.locals[address.variable]);  // a call's result
  }
  if (address.reg == ptx::kNoIndex && address.param != ptx::kNoIndex) {
    return Define(state, to, state.returns[address.param]);
  }
  // Through a register: some word of the parameters whose address it may be.
  Bases loaded;
  bool known = false;
  for (uint32_t base : AddressOf(state, address)) {
    if (base < kFirstBase || bases_[base - kFirstBase].kind != BaseInfo::Kind::kParamAddress)
      continue;
    const ptx::Param& param = entry_.params[bases_[base - kFirstBase].index];
    loaded.Merge(load_words(param.offset, param.offset + param.size, std::max(1u, bytes)));
    known = true;
  }
  if (!known) Opaque("a parameter is read through an address that is not followed", in);
  return Define(state, to, loaded);
}

bool Analyzer::Memory(FunctionState& state, const Instruction& in) {
  const bool load = in.opcode != "st";
  const Operand& address = in.operands[load ? 1 : 0];
  CheckOrdering(in);
  if (in.space == Space::kParam) {
    if (load) return ParamLoad(state, in);
    const Bases value = ValueOf(state, in.operands[1]);
    if (address.variable != ptx::kNoIndex) return state.locals[address.variable].Merge(value);
    if (address.param != ptx::kNoIndex && address.is_return_param) {
      return state.returns[address.param].Merge(value);
    }
    Opaque("a store to parameter space that is not followed", in);
    return false;
  }
  if (in.Has("shared::cluster")) {
    result_.effects.async_or_cluster = true;
  }
  const Bases bases = AddressOf(state, address);
  const bool outside = in.space != Space::kShared && in.space != Space::kLocal;
  bool param_address = false;
  for (uint32_t base : bases) {
    param_address |=
        base >= kFirstBase && bases_[base - kFirstBase].kind == BaseInfo::Kind::kParamAddress;
  }
  if (!load) {
    if (outside) Access(bases, AccessMode::kWrite, false, in);
    if (param_address) Opaque("a store to a parameter", in);
    return StoreValue(bases, ValueOf(state, in.operands[1]), in);
  }
  Bases loaded;
  if (outside) {
    Access(bases, AccessMode::kRead, false, in);
    if (ptx::SizeOf(in.type()) >= 8) loaded.Add(kLoadedBase);
    if (param_address) {  // ld through a generic address of a parameter
      for (uint32_t base : bases) {
        if (base < kFirstBase || bases_[base - kFirstBase].kind != BaseInfo::Kind::kParamAddress) {
          continue;
        }
        const ptx::Param& param = entry_.params[bases_[base - kFirstBase].index];
        const uint32_t bytes = ptx::SizeOf(in.type());
        for (uint64_t at = 0; at + bytes <= param.size; at += bytes) {
          loaded.Add(WordBase(param.offset + at, bytes));
        }
      }
    }
  }
  const bool loaded_pointer = bases.Has(kLoadedBase);
  if (in.space == Space::kShared || (outside && (bases.Has(kSharedBase) || loaded_pointer))) {
    loaded.Merge(shared_);
  }
  if (in.space == Space::kLocal || (outside && (bases.Has(kLocalBase) || loaded_pointer))) {
    loaded.Merge(local_);
  }
  return Define(state, in.operands[0], loaded);
}

bool Analyzer::Atomic(FunctionState& state, const Instruction& in) {
  const bool red = in.opcode == "red";
  const size_t at = red ? 0 : 1;
  if (in.operands.size() < at + 2) {
    Opaque(in.FullName(), in);
    return false;
  }
  CheckOrdering(in);
  const Bases bases = AddressOf(state, in.operands[at]);
  const bool outside = in.space != Space::kShared;
  const bool used = !red && in.operands[0].kind != Operand::Kind::kSink;
  if (outside) {
    Access(bases, AccessMode::kUpdate, true, in);
    const bool commutes = in.Has("add") || in.Has("min") || in.Has("max") || in.Has("and") ||
                          in.Has("or") || in.Has("xor");
    if (!commutes || used || IsFloat(in.type())) result_.effects.ordered_atomics = true;
  } else if (used || IsFloat(in.type()) || in.Has("exch") || in.Has("cas")) {
    // Shared memory: the order of a block's warps decides, and may differ from run to run.
    result_.effects.ordered_atomics = true;
  }
  bool grew = false;
  for (size_t i = at + 1; i < in.operands.size(); ++i) {
    grew |= StoreValue(bases, ValueOf(state, in.operands[i]), in);
  }
  if (!red) {
    Bases loaded;
    if (ptx::SizeOf(in.type()) >= 8) loaded.Add(kLoadedBase);
    if (in.space == Space::kShared || bases.Has(kSharedBase)) loaded.Merge(shared_);
    grew |= Define(state, in.operands[0], loaded);
  }
  return grew;
}

bool Analyzer::Call(FunctionState& state, const Instruction& in) {
  const Operand& callee = in.operands[0];
  if (callee.kind != Operand::Kind::kSymbol) {
    Opaque("an indirect call", in);
    return false;
  }
  auto variable = [&](const Operand& operand, FunctionState& s) -> Bases* {
    if (operand.variable != ptx::kNoIndex) return &s.locals[operand.variable];
    if (operand.param != ptx::kNoIndex) {
      return operand.is_return_param ? &s.returns[operand.param] : &s.params[operand.param];
    }
    return nullptr;
  };
  if (callee.name == "vprintf") {
    result_.effects.prints = true;
    return false;
  }
  if (callee.name == "__assertfail") {
    result_.effects.asserts = true;
    return false;
  }
  if (callee.name == "malloc" || callee.name == "free") {
    result_.effects.allocates = true;
    bool grew = false;
    for (const Operand& r : in.call_returns) {
      if (Bases* to = variable(r, state)) grew |= to->Add(kLoadedBase);
    }
    return grew;
  }
  if (callee.name.starts_with("__cudaCDP") || callee.name.starts_with("cudaLaunchDevice")) {
    result_.effects.launches = true;
  }
  auto it = functions_.find(callee.name);
  if (it == functions_.end() || !it->second->has_body) {
    Opaque(absl::StrCat("a call of ", callee.name, ", whose code is not here"), in);
    return false;
  }
  FunctionState& target = StateOf(it->second);
  bool grew = false;
  for (size_t i = 0; i < in.call_args.size() && i < target.params.size(); ++i) {
    const Bases value =
        in.call_args[i].kind == Operand::Kind::kRegister
            ? state.registers[in.call_args[i].reg]
            : (variable(in.call_args[i], state) != nullptr ? *variable(in.call_args[i], state)
                                                           : Bases());
    grew |= target.params[i].Merge(value);
    const ptx::Param& formal = it->second->params[i];
    if (formal.is_register) grew |= target.registers[formal.reg].Merge(value);
  }
  for (size_t i = 0; i < in.call_returns.size() && i < target.returns.size(); ++i) {
    Bases value = target.returns[i];
    const ptx::Param& formal = it->second->returns[i];
    if (formal.is_register) value.Merge(target.registers[formal.reg]);
    if (in.call_returns[i].kind == Operand::Kind::kRegister) {
      grew |= Define(state, in.call_returns[i], value);
    } else if (Bases* to = variable(in.call_returns[i], state)) {
      grew |= to->Merge(value);
    }
  }
  return grew;
}

bool Analyzer::CopyAsync(FunctionState& state, const Instruction& in) {
  if (in.Has("bulk") || in.Has("tensor") || in.Has("mbarrier")) {
    result_.effects.async_or_cluster = true;
    Opaque(in.FullName(), in);
    return false;
  }
  if (in.operands.size() < 2) return false;  // commit_group, wait_group, wait_all
  Access(AddressOf(state, in.operands[1]), AccessMode::kRead, false, in);
  return shared_.Add(kLoadedBase);
}

bool Analyzer::Compute(FunctionState& state, const Instruction& in) {
  const std::string& op = in.opcode;
  Bases bases;
  bool scaled = op == "mul" || op == "mul24" || op == "div" || op == "rem" || op == "shr" ||
                op == "bfe" || op == "popc" || op == "clz" || op == "bfind" || op == "brev";
  bool packs = false;
  for (size_t i = 1; i < in.operands.size(); ++i) {
    const Operand& operand = in.operands[i];
    Bases value = ValueOf(state, operand);
    if (op == "mad" && i < 3) value.Remove(kLoadedBase);
    packs |= operand.kind == Operand::Kind::kVector;
    bases.Merge(value);
  }
  if (op == "shl") {
    scaled = true;
    const Operand& amount = in.operands[2];
    // The high half of a pointer on its way up, as far as one can tell.
    packs = ptx::SizeOf(in.type()) == 8 &&
            (amount.kind != Operand::Kind::kInteger || amount.bits >= 32);
  }
  if (scaled) bases.Remove(kLoadedBase);
  if (op == "cvt" && in.types.size() == 2) {
    if (IsFloat(in.types[0]) || IsFloat(in.types[1])) bases = Bases();
    if (ptx::SizeOf(in.types[0]) < 8 || ptx::SizeOf(in.types[1]) < 8) bases.Remove(kLoadedBase);
  } else if (IsFloat(in.type())) {
    bases = Bases();
  }
  if (packs && ptx::SizeOf(in.type()) == 8) bases.Add(kLoadedBase);
  return Define(state, in.operands[0], bases);
}

bool Analyzer::Step(FunctionState& state, const Instruction& in) {
  for (const Operand& operand : in.operands) CheckSpecial(operand);
  const std::string& op = in.opcode;
  // The parser takes any opcode with any operands.
  const bool memory = op == "ld" || op == "ldu" || op == "st";
  if (in.operands.size() < OperandsOf(op, in) || (memory && ptx::SizeOf(in.type()) == 0)) {
    Opaque(absl::StrCat("the instruction ", in.FullName(), " in an unknown form"), in);
    return false;
  }
  if (memory) return Memory(state, in);
  if (op == "atom" || op == "red") return Atomic(state, in);
  if (op == "call") return Call(state, in);
  if (op == "cp") return CopyAsync(state, in);
  if (op == "ldmatrix") return Define(state, in.operands[0], shared_);
  if (op == "stmatrix") return shared_.Merge(ValueOf(state, in.operands[1]));
  if (op == "wmma") {
    if (in.Has("load")) {
      const bool outside = in.space != Space::kShared;
      const Bases address = AddressOf(state, in.operands[1]);
      if (outside) Access(address, AccessMode::kRead, false, in);
      return false;  // fragments are numbers
    }
    if (in.Has("store")) {
      if (in.space != Space::kShared) {
        Access(AddressOf(state, in.operands[0]), AccessMode::kWrite, false, in);
      }
      return false;
    }
    return false;
  }
  if (op == "tex" || op == "tld4" || op == "txq" || op == "suld" || op == "sust" || op == "sured" ||
      op == "suq") {
    result_.effects.textures = true;
    return false;
  }
  if (op == "trap") {
    result_.effects.traps = true;
    return false;
  }
  if (op == "mapa" || op == "griddepcontrol" || op == "getctarank" ||
      (op == "barrier" && in.Has("cluster"))) {
    result_.effects.async_or_cluster = true;
    Opaque(in.FullName(), in);
    return false;
  }
  if ((op == "membar" || op == "fence") && in.Has("sys")) result_.effects.system_scope = true;
  if (IsHarmless(op)) return false;
  if (op == "alloca" || op == "stacksave" || op == "stackrestore") {
    if (op == "stackrestore") return false;
    Bases bases;
    bases.Add(kLocalBase);
    return Define(state, in.operands[0], bases);
  }
  if (IsCompute(op) && !in.operands.empty()) return Compute(state, in);
  Opaque(absl::StrCat("the instruction ", in.FullName()), in);
  return false;
}

bool Analyzer::Pass(FunctionState& state) {
  bool grew = false;
  for (const Instruction& in : state.function->body) grew |= Step(state, in);
  return grew;
}

KernelAccess Analyzer::Run() {
  uint64_t sizes = 0;  // (the sum may wrap)
  for (const ptx::Param& param : entry_.params) sizes = std::max(sizes, param.size);
  if (std::max(sizes, entry_.param_bytes) > kMaxParamBytes) {
    result_.opaque = true;
    result_.opaque_reason = "more parameters than a launch takes";
    return std::move(result_);
  }
  StateOf(&entry_);
  for (bool again = true; again;) {
    again = false;
    const size_t functions = order_.size();
    for (size_t i = 0; i < order_.size(); ++i) again |= Pass(StateOf(order_[i]));
    again |= order_.size() != functions;
  }
  std::sort(result_.words.begin(), result_.words.end(),
            [](const WordAccess& a, const WordAccess& b) { return a.offset < b.offset; });
  std::erase_if(result_.words, [](const WordAccess& word) {
    return word.mode == AccessMode::kNone && !word.escapes;
  });
  return std::move(result_);
}

KernelAccess AnalyzeKernel(const ptx::Module& module, const ptx::Function& entry) {
  return Analyzer(module, entry).Run();
}

ModuleAccess AnalyzeModule(const ptx::Module& module) {
  ModuleAccess access;
  for (const ptx::Variable& variable : module.variables) {
    if (variable.space == ptx::Space::kShared) continue;
    access.variables.push_back({variable.name, false, !variable.relocations.empty()});
  }
  for (const ptx::Function& function : module.functions) {
    if (!function.is_entry || !function.has_body) continue;
    access.kernels.push_back(AnalyzeKernel(module, function));
    const KernelAccess& kernel = access.kernels.back();
    for (ModuleVariableUse& use : access.variables) {
      // A store through an address that is not followed may hit any variable whose address is
      // about.
      if (kernel.opaque) use.written = true;
      for (const VariableAccess& variable : kernel.variables) {
        if (variable.name != use.name) continue;
        use.written |= Writes(variable.mode) || variable.escapes;
      }
    }
  }
  return access;
}

bool KernelAccess::Replayable() const { return NotReplayableReason().empty(); }

std::string KernelAccess::NotReplayableReason() const {
  if (opaque) return "opaque kernel: " + opaque_reason;
  if (indirect) return absl::StrCat("follows addresses loaded from memory, line ", indirect_line);
  if (unbased) return "uses addresses that come from no parameter";
  if (effects.prints) return "prints";
  if (effects.allocates) return "allocates device memory";
  if (effects.launches) return "launches kernels";
  if (effects.reads_clock) return "reads the clock";
  if (effects.reads_placement) return "depends on where its blocks run";
  if (effects.grid_sync) return "synchronizes the whole grid";
  if (effects.system_scope) return "communicates through memory";
  if (effects.ordered_atomics) return "atomics whose result depends on their order";
  if (effects.textures) return "textures or surfaces";
  if (effects.async_or_cluster) return "bulk copies or clusters";
  for (const VariableAccess& variable : variables) {
    if (Writes(variable.mode)) return "writes module variable " + variable.name;
    if (variable.escapes) return "stores the address of module variable " + variable.name;
  }
  return "";
}

}  // namespace tidepool
