#include "ptx/declarations.h"

#include <algorithm>
#include <string>

#include "ptx/expression.h"
#include "ptx/initializer.h"
#include "ptx/modifiers.h"

namespace tidepool::ptx {
namespace {

bool ValidAlignment(uint64_t align) { return align != 0 && (align & (align - 1)) == 0; }

}  // namespace

bool ParseAttributes(Lexer& lexer, bool* managed) {
  if (!lexer.Expect('(')) return false;
  int depth = 1;
  while (depth > 0) {
    if (lexer.AtEnd()) return lexer.FailExpected("')'");
    if (lexer.Accept('(')) {
      ++depth;
    } else if (lexer.Accept(')')) {
      --depth;
    } else if (const std::string_view word = lexer.AcceptDotWord(); !word.empty()) {
      *managed = *managed || word == "managed";
    } else {
      lexer.Skip(1);
    }
  }
  return true;
}

bool ParseVariables(Lexer& lexer, Space space, const Linkage& linkage, bool managed, Limits& limits,
                    std::vector<Variable>* out) {
  Variable base;
  base.space = space;
  base.is_extern = linkage.is_extern;
  base.is_visible = linkage.is_visible;
  base.is_weak = linkage.is_weak;
  base.is_managed = managed;
  uint64_t align = 0, width = 1;
  bool typed = false;
  for (std::string_view word = lexer.AcceptDotWord(); !word.empty(); word = lexer.AcceptDotWord()) {
    const Modifier modifier = FindModifier(word);
    if (word == "align") {
      if (!lexer.ExpectUnsigned("an alignment", &align)) return false;
      if (!ValidAlignment(align)) return lexer.Fail("alignment is not a power of two");
    } else if (word == "attribute") {
      if (!ParseAttributes(lexer, &base.is_managed)) return false;
    } else if (modifier.vector != 0) {
      width = modifier.vector;
    } else if (modifier.type != Type::kNone) {
      base.type = modifier.type;
      typed = true;
    } else if (word == "texref" || word == "samplerref" || word == "surfref") {
      base.type = Type::kB64;
      typed = true;
    } else {
      return lexer.Fail("unknown attribute ." + std::string(word) + " of a variable");
    }
  }
  if (!typed) return lexer.FailExpected("a type");
  do {
    Variable variable = base;
    std::string_view name;
    if (!lexer.ExpectIdentifier("a variable name", &name)) return false;
    variable.name = std::string(name);
    variable.line = lexer.line();
    std::vector<uint64_t> lengths;
    bool open = false;
    while (lexer.Accept('[')) {
      uint64_t length = 0;
      if (lexer.Peek() == ']') {
        if (!lengths.empty()) return lexer.FailExpected("an array length");
        open = true;
      } else if (!ParseLength(lexer, &length)) {
        return false;
      }
      if (!lexer.Expect(']')) return false;
      lengths.push_back(length);
    }
    if (width > 1) lengths.push_back(width);
    const uint64_t element = SizeOf(variable.type);
    variable.align = static_cast<uint32_t>(
        align != 0 ? align : std::max<uint64_t>(1, element * (width > 1 ? width : 1)));
    if (lexer.Accept('=')) {
      if (!ParseInitializer(lexer, lengths, &limits.initializer_bytes, &variable)) return false;
    } else if (open) {
      variable.size = 0;
    } else if (!ArrayBytes(lengths, element, &variable.size)) {
      return lexer.Fail("array is larger than an address can reach");
    }
    out->push_back(std::move(variable));
  } while (lexer.Accept(','));
  return lexer.Expect(';');
}

bool ParseParams(Lexer& lexer, std::vector<Param>* params) {
  if (!lexer.Expect('(')) return false;
  if (lexer.Accept(')')) return true;
  uint64_t offset = ParamBytes(*params);
  do {
    Param param;
    const std::string_view space = lexer.AcceptDotWord();
    if (space == "reg") {
      param.is_register = true;
    } else if (space != "param") {
      return lexer.FailExpected("'.param' or '.reg'");
    }
    uint64_t align = 0;
    bool typed = false;
    for (std::string_view word = lexer.AcceptDotWord(); !word.empty();
         word = lexer.AcceptDotWord()) {
      const Modifier modifier = FindModifier(word);
      if (word == "align") {
        uint64_t value = 0;
        if (!lexer.ExpectUnsigned("an alignment", &value)) return false;
        if (!ValidAlignment(value)) return lexer.Fail("alignment is not a power of two");
        if (!param.is_pointer) align = value;  // behind .ptr it is the pointee's
      } else if (word == "ptr") {
        param.is_pointer = true;
      } else if (modifier.type != Type::kNone) {
        param.type = modifier.type;
        typed = true;
      } else if (modifier.space != Space::kGeneric) {
        param.pointee = modifier.space;
      } else if (word == "texref" || word == "samplerref" || word == "surfref") {
        param.type = Type::kB64;
        typed = true;
      } else {
        return lexer.Fail("unknown attribute ." + std::string(word) + " of a parameter");
      }
    }
    if (!typed) return lexer.FailExpected("a type");
    std::string_view name;
    if (!lexer.ExpectIdentifier("a parameter name", &name)) return false;
    param.name = std::string(name);
    std::vector<uint64_t> lengths;
    while (lexer.Accept('[')) {
      uint64_t length = 0;
      if (lexer.Peek() != ']' && !ParseLength(lexer, &length)) return false;
      if (!lexer.Expect(']')) return false;
      lengths.push_back(length);
    }
    if (!ArrayBytes(lengths, SizeOf(param.type), &param.size)) {
      return lexer.Fail("parameter is larger than an address can reach");
    }
    param.align =
        static_cast<uint32_t>(align != 0 ? align : std::max<uint64_t>(1, SizeOf(param.type)));
    offset = (offset + param.align - 1) / param.align * param.align;
    param.offset = offset;
    offset += param.size;
    params->push_back(std::move(param));
  } while (lexer.Accept(','));
  return lexer.Expect(')');
}

uint64_t ParamBytes(const std::vector<Param>& params) {
  return params.empty() ? 0 : params.back().offset + params.back().size;
}

}  // namespace tidepool::ptx
