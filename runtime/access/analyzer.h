// The fix-point behind AnalyzeKernel. Internal to runtime/access.
//
// Flow-insensitive: one set of bases a register, for the whole kernel and every function it calls,
// grown until nothing changes. Everything computed from a register keeps its bases, so that an
// address is never attributed to less than what went into it; only a value that was loaded stops
// counting as a pointer when it is scaled, narrowed or used as a float.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ptx/ast.h"
#include "runtime/access/bases.h"
#include "runtime/access/kernel_access.h"

namespace tidepool {

bool IsFloatType(ptx::Type type);

class Analyzer {
 public:
  Analyzer(const ptx::Module& module, const ptx::Function& entry);
  KernelAccess Run();

 private:
  // Sets of one function: its registers and its parameter-space variables.
  struct FunctionState {
    const ptx::Function* function = nullptr;
    std::vector<Bases> registers;
    std::vector<Bases> locals;  // parameter-space variables of the body
    std::vector<Bases> params, returns;
  };

  FunctionState& StateOf(const ptx::Function* function);
  bool Pass(FunctionState& state);
  bool Step(FunctionState& state, const ptx::Instruction& in);
  bool Memory(FunctionState& state, const ptx::Instruction& in);
  bool ParamLoad(FunctionState& state, const ptx::Instruction& in);
  bool Call(FunctionState& state, const ptx::Instruction& in);
  bool Atomic(FunctionState& state, const ptx::Instruction& in);
  bool CopyAsync(FunctionState& state, const ptx::Instruction& in);
  bool Compute(FunctionState& state, const ptx::Instruction& in);

  Bases ValueOf(FunctionState& state, const ptx::Operand& operand);
  Bases AddressOf(FunctionState& state, const ptx::Operand& operand);
  bool Define(FunctionState& state, const ptx::Operand& operand, const Bases& bases);
  // An access of global or generic memory through these bases.
  void Access(const Bases& bases, AccessMode mode, bool atomic, const ptx::Instruction& in);
  bool StoreValue(const Bases& address, const Bases& value, const ptx::Instruction& in);
  void Opaque(const std::string& reason, const ptx::Instruction& in);
  void Effect(bool SideEffects::*effect, const ptx::Instruction& in, const std::string& what = "");
  void CheckSpecial(const ptx::Operand& operand, const ptx::Instruction& in);
  void CheckOrdering(const ptx::Instruction& in);

  uint32_t WordBase(uint64_t offset, uint32_t bytes);
  // The words of [offset, offset + bytes): one, or several of eight bytes.
  void AddWords(uint64_t offset, uint32_t bytes, Bases* bases);
  // All words of so many bytes that a parameter holds, at their natural alignment.
  void AddWordsOf(const ptx::Param& param, uint32_t bytes, Bases* bases);
  // Where pieces of `bases` lie side by side and make up eight bytes: the offsets of those words.
  std::vector<uint32_t> Joined(const std::vector<uint32_t>& words) const;
  // What an eight-byte load finds where these were stored, maybe in pieces.
  Bases Reassembled(const Bases& stored, const ptx::Instruction& in) const;
  uint32_t ParamAddressBase(uint32_t param);
  uint32_t VariableBase(const std::string& name);

  struct BaseInfo {
    enum class Kind { kWord, kVariable, kParamAddress } kind;
    uint32_t index;  // into words, variables, or the entry's params
  };

  const ptx::Function& entry_;
  std::map<const ptx::Function*, FunctionState> states_;
  std::vector<const ptx::Function*> order_;
  absl::flat_hash_map<std::string, const ptx::Function*> functions_;
  absl::flat_hash_map<std::string, const ptx::Variable*> variables_;
  std::vector<BaseInfo> bases_;  // from kFirstBase on
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> word_bases_;
  std::map<uint32_t, uint32_t> param_bases_;
  std::map<std::string, uint32_t> variable_bases_;
  Bases local_, shared_;  // what was stored to local and shared memory
  bool grew_ = false;     // local_ did, where an address was taken
  KernelAccess result_;
};

}  // namespace tidepool
