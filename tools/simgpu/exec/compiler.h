// Compiles one PTX function to the executor's code. Anything that cannot be executed exactly is an
// Unimplemented error that names the opcode in full and its line.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ptx/ast.h"
#include "tools/simgpu/exec/draft.h"

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
  // `function` and `symbols` must outlive the compiler; the result goes to `code`.
  Compiler(const tidepool::ptx::Function& function, const Symbols& symbols, Code* code);
  absl::Status Compile();

 private:
  using PtxInstr = tidepool::ptx::Instruction;
  using Operand = tidepool::ptx::Operand;
  using Type = tidepool::ptx::Type;
  using Space = tidepool::ptx::Space;
  using Method = absl::Status (Compiler::*)(const PtxInstr&);
  static const std::unordered_map<std::string, Method>& Methods();

  // compiler.cc: the frame's layout, operands, emission.
  absl::Status Layout();
  absl::Status Unsupported(const PtxInstr& in) const;
  // Whether all modifiers but types, the space and the vector width are among `allowed`.
  static bool Only(const PtxInstr& in, std::initializer_list<std::string_view> allowed);
  // An operand as a value of `type`. Registers that are wider are narrowed.
  absl::StatusOr<Ref> Source(const PtxInstr& in, const Operand& operand, Type type);
  // The value to write for an operand; a register that is wider is extended after the instruction
  // that the next Put emits.
  absl::StatusOr<Ref> Destination(const PtxInstr& in, const Operand& operand, Type type);
  absl::StatusOr<uint64_t> SymbolValue(const PtxInstr& in, const Operand& operand) const;
  bool IsLocalSymbol(const Operand& operand) const;
  Ref LocalAddress(const PtxInstr& in, const Operand& operand, uint32_t lane_bytes);
  Draft Start(const PtxInstr& in) const;
  absl::Status Put(const PtxInstr& in, const std::string& key, Draft draft);
  // d = key(sources ...), all of one type unless `types` says otherwise.
  absl::Status Simple(const PtxInstr& in, const std::string& key, Type result,
                      std::initializer_list<Type> sources);
  absl::Status Fill(const PtxInstr& in, Draft* draft, Type result,
                    std::initializer_list<Type> sources);

  // compile_integer.cc
  absl::Status AddSub(const PtxInstr& in);
  absl::Status MulMad(const PtxInstr& in);
  absl::Status Carry(const PtxInstr& in);
  absl::Status Mul24(const PtxInstr& in);
  absl::Status DivRem(const PtxInstr& in);
  absl::Status IntegerMinMax(const PtxInstr& in);
  absl::Status Sad(const PtxInstr& in);
  absl::Status Logic(const PtxInstr& in);
  absl::Status Shift(const PtxInstr& in);
  absl::Status FunnelShift(const PtxInstr& in);
  absl::Status Lop3(const PtxInstr& in);
  absl::Status CountBits(const PtxInstr& in);
  absl::Status BitField(const PtxInstr& in);
  absl::Status Prmt(const PtxInstr& in);
  absl::Status DotProduct(const PtxInstr& in);
  absl::Status Video(const PtxInstr& in);

  // compile_float.cc
  absl::Status FloatArithmetic(const PtxInstr& in, const std::string& op);
  absl::Status FloatMinMax(const PtxInstr& in);
  absl::Status NegAbs(const PtxInstr& in);
  absl::Status Copysign(const PtxInstr& in);
  absl::Status Fma(const PtxInstr& in);
  absl::Status Div(const PtxInstr& in);
  absl::Status RcpSqrt(const PtxInstr& in);
  absl::Status Approx(const PtxInstr& in);
  absl::Status MinMax(const PtxInstr& in);
  absl::Status Cvt(const PtxInstr& in);

  // compile_select.cc: comparisons, selections, moves.
  absl::Status Compare(const PtxInstr& in, const Operand& a, const Operand& b, Type type, Ref d,
                       Ref e, const Operand* c);
  absl::Status Setp(const PtxInstr& in);
  absl::Status Set(const PtxInstr& in);
  absl::Status Selp(const PtxInstr& in);
  absl::Status Slct(const PtxInstr& in);
  absl::Status Testp(const PtxInstr& in);
  absl::Status Mov(const PtxInstr& in);
  absl::Status Unpack(const PtxInstr& in);
  absl::Status Pack(const PtxInstr& in);
  absl::Status ReadSpecial(const PtxInstr& in, const std::string& name, Ref d, uint32_t lane_bytes);

  // compile_memory.cc
  struct Address {
    std::string space;  // as in the handlers' names
    Ref base = kNoRef;
    int64_t offset = 0;
    bool uniform_param = false;  // of the kernel, at `offset`
  };
  absl::StatusOr<Address> ResolveAddress(const PtxInstr& in, const Operand& operand, Space space);
  absl::Status LoadStore(const PtxInstr& in);
  absl::Status Atomic(const PtxInstr& in);
  absl::Status Cvta(const PtxInstr& in);
  absl::Status Isspacep(const PtxInstr& in);
  absl::Status CpAsync(const PtxInstr& in);
  absl::Status Nothing(const PtxInstr& in);
  absl::Status Nanosleep(const PtxInstr& in);
  absl::Status CreatePolicy(const PtxInstr& in);

  // compile_control.cc
  absl::Status Shfl(const PtxInstr& in);
  absl::Status Vote(const PtxInstr& in);
  absl::Status WarpWide(const PtxInstr& in);
  absl::Status Branch(const PtxInstr& in);
  absl::Status BranchTable(const PtxInstr& in);
  absl::Status Leave(const PtxInstr& in);
  absl::Status Barrier(const PtxInstr& in);
  absl::Status Call(const PtxInstr& in);
  absl::Status Members(const PtxInstr& in, size_t index, Draft* draft);

  const tidepool::ptx::Function& function_;
  const Symbols& symbols_;
  Code* code_;
  DraftCode draft_;
  std::vector<Ref> registers_;    // of Function::registers
  std::vector<uint64_t> locals_;  // of Function::locals: the offset in its space
  std::vector<uint32_t> param_offsets_, return_offsets_;
  Ref carry_ = kNoRef;
  struct Extension {
    Ref from, to;
    bool is_signed;
  };
  std::vector<Extension> extensions_;  // due after the next instruction
};

}  // namespace simgpu
