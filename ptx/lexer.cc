#include "ptx/lexer.h"

#include <array>
#include <charconv>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"

namespace tidepool::ptx {
namespace {

constexpr uint8_t kStarts = 1;     // may start an identifier
constexpr uint8_t kContinues = 2;  // may continue one

constexpr std::array<uint8_t, 256> MakeClasses() {
  std::array<uint8_t, 256> classes{};
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = kStarts | kContinues;
  for (int c = 'A'; c <= 'Z'; ++c) classes[c] = kStarts | kContinues;
  for (int c = '0'; c <= '9'; ++c) classes[c] = kContinues;
  classes['_'] = classes['$'] = kStarts | kContinues;
  classes['%'] = kStarts;
  return classes;
}
constexpr std::array<uint8_t, 256> kClasses = MakeClasses();

bool Is(char c, uint8_t what) { return (kClasses[static_cast<uint8_t>(c)] & what) != 0; }

int DigitValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

}  // namespace

Lexer::Lexer(std::string_view text) : position_(text.data()), end_(text.data() + text.size()) {
  // Fat binaries pad the text with NULs; a NUL elsewhere is an error like any stray character.
  while (end_ > position_ && end_[-1] == '\0') --end_;
}

bool Lexer::SkipComment() {
  if (end_ - position_ < 2) return false;
  if (position_[1] == '/') {
    const void* newline = std::memchr(position_, '\n', static_cast<size_t>(end_ - position_));
    position_ = newline != nullptr ? static_cast<const char*>(newline) : end_;
    return true;
  }
  if (position_[1] != '*') return false;
  position_ += 2;
  while (position_ < end_) {
    if (*position_ == '\n') ++line_;
    if (*position_ == '*' && end_ - position_ > 1 && position_[1] == '/') {
      position_ += 2;
      return true;
    }
    ++position_;
  }
  Fail("unterminated comment");
  return false;
}

bool Lexer::Expect(char c) {
  if (Accept(c)) return true;
  const char quoted[] = {'\'', c, '\'', '\0'};
  return FailExpected(quoted);
}

std::string_view Lexer::AcceptIdentifier() {
  if (!Is(Peek(), kStarts)) return {};
  const char* start = position_++;
  while (position_ < end_ && Is(*position_, kContinues)) ++position_;
  if (*start == '%' && position_ - start == 1) {
    position_ = start;  // a lone '%' is the remainder operator
    return {};
  }
  return {start, static_cast<size_t>(position_ - start)};
}

bool Lexer::ExpectIdentifier(std::string_view what, std::string_view* identifier) {
  *identifier = AcceptIdentifier();
  return !identifier->empty() || FailExpected(what);
}

std::string_view Lexer::AcceptDotWord() {
  const std::string_view word = PeekDotWord();
  if (!word.empty()) position_ += word.size() + 1;
  return word;
}

std::string_view Lexer::PeekDotWord() {
  if (Peek() != '.') return {};
  const char* start = position_ + 1;
  const char* at = start;
  while (at < end_) {
    if (Is(*at, kContinues)) {
      ++at;
    } else if (*at == ':' && end_ - at > 2 && at[1] == ':' && Is(at[2], kContinues)) {
      at += 2;
    } else {
      break;
    }
  }
  return {start, static_cast<size_t>(at - start)};
}

bool Lexer::ExpectString(std::string_view* text) {
  if (Peek() != '"') return FailExpected("a quoted string");
  const char* start = position_ + 1;
  const char* at = start;
  while (at < end_ && *at != '"' && *at != '\n') at += *at == '\\' && end_ - at > 1 ? 2 : 1;
  if (at >= end_ || *at != '"') return Fail("unterminated string");
  *text = {start, static_cast<size_t>(at - start)};
  position_ = at + 1;
  return true;
}

bool Lexer::DecimalLiteral(Literal* literal) {
  const char* at = position_;
  while (at < end_ && *at >= '0' && *at <= '9') ++at;
  if (at < end_ && (*at == '.' || *at == 'e' || *at == 'E')) {
    double value = 0;
    const auto [stop, error] = std::from_chars(position_, end_, value);
    // A value out of range becomes zero or infinity, as in C; from_chars leaves `value` alone.
    if (error == std::errc::result_out_of_range) return Fail("floating-point number out of range");
    if (error != std::errc()) return FailExpected("a number");
    position_ = stop;
    literal->kind = Literal::Kind::kDouble;
    static_assert(sizeof value == sizeof literal->bits);
    std::memcpy(&literal->bits, &value, sizeof value);
    return true;
  }
  const auto [stop, error] = std::from_chars(position_, at, literal->bits, 10);
  if (error != std::errc()) return Fail("integer does not fit in 64 bits");
  position_ = stop;
  return true;
}

bool Lexer::ExpectLiteral(Literal* literal) {
  *literal = {};
  const char first = Peek();
  if (first == '.' && Raw(1) >= '0' && Raw(1) <= '9') return DecimalLiteral(literal);
  if (first < '0' || first > '9') return FailExpected("a number");

  const char second = first == '0' ? Raw(1) : '\0';
  const bool single = second == 'f' || second == 'F';
  int base = 10;
  if (single || second == 'x' || second == 'X' || second == 'd' || second == 'D') {
    base = 16;
  } else if (second == 'b' || second == 'B') {
    base = 2;
  } else if (second >= '0' && second <= '7') {
    base = 8;
  }
  if (base == 10) {
    if (!DecimalLiteral(literal)) return false;
  } else {
    const char* start = position_ + (base == 8 ? 1 : 2);
    const char* stop = start;
    while (stop < end_ && DigitValue(*stop) < base) ++stop;
    const auto [parsed, error] = std::from_chars(start, stop, literal->bits, base);
    if (error != std::errc()) return Fail("malformed number");
    position_ = parsed;
    if (base == 16 && second != 'x' && second != 'X') {
      if (parsed - start != (single ? 8 : 16)) {
        return Fail("floating-point number with the wrong count of hexadecimal digits");
      }
      literal->kind = single ? Literal::Kind::kSingle : Literal::Kind::kDouble;
    }
  }
  if (literal->kind == Literal::Kind::kInteger) {
    literal->is_unsigned = literal->bits > uint64_t{std::numeric_limits<int64_t>::max()};
    if (Raw() == 'U' || Raw() == 'u') {
      literal->is_unsigned = true;
      ++position_;
    }
  }
  if (Is(Raw(), kContinues)) return FailExpected("the end of the number");
  return true;
}

bool Lexer::ExpectUnsigned(std::string_view what, uint64_t* value) {
  if (!PeekDigit()) return FailExpected(what);
  Literal literal;
  if (!ExpectLiteral(&literal)) return false;
  if (literal.kind != Literal::Kind::kInteger)
    return Fail(absl::StrCat("expected ", std::string(what)));
  *value = literal.bits;
  return true;
}

bool Lexer::SkipBraces() {
  for (uint32_t depth = 1; !AtEnd();) {
    const char c = *position_;
    if (c == '"') {
      std::string_view text;
      if (!ExpectString(&text)) return false;
      continue;
    }
    ++position_;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) return true;
  }
  return FailExpected("'}'");
}

void Lexer::SkipLine() {
  const void* newline = std::memchr(position_, '\n', static_cast<size_t>(end_ - position_));
  position_ = newline != nullptr ? static_cast<const char*>(newline) : end_;
}

bool Lexer::Fail(std::string_view message) {
  if (error_.empty()) error_ = absl::StrCat("line ", line_, ": ", std::string(message));
  return false;
}

bool Lexer::FailExpected(std::string_view what) {
  if (failed()) return false;
  if (AtEnd()) return Fail(absl::StrCat("expected ", std::string(what), " but the text ends"));
  if (failed()) return false;
  constexpr ptrdiff_t kShown = 40;
  const char* at = position_;
  while (at < end_ && at - position_<kShown&& static_cast<uint8_t>(*at)> ' ') ++at;
  if (at == position_) {
    return Fail(absl::StrCat("expected ", std::string(what), " but found the byte ",
                             static_cast<int>(static_cast<uint8_t>(*position_))));
  }
  return Fail(absl::StrCat("expected ", std::string(what), " but found \"",
                           absl::string_view(position_, static_cast<size_t>(at - position_)),
                           "\""));
}

}  // namespace tidepool::ptx
