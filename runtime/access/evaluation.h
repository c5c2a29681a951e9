// One evaluation of a footprint: the slice is executed for all threads of a launch at once.
// Internal to runtime/access; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "runtime/access/affine.h"
#include "runtime/access/footprint.h"
#include "runtime/access/footprint_program.h"
#include "runtime/access/written_bytes.h"

namespace tidepool {

// A register's value for all threads of the box.
struct Value {
  enum class Kind : uint8_t { kUnknown, kForm, kPredicate } kind = Kind::kUnknown;
  bool truth = false;
  AffineForm form;  // congruent to the register's content, modulo its width
};

// The threads of a box at one point of the program.
struct Path {
  Box box;
  uint32_t block = 0;
  uint32_t step = 0;
  std::vector<Value> registers;
};

// Thrown nowhere: an operation either has a value, or says where the box must be cut.
struct Result {
  Value value;
  std::optional<Cut> cut;
};

inline Wide PowerOfTwo(int bits) { return Wide{1} << bits; }

class Evaluation {
 public:
  Evaluation(const FootprintProgram& program, const LaunchShape& shape,
             std::span<const uint8_t> parameters, std::span<const uint32_t> pointers)
      : program_(program), shape_(shape), parameters_(parameters), pointers_(pointers) {}

  Footprint Run();

 private:
  // Goes on until the path ends or has been cut in two.
  void Follow(Path path);
  Result Execute(const Step& step, const Path& path);
  Result Arithmetic(const Step& step, const Path& path);
  Value Read(const Source& source, const Path& path) const;
  Value Parameter(const Step& step) const;
  void Store(const Step& step, const Path& path);
  // The form as a number of so many bits, signed or not; its range is within the type's.
  Result Typed(const Value& value, int bits, bool is_signed, const Box& box) const;
  void Divide(Path path, Cut cut);

  static Result Unknown() { return {}; }
  static Result Of(std::optional<AffineForm> form) {
    Result result;
    if (form.has_value()) {
      result.value.kind = Value::Kind::kForm;
      result.value.form = *form;
    }
    return result;
  }
  static Result Of(bool truth) {
    Result result;
    result.value.kind = Value::Kind::kPredicate;
    result.value.truth = truth;
    return result;
  }
  static Result At(Cut cut) {
    Result result;
    result.cut = cut;
    return result;
  }
  static Result Floor(const AffineForm& form, Wide divisor, const Box& box) {
    if (form.base != kNoBase) return Unknown();
    Decision<AffineForm> quotient = DivideFloor(form, divisor, box);
    return quotient.answer.has_value() ? Of(*quotient.answer) : At(quotient.cut);
  }
  // form modulo `divisor`.
  static Result Modulo(const AffineForm& form, Wide divisor, const Box& box) {
    Result quotient = Floor(form, divisor, box);
    if (quotient.cut.has_value() || quotient.value.kind != Value::Kind::kForm) return quotient;
    const std::optional<AffineForm> whole = Multiply(quotient.value.form, divisor);
    return whole.has_value() ? Of(Subtract(form, *whole)) : Unknown();
  }
  Result Masked(const AffineForm& form, uint64_t mask, int bits, const Box& box) const;
  Result Compare(const Step& step, const Path& path);

  const FootprintProgram& program_;
  const LaunchShape& shape_;
  std::span<const uint8_t> parameters_;
  std::span<const uint32_t> pointers_;
  std::vector<Path> waiting_;
  uint64_t steps_ = 0;
  std::map<uint32_t, WrittenBytes> written_;  // by parameter word
};

}  // namespace tidepool
