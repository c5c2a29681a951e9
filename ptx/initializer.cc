#include "ptx/initializer.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ptx/expression.h"

namespace tidepool::ptx {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 47;  // all of the address space
constexpr size_t kMaxDimensions = 32;

// Rounds a double to `exponent`/`mantissa` bits (binary16: 5, 10), nearest even.
uint64_t NarrowFloat(double value, int exponent_bits, int mantissa_bits) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const uint64_t sign = (bits >> 63) << (exponent_bits + mantissa_bits);
  const uint64_t max_exponent = (uint64_t{1} << exponent_bits) - 1;
  const auto raw_exponent = static_cast<int>((bits >> 52) & 0x7ff);
  uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
  if (raw_exponent == 0x7ff) {
    const uint64_t quiet = mantissa != 0 ? uint64_t{1} << (mantissa_bits - 1) : 0;
    return sign | max_exponent << mantissa_bits | quiet | mantissa >> (52 - mantissa_bits);
  }
  const int bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = raw_exponent - 1023 + bias;
  int drop = 52 - mantissa_bits;
  if (raw_exponent != 0) mantissa |= uint64_t{1} << 52;
  if (exponent <= 0) {
    // Subnormal: the leading one is written out, further right.
    drop += 1 - exponent;
    exponent = 0;
    if (drop > 54) return sign;
  } else {
    mantissa &= ~(uint64_t{1} << 52);
  }
  const uint64_t half = uint64_t{1} << (drop - 1);
  const uint64_t rest = mantissa & ((half << 1) - 1);
  uint64_t result = (static_cast<uint64_t>(exponent) << mantissa_bits) + (mantissa >> drop);
  if (rest > half || (rest == half && (result & 1) != 0)) ++result;  // may carry into the exponent
  if (result >= max_exponent << mantissa_bits) result = max_exponent << mantissa_bits;
  return sign | result;
}

class Reader {
 public:
  Reader(Lexer& lexer, std::vector<uint64_t>& lengths, uint64_t* budget, Variable* variable)
      : lexer_(lexer), lengths_(lengths), budget_(budget), variable_(variable) {
    element_bytes_ = SizeOf(variable->type);
    strides_.assign(lengths.size() + 1, element_bytes_);
    for (size_t i = lengths.size(); i-- > 0;) strides_[i] = strides_[i + 1] * lengths[i];
    open_ = !lengths.empty() && lengths[0] == 0;
  }

  bool Read() {
    if (!open_) {
      if (!Grow(strides_[0])) return false;
    }
    if (lexer_.Peek() != '{') {
      if (!lengths_.empty()) return lexer_.FailExpected("'{'");
      return Value(0);
    }
    if (lengths_.empty()) {
      return lexer_.Accept('{') && Value(0) && lexer_.Expect('}');
    }
    if (!Level(0, 0)) return false;
    variable_->size = variable_->init.size();
    return true;
  }

 private:
  // "{ ... }" at dimension `level`, the first byte of which is `at`. Inner braces may be left out:
  // values then fill the inner dimensions in order.
  bool Level(size_t level, uint64_t at) {
    if (!lexer_.Expect('{')) return false;
    const uint64_t end = level == 0 && open_ ? kMaxBytes : at + strides_[level];
    if (lexer_.Accept('}')) return true;
    do {
      if (lexer_.Peek() == '}') break;  // a comma after the last one
      if (lexer_.Peek() == '{') {
        if (level + 1 >= lengths_.size())
          return lexer_.Fail("initializer braces nested too deeply");
        const uint64_t stride = strides_[level + 1];
        if (stride == 0 || at % stride != 0) return lexer_.Fail("misplaced braces in initializer");
        if (at + stride > end || !Grow(at + stride)) return TooLong();
        if (!Level(level + 1, at)) return false;
        at += stride;
      } else {
        if (at + element_bytes_ > end || !Grow(at + element_bytes_)) return TooLong();
        if (!Value(at)) return false;
        at += element_bytes_;
      }
    } while (lexer_.Accept(','));
    if (level == 0 && open_) {
      // Whole rows only.
      const uint64_t row = strides_[1];
      if (row == 0) return lexer_.Fail("array of empty rows");
      if (!Grow((variable_->init.size() + row - 1) / row * row)) return false;
    }
    return lexer_.Expect('}');
  }

  bool TooLong() { return lexer_.Fail("initializer longer than its variable"); }

  bool Grow(uint64_t bytes) {
    const uint64_t have = variable_->init.size();
    if (bytes <= have) return true;
    if (bytes - have > *budget_) return lexer_.Fail("initialized variables are too large");
    *budget_ -= bytes - have;
    variable_->init.resize(bytes);
    return true;
  }

  bool Value(uint64_t at) {
    const char c = lexer_.Peek();
    if (c == '_' || c == '$' || c == '%' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      const std::string_view name = lexer_.AcceptIdentifier();
      if (name == "WARP_SZ") return Store(at, {Literal::Kind::kInteger, false, 32});
      Relocation relocation;
      relocation.offset = at;
      relocation.size = static_cast<uint8_t>(element_bytes_);
      return Symbol(name, &relocation) && Add(std::move(relocation));
    }
    Constant value;
    if (!ParseConstant(lexer_, &value)) return false;
    if (lexer_.Peek() == '(' && value.is_integer()) return Mask(at, value.bits);
    return Store(at, value);
  }

