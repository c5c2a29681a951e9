// Module level: directives, functions and their parameters.
#include "ptx/parser.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "ptx/body.h"
#include "ptx/declarations.h"
#include "ptx/lexer.h"
#include "ptx/modifiers.h"

namespace tidepool::ptx {
namespace {

class ModuleParser {
 public:
  explicit ModuleParser(std::string_view text) : lexer_(text) {
    // A register takes four characters to declare one by one, but a handful in a range.
    limits_.registers = 1000000 + text.size();
  }
  bool Parse(Module* module);
  const Lexer& lexer() const { return lexer_; }

 private:
  bool TopLevel(Module* module);
  bool Version(Module* module);
  bool Target(Module* module);
  bool File();
  bool SkipStatement();
  bool FunctionOrEntry(const Linkage& linkage, bool entry, Module* module);
  bool PerformanceDirective(std::string_view word, Function* function);

  Lexer lexer_;
  Limits limits_;
};

bool ModuleParser::Parse(Module* module) {
  while (!lexer_.AtEnd()) {
    if (!TopLevel(module)) return false;
  }
  if (module->version_major == 0) return lexer_.FailExpected("a .version directive");
  return true;
}

bool ModuleParser::Version(Module* module) {
  uint64_t major = 0, minor = 0;
  // "9.0" is two numbers here, not a float.
  lexer_.Peek();
  size_t digits = 0;
  auto number = [&](uint64_t* value) {
    digits = 0;
    while (lexer_.Raw() >= '0' && lexer_.Raw() <= '9' && digits < 6) {
      *value = *value * 10 + static_cast<uint64_t>(lexer_.Raw() - '0');
      lexer_.Skip(1);
      ++digits;
    }
    return digits > 0;
  };
  if (!number(&major) || lexer_.Raw() != '.') return lexer_.FailExpected("a version such as 9.0");
  lexer_.Skip(1);
  if (!number(&minor)) return lexer_.FailExpected("a version such as 9.0");
  module->version_major = static_cast<uint32_t>(major);
  module->version_minor = static_cast<uint32_t>(minor);
  return true;
}

bool ModuleParser::Target(Module* module) {
  std::string_view target;
  if (!lexer_.ExpectIdentifier("a target such as sm_80", &target)) return false;
  module->target = std::string(target);
  for (const char c : target) {
    if (c >= '0' && c <= '9' && module->sm < 100000) {
      module->sm = module->sm * 10 + static_cast<uint32_t>(c - '0');
    }
  }
  while (lexer_.Accept(',')) {
    if (!lexer_.ExpectIdentifier("a target option", &target)) return false;
  }
  return true;
}

bool ModuleParser::File() {
  uint64_t number = 0;
  std::string_view name;
  if (!lexer_.ExpectUnsigned("a file number", &number) || !lexer_.ExpectString(&name)) return false;
  while (lexer_.Accept(',')) {
    if (!lexer_.ExpectUnsigned("a number", &number)) return false;
  }
  return true;
}

bool ModuleParser::SkipStatement() {
  while (!lexer_.AtEnd()) {
    if (lexer_.Accept(';')) return true;
    if (lexer_.Peek() == '"') {
      std::string_view text;
      if (!lexer_.ExpectString(&text)) return false;
    } else {
      lexer_.Skip(1);
    }
  }
  return lexer_.FailExpected("';'");
}

bool ModuleParser::TopLevel(Module* module) {
  if (lexer_.Accept(';')) return true;
  if (lexer_.Peek() == '@') {  // old debug sections: @@DWARF ...
    lexer_.SkipLine();
    return true;
  }
  Linkage linkage;
  bool managed = false;
  for (;;) {
    const std::string_view word = lexer_.AcceptDotWord();
    if (word.empty()) return lexer_.FailExpected("a directive");
    if (word == "version") return Version(module);
    if (word == "target") return Target(module);
    if (word == "address_size") {
      uint64_t bits = 0;
      if (!lexer_.ExpectUnsigned("32 or 64", &bits)) return false;
      module->address_size = static_cast<uint32_t>(bits);
      return true;
    }
    if (word == "file") return File();
    if (word == "section") {
      lexer_.AcceptDotWord();
      lexer_.AcceptIdentifier();
      return lexer_.Expect('{') && lexer_.SkipBraces();
    }
    if (word == "pragma" || word == "alias") return SkipStatement();
    if (word == "extern") {
      linkage.is_extern = true;
    } else if (word == "visible") {
      linkage.is_visible = true;
    } else if (word == "weak" || word == "common") {
      linkage.is_visible = linkage.is_weak = true;
    } else if (word == "attribute") {
      if (!ParseAttributes(lexer_, &managed)) return false;
    } else if (word == "func" || word == "entry") {
      return FunctionOrEntry(linkage, word == "entry", module);
    } else {
      const Space space = word == "tex" ? Space::kTex : FindModifier(word).space;
      if (space != Space::kGlobal && space != Space::kConst && space != Space::kShared &&
          space != Space::kTex) {
        return lexer_.Fail("unknown directive ." + std::string(word));
      }
      return ParseVariables(lexer_, space, linkage, managed, limits_, &module->variables);
    }
  }
}

bool ModuleParser::PerformanceDirective(std::string_view word, Function* function) {
  if (word == "pragma") return SkipStatement();
  if (word == "attribute") {
    bool managed = false;
    return ParseAttributes(lexer_, &managed);
  }
  uint32_t values[3] = {1, 1, 1};
  size_t count = 0;
  while (lexer_.PeekDigit()) {
    uint64_t value = 0;
    if (!lexer_.ExpectUnsigned("a number", &value)) return false;
    if (count < 3) values[count++] = static_cast<uint32_t>(value);
    if (!lexer_.Accept(',')) break;
  }
  uint32_t* target = word == "maxntid"   ? function->max_threads
                     : word == "reqntid" ? function->req_threads
                                         : nullptr;
  if (target != nullptr) std::copy(values, values + 3, target);
  return true;
}

bool ModuleParser::FunctionOrEntry(const Linkage& linkage, bool entry, Module* module) {
  Function function;
  function.is_entry = entry;
  function.is_extern = linkage.is_extern;
  function.is_visible = linkage.is_visible;
  function.is_weak = linkage.is_weak;
  for (std::string_view word = lexer_.AcceptDotWord(); !word.empty();
       word = lexer_.AcceptDotWord()) {
    bool managed = false;
    if (word == "attribute" && !ParseAttributes(lexer_, &managed)) return false;
  }
  if (!entry && lexer_.Peek() == '(' && !ParseParams(lexer_, &function.returns)) return false;
  std::string_view name;
  if (!lexer_.ExpectIdentifier("a function name", &name)) return false;
  function.name = std::string(name);
  function.line = lexer_.line();
  if (lexer_.Peek() == '(' && !ParseParams(lexer_, &function.params)) return false;
  function.param_bytes = ParamBytes(function.params);
  for (std::string_view word = lexer_.AcceptDotWord(); !word.empty();
       word = lexer_.AcceptDotWord()) {
    if (!PerformanceDirective(word, &function)) return false;
  }
  if (!lexer_.Accept(';')) {
    if (lexer_.Peek() != '{') return lexer_.FailExpected("a function body");
    function.has_body = true;
    if (!ParseBody(lexer_, limits_, &function)) return false;
  }
  module->functions.push_back(std::move(function));
  return true;
}

}  // namespace

absl::StatusOr<Module> Parse(std::string_view text) {
  while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  Module module;
  ModuleParser parser(text);
  if (!parser.Parse(&module)) {
    return absl::InvalidArgumentError(absl::StrCat("PTX ", parser.lexer().error()));
  }
  return module;
}

}  // namespace tidepool::ptx
