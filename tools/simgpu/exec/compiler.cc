#include "tools/simgpu/exec/compiler.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tools/simgpu/exec/handlers.h"

namespace simgpu {
namespace {

using tidepool::ptx::kNoIndex;
using tidepool::ptx::SizeOf;
using tidepool::ptx::Space;
using tidepool::ptx::Type;
using tidepool::ptx::Variable;

uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

ValueClass ClassOf(Type type) {
  if (type == Type::kPred) return ValueClass::kPredicate;
  return SizeOf(type) == 8 ? ValueClass::k64 : ValueClass::k32;
}

bool IsSigned(Type type) {
  return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 || type == Type::kS64;
}

// A literal's bits as a value of `type`.
uint64_t LiteralBits(const tidepool::ptx::Operand& operand, Type type) {
  uint64_t bits = operand.bits;
  if (operand.kind == tidepool::ptx::Operand::Kind::kInteger) {
    if (type == Type::kF32) {
      const auto value = static_cast<float>(static_cast<int64_t>(bits));
      bits = 0;
      std::memcpy(&bits, &value, sizeof(value));
    } else if (type == Type::kF64) {
      const auto value = static_cast<double>(static_cast<int64_t>(bits));
      std::memcpy(&bits, &value, sizeof(value));
    }
    return bits;
  }
  if (operand.single && SizeOf(type) == 8) {
    float narrow = 0;
    std::memcpy(&narrow, &bits, sizeof(narrow));
    const double wide = static_cast<double>(narrow);
    std::memcpy(&bits, &wide, sizeof(wide));
  } else if (!operand.single && SizeOf(type) == 4) {
    double wide = 0;
    std::memcpy(&wide, &bits, sizeof(wide));
    const auto narrow = static_cast<float>(wide);
    bits = 0;
    std::memcpy(&bits, &narrow, sizeof(narrow));
  }
  return bits;
}

}  // namespace

Compiler::Compiler(const tidepool::ptx::Function& function, const Symbols& symbols, Code* code)
    : function_(function), symbols_(symbols), code_(code) {}

absl::Status Compiler::Unsupported(const PtxInstr& in) const {
  return absl::UnimplementedError(absl::StrCat("PTX line ", in.line, ": ", in.FullName(),
                                               " is not supported, in function ", function_.name));
}

absl::Status Compiler::Layout() {
  for (const tidepool::ptx::Register& reg : function_.registers) {
    if (SizeOf(reg.type) > 8) {
      return absl::UnimplementedError(
          absl::StrCat("register ", reg.name, " of 128 bits in function ", function_.name));
    }
    registers_.push_back(draft_.NewValue(ClassOf(reg.type)));
  }
  uint64_t local = 0, param = 0;
  for (const Variable& variable : function_.locals) {
    const uint64_t align = std::max<uint64_t>(1, variable.align);
    switch (variable.space) {
      case Space::kLocal:
        local = RoundUp(local, align);
        locals_.push_back(local);
        local += variable.size;
        break;
      case Space::kShared:
        if (variable.is_extern || variable.size == 0) {
          locals_.push_back(symbols_.dynamic_shared_offset);
        } else {
          locals_.push_back(symbols_.shared_offsets.at(function_.name + "\n" + variable.name));
        }
        break;
      case Space::kParam:
        param = RoundUp(param, std::max<uint64_t>(8, align));
        locals_.push_back(param);
        param += variable.size;
        break;
      default:
        return absl::UnimplementedError(absl::StrCat("PTX line ", variable.line, ": variable ",
                                                     variable.name, " in function ", function_.name,
                                                     " is in an unknown space"));
    }
  }
  // A kernel's formals are in the launch's parameter block; a device function's in each lane's
  // parameter memory.
  const auto formals = [&](const std::vector<tidepool::ptx::Param>& params,
                           std::vector<uint32_t>* offsets, std::vector<Formal>* out) {
    for (const tidepool::ptx::Param& p : params) {
      if (function_.is_entry) {
        offsets->push_back(static_cast<uint32_t>(p.offset));
        continue;
      }
      param = RoundUp(param, std::max<uint64_t>(8, p.align));
      offsets->push_back(static_cast<uint32_t>(param));
      Formal formal{static_cast<uint32_t>(param), static_cast<uint32_t>(p.size), kNoRef};
      if (p.is_register) {
        formal.reg = registers_[p.reg];
        draft_.values[static_cast<size_t>(formal.reg)].pinned = true;
      }
      out->push_back(formal);
      param += p.size;
    }
  };
  formals(function_.params, &param_offsets_, &code_->formals);
  formals(function_.returns, &return_offsets_, &code_->returns);
  code_->param_bytes = static_cast<uint32_t>(RoundUp(param, 16));
  code_->local_bytes = static_cast<uint32_t>(RoundUp(local, 16));
  return absl::OkStatus();
}

absl::Status Compiler::Compile() {
  code_->name = function_.name;
  if (absl::Status status = Layout(); !status.ok()) return status;
  for (const PtxInstr& in : function_.body) {
    draft_.starts.push_back(static_cast<uint32_t>(draft_.drafts.size()));
    const auto method = Methods().find(in.opcode);
    if (method == Methods().end()) return Unsupported(in);
    if (absl::Status status = (this->*method->second)(in); !status.ok()) return status;
  }
  draft_.starts.push_back(static_cast<uint32_t>(draft_.drafts.size()));
  Draft end;  // control may run off the end of a function
  end.instr.control = Control::kReturn;
  draft_.drafts.push_back(end);
  for (const auto& list : function_.target_lists) draft_.branch_tables.push_back(list.indices);
  FinishCode(&draft_, code_);
  return absl::OkStatus();
}

bool Compiler::Only(const PtxInstr& in, std::initializer_list<std::string_view> allowed) {
  for (const std::string& mod : in.mods) {
    const auto is_type = [&](Type type) { return tidepool::ptx::Name(type) == mod; };
    if (std::any_of(in.types.begin(), in.types.end(), is_type)) continue;
    if (in.space != Space::kGeneric &&
        (mod == tidepool::ptx::Name(in.space) || mod == "shared::cta" || mod == "param::entry" ||
         mod == "param::func")) {
      continue;
    }
    if (in.vector > 1 && (mod == "v2" || mod == "v4" || mod == "v8")) continue;
    if (std::find(allowed.begin(), allowed.end(), mod) == allowed.end()) return false;
  }
  return true;
}

bool Compiler::IsLocalSymbol(const Operand& operand) const {
  return operand.variable != kNoIndex && function_.locals[operand.variable].space == Space::kLocal;
}

absl::StatusOr<uint64_t> Compiler::SymbolValue(const PtxInstr& in, const Operand& operand) const {
  const auto offset = static_cast<uint64_t>(operand.offset);
  if (operand.variable != kNoIndex) return locals_[operand.variable] + offset;
  if (operand.param != kNoIndex) {
    return (operand.is_return_param ? return_offsets_ : param_offsets_)[operand.param] + offset;
  }
  for (const auto* table : {&symbols_.addresses, &symbols_.shared_offsets}) {
    if (auto it = table->find(operand.name); it != table->end()) return it->second + offset;
  }
  if (auto it = symbols_.function_tokens.find(operand.name); it != symbols_.function_tokens.end()) {
    return it->second;
  }
  return absl::InvalidArgumentError(absl::StrCat("PTX line ", in.line, ": unknown symbol ",
                                                 operand.name, " in function ", function_.name));
}

// Where a local variable is depends on who called.
Ref Compiler::LocalAddress(const PtxInstr& in, const Operand& operand, uint32_t lane_bytes) {
  const uint64_t offset = locals_[operand.variable] + static_cast<uint64_t>(operand.offset);
  const ValueClass kind = lane_bytes == 8 ? ValueClass::k64 : ValueClass::k32;
  if (function_.is_entry) return draft_.Constant(kind, offset);
  Draft draft;
  draft.instr.line = in.line;
  draft.instr.imm = static_cast<int64_t>(offset);
  draft.instr.d = draft_.NewValue(kind);
  const HandlerPair* pair = FindHandler(lane_bytes == 8 ? "local.address.64" : "local.address.32");
  draft.instr.full = pair->full;
  draft.instr.masked = pair->masked;
  const Ref result = draft.instr.d;
  draft_.drafts.push_back(std::move(draft));
  return result;
}

absl::StatusOr<Ref> Compiler::Source(const PtxInstr& in, const Operand& operand, Type type) {
  const ValueClass kind = ClassOf(type);
  switch (operand.kind) {
    case Operand::Kind::kRegister: {
      const Ref value = registers_[operand.reg];
      const ValueClass have = draft_.values[static_cast<size_t>(value)].kind;
      if (have == kind) return value;
      if (have != ValueClass::k64 || kind != ValueClass::k32) return Unsupported(in);
      Draft draft;
      draft.instr.line = in.line;
      draft.instr.a = value;
      draft.instr.d = draft_.NewValue(ValueClass::k32);
      const HandlerPair* pair = FindHandler("narrow");
      draft.instr.full = pair->full;
      draft.instr.masked = pair->masked;
      const Ref result = draft.instr.d;
      draft_.drafts.push_back(std::move(draft));
      return result;
    }
    case Operand::Kind::kInteger:
      if (kind == ValueClass::kPredicate) {
        return draft_.Constant(kind, operand.bits != 0 ? kAllLanes : 0);
      }
      return draft_.Constant(kind, LiteralBits(operand, type));
    case Operand::Kind::kFloat:
      if (kind == ValueClass::kPredicate || SizeOf(type) < 4) return Unsupported(in);
      return draft_.Constant(kind, LiteralBits(operand, type));
    case Operand::Kind::kSymbol: {
      if (IsLocalSymbol(operand)) return LocalAddress(in, operand, kind == ValueClass::k64 ? 8 : 4);
      absl::StatusOr<uint64_t> value = SymbolValue(in, operand);
      if (!value.ok()) return value.status();
      return draft_.Constant(kind, *value);
    }
    case Operand::Kind::kSpecial: {
      if (operand.name == "WARP_SZ") return draft_.Constant(kind, kLanes);
      const Ref d = draft_.NewValue(kind);
      absl::Status status = ReadSpecial(in, operand.name, d, kind == ValueClass::k64 ? 8 : 4);
      if (!status.ok()) return status;
      return d;
    }
    default:
      return Unsupported(in);
  }
}

absl::StatusOr<Ref> Compiler::Destination(const PtxInstr& in, const Operand& operand, Type type) {
  const ValueClass kind = ClassOf(type);
  if (operand.kind == Operand::Kind::kSink) return draft_.NewValue(kind);
  if (operand.kind != Operand::Kind::kRegister) return Unsupported(in);
  const Ref value = registers_[operand.reg];
  const ValueClass have = draft_.values[static_cast<size_t>(value)].kind;
  if (have == kind) return value;
  if (have != ValueClass::k64 || kind != ValueClass::k32) return Unsupported(in);
  const Ref narrow = draft_.NewValue(ValueClass::k32);
  extensions_.push_back({narrow, value, IsSigned(type)});
  return narrow;
}

Draft Compiler::Start(const PtxInstr& in) const {
  Draft draft;
  draft.instr.line = in.line;
  if (in.guard != kNoIndex) {
    draft.instr.guard = registers_[in.guard];
    draft.instr.guard_negated = in.guard_negated;
    draft.instr.control = Control::kGuarded;
  }
  return draft;
}

absl::Status Compiler::Put(const PtxInstr& in, const std::string& key, Draft draft) {
  const HandlerPair* pair = FindHandler(key);
  if (pair == nullptr) return Unsupported(in);
  draft.instr.full = pair->full;
  draft.instr.masked = pair->masked;
  draft_.drafts.push_back(std::move(draft));
  for (const Extension& extension : std::exchange(extensions_, {})) {
    Draft widen = Start(in);
    widen.instr.d = extension.to;
    widen.instr.a = extension.from;
    const HandlerPair* widener = FindHandler(extension.is_signed ? "widen.s32" : "widen.u32");
    widen.instr.full = widener->full;
    widen.instr.masked = widener->masked;
    draft_.drafts.push_back(std::move(widen));
  }
  return absl::OkStatus();
}

absl::Status Compiler::Fill(const PtxInstr& in, Draft* draft, Type result,
                            std::initializer_list<Type> sources) {
  if (in.operands.size() != sources.size() + 1) return Unsupported(in);
  Ref* const slots[] = {&draft->instr.a, &draft->instr.b, &draft->instr.c, &draft->instr.f};
  size_t k = 0;
  for (const Type type : sources) {
    absl::StatusOr<Ref> source = Source(in, in.operands[k + 1], type);
    if (!source.ok()) return source.status();
    *slots[k++] = *source;
  }
  absl::StatusOr<Ref> d = Destination(in, in.operands[0], result);
  if (!d.ok()) return d.status();
  draft->instr.d = *d;
  return absl::OkStatus();
}

absl::Status Compiler::Simple(const PtxInstr& in, const std::string& key, Type result,
                              std::initializer_list<Type> sources) {
  Draft draft = Start(in);
  if (absl::Status status = Fill(in, &draft, result, sources); !status.ok()) return status;
  return Put(in, key, std::move(draft));
}

const std::unordered_map<std::string, Compiler::Method>& Compiler::Methods() {
  static const auto* const methods = new std::unordered_map<std::string, Method>{
      {"add", &Compiler::AddSub},
      {"sub", &Compiler::AddSub},
      {"addc", &Compiler::Carry},
      {"subc", &Compiler::Carry},
      {"madc", &Compiler::Carry},
      {"mul", &Compiler::MulMad},
      {"mad", &Compiler::MulMad},
      {"mul24", &Compiler::Mul24},
      {"mad24", &Compiler::Mul24},
      {"div", &Compiler::Div},
      {"rem", &Compiler::DivRem},
      {"min", &Compiler::MinMax},
      {"max", &Compiler::MinMax},
      {"neg", &Compiler::NegAbs},
      {"abs", &Compiler::NegAbs},
      {"sad", &Compiler::Sad},
      {"and", &Compiler::Logic},
      {"or", &Compiler::Logic},
      {"xor", &Compiler::Logic},
      {"not", &Compiler::Logic},
      {"cnot", &Compiler::Logic},
      {"shl", &Compiler::Shift},
      {"shr", &Compiler::Shift},
      {"shf", &Compiler::FunnelShift},
      {"lop3", &Compiler::Lop3},
      {"popc", &Compiler::CountBits},
      {"clz", &Compiler::CountBits},
      {"brev", &Compiler::CountBits},
      {"bfind", &Compiler::CountBits},
      {"bfe", &Compiler::BitField},
      {"bfi", &Compiler::BitField},
      {"fns", &Compiler::BitField},
      {"bmsk", &Compiler::BitField},
      {"szext", &Compiler::BitField},
      {"prmt", &Compiler::Prmt},
      {"dp4a", &Compiler::DotProduct},
      {"dp2a", &Compiler::DotProduct},
      {"vadd2", &Compiler::Video},
      {"vadd4", &Compiler::Video},
      {"vsub2", &Compiler::Video},
      {"vsub4", &Compiler::Video},
      {"vavrg2", &Compiler::Video},
      {"vavrg4", &Compiler::Video},
      {"vabsdiff2", &Compiler::Video},
      {"vabsdiff4", &Compiler::Video},
      {"vmin2", &Compiler::Video},
      {"vmin4", &Compiler::Video},
      {"vmax2", &Compiler::Video},
      {"vmax4", &Compiler::Video},
      {"fma", &Compiler::Fma},
      {"copysign", &Compiler::Copysign},
      {"rcp", &Compiler::RcpSqrt},
      {"sqrt", &Compiler::RcpSqrt},
      {"rsqrt", &Compiler::Approx},
      {"ex2", &Compiler::Approx},
      {"lg2", &Compiler::Approx},
      {"sin", &Compiler::Approx},
      {"cos", &Compiler::Approx},
      {"tanh", &Compiler::Approx},
      {"cvt", &Compiler::Cvt},
      {"setp", &Compiler::Setp},
      {"set", &Compiler::Set},
      {"selp", &Compiler::Selp},
      {"slct", &Compiler::Slct},
      {"testp", &Compiler::Testp},
      {"mov", &Compiler::Mov},
      {"ld", &Compiler::LoadStore},
      {"ldu", &Compiler::LoadStore},
      {"st", &Compiler::LoadStore},
      {"atom", &Compiler::Atomic},
      {"red", &Compiler::Atomic},
      {"cvta", &Compiler::Cvta},
      {"isspacep", &Compiler::Isspacep},
      {"cp", &Compiler::CpAsync},
      {"createpolicy", &Compiler::CreatePolicy},
      {"membar", &Compiler::Nothing},
      {"fence", &Compiler::Nothing},
      {"prefetch", &Compiler::Nothing},
      {"prefetchu", &Compiler::Nothing},
      {"applypriority", &Compiler::Nothing},
      {"discard", &Compiler::Nothing},
      {"pmevent", &Compiler::Nothing},
      {"griddepcontrol", &Compiler::Nothing},
      {"setmaxnreg", &Compiler::Nothing},
      {"nanosleep", &Compiler::Nanosleep},
      {"shfl", &Compiler::Shfl},
      {"vote", &Compiler::Vote},
      {"activemask", &Compiler::WarpWide},
      {"elect", &Compiler::WarpWide},
      {"match", &Compiler::WarpWide},
      {"redux", &Compiler::WarpWide},
      {"bra", &Compiler::Branch},
      {"brx", &Compiler::BranchTable},
      {"ret", &Compiler::Leave},
      {"exit", &Compiler::Leave},
      {"trap", &Compiler::Leave},
      {"brkpt", &Compiler::Leave},
      {"bar", &Compiler::Barrier},
      {"barrier", &Compiler::Barrier},
      {"call", &Compiler::Call},
  };
  return *methods;
}

}  // namespace simgpu
