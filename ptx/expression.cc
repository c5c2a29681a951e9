#include "ptx/expression.h"

#include <bit>

namespace tidepool::ptx {
namespace {

// Deeper nesting than any compiler writes; bounds the recursion.
constexpr int kMaxDepth = 64;

using Kind = Literal::Kind;

Constant Integer(uint64_t bits, bool is_unsigned) { return {Kind::kInteger, is_unsigned, bits}; }

enum class Op : uint8_t {
  kNone,
  kOrOr,
  kAndAnd,
  kOr,
  kXor,
  kAnd,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kShiftLeft,
  kShiftRight,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
};

struct BinaryOp {
  Op op = Op::kNone;
  int precedence = 0;
  size_t length = 0;
};

// The binary operator at the position. Register names start with '%' too, but none can follow a
// constant, so '%' there is the remainder.
BinaryOp PeekBinary(Lexer& lexer) {
  const char first = lexer.Peek();
  const char second = lexer.Raw(1);
  switch (first) {
    case '|':
      return second == '|' ? BinaryOp{Op::kOrOr, 1, 2} : BinaryOp{Op::kOr, 3, 1};
    case '&':
      return second == '&' ? BinaryOp{Op::kAndAnd, 2, 2} : BinaryOp{Op::kAnd, 5, 1};
    case '^':
      return {Op::kXor, 4, 1};
    case '=':
      return second == '=' ? BinaryOp{Op::kEqual, 6, 2} : BinaryOp{};
    case '!':
      return second == '=' ? BinaryOp{Op::kNotEqual, 6, 2} : BinaryOp{};
    case '<':
      if (second == '<') return {Op::kShiftLeft, 8, 2};
      return second == '=' ? BinaryOp{Op::kLessEqual, 7, 2} : BinaryOp{Op::kLess, 7, 1};
    case '>':
      if (second == '>') return {Op::kShiftRight, 8, 2};
      return second == '=' ? BinaryOp{Op::kGreaterEqual, 7, 2} : BinaryOp{Op::kGreater, 7, 1};
    case '+':
      return {Op::kAdd, 9, 1};
    case '-':
      return {Op::kSubtract, 9, 1};
    case '*':
      return {Op::kMultiply, 10, 1};
    case '/':
      return {Op::kDivide, 10, 1};
    case '%':
      return {Op::kRemainder, 10, 1};
    default:
      return {};
  }
}

class Evaluator {
 public:
  explicit Evaluator(Lexer& lexer) : lexer_(lexer) {}

  bool Ternary(Constant* value, int depth) {
    if (depth > kMaxDepth) return lexer_.Fail("expression nested too deeply");
    if (!Binary(value, 1, depth)) return false;
    if (lexer_.Peek() != '?') return true;
    lexer_.Skip(1);
    Constant yes;
    Constant no;
    if (!Ternary(&yes, depth + 1) || !lexer_.Expect(':') || !Ternary(&no, depth + 1)) return false;
    *value = value->bits != 0 ? yes : no;
    return true;
  }

 private:
  bool Binary(Constant* value, int least, int depth) {
    if (!Unary(value, depth)) return false;
    for (;;) {
      const BinaryOp op = PeekBinary(lexer_);
      if (op.op == Op::kNone || op.precedence < least) return !lexer_.failed();
      lexer_.Skip(op.length);
      Constant right;
      if (!Binary(&right, op.precedence + 1, depth)) return false;
      if (!Apply(op.op, right, value)) return false;
    }
  }

  bool Unary(Constant* value, int depth) {
    if (depth > kMaxDepth) return lexer_.Fail("expression nested too deeply");
    const char c = lexer_.Peek();
    if (c == '-' || c == '+' || c == '~' || c == '!') {
      lexer_.Skip(1);
      if (!Unary(value, depth + 1)) return false;
      return ApplyUnary(c, value);
    }
    if (c == '(') return Parenthesis(value, depth);
    if (c == 'W') {
      if (lexer_.AcceptIdentifier() != "WARP_SZ") return lexer_.Fail("expected a constant");
      *value = Integer(32, false);
      return true;
    }
    Literal literal;
    if (!lexer_.ExpectLiteral(&literal)) return false;
    *value = {literal.kind, literal.is_unsigned, literal.bits};
    return true;
  }

  bool Parenthesis(Constant* value, int depth) {
    lexer_.Skip(1);
    const std::string_view cast =
        lexer_.Peek() == '.' && !(lexer_.Raw(1) >= '0' && lexer_.Raw(1) <= '9')
            ? lexer_.AcceptDotWord()
            : std::string_view();
    if (cast.empty()) return Ternary(value, depth + 1) && lexer_.Expect(')');
    if (cast != "s64" && cast != "u64") return lexer_.Fail("only .s64 and .u64 can be cast to");
    if (!lexer_.Expect(')') || !Unary(value, depth + 1)) return false;
    if (!value->is_integer()) return lexer_.Fail("cast of a floating-point constant");
    value->is_unsigned = cast == "u64";
    return true;
  }

