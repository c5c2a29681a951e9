// Sizes, budgets and percentages.
#include <cmath>
#include <string>

#include "runtime/intercept/size.h"
#include "tests/fuzz/fuzz.h"

using namespace tidepool;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = AsText(data, size);
  if (const auto bytes = ParseSize(text); bytes.ok()) {
    Require(ParseSize(std::to_string(*bytes)).value_or(*bytes + 1) == *bytes);
    Require(!FormatSize(*bytes).empty());
  }
  if (const auto percent = ParsePercent(text); percent.ok()) {
    Require(std::isfinite(*percent) && *percent > 0 && *percent <= 100);
  }
  if (const auto budget = ParseBudget(text); budget.ok()) {
    constexpr uint64_t kDevice = uint64_t{1} << 37;
    Require(budget->percent > 0 ? budget->Of(kDevice) <= kDevice : budget->Of(kDevice) > 0);
  }
  return 0;
}
