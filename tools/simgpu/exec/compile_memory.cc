// Loads, stores, atomics and address conversions.
#include "absl/strings/str_cat.h"
#include "tools/simgpu/exec/compiler.h"
#include "tools/simgpu/exec/handlers.h"

namespace simgpu {

using tidepool::ptx::kNoIndex;
using tidepool::ptx::SizeOf;
using Type = tidepool::ptx::Type;
using Space = tidepool::ptx::Space;

namespace {

std::string NameOf(Type type) { return std::string(tidepool::ptx::Name(type)); }

// What stands in memory, as in the handlers' names; "" for what cannot be loaded.
std::string MemoryName(Type type, bool load) {
  switch (SizeOf(type)) {
    case 1:
      return load && type == Type::kS8 ? "s8" : "u8";
    case 2:
      return load && type == Type::kS16 ? "s16" : "u16";
    case 4:
      return "b32";
    case 8:
      return "b64";
    default:
      return "";
  }
}

// Modifiers that change nothing for an execution that has no caches: hints, scopes and orders.
bool IsHint(const std::string& mod) {
  static constexpr std::string_view kWords[] = {
      "weak",    "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "cta",
      "cluster", "gpu",      "sys",     "nc",      "ca",      "cg",      "cs",   "lu",
      "cv",      "wb",       "wt",      "cop",     "noftz",   "unified"};
  for (const std::string_view word : kWords) {
    if (mod == word) return true;
  }
  return mod.rfind("L1::", 0) == 0 || mod.rfind("L2::", 0) == 0;
}

}  // namespace

absl::StatusOr<Compiler::Address> Compiler::ResolveAddress(const PtxInstr& in,
                                                           const Operand& operand, Space space) {
  if (operand.kind != Operand::Kind::kAddress || !operand.elements.empty()) return Unsupported(in);
  Address address;
  switch (space) {
    case Space::kGlobal:
    case Space::kConst:
      address.space = "global";
      break;
    case Space::kGeneric:
      address.space = "generic";
      break;
    case Space::kShared:
      address.space = "shared";
      break;
    case Space::kLocal:
      address.space = "local";
      break;
    case Space::kParam: {
      const bool kernels = function_.is_entry && operand.variable == kNoIndex;
      address.space = kernels ? "kparam" : "param";
      break;
    }
    default:
      return Unsupported(in);
  }
  address.offset = operand.offset;
  if (operand.reg != kNoIndex) {
    address.base = registers_[operand.reg];
    const bool wide = draft_.values[static_cast<size_t>(address.base)].kind == ValueClass::k64;
    if (address.space == "shared") {
      if (wide) address.space = "shared.64";
      return address;
    }
    if (!wide) {  // 32-bit addresses in other spaces
      Draft draft;
      draft.instr.line = in.line;
      draft.instr.a = address.base;
      draft.instr.d = draft_.NewValue(ValueClass::k64);
      address.base = draft.instr.d;
      const HandlerPair* pair = FindHandler("widen.u32");
      draft.instr.full = pair->full;
      draft.instr.masked = pair->masked;
      draft_.drafts.push_back(std::move(draft));
    }
    return address;
  }
  const bool named =
      !operand.name.empty() || operand.variable != kNoIndex || operand.param != kNoIndex;
  if (IsLocalSymbol(operand)) {
    // The symbol's own offset is in the value.
    address.base = LocalAddress(in, operand, 8);
    address.offset = 0;
    if (space == Space::kGeneric) return Unsupported(in);
    return address;
  }
  if (named) {
    absl::StatusOr<uint64_t> value = SymbolValue(in, operand);
    if (!value.ok()) return value.status();
    address.offset = static_cast<int64_t>(*value);
    if (space == Space::kGeneric && operand.variable != kNoIndex) {
      address.offset += static_cast<int64_t>(kSharedWindow);
    } else if (space == Space::kGeneric && symbols_.shared_offsets.count(operand.name) != 0) {
      address.offset += static_cast<int64_t>(kSharedWindow);
    }
  }
  address.uniform_param = address.space == "kparam";
  const bool narrow = address.space == "shared";
  address.base = draft_.Constant(narrow ? ValueClass::k32 : ValueClass::k64, 0);
  return address;
}

absl::Status Compiler::LoadStore(const PtxInstr& in) {
  const bool load = in.opcode != "st";
  bool polls = false;
  for (const std::string& mod : in.mods) {
    if (mod == "shared::cluster" || mod == "async") return Unsupported(in);
    polls = polls || (load && (mod == "volatile" || mod == "relaxed" || mod == "acquire" ||
                               mod == "mmio" || mod == "cv"));
  }
  PtxInstr plain = in;
  std::erase_if(plain.mods, IsHint);
  if (!Only(plain, {})) return Unsupported(in);
  if (in.types.size() != 1 || in.operands.size() < 2) return Unsupported(in);
  const Type type = in.type();
  const Operand& value = in.operands[load ? 0 : 1];
  const std::string memory = MemoryName(type, load);
  if (memory.empty()) return Unsupported(in);
  absl::StatusOr<Address> address = ResolveAddress(in, in.operands[load ? 1 : 0], in.space);
  if (!address.ok()) return address.status();
  const std::vector<Operand> one = {value};
  const std::vector<Operand>& elements =
      value.kind == Operand::Kind::kVector ? value.elements : one;
  if (elements.size() != in.vector) return Unsupported(in);
  Draft draft = Start(in);
  for (const Operand& element : elements) {
    if (load && element.kind == Operand::Kind::kSink) {
      draft.list.push_back(kNoRef);
      continue;
    }
    absl::StatusOr<Ref> ref = load ? Destination(in, element, type) : Source(in, element, type);
    if (!ref.ok()) return ref.status();
    draft.list.push_back(*ref);
  }
  if (draft.list.size() == 1 && draft.list[0] == kNoRef) {
    draft.list[0] = draft_.NewValue(SizeOf(type) == 8 ? ValueClass::k64 : ValueClass::k32);
  }
  draft.list_written = load;
  draft.instr.imm = address->offset;
  draft.instr.a = address->base;
  draft.instr.aux = static_cast<uint16_t>(elements.size());
  const auto bytes = static_cast<uint32_t>(SizeOf(type) * elements.size());
  const bool global = in.space == Space::kGlobal || in.space == Space::kGeneric;
  if (global) (load ? draft.cost.read : draft.cost.written) = bytes;
  draft.polls = polls;
  draft.polls_global = polls && global;
  if (address->uniform_param) {
    if (!load) return Unsupported(in);
    if (address->offset < 0 ||
        static_cast<uint64_t>(address->offset) + bytes > function_.param_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("PTX line ", in.line, ": load beyond the parameters of ", function_.name));
    }
    draft.instr.a = kNoRef;
    return Put(in, absl::StrCat("ld.uniform.", memory), std::move(draft));
  }
  return Put(in,
             absl::StrCat(load ? "ld." : "st.", address->space, ".", elements.size(), ".", memory),
             std::move(draft));
}