  // "name", "name+4", "generic(name)+4", "generic(name+4)"; the first identifier is consumed.
  bool Symbol(std::string_view name, Relocation* relocation) {
    if (name == "generic" && lexer_.Accept('(')) {
      relocation->generic = true;
      if (!lexer_.ExpectIdentifier("a variable", &name) || !Addend(&relocation->addend) ||
          !lexer_.Expect(')')) {
        return false;
      }
    }
    relocation->symbol = name;
    return Addend(&relocation->addend);
  }

  bool Addend(int64_t* addend) {
    const char c = lexer_.Peek();
    if (c != '+' && c != '-') return true;
    if (c == '+') lexer_.Skip(1);
    int64_t value = 0;
    if (!ParseInteger(lexer_, &value)) return false;
    *addend = static_cast<int64_t>(static_cast<uint64_t>(*addend) + static_cast<uint64_t>(value));
    return true;
  }

  // "0xFF00(symbol)": one byte of an address.
  bool Mask(uint64_t at, uint64_t mask) {
    std::string_view name;
    Relocation relocation;
    relocation.offset = at;
    relocation.size = 1;
    if (!lexer_.Expect('(') || !lexer_.ExpectIdentifier("a variable", &name) ||
        !Symbol(name, &relocation) || !lexer_.Expect(')')) {
      return false;
    }
    const int shift = std::countr_zero(mask);
    if (shift % 8 != 0 || mask >> (shift % 64) != 0xff) {
      return lexer_.Fail("an address mask must cover exactly one byte");
    }
    relocation.shift = static_cast<uint8_t>(shift / 8);
    if (element_bytes_ != 1) return lexer_.Fail("an address mask needs a variable of bytes");
    return Add(std::move(relocation));
  }

  bool Add(Relocation relocation) {
    if (relocation.size != 1 && relocation.size != 2 && relocation.size != 4 &&
        relocation.size != 8) {
      return lexer_.Fail("address in a variable of a type that cannot hold one");
    }
    if (!variable_->relocations.empty()) {
      Relocation& last = variable_->relocations.back();
      if (element_bytes_ == 1 && last.symbol == relocation.symbol &&
          last.addend == relocation.addend && last.generic == relocation.generic &&
          last.offset + last.size == relocation.offset &&
          last.shift + last.size == relocation.shift) {
        ++last.size;
        return true;
      }
    }
    variable_->relocations.push_back(std::move(relocation));
    return true;
  }

  bool Store(uint64_t at, const Constant& value) {
    uint64_t bits = value.bits;
    switch (variable_->type) {
      case Type::kF64:
        bits = std::bit_cast<uint64_t>(value.AsDouble());
        if (value.kind == Literal::Kind::kDouble) bits = value.bits;
        break;
      case Type::kF32:
      case Type::kTF32:
        bits = value.kind == Literal::Kind::kSingle
                   ? value.bits
                   : std::bit_cast<uint32_t>(static_cast<float>(value.AsDouble()));
        break;
      case Type::kF16:
        // An integer initializes the bits of a 16-bit float, as ".b16" would.
        if (!value.is_integer()) bits = NarrowFloat(value.AsDouble(), 5, 10);
        break;
      case Type::kBF16:
        if (!value.is_integer()) bits = NarrowFloat(value.AsDouble(), 8, 7);
        break;
      default:
        if (!value.is_integer() && value.kind == Literal::Kind::kDouble && element_bytes_ < 8) {
          return lexer_.Fail(absl::StrCat(
              "floating-point initializer of a variable of type ",
              absl::string_view(Name(variable_->type).data(), Name(variable_->type).size())));
        }
    }
    const bool negative = value.is_integer() && !value.is_unsigned && value.signed_value() < 0;
    if (element_bytes_ > 8) {
      std::memset(variable_->init.data() + at, negative ? 0xff : 0, element_bytes_);
    }
    std::memcpy(variable_->init.data() + at, &bits, std::min<uint64_t>(element_bytes_, 8));
    return true;
  }

  Lexer& lexer_;
  std::vector<uint64_t>& lengths_;
  std::vector<uint64_t> strides_;  // bytes of one element of each dimension; the last: of a value
  uint64_t element_bytes_ = 0;
  bool open_ = false;
  uint64_t* budget_;
  Variable* variable_;
};

}  // namespace

bool ArrayBytes(const std::vector<uint64_t>& lengths, uint64_t element_bytes, uint64_t* bytes) {
  uint64_t product = element_bytes;
  for (const uint64_t length : lengths) {
    if (__builtin_mul_overflow(product, length, &product) || product > kMaxBytes) return false;
  }
  *bytes = product;
  return true;
}

bool ParseInitializer(Lexer& lexer, std::vector<uint64_t> lengths, uint64_t* budget,
                      Variable* variable) {
  if (SizeOf(variable->type) == 0) return lexer.Fail("initializer of a type without a size");
  if (lengths.size() > kMaxDimensions) return lexer.Fail("array with too many dimensions");
  uint64_t bytes = 0;
  if (!ArrayBytes(lengths, SizeOf(variable->type), &bytes)) {
    return lexer.Fail("array larger than the address space");
  }
  variable->size = bytes;
  return Reader(lexer, lengths, budget, variable).Read();
}

}  // namespace tidepool::ptx
