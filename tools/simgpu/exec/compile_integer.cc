// Integer instructions.
#include "absl/strings/str_cat.h"
#include "tools/simgpu/exec/compiler.h"
#include "tools/simgpu/exec/video.h"

namespace simgpu {

using tidepool::ptx::SizeOf;
using Type = tidepool::ptx::Type;

namespace {

std::string NameOf(Type type) { return std::string(tidepool::ptx::Name(type)); }

bool IsFloat(Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kF16x2:
    case Type::kBF16:
    case Type::kBF16x2:
    case Type::kF32:
    case Type::kF64:
      return true;
    default:
      return false;
  }
}

bool IsSignedInteger(Type type) {
  return type == Type::kS16 || type == Type::kS32 || type == Type::kS64;
}

bool IsInteger(Type type) {
  return IsSignedInteger(type) || type == Type::kU16 || type == Type::kU32 || type == Type::kU64;
}

Type Twice(Type type) {
  switch (type) {
    case Type::kU16:
      return Type::kU32;
    case Type::kS16:
      return Type::kS32;
    case Type::kU32:
      return Type::kU64;
    default:
      return Type::kS64;
  }
}

}  // namespace

absl::Status Compiler::AddSub(const PtxInstr& in) {
  const Type type = in.type();
  if (IsFloat(type)) return FloatArithmetic(in, in.opcode);
  if (in.Has("cc")) return Carry(in);
  if (!Only(in, {"sat"}) || (in.Has("sat") && type != Type::kS32)) return Unsupported(in);
  const bool pair = type == Type::kU16x2 || type == Type::kS16x2;
  if (!IsInteger(type) && !(pair && in.opcode == "add")) return Unsupported(in);
  return Simple(in, absl::StrCat(in.opcode, in.Has("sat") ? ".sat." : ".", NameOf(type)), type,
                {type, type});
}

// add.cc, addc, sub.cc, subc, mad.cc, madc: the carry is a predicate of the function's own.
absl::Status Compiler::Carry(const PtxInstr& in) {
  const Type type = in.type();
  const uint32_t size = SizeOf(type);
  if (!Only(in, {"cc", "lo", "hi"}) || (size != 4 && size != 8) || IsFloat(type)) {
    return Unsupported(in);
  }
  if (carry_ == kNoRef) carry_ = draft_.NewValue(ValueClass::kPredicate);
  const bool carry_in = in.opcode == "addc" || in.opcode == "subc" || in.opcode == "madc";
  const bool mad = in.opcode == "mad" || in.opcode == "madc";
  const bool subtract = in.opcode == "sub" || in.opcode == "subc";
  if (mad ? in.Has("lo") == in.Has("hi") : in.Has("lo") || in.Has("hi")) return Unsupported(in);
  Draft draft = Start(in);
  absl::Status status =
      mad ? Fill(in, &draft, type, {type, type, type}) : Fill(in, &draft, type, {type, type});
  if (!status.ok()) return status;
  if (carry_in) draft.instr.f = carry_;
  if (in.Has("cc")) draft.instr.e = carry_;
  const std::string width = size == 8 ? ".64" : ".32";
  if (!mad) return Put(in, absl::StrCat(subtract ? "sub.cc" : "add.cc", width), std::move(draft));
  const char* part = in.Has("lo")            ? "mad.lo.cc"
                     : IsSignedInteger(type) ? "mad.hi.cc.signed"
                                             : "mad.hi.cc";
  return Put(in, absl::StrCat(part, width), std::move(draft));
}

absl::Status Compiler::MulMad(const PtxInstr& in) {
  const Type type = in.type();
  const bool mad = in.opcode == "mad";
  if (IsFloat(type)) return mad ? Fma(in) : FloatArithmetic(in, "mul");
  if (mad && in.Has("cc")) return Carry(in);
  if (!Only(in, {"wide", "lo", "hi", "sat"}) || !IsInteger(type)) return Unsupported(in);
  if (in.Has("wide") + in.Has("lo") + in.Has("hi") != 1) return Unsupported(in);
  if (in.Has("sat") && !(mad && in.Has("hi") && type == Type::kS32)) return Unsupported(in);
  const char* part = in.Has("wide") ? ".wide." : in.Has("hi") ? ".hi." : ".lo.";
  if (in.Has("sat")) part = ".hi.sat.";
  const std::string key = absl::StrCat(in.opcode, part, NameOf(type));
  const Type result = in.Has("wide") ? Twice(type) : type;
  return mad ? Simple(in, key, result, {type, type, result})
             : Simple(in, key, result, {type, type});
}

