// Compiles one PTX function to the executor's code. Anything that cannot be executed exactly is an
// error that names the opcode in full and its line.
#pragma once

#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "ptx/ast.h"
#include "tools/simgpu/exec/code.h"

namespace simgpu {

// Where module-level names are.
struct Symbols {
  std::unordered_map<std::string, uint64_t> addresses;        // .global and .const variables
  std::unordered_map<std::string, uint64_t> shared_offsets;   // module-scope .shared
  std::unordered_map<std::string, Code*> functions;           // with a body
  std::unordered_map<std::string, uint64_t> function_tokens;  // "addresses" of functions
  uint64_t dynamic_shared_offset = 0;                         // where extern shared arrays start
};

class Compiler {
 public:
  Compiler(const tidepool::ptx::Function& function, const Symbols& symbols, Code* code)
      : function_(function), symbols_(symbols), code_(code) {}
  absl::Status Compile();

 private:
  using PtxInstr = tidepool::ptx::Instruction;
  using Operand = tidepool::ptx::Operand;
  using Type = tidepool::ptx::Type;

  absl::Status Layout();
  absl::Status CompileInstr(const PtxInstr& in);
  absl::Status Arithmetic(const PtxInstr& in, Instr* out);
  absl::Status CompileMov(const PtxInstr& in, Instr out);
  absl::Status CompileCvt(const PtxInstr& in, Instr* out);
  absl::Status CompileSetp(const PtxInstr& in, Instr* out);
  absl::Status CompileMemory(const PtxInstr& in, Instr* out);
  absl::Status CompileAtomic(const PtxInstr& in, Instr* out);
  absl::Status CompileWarp(const PtxInstr& in, Instr* out);
  absl::Status CompileControl(const PtxInstr& in, Instr* out);
  absl::Status CompileCall(const PtxInstr& in, Instr* out);
  absl::Status CompileSpecial(const std::string& name, Instr* out);

  // Operands as lane arrays. `type` says how constants are to stand.
  absl::StatusOr<Ref> Source(const Operand& operand, Type type, const PtxInstr& in);
  absl::StatusOr<Ref> Destination(const Operand& operand, const PtxInstr& in);
  Ref Constant(uint64_t bits, uint32_t lane_bytes);
  Ref Register(uint32_t reg) const { return registers_[reg]; }
  bool IsWide(const Operand& operand) const;
  absl::StatusOr<uint64_t> SymbolValue(const Operand& operand, const PtxInstr& in);
  Ref Temporary(uint32_t lane_bytes);
  const Ref* List(std::vector<Ref> refs);
  absl::Status Use(const std::string& key, const PtxInstr& in, Instr* out);
  absl::Status Unsupported(const PtxInstr& in) const;
  void Emit(const Instr& instr) { code_->instrs.push_back(instr); }

  const tidepool::ptx::Function& function_;
  const Symbols& symbols_;
  Code* code_;
  std::vector<Ref> registers_;
  std::vector<uint64_t> locals_;  // offset of Function::locals in its space
  std::vector<uint32_t> param_offsets_, return_offsets_;
  std::unordered_map<uint64_t, Ref> constants32_, constants64_;
  std::vector<uint32_t> starts_;                       // first Instr of each PTX instruction
  std::vector<std::pair<uint32_t, uint32_t>> fixups_;  // Instr -> PTX index
  uint32_t line_ = 0;
  Ref carry_ = kNoRef;
};

}  // namespace simgpu