absl::Status Compiler::Atomic(const PtxInstr& in) {
  const bool red = in.opcode == "red";
  const size_t base = red ? 0 : 1;
  std::string operation;
  for (const std::string& mod : in.mods) {
    for (const char* name :
         {"add", "min", "max", "and", "or", "xor", "exch", "inc", "dec", "cas"}) {
      if (mod == name) operation = name;
    }
  }
  PtxInstr plain = in;
  std::erase_if(plain.mods, IsHint);
  if (operation.empty() || !Only(plain, {operation}) || in.vector != 1 || in.types.size() != 1 ||
      in.operands.size() < base + (operation == "cas" ? 3 : 2)) {
    return Unsupported(in);
  }
  if (in.space != Space::kShared && in.space != Space::kGlobal && in.space != Space::kGeneric) {
    return Unsupported(in);
  }
  const Type type = in.type();
  absl::StatusOr<Address> address = ResolveAddress(in, in.operands[base], in.space);
  if (!address.ok()) return address.status();
  Draft draft = Start(in);
  draft.instr.a = address->base;
  draft.instr.imm = address->offset;
  absl::StatusOr<Ref> b = Source(in, in.operands[base + 1], type);
  if (!b.ok()) return b.status();
  draft.instr.b = *b;
  if (operation == "cas") {
    absl::StatusOr<Ref> c = Source(in, in.operands[base + 2], type);
    if (!c.ok()) return c.status();
    draft.instr.c = *c;
  }
  if (!red && in.operands[0].kind != Operand::Kind::kSink) {
    absl::StatusOr<Ref> d = Destination(in, in.operands[0], type);
    if (!d.ok()) return d.status();
    draft.instr.d = *d;
  }
  const bool global = in.space != Space::kShared;
  const bool is_float = type == Type::kF32 || type == Type::kF64 || type == Type::kF16 ||
                        type == Type::kF16x2 || type == Type::kBF16 || type == Type::kBF16x2;
  if (global) {
    // What depends on the order of blocks: sums of floats, and everything that is not a fold of
    // a commutative and associative operation.
    draft.ordered = (is_float && operation == "add") || operation == "exch" || operation == "cas" ||
                    operation == "inc" || operation == "dec";
    draft.ordered_if_used = true;
    draft.cost.read = draft.cost.written = SizeOf(type);
  }
  draft.polls = !red;
  draft.polls_global = !red && global;
  draft.cost.atomics = 1;
  if (is_float && operation == "add") draft.cost.flops = 1;
  std::string name = NameOf(type);
  const bool bits = operation == "and" || operation == "or" || operation == "xor" ||
                    operation == "exch" || operation == "cas";
  if (bits) name = absl::StrCat("b", 8 * SizeOf(type));
  // On global memory, sums of floats flush subnormals; in shared memory they do not.
  const bool flush = in.space == Space::kGlobal && type == Type::kF32 && operation == "add";
  return Put(in,
             absl::StrCat("atom.", address->space, ".", operation, flush ? ".ftz" : "", ".", name),
             std::move(draft));
}

