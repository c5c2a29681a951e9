#include <algorithm>

#include "runtime/access/analyzer.h"

namespace tidepool {

using ptx::Instruction;
using ptx::Operand;
using ptx::Space;

void Analyzer::CheckOrdering(const Instruction& in) {
  const bool outside = in.space == Space::kGlobal || in.space == Space::kGeneric;
  if (!outside) return;
  for (const std::string& mod : in.mods) {
    if (mod == "volatile" || mod == "relaxed" || mod == "acquire" || mod == "release" ||
        mod == "mmio" || mod == "sys") {
      // Spinning on memory that others write: what it reads depends on when it runs.
      if (in.opcode == "atom" || in.opcode == "red") {
        if (mod == "sys") Effect(&SideEffects::system_scope, in);
      } else {
        Effect(&SideEffects::system_scope, in);
      }
    }
  }
}

void Analyzer::Access(const Bases& bases, AccessMode mode, bool atomic, const Instruction& in) {
  bool based = false;
  std::vector<uint32_t> words;
  for (uint32_t base : bases) {
    if (base == kLoadedBase) {
      if (!result_.indirect) result_.indirect_line = in.line;
      result_.indirect = true;
      result_.indirect_mode = result_.indirect_mode | mode;
      based = true;
    } else if (base == kPieceBase) {
      // An index, or a part of something that is a base of its own.
    } else if (base == kLocalBase || base == kSharedBase) {
      based = true;
    } else {
      const BaseInfo& info = bases_[base - kFirstBase];
      if (info.kind == BaseInfo::Kind::kWord) {
        words.push_back(info.index);
        based |= result_.words[info.index].bytes >= 8;
      } else if (info.kind == BaseInfo::Kind::kVariable) {
        VariableAccess& variable = result_.variables[info.index];
        if (Writes(mode) && !Writes(variable.mode)) variable.line = in.line;
        variable.mode = variable.mode | mode;
        based = true;
      } else {
        based = true;
      }
    }
  }
  // A pointer in two registers is the word that its pieces were loaded from.
  if (bases.Has(kLoadedBase)) {
    for (uint32_t offset : Joined(words)) {
      words.push_back(bases_[WordBase(offset, 8) - kFirstBase].index);
    }
  }
  for (uint32_t index : words) {
    WordAccess& word = result_.words[index];
    if (word.mode == AccessMode::kNone) word.line = in.line;
    word.mode = word.mode | mode;
    word.atomics |= atomic;
  }
  if (!based) {
    if (!result_.unbased) result_.unbased_line = in.line;
    result_.unbased = true;
  }
}

bool Analyzer::StoreValue(const Bases& address, const Bases& value, const Instruction& in) {
  bool grew = false;
  if (in.space == Space::kShared) return shared_.Merge(value);
  if (in.space == Space::kLocal) return local_.Merge(value);
  if (address.Has(kSharedBase) || address.Has(kLoadedBase)) grew |= shared_.Merge(value);
  if (address.Has(kLocalBase) || address.Has(kLoadedBase)) grew |= local_.Merge(value);
  const bool global = in.space == Space::kGlobal || address.empty() ||
                      std::any_of(address.begin(), address.end(), [](uint32_t base) {
                        return base != kSharedBase && base != kLocalBase && base != kPieceBase;
                      });
  if (!global) return grew;
  for (uint32_t base : value) {
    if (base < kFirstBase) continue;
    const BaseInfo& info = bases_[base - kFirstBase];
    if (info.kind == BaseInfo::Kind::kWord) result_.words[info.index].escapes = true;
    if (info.kind == BaseInfo::Kind::kVariable) {
      VariableAccess& variable = result_.variables[info.index];
      if (!variable.escapes && !Writes(variable.mode)) variable.line = in.line;
      variable.escapes = true;
    }
    if (info.kind == BaseInfo::Kind::kParamAddress)
      Opaque("the address of a parameter is stored", in);
  }
  return grew;
}

bool Analyzer::ParamLoad(FunctionState& state, const Instruction& in) {
  const Operand& to = in.operands[0];
  const Operand& address = in.operands[1];
  const uint32_t bytes = ptx::SizeOf(in.type());
  if (address.reg == ptx::kNoIndex && address.param != ptx::kNoIndex && !address.is_return_param) {
    if (state.function != &entry_) {
      return Define(state, to, Reassembled(state.params[address.param], in));
    }
    const ptx::Param& param = entry_.params[address.param];
    const uint64_t at = param.offset + static_cast<uint64_t>(address.offset);
    if (to.kind != Operand::Kind::kVector) {
      Bases bases;
      AddWords(at, bytes, &bases);
      return Define(state, to, bases);
    }
    bool grew = false;
    for (size_t i = 0; i < to.elements.size(); ++i) {
      Bases bases;
      AddWords(at + i * bytes, bytes, &bases);
      grew |= Define(state, to.elements[i], bases);
    }
    return grew;
  }
  if (address.reg == ptx::kNoIndex && address.variable != ptx::kNoIndex) {
    return Define(state, to, Reassembled(state.locals[address.variable], in));  // a call's result
  }
  if (address.reg == ptx::kNoIndex && address.param != ptx::kNoIndex) {
    return Define(state, to, Reassembled(state.returns[address.param], in));
  }
  // Through a register: some word of the parameters whose address it may be.
  Bases loaded;
  bool known = false;
  for (uint32_t base : AddressOf(state, address)) {
    if (base == kLocalBase) {  // of a device function, whose address was taken
      loaded.Merge(Reassembled(local_, in));
      known = true;
    }
    if (base < kFirstBase || bases_[base - kFirstBase].kind != BaseInfo::Kind::kParamAddress) {
      continue;
    }
    AddWordsOf(entry_.params[bases_[base - kFirstBase].index], bytes, &loaded);
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
    Effect(&SideEffects::async_or_cluster, in);
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
    loaded.Add(ptx::SizeOf(in.type()) >= 8 ? kLoadedBase : kPieceBase);
    if (param_address) {  // ld through a generic address of a parameter
      for (uint32_t base : bases) {
        if (base < kFirstBase || bases_[base - kFirstBase].kind != BaseInfo::Kind::kParamAddress) {
          continue;
        }
        AddWordsOf(entry_.params[bases_[base - kFirstBase].index], ptx::SizeOf(in.type()), &loaded);
      }
    }
  }
  const bool loaded_pointer = bases.Has(kLoadedBase);
  if (in.space == Space::kShared || (outside && (bases.Has(kSharedBase) || loaded_pointer))) {
    loaded.Merge(Reassembled(shared_, in));
  }
  if (in.space == Space::kLocal || (outside && (bases.Has(kLocalBase) || loaded_pointer))) {
    loaded.Merge(Reassembled(local_, in));
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
  if (in.Has("async")) Opaque(in.FullName(), in);
  const Bases bases = AddressOf(state, in.operands[at]);
  const bool outside = in.space != Space::kShared;
  const bool used = !red && in.operands[0].kind != Operand::Kind::kSink;
  if (outside) {
    Access(bases, AccessMode::kUpdate, true, in);
    const bool commutes = in.Has("add") || in.Has("min") || in.Has("max") || in.Has("and") ||
                          in.Has("or") || in.Has("xor");
    if (!commutes || used || IsFloatType(in.type())) Effect(&SideEffects::ordered_atomics, in);
  } else if (used || IsFloatType(in.type()) || in.Has("exch") || in.Has("cas")) {
    // Shared memory: the order of a block's warps decides, and may differ from run to run.
    Effect(&SideEffects::ordered_atomics, in);
  }
  bool grew = false;
  for (size_t i = at + 1; i < in.operands.size(); ++i) {
    grew |= StoreValue(bases, ValueOf(state, in.operands[i]), in);
  }
  if (!red) {
    Bases loaded;
    loaded.Add(ptx::SizeOf(in.type()) >= 8 ? kLoadedBase : kPieceBase);
    if (in.space == Space::kShared || bases.Has(kSharedBase))
      loaded.Merge(Reassembled(shared_, in));
    grew |= Define(state, in.operands[0], loaded);
  }
  return grew;
}

bool Analyzer::CopyAsync(FunctionState& state, const Instruction& in) {
  if (in.Has("bulk") || in.Has("tensor") || in.Has("mbarrier")) {
    Effect(&SideEffects::async_or_cluster, in);
    Opaque(in.FullName(), in);
    return false;
  }
  if (in.operands.size() < 2) return false;  // commit_group, wait_group, wait_all
  Access(AddressOf(state, in.operands[1]), AccessMode::kRead, false, in);
  return shared_.Add(kLoadedBase);
}

}  // namespace tidepool
