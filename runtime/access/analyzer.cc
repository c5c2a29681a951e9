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
  static const auto* const opcodes =
      new std::set<std::string>{"bra",       "brx",     "ret",   "exit",       "bar",
                                "barrier",   "membar",  "fence", "nanosleep",  "prefetch",
                                "prefetchu", "pmevent", "brkpt", "setmaxnreg", "applypriority"};
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

bool IsFloatType(Type type) {
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

void Analyzer::AddWords(uint64_t offset, uint32_t bytes, Bases* bases) {
  if (bytes <= 8) {
    bases->Add(WordBase(offset, bytes));
    return;
  }
  for (uint32_t at = 0; at + 8 <= bytes; at += 8) bases->Add(WordBase(offset + at, 8));
}

void Analyzer::AddWordsOf(const ptx::Param& param, uint32_t bytes, Bases* bases) {
  const uint64_t step = std::max(1u, bytes);
  // (Accesses are aligned in the parameter block, which need not be a multiple from the start of
  // the parameter.)
  for (uint64_t at = (param.offset + step - 1) / step * step;
       at + step <= param.offset + param.size; at += step) {
    AddWords(at, static_cast<uint32_t>(step), bases);
  }
}

std::vector<uint32_t> Analyzer::Joined(const std::vector<uint32_t>& words) const {
  std::set<std::pair<uint32_t, uint32_t>> pieces;  // [first, end)
  for (uint32_t index : words) {
    const WordAccess& word = result_.words[index];
    if (word.bytes < 8) pieces.insert({word.offset, word.offset + word.bytes});
  }
  std::vector<uint32_t> joined;
  for (const auto& [first, unused] : pieces) {
    std::set<uint32_t> ends = {first};  // reached from `first` without a gap
    for (auto it = pieces.lower_bound({first, 0}); it != pieces.end() && it->first < first + 8;
         ++it) {
      if (ends.contains(it->first)) ends.insert(it->second);
    }
    if (ends.contains(first + 8) && (joined.empty() || joined.back() != first)) {
      joined.push_back(first);
    }
  }
  return joined;
}

Bases Analyzer::Reassembled(const Bases& stored, const Instruction& in) const {
  Bases bases = stored;
  if (ptx::SizeOf(in.type()) < 8) return bases;
  std::vector<uint32_t> words;
  for (uint32_t base : stored) {
    if (base >= kFirstBase && bases_[base - kFirstBase].kind == BaseInfo::Kind::kWord) {
      words.push_back(bases_[base - kFirstBase].index);
    }
  }
  if (stored.Has(kPieceBase) || !Joined(words).empty()) bases.Add(kLoadedBase);
  return bases;
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

void Analyzer::Effect(bool SideEffects::*effect, const Instruction& in, const std::string& what) {
  if (result_.effects.*effect) return;
  result_.effects.*effect = true;
  result_.sites.push_back({effect, what.empty() ? in.FullName() : what, in.line});
}

void Analyzer::CheckSpecial(const Operand& operand, const Instruction& in) {
  if (operand.kind == Operand::Kind::kSpecial) {
    const std::string& name = operand.name;
    if (name.starts_with("%clock") || name.starts_with("%globaltimer")) {
      Effect(&SideEffects::reads_clock, in, name);
    } else if (name == "%smid" || name == "%warpid" || name == "%nwarpid" || name == "%nsmid" ||
               name == "%gridid" || name.starts_with("%pm")) {
      Effect(&SideEffects::reads_placement, in, name);
    } else if (name.starts_with("%envreg")) {
      Effect(&SideEffects::grid_sync, in, name);
    }
  }
  for (const Operand& element : operand.elements) CheckSpecial(element, in);
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
    if (space == Space::kParam) {  // its address is taken: like local memory from now on
      bases.Add(kLocalBase);
      grew_ |= local_.Merge(state.locals[operand.variable]);
      grew_ |= state.locals[operand.variable].Merge(local_);
    }
    return bases;
  }
  if (operand.param != ptx::kNoIndex) {
    if (state.function == &entry_) {
      bases.Add(ParamAddressBase(operand.param));
      return bases;
    }
    Bases& param =
        operand.is_return_param ? state.returns[operand.param] : state.params[operand.param];
    bases.Add(kLocalBase);
    grew_ |= local_.Merge(param);
    grew_ |= param.Merge(local_);
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
    // A predicate is no address, whatever it came from. (A float register may carry the bits of
    // one.)
    const Type type = state.function->registers[operand.reg].type;
    if (type != Type::kPred) grew = state.registers[operand.reg].Merge(bases);
  }
  for (const Operand& element : operand.elements) grew |= Define(state, element, bases);
  for (const Operand& second : operand.second) grew |= Define(state, second, bases);
  return grew;
}

bool Analyzer::Compute(FunctionState& state, const Instruction& in) {
  const std::string& op = in.opcode;
  Bases bases;
  bool scaled = op == "mul" || op == "mul24" || op == "div" || op == "rem" || op == "shr" ||
                op == "bfe" || op == "popc" || op == "clz" || op == "bfind" || op == "brev";
  const bool wide = ptx::SizeOf(in.type()) == 8;
  // Pieces side by side: what comes out may be a pointer.
  bool packs = op == "bfi";
  for (size_t i = 1; i < in.operands.size(); ++i) {
    const Operand& operand = in.operands[i];
    Bases value = ValueOf(state, operand);
    if (op == "mad" && i < 3 && value.Has(kLoadedBase)) {
      value.Remove(kLoadedBase);
      value.Add(kPieceBase);
    }
    packs |= operand.kind == Operand::Kind::kVector;
    packs |= (op == "mul" || op == "mad") && i < 3 && operand.kind == Operand::Kind::kInteger &&
             operand.bits >= (uint64_t{1} << 32) && operand.bits < (uint64_t{1} << 63);
    bases.Merge(value);
  }
  if (op == "shl") {
    scaled = true;
    const Operand& amount = in.operands[2];
    // The high half of a pointer on its way up, as far as one can tell.
    packs = amount.kind != Operand::Kind::kInteger || amount.bits >= 32;
  }
  if (op == "cvt" && in.types.size() == 2) {
    scaled |= IsFloatType(in.types[0]) || IsFloatType(in.types[1]);
    scaled |= ptx::SizeOf(in.types[0]) < 8 || ptx::SizeOf(in.types[1]) < 8;
  }
  // The float operations that hand on bits.
  const bool moves = op == "mov" || op == "selp" || op == "slct" || op == "abs" || op == "neg" ||
                     op == "copysign" || op == "min" || op == "max" || op == "shfl";
  scaled |= IsFloatType(in.type()) && !moves;
  if (scaled && bases.Has(kLoadedBase)) {
    bases.Remove(kLoadedBase);
    bases.Add(kPieceBase);
  }
  // The result of float arithmetic has no address's bits any more. (Used as an address all the
  // same, it comes from nothing known, and everything stays resident.)
  if (IsFloatType(in.type()) && !moves && op != "cvt") bases = Bases();
  if (packs && wide) bases.Add(kLoadedBase);
  return Define(state, in.operands[0], bases);
}

bool Analyzer::Step(FunctionState& state, const Instruction& in) {
  for (const Operand& operand : in.operands) CheckSpecial(operand, in);
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
  if (op == "ldmatrix") {
    Bases loaded = shared_;
    loaded.Add(kPieceBase);
    return Define(state, in.operands[0], loaded);
  }
  if (op == "stmatrix") return shared_.Merge(ValueOf(state, in.operands[1]));
  if (op == "wmma") {
    if (in.Has("load")) {
      const bool outside = in.space != Space::kShared;
      const Bases address = AddressOf(state, in.operands[1]);
      if (outside) Access(address, AccessMode::kRead, false, in);
      // Fragments are numbers; but their registers hold what was in memory.
      Bases loaded;
      loaded.Add(kPieceBase);
      if (!outside || address.Has(kSharedBase)) loaded.Merge(shared_);
      return Define(state, in.operands[0], loaded);
    }
    if (in.Has("store")) {
      if (in.space != Space::kShared) {
        Access(AddressOf(state, in.operands[0]), AccessMode::kWrite, false, in);
      }
      return StoreValue(AddressOf(state, in.operands[0]), ValueOf(state, in.operands[1]), in);
    }
    return false;
  }
  if (op == "tex" || op == "tld4" || op == "txq" || op == "suld" || op == "sust" || op == "sured" ||
      op == "suq") {
    Effect(&SideEffects::textures, in);
    Bases loaded;
    loaded.Add(kPieceBase);
    return op == "sust" || op == "sured" || in.operands.empty()
               ? false
               : Define(state, in.operands[0], loaded);
  }
  if (op == "trap") {
    Effect(&SideEffects::traps, in);
    return false;
  }
  if (op == "mapa" || op == "griddepcontrol" || op == "getctarank" ||
      (op == "barrier" && in.Has("cluster"))) {
    Effect(&SideEffects::async_or_cluster, in);
    Opaque(in.FullName(), in);
    return false;
  }
  if ((op == "membar" || op == "fence") && in.Has("sys")) {
    Effect(&SideEffects::system_scope, in);
  }
  if (op == "activemask") Effect(&SideEffects::reads_active, in);
  if (op == "createpolicy") return false;  // a cache hint, used by nothing else
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
    again |= order_.size() != functions || grew_;
    grew_ = false;
  }
  // Pieces that are stored may be put together by whoever reads them.
  std::vector<uint32_t> escaping;
  for (uint32_t i = 0; i < result_.words.size(); ++i) {
    if (result_.words[i].escapes) escaping.push_back(i);
  }
  for (uint32_t offset : Joined(escaping)) {
    const uint32_t base = WordBase(offset, 8);
    result_.words[bases_[base - kFirstBase].index].escapes = true;
  }
  std::sort(result_.words.begin(), result_.words.end(),
            [](const WordAccess& a, const WordAccess& b) { return a.offset < b.offset; });
  std::erase_if(result_.words, [](const WordAccess& word) {
    return word.mode == AccessMode::kNone && !word.escapes;
  });
  return std::move(result_);
}

}  // namespace tidepool
