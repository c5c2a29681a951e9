#include "absl/strings/str_cat.h"
#include "runtime/access/analyzer.h"

namespace tidepool {

using ptx::Instruction;
using ptx::Operand;

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
    Effect(&SideEffects::prints, in, callee.name);
    // (%s reads what its argument points to.)
    if (!local_.empty()) Access(local_, AccessMode::kRead, false, in);
    return false;
  }
  if (callee.name == "__assertfail") {
    Effect(&SideEffects::asserts, in, callee.name);
    return false;
  }
  if (callee.name == "malloc" || callee.name == "free") {
    Effect(&SideEffects::allocates, in, callee.name);
    bool grew = false;
    for (const Operand& r : in.call_returns) {
      if (Bases* to = variable(r, state)) grew |= to->Add(kLoadedBase);
    }
    return grew;
  }
  if (callee.name.starts_with("__cudaCDP") || callee.name.starts_with("cudaLaunchDevice")) {
    Effect(&SideEffects::launches, in, callee.name);
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

}  // namespace tidepool