absl::Status Compiler::Cvta(const PtxInstr& in) {
  if (!Only(in, {"to"}) || in.operands.size() != 2) return Unsupported(in);
  uint64_t window = 0;
  switch (in.space) {
    case Space::kGlobal:
    case Space::kConst:
      break;
    case Space::kShared:
      window = kSharedWindow;
      break;
    case Space::kLocal:
      window = kLocalWindow;
      break;
    case Space::kParam:
      if (!function_.is_entry) return Unsupported(in);
      window = kParamWindow;
      break;
    default:
      return Unsupported(in);
  }
  const Type type = in.type();
  if (SizeOf(type) != 8) return Unsupported(in);
  if (window == 0) return Simple(in, "mov.64", type, {type});
  Draft draft = Start(in);
  if (absl::Status s = Fill(in, &draft, type, {type}); !s.ok()) return s;
  draft.instr.imm = static_cast<int64_t>(in.Has("to") ? 0 - window : window);
  return Put(in, "add.imm.64", std::move(draft));
}

absl::Status Compiler::Isspacep(const PtxInstr& in) {
  if (!Only(in, {}) || in.operands.size() != 2) return Unsupported(in);
  Draft draft = Start(in);
  if (absl::Status s = Fill(in, &draft, Type::kPred, {Type::kU64}); !s.ok()) return s;
  switch (in.space) {
    case Space::kShared:
      draft.instr.imm = static_cast<int64_t>(kSharedWindow);
      break;
    case Space::kLocal:
      draft.instr.imm = static_cast<int64_t>(kLocalWindow);
      break;
    case Space::kParam:
      draft.instr.imm = static_cast<int64_t>(kParamWindow);
      break;
    case Space::kGlobal:
      break;  // 0: none of the windows
    default:
      return Unsupported(in);
  }
  return Put(in, "isspacep", std::move(draft));
}

