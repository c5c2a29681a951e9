#include "runtime/intercept/size.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tidepool {
namespace {

constexpr char kAccepted[] = "accepted: 8GiB, 512MiB, 64KiB or plain bytes";

absl::Status Bad(std::string_view text, const std::string& accepted) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", std::string(text), "\" is not valid; ", accepted));
}

}  // namespace

absl::StatusOr<uint64_t> ParseSize(std::string_view text) {
  std::string_view digits = text;
  int shift = 0;
  for (auto [unit, by] : {std::pair<std::string_view, int>{"KiB", 10}, {"MiB", 20}, {"GiB", 30}}) {
    if (digits.ends_with(unit)) {
      digits.remove_suffix(unit.size());
      shift = by;
      break;
    }
  }
  uint64_t value = 0;
  const bool plain =
      !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (!plain || !absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &value) ||
      value > (~uint64_t{0} >> shift)) {
    return Bad(text, kAccepted);
  }
  return value << shift;
}

absl::StatusOr<double> ParsePercent(std::string_view text) {
  std::string_view digits = text;
  double value = 0;
  if (!digits.ends_with("%")) return Bad(text, "accepted: a percentage such as 60%");
  digits.remove_suffix(1);
  const bool plain =
      !digits.empty() && digits.find_first_not_of("0123456789.") == std::string_view::npos;
  if (!plain || !absl::SimpleAtod(absl::string_view(digits.data(), digits.size()), &value) ||
      !(value > 0) || value > 100) {
    return Bad(text, "accepted: a percentage above 0% and up to 100%");
  }
  return value;
}

absl::StatusOr<Budget> ParseBudget(std::string_view text) {
  Budget budget;
  if (text.ends_with("%")) {
    absl::StatusOr<double> percent = ParsePercent(text);
    if (!percent.ok()) return percent.status();
    budget.percent = *percent;
    return budget;
  }
  absl::StatusOr<uint64_t> bytes = ParseSize(text);
  if (!bytes.ok()) return Bad(text, std::string(kAccepted) + ", or N% of the device's memory");
  if (*bytes == 0) return Bad(text, "a budget of nothing holds nothing");
  budget.bytes = *bytes;
  return budget;
}

std::string FormatSize(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= uint64_t{1} << 30) return absl::StrFormat("%.2f GiB", value / (1 << 30));
  if (bytes >= uint64_t{1} << 20) return absl::StrFormat("%.2f MiB", value / (1 << 20));
  if (bytes >= uint64_t{1} << 10) return absl::StrFormat("%.1f KiB", value / (1 << 10));
  return absl::StrCat(bytes, " bytes");
}

}  // namespace tidepool
