#include "ptx/ast.h"

#include <algorithm>

namespace tidepool::ptx {

uint32_t SizeOf(Type type) {
  switch (type) {
    case Type::kB8:
    case Type::kU8:
    case Type::kS8:
      return 1;
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
    case Type::kF16:
    case Type::kBF16:
      return 2;
    case Type::kB32:
    case Type::kU32:
    case Type::kS32:
    case Type::kF32:
    case Type::kTF32:
    case Type::kF16x2:
    case Type::kBF16x2:
    case Type::kU8x4:
    case Type::kS8x4:
    case Type::kU16x2:
    case Type::kS16x2:
      return 4;
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64:
    case Type::kF32x2:
      return 8;
    case Type::kB128:
      return 16;
    case Type::kNone:
    case Type::kPred:
    case Type::kOther:
      return 0;
  }
  return 0;
}

std::string_view Name(Type type) {
  constexpr std::string_view kNames[] = {
      "",    "pred",  "b8",  "b16",  "b32",  "b64",   "b128",  "u8",   "u16",    "u32",
      "u64", "s8",    "s16", "s32",  "s64",  "f16",   "f16x2", "bf16", "bf16x2", "tf32",
      "f32", "f32x2", "f64", "u8x4", "s8x4", "u16x2", "s16x2", "other"};
  return kNames[static_cast<size_t>(type)];
}

std::string_view Name(Space space) {
  constexpr std::string_view kNames[] = {"generic", "reg",   "param",  "const",
                                         "global",  "local", "shared", "tex"};
  return kNames[static_cast<size_t>(space)];
}

bool Instruction::Has(std::string_view mod) const {
  return std::find(mods.begin(), mods.end(), mod) != mods.end();
}

std::string Instruction::FullName() const {
  std::string name = opcode;
  for (const std::string& mod : mods) {
    name += '.';
    name += mod;
  }
  return name;
}

const Function* Module::FindFunction(std::string_view name) const {
  const Function* found = nullptr;
  for (const Function& function : functions) {
    if (function.name != name) continue;
    if (function.has_body) return &function;
    found = &function;
  }
  return found;
}

const Variable* Module::FindVariable(std::string_view name) const {
  for (const Variable& variable : variables) {
    if (variable.name == name) return &variable;
  }
  return nullptr;
}

}  // namespace tidepool::ptx