// cp.async: copies at once, which is one of the orders that the program must be ready for.
absl::Status Compiler::CpAsync(const PtxInstr& in) {
  if (!in.Has("async") || in.Has("bulk") || in.Has("mbarrier") || in.Has("reduce")) {
    return Unsupported(in);
  }
  if (in.Has("commit_group") || in.Has("wait_group") || in.Has("wait_all")) return Nothing(in);
  PtxInstr plain = in;
  std::erase_if(plain.mods, IsHint);
  if (!Only(plain, {"async", "shared", "shared::cta", "global"}) || in.operands.size() < 3 ||
      in.operands[2].kind != Operand::Kind::kInteger) {
    return Unsupported(in);
  }
  const uint64_t bytes = in.operands[2].bits;
  if (bytes != 4 && bytes != 8 && bytes != 16) return Unsupported(in);
  absl::StatusOr<Address> to = ResolveAddress(in, in.operands[0], Space::kShared),
                          from = ResolveAddress(in, in.operands[1], Space::kGlobal);
  if (!to.ok()) return to.status();
  if (!from.ok()) return from.status();
  if (from->offset != 0) {  // one immediate is not enough for two addresses
    Draft add;
    add.instr.line = in.line;
    add.instr.a = from->base;
    add.instr.imm = from->offset;
    add.instr.d = draft_.NewValue(ValueClass::k64);
    from->base = add.instr.d;
    if (absl::Status s = Put(in, "add.imm.64", std::move(add)); !s.ok()) return s;
  }
  Draft draft = Start(in);
  draft.instr.a = to->base;
  draft.instr.imm = to->offset;
  draft.instr.b = from->base;
  draft.instr.aux = static_cast<uint16_t>(bytes);
  if (in.operands.size() > 3) {
    // The bytes to read (the rest is zero), or a predicate that makes it none.
    const Operand& extra = in.operands[3];
    const bool predicate =
        extra.kind == Operand::Kind::kRegister &&
        draft_.values[static_cast<size_t>(registers_[extra.reg])].kind == ValueClass::kPredicate;
    absl::StatusOr<Ref> ref = Source(in, extra, predicate ? Type::kPred : Type::kU32);
    if (!ref.ok()) return ref.status();
    if (predicate && extra.negated) return Unsupported(in);
    if (!in.Has("L2::cache_hint")) (predicate ? draft.instr.f : draft.instr.c) = *ref;
  }
  draft.cost.read = static_cast<uint32_t>(bytes);
  return Put(in, to->space == "shared" ? "cp.async.32" : "cp.async.64", std::move(draft));
}

// Fences, prefetches, hints: nothing to do for an execution in program order.
absl::Status Compiler::Nothing(const PtxInstr& in) {
  Draft draft = Start(in);
  return Put(in, "nothing", std::move(draft));
}

absl::Status Compiler::Nanosleep(const PtxInstr& in) {
  Draft draft = Start(in);
  draft.polls = draft.polls_global = true;  // somebody is being waited for
  return Put(in, "nothing", std::move(draft));
}

// Cache policies are opaque hints.
absl::Status Compiler::CreatePolicy(const PtxInstr& in) {
  Draft draft = Start(in);
  absl::StatusOr<Ref> d = Destination(in, in.operands[0], Type::kB64);
  if (!d.ok()) return d.status();
  draft.instr.d = *d;
  draft.instr.a = draft_.Constant(ValueClass::k64, 0);
  return Put(in, "mov.64", std::move(draft));
}

}  // namespace simgpu