  bool ApplyUnary(char op, Constant* value) {
    if (op == '+') return true;
    if (value->is_integer()) {
      if (op == '-') value->bits = 0 - value->bits;
      if (op == '~') value->bits = ~value->bits;
      if (op == '!') *value = Integer(value->bits == 0 ? 1 : 0, false);
      return true;
    }
    if (op != '-') return lexer_.Fail("operator needs an integer");
    // The sign bit alone, so that a NaN keeps its payload.
    value->bits ^= value->kind == Kind::kSingle ? uint64_t{1} << 31 : uint64_t{1} << 63;
    return true;
  }

  bool Apply(Op op, const Constant& right, Constant* value) {
    if (!value->is_integer() || !right.is_integer()) return ApplyFloat(op, right, value);
    const uint64_t a = value->bits;
    const uint64_t b = right.bits;
    const bool is_unsigned = value->is_unsigned || right.is_unsigned;
    const auto sa = static_cast<int64_t>(a);
    const auto sb = static_cast<int64_t>(b);
    const bool less = is_unsigned ? a < b : sa < sb;
    switch (op) {
      case Op::kOrOr:
        *value = Integer(a != 0 || b != 0 ? 1 : 0, false);
        return true;
      case Op::kAndAnd:
        *value = Integer(a != 0 && b != 0 ? 1 : 0, false);
        return true;
      case Op::kOr:
        *value = Integer(a | b, is_unsigned);
        return true;
      case Op::kXor:
        *value = Integer(a ^ b, is_unsigned);
        return true;
      case Op::kAnd:
        *value = Integer(a & b, is_unsigned);
        return true;
      case Op::kEqual:
        *value = Integer(a == b ? 1 : 0, false);
        return true;
      case Op::kNotEqual:
        *value = Integer(a != b ? 1 : 0, false);
        return true;
      case Op::kLess:
        *value = Integer(less ? 1 : 0, false);
        return true;
      case Op::kLessEqual:
        *value = Integer(less || a == b ? 1 : 0, false);
        return true;
      case Op::kGreater:
        *value = Integer(less || a == b ? 0 : 1, false);
        return true;
      case Op::kGreaterEqual:
        *value = Integer(less ? 0 : 1, false);
        return true;
      case Op::kShiftLeft:
        *value = Integer(b < 64 ? a << b : 0, value->is_unsigned);
        return true;
      case Op::kShiftRight:
        if (value->is_unsigned) {
          *value = Integer(b < 64 ? a >> b : 0, true);
        } else {
          *value = Integer(static_cast<uint64_t>(sa >> (b < 64 ? b : 63)), false);
        }
        return true;
      case Op::kAdd:
        *value = Integer(a + b, is_unsigned);
        return true;
      case Op::kSubtract:
        *value = Integer(a - b, is_unsigned);
        return true;
      case Op::kMultiply:
        *value = Integer(a * b, is_unsigned);
        return true;
      case Op::kDivide:
      case Op::kRemainder:
        return Divide(op, b, is_unsigned, value);
      case Op::kNone:
        break;
    }
    return lexer_.Fail("unknown operator");
  }

  bool Divide(Op op, uint64_t b, bool is_unsigned, Constant* value) {
    const uint64_t a = value->bits;
    if (b == 0) return lexer_.Fail("division by zero in a constant");
    const bool divide = op == Op::kDivide;
    if (is_unsigned) {
      *value = Integer(divide ? a / b : a % b, true);
    } else if (b == ~uint64_t{0}) {
      // By -1: the quotient of the least integer overflows in C; PTX wraps.
      *value = Integer(divide ? 0 - a : 0, false);
    } else {
      const auto sa = static_cast<int64_t>(a);
      const auto sb = static_cast<int64_t>(b);
      *value = Integer(static_cast<uint64_t>(divide ? sa / sb : sa % sb), false);
    }
    return true;
  }

  bool ApplyFloat(Op op, const Constant& right, Constant* value) {
    const double a = value->AsDouble();
    const double b = right.AsDouble();
    double result = 0;
    switch (op) {
      case Op::kAdd:
        result = a + b;
        break;
      case Op::kSubtract:
        result = a - b;
        break;
      case Op::kMultiply:
        result = a * b;
        break;
      case Op::kDivide:
        if (b == 0) return lexer_.Fail("division by zero in a constant");
        result = a / b;
        break;
      default:
        return lexer_.Fail("operator needs integers");
    }
    *value = {Kind::kDouble, false, std::bit_cast<uint64_t>(result)};
    return true;
  }

  Lexer& lexer_;
};

}  // namespace

double Constant::AsDouble() const {
  switch (kind) {
    case Kind::kDouble:
      return std::bit_cast<double>(bits);
    case Kind::kSingle:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case Kind::kInteger:
      break;
  }
  return is_unsigned ? static_cast<double>(bits) : static_cast<double>(signed_value());
}

bool ParseConstant(Lexer& lexer, Constant* value) {
  return Evaluator(lexer).Ternary(value, 0) && !lexer.failed();
}

bool ParseInteger(Lexer& lexer, int64_t* value) {
  Constant constant;
  if (!ParseConstant(lexer, &constant)) return false;
  if (!constant.is_integer()) return lexer.Fail("expected an integer");
  *value = constant.signed_value();
  return true;
}

bool ParseLength(Lexer& lexer, uint64_t* value) {
  int64_t length = 0;
  if (!ParseInteger(lexer, &length)) return false;
  if (length < 0) return lexer.Fail("expected a length");
  *value = static_cast<uint64_t>(length);
  return true;
}

}  // namespace tidepool::ptx
