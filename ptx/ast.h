// The syntax tree of a PTX module (PTX ISA 9.0), as the parser leaves it: names resolved to
// indices, nothing interpreted. Shared by the access analysis and by simgpu; plain data, no thread
// safety needed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidepool::ptx {

enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBF16,
  kBF16x2,
  kTF32,
  kF32,
  kF32x2,
  kF64,
  kU8x4,
  kS8x4,
  kU16x2,
  kS16x2,  // packed integers (video and SIMD instructions)
  kOther,  // fp8, integers below 8 bits, texture handles: `mods` has the name
};

// Bytes that one value of the type takes in memory (kPred, kNone and kOther: 0).
uint32_t SizeOf(Type type);
std::string_view Name(Type type);

enum class Space : uint8_t { kGeneric, kReg, kParam, kConst, kGlobal, kLocal, kShared, kTex };
std::string_view Name(Space space);

inline constexpr uint32_t kNoIndex = 0xffffffffu;

// One operand. Which fields mean something depends on `kind`.
struct Operand {
  enum class Kind : uint8_t {
    kRegister,  // `reg` indexes Function::registers; `negated` for "!%p1"
    kInteger,   // `bits` (two's complement, 64 bit)
    kFloat,    // `bits` holds an IEEE double, or, where `single` is set (0f........), an IEEE float
    kSpecial,  // `name`: "%tid.x", "%laneid", "%clock64" (with its leading %)
    kSymbol,   // `name`: a variable or function named as a value ("mov.u64 %rd1, table"); `offset`
               // added
    kAddress,  // "[reg+offset]" or "[symbol+offset]" or "[imm]": base in `reg` or `name`, or
               // neither (then `offset` is the address). `elements`: what follows within the
               // brackets, "[a, {x, y}]" (textures, surfaces, tensor copies)
    kVector,   // "{a, b, c, d}": `elements`
    kLabel,  // branch target: `bits` = index into Function::body, always a valid one; `name` = the
             // label
    kSink,   // "_"
  };
  Kind kind = Kind::kSink;
  bool negated = false;
  bool single = false;
  uint32_t reg = kNoIndex;
  uint64_t bits = 0;
  int64_t offset = 0;
  uint32_t variable = kNoIndex;  // for symbols and addresses: index of a Function::locals entry,
                                 // if the name is a variable declared in the body
  uint32_t param = kNoIndex;  // or of Function::params (or, for `retval` names, Function::returns)
  bool is_return_param = false;  // `param` indexes Function::returns
  std::string name;              // neither: a module variable or a function, by name
  std::vector<Operand> elements;
  // "%r0|%p0" (shfl, setp): the second destination.
  std::vector<Operand> second;
};

struct Instruction {
  uint32_t line = 0;           // in the PTX text, 1-based
  uint32_t guard = kNoIndex;   // predicate register of "@%p1", or kNoIndex
  bool guard_negated = false;  // "@!%p1"
  std::string opcode;          // the base: "ld", "mad", "bar"
  std::vector<std::string>
      mods;                 // what follows, in order, without dots: {"global","nc","v4","f32"}
  std::vector<Type> types;  // the type modifiers among them, in order (cvt and set have two)
  Space space = Space::kGeneric;  // the first state space among them (kGeneric if none)
  uint8_t vector = 1;             // 2, 4 or 8 for .v2, .v4, .v8
  std::vector<Operand> operands;  // destination first
  // call only: return and argument lists; the callee is operands[0] (kSymbol, or kRegister if
  // indirect) and, for an indirect call, operands[1] names its prototype or target list.
  std::vector<Operand> call_returns;
  std::vector<Operand> call_args;

  bool Has(std::string_view mod) const;
  Type type() const { return types.empty() ? Type::kNone : types.front(); }
  std::string FullName() const;  // "ld.global.nc.v4.f32"
};

// A pointer to `symbol` + `addend` that an initializer stores at byte `offset`.
struct Relocation {
  uint64_t offset = 0;
  std::string symbol;
  int64_t addend = 0;
  bool generic = false;  // written generic(symbol)
  uint8_t size = 8;      // bytes stored
  uint8_t shift = 0;     // they start at this byte of the address: 1 for 0xFF00(symbol). Bytes of
                         // one address that follow each other are joined into one entry
};

struct Variable {
  std::string name;
  Space space = Space::kGlobal;
  Type type = Type::kB8;
  uint32_t align = 1;  // bytes
  uint64_t size = 0;   // bytes of the whole variable; 0 for an extern array without a length
  bool is_extern = false;
  bool is_visible = false;  // .visible or .weak or .common: other modules and the host can name it
  bool is_weak = false;
  bool is_managed = false;    // .attribute(.managed)
  std::vector<uint8_t> init;  // empty (zero) or `size` bytes
  std::vector<Relocation> relocations;
  uint32_t line = 0;
};

struct Param {
  std::string name;
  Type type = Type::kB8;
  uint32_t align = 1;        // bytes
  uint64_t size = 0;         // bytes
  uint64_t offset = 0;       // in the kernel's parameter block (natural alignment, in order)
  bool is_register = false;  // old-style ".reg" formal; then `reg` is its register
  uint32_t reg = kNoIndex;
  bool is_pointer = false;  // .ptr attribute given
  Space pointee = Space::kGeneric;
};

struct Register {
  std::string name;
  Type type = Type::kNone;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool is_extern = false;
  bool is_visible = false;
  bool is_weak = false;
  bool has_body = false;
  std::vector<Param> params;
  std::vector<Param> returns;
  uint64_t param_bytes = 0;         // size of the entry's parameter block
  std::vector<Register> registers;  // every .reg of every scope, shadowed names apart
  std::vector<Variable> locals;     // .local, .shared, .param variables declared in the body
  std::vector<Instruction> body;    // a label at the very end makes a final "ret" be added
  // Targets of ".branchtargets name" / ".calltargets name", by name; prototypes by name.
  struct TargetList {
    std::string name;
    std::vector<std::string> targets;  // label or function names
    std::vector<uint32_t> indices;     // branch targets: body indices
  };
  std::vector<TargetList> target_lists;
  struct Prototype {
    std::string name;
    std::vector<Param> params;
    std::vector<Param> returns;
  };
  std::vector<Prototype> prototypes;
  uint32_t max_threads[3] = {0, 0, 0};  // .maxntid (0: not given)
  uint32_t req_threads[3] = {0, 0, 0};  // .reqntid
  uint32_t line = 0;
};

struct Module {
  uint32_t version_major = 0;
  uint32_t version_minor = 0;
  std::string target;  // "sm_80"
  uint32_t sm = 0;     // 80
  uint32_t address_size = 64;
  std::vector<Variable> variables;  // module scope: .global, .const, .shared
  std::vector<Function> functions;  // declarations too (has_body false) where no body follows

  const Function* FindFunction(std::string_view name) const;
  const Variable* FindVariable(std::string_view name) const;
};

}  // namespace tidepool::ptx