absl::Status Compiler::Mul24(const PtxInstr& in) {
  const Type type = in.type();
  if (!Only(in, {"lo", "hi", "sat"}) || in.Has("lo") == in.Has("hi")) return Unsupported(in);
  const std::string key = absl::StrCat(in.opcode, in.Has("lo") ? ".lo" : ".hi",
                                       in.Has("sat") ? ".sat." : ".", NameOf(type));
  return in.opcode == "mad24" ? Simple(in, key, type, {type, type, type})
                              : Simple(in, key, type, {type, type});
}

absl::Status Compiler::DivRem(const PtxInstr& in) {
  const Type type = in.type();
  if (!Only(in, {}) || !IsInteger(type)) return Unsupported(in);
  return Simple(in, absl::StrCat(in.opcode, ".", NameOf(type)), type, {type, type});
}

absl::Status Compiler::IntegerMinMax(const PtxInstr& in) {
  const Type type = in.type();
  if (!Only(in, {"relu"})) return Unsupported(in);
  return Simple(in, absl::StrCat(in.opcode, in.Has("relu") ? ".relu." : ".", NameOf(type)), type,
                {type, type});
}

absl::Status Compiler::Sad(const PtxInstr& in) {
  const Type type = in.type();
  if (!Only(in, {}) || !IsInteger(type)) return Unsupported(in);
  return Simple(in, absl::StrCat("sad.", NameOf(type)), type, {type, type, type});
}

absl::Status Compiler::Logic(const PtxInstr& in) {
  const Type type = in.type();
  if (!Only(in, {})) return Unsupported(in);
  const bool one = in.opcode == "not" || in.opcode == "cnot";
  if (type == Type::kPred) {
    Draft draft = Start(in);
    absl::Status status =
        one ? Fill(in, &draft, type, {type}) : Fill(in, &draft, type, {type, type});
    if (!status.ok()) return status;
    draft.instr.imm = (in.operands[1].negated ? 1 : 0) | (!one && in.operands[2].negated ? 2 : 0);
    return Put(in, in.opcode + ".pred", std::move(draft));
  }
  const std::string key = absl::StrCat(in.opcode, ".b", 8 * SizeOf(type));
  return one ? Simple(in, key, type, {type}) : Simple(in, key, type, {type, type});
}

absl::Status Compiler::Shift(const PtxInstr& in) {
  const Type type = in.type();
  if (!Only(in, {}) || IsFloat(type)) return Unsupported(in);
  std::string name = absl::StrCat("b", 8 * SizeOf(type));
  if (in.opcode == "shr" && IsSignedInteger(type)) name = NameOf(type);
  return Simple(in, absl::StrCat(in.opcode, ".", name), type, {type, Type::kU32});
}

absl::Status Compiler::FunnelShift(const PtxInstr& in) {
  if (!Only(in, {"l", "r", "clamp", "wrap"}) || in.type() != Type::kB32 ||
      in.Has("l") == in.Has("r")) {
    return Unsupported(in);
  }
  Draft draft = Start(in);
  const Type type = Type::kB32;
  if (absl::Status s = Fill(in, &draft, type, {type, type, Type::kU32}); !s.ok()) return s;
  draft.instr.aux = in.Has("wrap");
  return Put(in, in.Has("l") ? "shf.l" : "shf.r", std::move(draft));
}

absl::Status Compiler::Lop3(const PtxInstr& in) {
  const Type type = Type::kB32;
  // With a Boolean operation it also gives a predicate: not supported.
  if (!Only(in, {}) || in.type() != type || in.operands.size() != 5 ||
      in.operands[4].kind != Operand::Kind::kInteger || !in.operands[0].second.empty()) {
    return Unsupported(in);
  }
  Draft draft = Start(in);
  if (absl::Status s = Fill(in, &draft, type, {type, type, type, type}); !s.ok()) return s;
  draft.instr.f = kNoRef;
  draft.instr.aux = static_cast<uint16_t>(in.operands[4].bits & 0xff);
  return Put(in, "lop3", std::move(draft));
}

