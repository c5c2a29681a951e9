// Comparisons, selections and moves.
#include "absl/strings/str_cat.h"
#include "tools/simgpu/exec/compiler.h"
#include "tools/simgpu/exec/handlers.h"
#include "tools/simgpu/exec/special.h"

namespace simgpu {

using tidepool::ptx::SizeOf;
using Type = tidepool::ptx::Type;

namespace {

std::string NameOf(Type type) { return std::string(tidepool::ptx::Name(type)); }

bool IsComparison(const std::string& mod) {
  for (const char* name : {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu",
                           "ltu", "leu", "gtu", "geu", "num", "nan"}) {
    if (mod == name) return true;
  }
  return false;
}

// The handler that compares values of `type`; "" if the two do not go together.
std::string ComparisonKey(std::string comparison, Type type, bool ftz) {
  bool is_unsigned = false;
  for (const auto& [from, to] : {std::pair<const char*, const char*>{"lo", "lt"},
                                 {"ls", "le"},
                                 {"hi", "gt"},
                                 {"hs", "ge"}}) {
    if (comparison == from) {
      comparison = to;
      is_unsigned = true;
    }
  }
  std::string name = NameOf(type);
  if (name[0] == 'b' && name[1] != 'f') name[0] = 'u';
  if (is_unsigned && name[0] != 'u') return "";
  return absl::StrCat("setp.", comparison, ftz ? ".ftz." : ".", name);
}

}  // namespace

// Emits the comparison of a and b into the predicates d and (unless it is none) e.
absl::Status Compiler::Compare(const PtxInstr& in, const Operand& a, const Operand& b, Type type,
                               Ref d, Ref e, const Operand* c) {
  std::string comparison;
  uint16_t combine = 0;
  for (const std::string& mod : in.mods) {
    if (IsComparison(mod)) {
      if (!comparison.empty()) return Unsupported(in);
      comparison = mod;
    } else if (mod == "and" || mod == "or" || mod == "xor") {
      combine = mod == "and" ? 1 : mod == "or" ? 2 : 3;
    } else if (mod != "ftz" && NameOf(in.types[0]) != mod && NameOf(in.types.back()) != mod) {
      return Unsupported(in);
    }
  }
  if ((combine != 0) != (c != nullptr) || comparison.empty()) return Unsupported(in);
  const std::string key = ComparisonKey(comparison, type, in.Has("ftz"));
  Draft draft = Start(in);
  absl::StatusOr<Ref> x = Source(in, a, type), y = Source(in, b, type);
  if (!x.ok()) return x.status();
  if (!y.ok()) return y.status();
  draft.instr.a = *x;
  draft.instr.b = *y;
  draft.instr.d = d;
  draft.instr.e = e;
  draft.instr.aux = combine;
  if (c != nullptr) {
    absl::StatusOr<Ref> z = Source(in, *c, Type::kPred);
    if (!z.ok()) return z.status();
    draft.instr.c = *z;
    draft.instr.imm = c->negated;
  }
  return Put(in, key, std::move(draft));
}

absl::Status Compiler::Setp(const PtxInstr& in) {
  if (in.types.size() != 1 || in.operands.size() < 3 || in.operands.size() > 4) {
    return Unsupported(in);
  }
  const Operand* c = in.operands.size() == 4 ? &in.operands[3] : nullptr;
  absl::StatusOr<Ref> d = Destination(in, in.operands[0], Type::kPred);
  if (!d.ok()) return d.status();
  Ref e = kNoRef;
  if (!in.operands[0].second.empty()) {
    absl::StatusOr<Ref> second = Destination(in, in.operands[0].second[0], Type::kPred);
    if (!second.ok()) return second.status();
    e = *second;
  }
  const Type type = in.type();
  if (type != Type::kF16x2 && type != Type::kBF16x2) {
    return Compare(in, in.operands[1], in.operands[2], type, *d, e, c);
  }
  // Pairs: the low halves decide on the first predicate, the high ones on the second.
  const Type half = type == Type::kF16x2 ? Type::kF16 : Type::kBF16;
  Operand sides[2][2];
  for (int operand = 0; operand < 2; ++operand) {
    absl::StatusOr<Ref> whole =
        Source(in, in.operands[static_cast<size_t>(operand) + 1], Type::kB32);
    if (!whole.ok()) return whole.status();
    for (int part = 0; part < 2; ++part) {
      Draft draft;
      draft.instr.line = in.line;
      draft.instr.a = *whole;
      draft.instr.aux = static_cast<uint16_t>(16 * part);
      draft.instr.imm = 16;
      draft.instr.d = draft_.NewValue(ValueClass::k32);
      registers_.push_back(draft.instr.d);  // a register of our own, to be named by an operand
      sides[operand][part].kind = Operand::Kind::kRegister;
      sides[operand][part].reg = static_cast<uint32_t>(registers_.size() - 1);
      if (absl::Status s = Put(in, "extract.32", std::move(draft)); !s.ok()) return s;
    }
  }
  if (e == kNoRef) return Unsupported(in);
  if (absl::Status s = Compare(in, sides[0][0], sides[1][0], half, *d, kNoRef, c); !s.ok()) {
    return s;
  }
  return Compare(in, sides[0][1], sides[1][1], half, e, kNoRef, c);
}

// set: the comparison's result as a number: 1.0 for a float, all ones for an integer.
absl::Status Compiler::Set(const PtxInstr& in) {
  if (in.types.size() != 2 || in.operands.size() < 3 || in.operands.size() > 4) {
    return Unsupported(in);
  }
  const Type to = in.types[0], type = in.types[1];
  if (SizeOf(to) == 8 || type == Type::kF16x2 || type == Type::kBF16x2) return Unsupported(in);
  const Operand* c = in.operands.size() == 4 ? &in.operands[3] : nullptr;
  const Ref p = draft_.NewValue(ValueClass::kPredicate);
  if (absl::Status s = Compare(in, in.operands[1], in.operands[2], type, p, kNoRef, c); !s.ok()) {
    return s;
  }
  const uint64_t yes = to == Type::kF32    ? 0x3f800000
                       : to == Type::kF16  ? 0x3c00
                       : to == Type::kBF16 ? 0x3f80
                                           : 0xffffffff;
  Draft draft = Start(in);
  draft.instr.a = draft_.Constant(ValueClass::k32, yes);
  draft.instr.b = draft_.Constant(ValueClass::k32, 0);
  draft.instr.c = p;
  absl::StatusOr<Ref> d = Destination(in, in.operands[0], to);
  if (!d.ok()) return d.status();
  draft.instr.d = *d;
  return Put(in, "selp.32", std::move(draft));
}

absl::Status Compiler::Selp(const PtxInstr& in) {
  const Type type = in.type();
  if (!Only(in, {}) || SizeOf(type) == 0 || SizeOf(type) > 8) return Unsupported(in);
  Draft draft = Start(in);
  if (absl::Status s = Fill(in, &draft, type, {type, type, Type::kPred}); !s.ok()) return s;
  draft.instr.imm = in.operands[3].negated;
  return Put(in, SizeOf(type) == 8 ? "selp.64" : "selp.32", std::move(draft));
}

absl::Status Compiler::Slct(const PtxInstr& in) {
  if (!Only(in, {"ftz"}) || in.types.size() != 2) return Unsupported(in);
  const Type type = in.types[0], by = in.types[1];
  if (SizeOf(type) == 0 || SizeOf(type) > 8) return Unsupported(in);
  Draft draft = Start(in);
  if (absl::Status s = Fill(in, &draft, type, {type, type, by}); !s.ok()) return s;
  draft.instr.aux = in.Has("ftz");
  return Put(in, absl::StrCat("slct.", NameOf(by), SizeOf(type) == 8 ? ".64" : ".32"),
             std::move(draft));
}

absl::Status Compiler::Testp(const PtxInstr& in) {
  static constexpr std::string_view kKinds[] = {"finite",     "infinite", "number",
                                                "notanumber", "normal",   "subnormal"};
  if (!Only(in, {"finite", "infinite", "number", "notanumber", "normal", "subnormal"})) {
    return Unsupported(in);
  }
  Draft draft = Start(in);
  if (absl::Status s = Fill(in, &draft, Type::kPred, {in.type()}); !s.ok()) return s;
  for (uint16_t k = 0; k < 6; ++k) {
    if (in.Has(kKinds[k])) draft.instr.aux = k;
  }
  return Put(in, "testp." + NameOf(in.type()), std::move(draft));
}

absl::Status Compiler::ReadSpecial(const PtxInstr& in, const std::string& name, Ref d,
                                   uint32_t lane_bytes) {
  if (name == "%is_explicit_cluster") return Unsupported(in);
  const Special which = FindSpecial(name);
  if (which == Special::kNone) {
    return absl::UnimplementedError(absl::StrCat("PTX line ", in.line, ": special register ", name,
                                                 " is not supported, in function ",
                                                 function_.name));
  }
  Draft draft = Start(in);
  draft.instr.d = d;
  draft.instr.aux = static_cast<uint16_t>(which);
  if (which == Special::kEnvregGridLow || which == Special::kEnvregGridHigh) {
    code_->grid_sync = true;
  }
  // Clocks count what was executed before them: they end the run of plain instructions.
  if (which >= Special::kClock && which <= Special::kGlobalTimerHi) {
    draft.instr.control = Control::kGuarded;
    draft.polls = true;
  }
  return Put(in, lane_bytes == 8 ? "special.64" : "special.32", std::move(draft));
}

// mov.b64 {a, b}, x and the like.
absl::Status Compiler::Unpack(const PtxInstr& in) {
  const std::vector<Operand>& parts = in.operands[0].elements;
  const uint32_t size = SizeOf(in.type());
  const auto part_bits = static_cast<uint32_t>(8 * size / parts.size());
  if (size != 4 && size != 8) return Unsupported(in);
  if (part_bits != 8 && part_bits != 16 && part_bits != 32) return Unsupported(in);
  absl::StatusOr<Ref> a = Source(in, in.operands[1], size == 8 ? Type::kB64 : Type::kB32);
  if (!a.ok()) return a.status();
  for (size_t k = 0; k < parts.size(); ++k) {
    if (parts[k].kind == Operand::Kind::kSink) continue;
    Draft draft = Start(in);
    draft.instr.a = *a;
    draft.instr.aux = static_cast<uint16_t>(k * part_bits);
    draft.instr.imm = part_bits;
    absl::StatusOr<Ref> d = Destination(in, parts[k], Type::kB32);
    if (!d.ok()) return d.status();
    draft.instr.d = *d;
    absl::Status s = Put(in, size == 8 ? "extract.64" : "extract.32", std::move(draft));
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status Compiler::Pack(const PtxInstr& in) {
  const std::vector<Operand>& parts = in.operands[1].elements;
  const uint32_t size = SizeOf(in.type());
  const auto part_bits = static_cast<uint32_t>(8 * size / parts.size());
  if (size != 4 && size != 8) return Unsupported(in);
  if (part_bits != 8 && part_bits != 16 && part_bits != 32) return Unsupported(in);
  const Type whole = size == 8 ? Type::kB64 : Type::kB32;
  const ValueClass kind = size == 8 ? ValueClass::k64 : ValueClass::k32;
  std::vector<Ref> values;
  for (const Operand& part : parts) {
    absl::StatusOr<Ref> value = Source(in, part, part_bits == 32 ? Type::kB32 : Type::kB16);
    if (!value.ok()) return value.status();
    values.push_back(*value);
  }
  absl::StatusOr<Ref> d = Destination(in, in.operands[0], whole);
  if (!d.ok()) return d.status();
  if (values.size() == 2) {
    Draft draft = Start(in);
    draft.instr.a = values[0];
    draft.instr.b = values[1];
    draft.instr.d = *d;
    return Put(in, size == 8 ? "pack.64" : "pack.32", std::move(draft));
  }
  Ref so_far = draft_.Constant(kind, 0);
  for (size_t k = 0; k < values.size(); ++k) {
    const bool last = k + 1 == values.size();
    Draft draft = Start(in);
    if (!last) draft.instr.guard = kNoRef;
    if (!last) draft.instr.control = Control::kPlain;
    draft.instr.a = values[k];
    draft.instr.b = so_far;
    draft.instr.aux = static_cast<uint16_t>(k * part_bits);
    draft.instr.imm = part_bits;
    draft.instr.d = last ? *d : draft_.NewValue(kind);
    so_far = draft.instr.d;
    absl::Status s = Put(in, size == 8 ? "insert.64" : "insert.32", std::move(draft));
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status Compiler::Mov(const PtxInstr& in) {
  if (!Only(in, {}) || in.operands.size() != 2) return Unsupported(in);
  const Operand& to = in.operands[0];
  const Operand& from = in.operands[1];
  const Type type = in.type();
  if (to.kind == Operand::Kind::kVector) return Unpack(in);
  if (from.kind == Operand::Kind::kVector) return Pack(in);
  const uint32_t size = SizeOf(type);
  if (type == Type::kPred) {
    Draft draft = Start(in);
    if (absl::Status s = Fill(in, &draft, type, {type}); !s.ok()) return s;
    draft.instr.imm = from.negated;
    return Put(in, "mov.pred", std::move(draft));
  }
  if (size == 0 || size > 8) return Unsupported(in);
  if (from.kind == Operand::Kind::kSpecial && from.name != "WARP_SZ") {
    absl::StatusOr<Ref> d = Destination(in, to, type);
    if (!d.ok()) return d.status();
    return ReadSpecial(in, from.name, *d, size == 8 ? 8 : 4);
  }
  // The name of a kernel's own .param array, or of a device function's: its address.
  return Simple(in, size == 8 ? "mov.64" : "mov.32", type, {type});
}

}  // namespace simgpu
