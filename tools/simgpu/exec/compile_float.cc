// Float instructions and conversions.
#include "absl/strings/str_cat.h"
#include "tools/simgpu/exec/compiler.h"
#include "tools/simgpu/exec/conversions.h"
#include "tools/simgpu/exec/handlers.h"

namespace simgpu {

using tidepool::ptx::SizeOf;
using Type = tidepool::ptx::Type;

namespace {

std::string NameOf(Type type) { return std::string(tidepool::ptx::Name(type)); }

bool IsPair(Type type) { return type == Type::kF16x2 || type == Type::kBF16x2; }
bool IsHalf(Type type) { return type == Type::kF16 || type == Type::kBF16 || IsPair(type); }
bool IsFloat(Type type) { return type == Type::kF32 || type == Type::kF64 || IsHalf(type); }

// ".rz", ".rm", ".rp", or nothing.
template <typename In>
std::string Rounding(const In& in) {
  for (const char* mod : {"rz", "rm", "rp"}) {
    if (in.Has(mod)) return absl::StrCat(".", mod);
  }
  return "";
}

}  // namespace

// add, sub, mul.
absl::Status Compiler::FloatArithmetic(const PtxInstr& in, const std::string& op) {
  const Type type = in.type();
  if (!Only(in, {"rn", "rz", "rm", "rp", "ftz", "sat"}) || in.types.size() != 1) {
    return Unsupported(in);
  }
  Draft draft = Start(in);
  if (absl::Status s = Fill(in, &draft, type, {type, type}); !s.ok()) return s;
  draft.cost.flops = IsPair(type) ? 2 : 1;
  return Put(in,
             absl::StrCat(op, Rounding(in), in.Has("ftz") ? ".ftz" : "",
                          in.Has("sat") ? ".sat" : "", ".", NameOf(type)),
             std::move(draft));
}

absl::Status Compiler::Fma(const PtxInstr& in) {
  const Type type = in.type();
  if (!Only(in, {"rn", "rz", "rm", "rp", "ftz", "sat", "relu"}) || in.types.size() != 1 ||
      !IsFloat(type)) {
    return Unsupported(in);
  }
  Draft draft = Start(in);
  if (absl::Status s = Fill(in, &draft, type, {type, type, type}); !s.ok()) return s;
  draft.cost.flops = IsPair(type) ? 4 : 2;
  return Put(
      in,
      absl::StrCat("fma", Rounding(in), in.Has("ftz") ? ".ftz" : "", in.Has("sat") ? ".sat" : "",
                   in.Has("relu") ? ".relu" : "", ".", NameOf(type)),
      std::move(draft));
}

// .approx and .full allow a few units of error; the exact quotient has none.
absl::Status Compiler::Div(const PtxInstr& in) {
  const Type type = in.type();
  if (!IsFloat(type)) return DivRem(in);
  if (!Only(in, {"rn", "rz", "rm", "rp", "approx", "full", "ftz"}) || IsHalf(type)) {
    return Unsupported(in);
  }
  Draft draft = Start(in);
  if (absl::Status s = Fill(in, &draft, type, {type, type}); !s.ok()) return s;
  draft.cost.flops = 1;
  return Put(in, absl::StrCat("div", Rounding(in), in.Has("ftz") ? ".ftz" : "", ".", NameOf(type)),
             std::move(draft));
}

absl::Status Compiler::RcpSqrt(const PtxInstr& in) {
  const Type type = in.type();
  if (!Only(in, {"rn", "rz", "rm", "rp", "approx", "ftz"}) || IsHalf(type)) return Unsupported(in);
  Draft draft = Start(in);
  if (absl::Status s = Fill(in, &draft, type, {type}); !s.ok()) return s;
  draft.cost.flops = 1;
  const bool rough = type == Type::kF64 && in.Has("approx");
  return Put(in,
             absl::StrCat(in.opcode, Rounding(in), rough ? ".approx" : "",
                          in.Has("ftz") ? ".ftz" : "", ".", NameOf(type)),
             std::move(draft));
}

absl::Status Compiler::Approx(const PtxInstr& in) {
  const Type type = in.type();
  if (!Only(in, {"approx", "ftz"})) return Unsupported(in);
  Draft draft = Start(in);
  if (absl::Status s = Fill(in, &draft, type, {type}); !s.ok()) return s;
  draft.cost.flops = IsPair(type) ? 2 : 1;
  return Put(in, absl::StrCat(in.opcode, in.Has("ftz") ? ".ftz" : "", ".", NameOf(type)),
             std::move(draft));
}

absl::Status Compiler::MinMax(const PtxInstr& in) {
  return IsFloat(in.type()) ? FloatMinMax(in) : IntegerMinMax(in);
}

absl::Status Compiler::FloatMinMax(const PtxInstr& in) {
  const Type type = in.type();
  if (!Only(in, {"ftz", "NaN", "xorsign", "abs"}) || in.Has("xorsign") != in.Has("abs")) {
    return Unsupported(in);
  }
  const bool three = in.operands.size() == 4;
  if (three && in.Has("xorsign")) return Unsupported(in);
  Draft draft = Start(in);
  absl::Status status =
      three ? Fill(in, &draft, type, {type, type, type}) : Fill(in, &draft, type, {type, type});
  if (!status.ok()) return status;
  draft.cost.flops = IsPair(type) ? 2 : 1;
  return Put(in,
             absl::StrCat(in.opcode, three ? "3" : "", in.Has("NaN") ? ".NaN" : "",
                          in.Has("xorsign") ? ".xorsign" : "", in.Has("ftz") ? ".ftz" : "", ".",
                          NameOf(type)),
             std::move(draft));
}

absl::Status Compiler::NegAbs(const PtxInstr& in) {
  const Type type = in.type();
  if (!Only(in, {"ftz"}) || (in.Has("ftz") && !IsFloat(type))) return Unsupported(in);
  return Simple(in, absl::StrCat(in.opcode, in.Has("ftz") ? ".ftz" : "", ".", NameOf(type)), type,
                {type});
}

absl::Status Compiler::Copysign(const PtxInstr& in) {
  const Type type = in.type();
  if (!Only(in, {})) return Unsupported(in);
  return Simple(in, absl::StrCat("copysign.", NameOf(type)), type, {type, type});
}

absl::Status Compiler::Cvt(const PtxInstr& in) {
  if (!Only(in, {"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna", "ftz", "sat", "relu",
                 "satfinite"}) ||
      in.types.size() != 2) {
    return Unsupported(in);
  }
  // A value is read and written as the integers of its size; bit types are unsigned.
  const auto plain = [](Type type) {
    switch (type) {
      case Type::kB8:
        return Type::kU8;
      case Type::kB16:
        return Type::kU16;
      case Type::kB32:
        return Type::kU32;
      case Type::kB64:
        return Type::kU64;
      default:
        return type;
    }
  };
  const Type to = plain(in.types[0]), from = plain(in.types[1]);
  Draft draft = Start(in);
  absl::Status status = IsPair(to) ? Fill(in, &draft, Type::kB32, {from, from})
                                   : Fill(in, &draft, to == Type::kTF32 ? Type::kB32 : to, {from});
  if (!status.ok()) return status;
  std::string round, flags;
  uint16_t aux = 0;
  for (const std::string& mod : in.mods) {
    if (mod.size() >= 2 && mod[0] == 'r' && mod != "relu") {
      round = mod;
      if (mod[1] == 'z') aux |= 1;
      if (mod[1] == 'm') aux |= 2;
      if (mod[1] == 'p') aux |= 3;
      if (mod.size() == 3 && mod[2] == 'i') aux |= kConvertIntegral;
    }
  }
  if (in.Has("ftz")) aux |= kConvertFlush;
  if (in.Has("sat")) aux |= kConvertSaturate;
  if (in.Has("relu")) aux |= kConvertRelu;
  if (in.Has("satfinite")) aux |= kConvertFinite;
  if (to == Type::kTF32) {
    if ((round != "rna" && round != "rn") || in.Has("relu") || in.Has("satfinite")) {
      return Unsupported(in);
    }
    draft.instr.aux = round == "rna";
    return Put(in, absl::StrCat("convert.tf32.", NameOf(from)), std::move(draft));
  }
  if (round == "rna") return Unsupported(in);
  if ((in.Has("relu") || in.Has("satfinite")) && !IsHalf(to)) return Unsupported(in);
  // Saturation to an integer is what float to integer does anyway; .ftz only matters with f32.
  const bool sat_matters = in.Has("sat") && !(IsFloat(from) && !IsFloat(to));
  const std::string fast =
      absl::StrCat("cvt", round.empty() ? "" : ".", round, in.Has("ftz") ? ".ftz" : "",
                   sat_matters ? ".sat" : "", in.Has("relu") ? ".relu" : "",
                   in.Has("satfinite") ? ".satfinite" : "", ".", NameOf(to), ".", NameOf(from));
  if (FindHandler(fast) != nullptr) return Put(in, fast, std::move(draft));
  draft.instr.aux = aux;
  return Put(in, absl::StrCat("convert.", NameOf(to), ".", NameOf(from)), std::move(draft));
}

}  // namespace simgpu
