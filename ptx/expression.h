// Constant expressions of PTX operands, offsets and initializers: C's operators over 64-bit
// integers, casts to .s64/.u64, and the floating-point operators that the ISA allows (unary minus,
// + - * /). Internal to the parser.
#pragma once

#include <cstdint>

#include "ptx/lexer.h"

namespace tidepool::ptx {

struct Constant {
  Literal::Kind kind = Literal::Kind::kInteger;
  bool is_unsigned = false;
  uint64_t bits = 0;  // integer, IEEE double, or IEEE float for kSingle

  bool is_integer() const { return kind == Literal::Kind::kInteger; }
  int64_t signed_value() const { return static_cast<int64_t>(bits); }
  double AsDouble() const;  // the value, whatever the kind
};

// Reads one expression. On an error (division by zero included) the lexer holds it and the result
// is false.
bool ParseConstant(Lexer& lexer, Constant* value);

// Reads an expression that must be an integer.
bool ParseInteger(Lexer& lexer, int64_t* value);

// Reads an expression that must be an integer and not negative (array lengths).
bool ParseLength(Lexer& lexer, uint64_t* value);

}  // namespace tidepool::ptx
