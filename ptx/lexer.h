// Reads the words of PTX text one after another. Not a token stream: what a word means depends on
// where it stands (".1d" after an opcode, "0f3F800000" as an operand), so the parser asks for what
// it expects. Internal to the parser; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tidepool::ptx {

// A literal number, as written.
struct Literal {
  enum class Kind : uint8_t { kInteger, kDouble, kSingle };
  Kind kind = Kind::kInteger;
  bool is_unsigned = false;  // suffix U, or too large for a signed 64-bit integer
  uint64_t bits = 0;         // integer, or the IEEE double or float
};

class Lexer {
 public:
  explicit Lexer(std::string_view text);

  // The next character that is neither white space nor comment, 0 at the end; it is not consumed.
  char Peek() {
    SkipSpace();
    return position_ < end_ ? *position_ : '\0';
  }
  // The character right at the position, white space included; 0 at the end.
  char Raw(size_t ahead = 0) const {
    return ahead < static_cast<size_t>(end_ - position_) ? position_[ahead] : '\0';
  }
  void Skip(size_t characters) { position_ += characters; }
  bool AtEnd() { return Peek() == '\0' && position_ >= end_; }

  // Consumes `c` if it is next.
  bool Accept(char c) {
    if (Peek() != c) return false;
    ++position_;
    return true;
  }
  bool Expect(char c);

  // The next identifier ([A-Za-z0-9_$] after a first letter, '_', '$' or '%'), consumed; empty if
  // something else is next.
  std::string_view AcceptIdentifier();
  bool ExpectIdentifier(std::string_view what, std::string_view* identifier);
  // ".word": the word without its dot, consumed; empty if something else is next. Words may contain
  // "::" ("shared::cta").
  std::string_view AcceptDotWord();
  // The same, without consuming it.
  std::string_view PeekDotWord();
  // "quoted text", without the quotes and with escapes left as they are.
  bool ExpectString(std::string_view* text);
  // An unsigned decimal, hexadecimal, octal, binary or floating-point literal.
  bool ExpectLiteral(Literal* literal);
  // A non-negative integer literal.
  bool ExpectUnsigned(std::string_view what, uint64_t* value);
  bool PeekDigit() {
    const char c = Peek();
    return c >= '0' && c <= '9';
  }

  // Skips up to and including the '}' that closes a '{' already consumed; braces nest, comments and
  // strings are honoured.
  bool SkipBraces();
  void SkipLine();

  uint32_t line() const { return line_; }

  // Records an error at the current line unless there is one already; returns false, so that
  // callers can pass it on.
  bool Fail(std::string_view message);
  bool FailExpected(std::string_view what);  // "expected <what> but found <next word>"
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }

 private:
  void SkipSpace() {
    // Most calls find a blank or two at most; comments are rare.
    while (position_ < end_) {
      const char c = *position_;
      if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
        ++position_;
      } else if (c == '\n') {
        ++position_;
        ++line_;
      } else if (c == '/') {
        if (!SkipComment()) return;
      } else {
        return;
      }
    }
  }
  bool SkipComment();
  bool DecimalLiteral(Literal* literal);

  const char* position_;
  const char* end_;
  uint32_t line_ = 1;
  std::string error_;
};

}  // namespace tidepool::ptx