absl::Status Compiler::CountBits(const PtxInstr& in) {
  const Type type = in.type();
  if (!Only(in, {"shiftamt"}) || (in.Has("shiftamt") && in.opcode != "bfind")) {
    return Unsupported(in);
  }
  Draft draft = Start(in);
  const Type result = in.opcode == "brev" ? type : Type::kU32;
  if (absl::Status s = Fill(in, &draft, result, {type}); !s.ok()) return s;
  draft.instr.aux = in.Has("shiftamt");
  return Put(in, absl::StrCat(in.opcode, ".", NameOf(type)), std::move(draft));
}

absl::Status Compiler::BitField(const PtxInstr& in) {
  const Type type = in.type(), word = Type::kU32;
  Draft draft = Start(in);
  absl::Status status;
  if (in.opcode == "bfe") {
    if (!Only(in, {})) return Unsupported(in);
    status = Fill(in, &draft, type, {type, word, word});
  } else if (in.opcode == "bfi") {
    if (!Only(in, {})) return Unsupported(in);
    status = Fill(in, &draft, type, {type, type, word, word});
  } else if (in.opcode == "fns") {
    if (!Only(in, {})) return Unsupported(in);
    status = Fill(in, &draft, type, {type, word, Type::kS32});
  } else {  // bmsk, szext
    if (!Only(in, {"clamp", "wrap"}) || in.Has("clamp") == in.Has("wrap")) return Unsupported(in);
    status = Fill(in, &draft, type, {type, word});
    draft.instr.aux = in.Has("wrap");
  }
  if (!status.ok()) return status;
  return Put(in, absl::StrCat(in.opcode, ".", NameOf(type)), std::move(draft));
}

absl::Status Compiler::Prmt(const PtxInstr& in) {
  static constexpr std::string_view kModes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
  const Type type = Type::kB32;
  if (!Only(in, {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}) || in.type() != type) {
    return Unsupported(in);
  }
  Draft draft = Start(in);
  if (absl::Status s = Fill(in, &draft, type, {type, type, type}); !s.ok()) return s;
  for (uint16_t k = 0; k < 6; ++k) {
    if (in.Has(kModes[k])) draft.instr.aux = static_cast<uint16_t>(k + 1);
  }
  return Put(in, "prmt.b32", std::move(draft));
}

absl::Status Compiler::DotProduct(const PtxInstr& in) {
  const bool two = in.opcode == "dp2a";
  if (!Only(in, {"lo", "hi"}) || in.types.size() != 2 || two != (in.Has("lo") || in.Has("hi"))) {
    return Unsupported(in);
  }
  const Type word = Type::kU32;
  Draft draft = Start(in);
  if (absl::Status s = Fill(in, &draft, word, {word, word, word}); !s.ok()) return s;
  draft.instr.imm = !two ? 0 : in.Has("lo") ? 1 : 2;
  std::string key = "dot.";
  for (const Type type : in.types) {
    if (type != Type::kU32 && type != Type::kS32) return Unsupported(in);
    key += type == Type::kS32 ? 's' : 'u';
  }
  return Put(in, key, std::move(draft));
}

absl::Status Compiler::Video(const PtxInstr& in) {
  if (!Only(in, {"sat", "add"}) || in.types.size() != 3 || in.operands.size() != 4) {
    return Unsupported(in);
  }
  VideoMode mode;
  const std::string base = in.opcode.substr(1, in.opcode.size() - 2);
  static const std::map<std::string, VideoOp> kOps = {
      {"add", VideoOp::kAdd},         {"sub", VideoOp::kSub}, {"avrg", VideoOp::kAverage},
      {"absdiff", VideoOp::kAbsDiff}, {"min", VideoOp::kMin}, {"max", VideoOp::kMax}};
  mode.op = static_cast<uint8_t>(kOps.at(base));
  mode.parts = in.opcode.back() == '2' ? 2 : 4;
  for (const Type type : in.types) {
    if (type != Type::kU32 && type != Type::kS32) return Unsupported(in);
  }
  mode.signed_d = in.types[0] == Type::kS32;
  mode.signed_a = in.types[1] == Type::kS32;
  mode.signed_b = in.types[2] == Type::kS32;
  mode.saturate = in.Has("sat");
  mode.accumulate = in.Has("add");
  const Type word = Type::kU32;
  Draft draft = Start(in);
  if (absl::Status s = Fill(in, &draft, word, {word, word, word}); !s.ok()) return s;
  draft.instr.imm = static_cast<int64_t>(mode.ToBits());
  return Put(in, "video", std::move(draft));
}

}  // namespace simgpu
