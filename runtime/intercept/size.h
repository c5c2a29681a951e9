// Sizes as users write them. Pure functions; public, shared with the command.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tidepool {

// "8GiB", "512MiB", "64KiB" or plain bytes. Errors: InvalidArgument with the value and the accepted
// forms.
absl::StatusOr<uint64_t> ParseSize(std::string_view text);

// A budget: bytes, or a share of the device's memory.
struct Budget {
  uint64_t bytes = 0;  // if percent is 0
  double percent = 0;  // above 0, at most 100
  uint64_t Of(uint64_t device_bytes) const {
    return percent > 0 ? static_cast<uint64_t>(static_cast<double>(device_bytes) * percent / 100)
                       : bytes;
  }
};
// A size, or "60%". Zero is no budget.
absl::StatusOr<Budget> ParseBudget(std::string_view text);

// "60%", above 0 and at most 100.
absl::StatusOr<double> ParsePercent(std::string_view text);

// "8.00 GiB", "512 bytes": for people.
std::string FormatSize(uint64_t bytes);

}  // namespace tidepool
