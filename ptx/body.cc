#include "ptx/body.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ptx/expression.h"
#include "ptx/modifiers.h"
#include "ptx/scopes.h"

namespace tidepool::ptx {
namespace {

bool IsVariableSpace(std::string_view word) {
  return word == "local" || word == "shared" || word == "param" || word == "global" ||
         word == "const";
}

class BodyParser {
 public:
  BodyParser(Lexer& lexer, Limits& limits, Function* function)
      : lexer_(lexer), limits_(limits), function_(*function) {}
  bool Parse();

 private:
  // A branch target to be resolved when all labels are known.
  struct Fixup {
    uint32_t instruction;
    uint32_t operand;
    uint32_t scope;
    uint32_t line;
    std::string name;
  };
  struct ListFixup {
    size_t list;
    uint32_t scope;
    uint32_t line;
  };

  bool DeclareFormals();
  bool Statement();
  bool Directive(std::string_view word, std::string_view label);
  bool Registers();
  bool Targets(std::string_view label, bool branches);
  bool CallPrototype(std::string_view label);
  bool ParseInstruction(std::string_view opcode);
  bool Call(Instruction* in);
  bool OperandList(char close, std::vector<Operand>* out);
  bool ParseOperand(Operand* operand);
  bool Address(Operand* operand);
  bool Name(std::string_view name, Operand* operand);
  bool Resolve();

