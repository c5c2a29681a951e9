// The command line of `tidepool run`. Pure parsing: nothing is touched.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tidepool {

struct RunOptions {
  std::optional<std::string> budget;  // as given; checked, but kept as text for the environment
  std::optional<std::string> sim;     // device memory of simgpu; "" for its default
  bool off = false;
  bool strict = false;
  std::optional<std::string> policy;
  std::optional<std::string> report;
  std::optional<std::string> timeline;
  std::optional<std::string> trace;
  std::vector<std::string> program;  // and its arguments
};

// `arguments` is what follows "run". Errors: InvalidArgument, in words for the person who typed it.
absl::StatusOr<RunOptions> ParseRunOptions(const std::vector<std::string>& arguments);

}  // namespace tidepool