  Lexer& lexer_;
  Limits& limits_;
  Function& function_;
  Scopes scopes_;
  int depth_ = 0;
  std::vector<Fixup> fixups_;
  std::vector<ListFixup> list_fixups_;
};

bool BodyParser::DeclareFormals() {
  for (size_t i = 0; i < function_.params.size(); ++i) {
    Param& param = function_.params[i];
    if (param.is_register) {
      param.reg = static_cast<uint32_t>(function_.registers.size());
      function_.registers.push_back({param.name, param.type});
      scopes_.Declare(param.name, {Symbol::Kind::kRegister, 1, param.reg});
    } else {
      scopes_.Declare(param.name, {Symbol::Kind::kParam, 1, static_cast<uint32_t>(i)});
    }
  }
  for (size_t i = 0; i < function_.returns.size(); ++i) {
    Param& param = function_.returns[i];
    if (param.is_register) {
      param.reg = static_cast<uint32_t>(function_.registers.size());
      function_.registers.push_back({param.name, param.type});
      scopes_.Declare(param.name, {Symbol::Kind::kRegister, 1, param.reg});
    } else {
      scopes_.Declare(param.name, {Symbol::Kind::kReturn, 1, static_cast<uint32_t>(i)});
    }
  }
  return true;
}

bool BodyParser::Parse() {
  DeclareFormals();
  if (!lexer_.Expect('{')) return false;
  depth_ = 1;
  while (depth_ > 0) {
    if (lexer_.AtEnd()) return lexer_.FailExpected("'}'");
    if (!Statement()) return false;
  }
  return Resolve();
}

bool BodyParser::Statement() {
  if (lexer_.Accept(';')) return true;
  if (lexer_.Accept('{')) {
    scopes_.Open();
    ++depth_;
    return true;
  }
  if (lexer_.Accept('}')) {
    if (--depth_ > 0) scopes_.Close();
    return true;
  }
  if (const std::string_view word = lexer_.AcceptDotWord(); !word.empty()) {
    return Directive(word, {});
  }
  if (lexer_.Peek() == '@') return ParseInstruction({});
  std::string_view name;
  if (!lexer_.ExpectIdentifier("a statement", &name)) return false;
  if (lexer_.Accept(':')) {
    // A label; a list or prototype of that name may follow.
    const std::string_view word = lexer_.PeekDotWord();
    if (word == "branchtargets" || word == "calltargets" || word == "callprototype") {
      lexer_.AcceptDotWord();
      return Directive(word, name);
    }
    if (!scopes_.DeclareLabel(name, static_cast<uint32_t>(function_.body.size()))) {
      return lexer_.Fail("label " + std::string(name) + " is there twice");
    }
    return true;
  }
  return ParseInstruction(name);
}

bool BodyParser::Directive(std::string_view word, std::string_view label) {
  if (word == "reg") return Registers();
  if (word == "loc" || word == "file") {
    lexer_.SkipLine();
    return true;
  }
  if (word == "pragma") {
    std::string_view text;
    do {
      if (!lexer_.ExpectString(&text)) return false;
    } while (lexer_.Accept(','));
    return lexer_.Expect(';');
  }
  if (word == "branchtargets") return Targets(label, true);
  if (word == "calltargets") return Targets(label, false);
  if (word == "callprototype") return CallPrototype(label);
  if (word == "section") {
    lexer_.AcceptDotWord();
    lexer_.AcceptIdentifier();
    return lexer_.Expect('{') && lexer_.SkipBraces();
  }
  Linkage linkage;
  bool managed = false;
  while (word == "extern" || word == "visible" || word == "weak") {
    linkage.is_extern |= word == "extern";
    linkage.is_visible |= word != "extern";
    linkage.is_weak |= word == "weak";
    word = lexer_.AcceptDotWord();
  }
  if (!IsVariableSpace(word)) {
    return lexer_.Fail("unknown directive ." + std::string(word) + " in a function");
  }
  const size_t first = function_.locals.size();
  if (!ParseVariables(lexer_, FindModifier(word).space, linkage, managed, limits_,
                      &function_.locals)) {
    return false;
  }
  for (size_t i = first; i < function_.locals.size(); ++i) {
    if (!scopes_.Declare(function_.locals[i].name,
                         {Symbol::Kind::kLocal, 1, static_cast<uint32_t>(i)})) {
      return lexer_.Fail(function_.locals[i].name + " is declared twice");
    }
  }
  return true;
}

bool BodyParser::Registers() {
  Type type = Type::kNone;
  uint8_t width = 1;
  for (std::string_view word = lexer_.AcceptDotWord(); !word.empty();
       word = lexer_.AcceptDotWord()) {
    const Modifier modifier = FindModifier(word);
    if (modifier.vector != 0) {
      width = modifier.vector;
    } else if (modifier.type != Type::kNone) {
      type = modifier.type;
    } else {
      return lexer_.Fail("unknown register type ." + std::string(word));
    }
  }
  if (type == Type::kNone) return lexer_.FailExpected("a register type");
  do {
    std::string_view name;
    if (!lexer_.ExpectIdentifier("a register name", &name)) return false;
    const auto first = static_cast<uint32_t>(function_.registers.size());
    uint64_t count = width;
    bool ranged = false;
    if (lexer_.Accept('<')) {
      ranged = true;
      if (!lexer_.ExpectUnsigned("a number of registers", &count) || !lexer_.Expect('>')) {
        return false;
      }
    }
    if (count > limits_.registers) return lexer_.Fail("too many registers");
    limits_.registers -= count;
    for (uint64_t i = 0; i < count; ++i) {
      function_.registers.push_back(
          {ranged ? std::string(name) + std::to_string(i) : std::string(name), type});
    }
    const bool declared = ranged ? scopes_.DeclareRange(name, first, static_cast<uint32_t>(count))
                                 : scopes_.Declare(name, {width > 1 ? Symbol::Kind::kVectorRegister
                                                                    : Symbol::Kind::kRegister,
                                                          width, first});
    if (!declared) return lexer_.Fail("register " + std::string(name) + " is declared twice");
  } while (lexer_.Accept(','));
  return lexer_.Expect(';');
}

bool BodyParser::Targets(std::string_view label, bool branches) {
  if (label.empty()) return lexer_.Fail("a list of targets without a name");
  Function::TargetList list;
  list.name = std::string(label);
  do {
    std::string_view target;
    if (!lexer_.ExpectIdentifier("a target", &target)) return false;
    list.targets.emplace_back(target);
  } while (lexer_.Accept(','));
  if (branches) {
    list_fixups_.push_back({function_.target_lists.size(), scopes_.current(), lexer_.line()});
  }
  function_.target_lists.push_back(std::move(list));
  return lexer_.Expect(';');
}

bool BodyParser::CallPrototype(std::string_view label) {
  Function::Prototype prototype;
  prototype.name = std::string(label);
  if (lexer_.Peek() == '(' && !ParseParams(lexer_, &prototype.returns)) return false;
  std::string_view name;
  if (!lexer_.ExpectIdentifier("'_'", &name)) return false;
  if (lexer_.Peek() == '(' && !ParseParams(lexer_, &prototype.params)) return false;
  while (!lexer_.AcceptDotWord().empty()) {  // .noreturn, .abi_preserve n
    while (lexer_.PeekDigit()) {
      uint64_t value = 0;
      if (!lexer_.ExpectUnsigned("a number", &value)) return false;
    }
  }
  function_.prototypes.push_back(std::move(prototype));
  return lexer_.Expect(';');
}

bool BodyParser::ParseInstruction(std::string_view opcode) {
  Instruction in;
  if (opcode.empty()) {
    lexer_.Accept('@');
    in.guard_negated = lexer_.Accept('!');
    std::string_view name;
    if (!lexer_.ExpectIdentifier("a predicate", &name)) return false;
    const Symbol symbol = scopes_.Find(name);
    if (symbol.kind != Symbol::Kind::kRegister) {
      return lexer_.Fail("unknown predicate " + std::string(name));
    }
    in.guard = symbol.index;
    if (!lexer_.ExpectIdentifier("an opcode", &opcode)) return false;
  }
  in.line = lexer_.line();
  in.opcode = std::string(opcode);
  for (std::string_view word = lexer_.AcceptDotWord(); !word.empty();
       word = lexer_.AcceptDotWord()) {
    const Modifier modifier = FindModifier(word);
    if (modifier.type != Type::kNone) in.types.push_back(modifier.type);
    if (modifier.space != Space::kGeneric && in.space == Space::kGeneric) in.space = modifier.space;
    if (modifier.vector != 0) in.vector = modifier.vector;
    in.mods.emplace_back(word);
  }
  if (opcode == "call") {
    if (!Call(&in)) return false;
  } else if (lexer_.Peek() != ';') {
    do {
      Operand operand;
      if (!ParseOperand(&operand)) return false;
      in.operands.push_back(std::move(operand));
    } while (lexer_.Accept(','));
  }
  if (!lexer_.Expect(';')) return false;
  if (opcode == "bra" && !in.operands.empty() &&
      in.operands.back().kind == Operand::Kind::kSymbol) {
    fixups_.push_back({static_cast<uint32_t>(function_.body.size()),
                       static_cast<uint32_t>(in.operands.size() - 1), scopes_.current(), in.line,
                       in.operands.back().name});
  }
  function_.body.push_back(std::move(in));
  return true;
}

bool BodyParser::OperandList(char close, std::vector<Operand>* out) {
  if (lexer_.Accept(close)) return true;
  do {
    Operand operand;
    if (!ParseOperand(&operand)) return false;
    out->push_back(std::move(operand));
  } while (lexer_.Accept(','));
  return lexer_.Expect(close);
}

bool BodyParser::Call(Instruction* in) {
  if (lexer_.Accept('(')) {
    if (!OperandList(')', &in->call_returns) || !lexer_.Expect(',')) return false;
  }
  Operand callee;
  if (!ParseOperand(&callee)) return false;
  in->operands.push_back(std::move(callee));
  while (lexer_.Accept(',')) {
    if (lexer_.Accept('(')) {
      if (!OperandList(')', &in->call_args)) return false;
    } else {
      Operand list;
      if (!ParseOperand(&list)) return false;
      in->operands.push_back(std::move(list));
    }
  }
  return true;
}

bool BodyParser::Name(std::string_view name, Operand* operand) {
  const Symbol symbol = scopes_.Find(name);
  switch (symbol.kind) {
    case Symbol::Kind::kRegister:
      operand->kind = Operand::Kind::kRegister;
      operand->reg = symbol.index;
      return true;
    case Symbol::Kind::kVectorRegister: {
      static constexpr std::string_view kLanes[] = {"x", "y", "z", "w"};
      if (lexer_.Raw() == '.') {
        const std::string_view lane = lexer_.AcceptDotWord();
        for (uint32_t i = 0; i < symbol.count && i < 4; ++i) {
          if (lane != kLanes[i]) continue;
          operand->kind = Operand::Kind::kRegister;
          operand->reg = symbol.index + i;
          return true;
        }
        return lexer_.Fail("no such part of a vector register");
      }
      operand->kind = Operand::Kind::kVector;
      for (uint32_t i = 0; i < symbol.count; ++i) {
        Operand element;
        element.kind = Operand::Kind::kRegister;
        element.reg = symbol.index + i;
        operand->elements.push_back(element);
      }
      return true;
    }
    case Symbol::Kind::kLocal:
      operand->variable = symbol.index;
      break;
    case Symbol::Kind::kParam:
      operand->param = symbol.index;
      break;
    case Symbol::Kind::kReturn:
      operand->param = symbol.index;
      operand->is_return_param = true;
      break;
    case Symbol::Kind::kNone:
      if (name[0] == '%' || name == "WARP_SZ") {
        operand->kind = Operand::Kind::kSpecial;
        operand->name = std::string(name);
        if (lexer_.Raw() == '.') {
          operand->name += '.';
          operand->name += lexer_.AcceptDotWord();
        }
        return true;
      }
      break;
  }
  operand->kind = Operand::Kind::kSymbol;
  operand->name = std::string(name);
  return true;
}

bool BodyParser::ParseOperand(Operand* operand) {
  const char next = lexer_.Peek();
  if (next == '[') return Address(operand);
  if (next == '{') {
    lexer_.Accept('{');
    operand->kind = Operand::Kind::kVector;
    return OperandList('}', &operand->elements);
  }
  if (next == '!') {
    lexer_.Accept('!');
    operand->negated = true;
    std::string_view name;
    if (!lexer_.ExpectIdentifier("a predicate", &name)) return false;
    return Name(name, operand);
  }
  if (const std::string_view name = lexer_.AcceptIdentifier(); !name.empty()) {
    if (name == "_") {
      operand->kind = Operand::Kind::kSink;
    } else if (!Name(name, operand)) {
      return false;
    }
    if (operand->kind == Operand::Kind::kSymbol && (lexer_.Peek() == '+' || lexer_.Peek() == '-')) {
      const bool minus = lexer_.Peek() == '-';
      lexer_.Skip(1);
      int64_t offset = 0;
      if (!ParseInteger(lexer_, &offset)) return false;
      operand->offset = minus ? -offset : offset;
    }
    if (lexer_.Accept('|')) {
      Operand second;
      if (!ParseOperand(&second)) return false;
      operand->second.push_back(std::move(second));
    }
    return true;
  }
  Constant constant;
  if (!ParseConstant(lexer_, &constant)) return false;
  operand->bits = constant.bits;
  operand->kind = constant.is_integer() ? Operand::Kind::kInteger : Operand::Kind::kFloat;
  operand->single = constant.kind == Literal::Kind::kSingle;
  return true;
}

bool BodyParser::Address(Operand* operand) {
  lexer_.Accept('[');
  if (const std::string_view name = lexer_.AcceptIdentifier(); !name.empty()) {
    if (!Name(name, operand)) return false;
    if (operand->kind != Operand::Kind::kRegister && operand->kind != Operand::Kind::kSymbol) {
      return lexer_.Fail(std::string(name) + " cannot be an address");
    }
    if (lexer_.Peek() == '+' || lexer_.Peek() == '-') {
      const bool minus = lexer_.Peek() == '-';
      lexer_.Skip(1);
      int64_t offset = 0;
      if (!ParseInteger(lexer_, &offset)) return false;
      operand->offset = minus ? -offset : offset;
    }
  } else if (!ParseInteger(lexer_, &operand->offset)) {
    return false;
  }
  operand->kind = Operand::Kind::kAddress;
  while (lexer_.Accept(',')) {
    Operand more;
    if (!ParseOperand(&more)) return false;
    operand->elements.push_back(std::move(more));
  }
  return lexer_.Expect(']');
}

bool BodyParser::Resolve() {
  auto index = [&](std::string_view name, uint32_t scope) -> std::optional<uint32_t> {
    return scopes_.FindLabel(name, scope);
  };
  const auto end = static_cast<uint32_t>(function_.body.size());
  bool at_end = false;
  for (const Fixup& fixup : fixups_) {
    const std::optional<uint32_t> target = index(fixup.name, fixup.scope);
    if (!target.has_value()) {
      return lexer_.Fail("unknown label " + fixup.name + " in line " + std::to_string(fixup.line));
    }
    at_end |= *target == end;
    Operand& operand = function_.body[fixup.instruction].operands[fixup.operand];
    operand.kind = Operand::Kind::kLabel;
    operand.bits = *target;
  }
  for (const ListFixup& fixup : list_fixups_) {
    Function::TargetList& list = function_.target_lists[fixup.list];
    for (const std::string& name : list.targets) {
      const std::optional<uint32_t> target = index(name, fixup.scope);
      if (!target.has_value()) {
        return lexer_.Fail("unknown label " + name + " in line " + std::to_string(fixup.line));
      }
      at_end |= *target == end;
      list.indices.push_back(*target);
    }
  }
  if (at_end) {
    // A label behind the last instruction: make its index a valid one.
    Instruction ret;
    ret.opcode = "ret";
    ret.line = lexer_.line();
    function_.body.push_back(ret);
  }
  return true;
}

}  // namespace

bool ParseBody(Lexer& lexer, Limits& limits, Function* function) {
  return BodyParser(lexer, limits, function).Parse();
}

}  // namespace tidepool::ptx
