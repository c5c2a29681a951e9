#include "tools/tidepool/options.h"

#include "absl/strings/str_cat.h"
#include "runtime/intercept/size.h"
#include "runtime/policy/policy.h"

namespace tidepool {
namespace {

absl::Status CheckPolicy(const std::string& name) {
  absl::StatusOr<std::unique_ptr<policy::Policy>> made = policy::MakePolicy(name);
  if (made.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--policy: ", made.status().message()));
}

}  // namespace

absl::StatusOr<RunOptions> ParseRunOptions(const std::vector<std::string>& arguments) {
  RunOptions options;
  size_t i = 0;
  for (; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      ++i;
      break;
    }
    if (argument.empty() || argument[0] != '-') break;
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = argument.substr(equals + 1);

    if (name == "--off" || name == "--strict") {
      if (value.has_value()) {
        return absl::InvalidArgumentError(absl::StrCat(name, " takes no value"));
      }
      (name == "--off" ? options.off : options.strict) = true;
      continue;
    }
    if (name == "--sim") {
      options.sim = value.value_or("");
      if (value.has_value()) {
        absl::StatusOr<uint64_t> size = ParseSize(*value);
        if (!size.ok()) {
          return absl::InvalidArgumentError(absl::StrCat("--sim: ", size.status().message()));
        }
      }
      continue;
    }
    std::optional<std::string>* target = name == "--budget"     ? &options.budget
                                         : name == "--policy"   ? &options.policy
                                         : name == "--report"   ? &options.report
                                         : name == "--timeline" ? &options.timeline
                                         : name == "--trace"    ? &options.trace
                                                                : nullptr;
    if (target == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown option ", name,
                       "; options: --budget SIZE|N% --sim[=SIZE] --off --strict --policy NAME "
                       "--report FILE --timeline FILE --trace FILE"));
    }
    if (!value.has_value()) {
      if (i + 1 >= arguments.size() || arguments[i + 1] == "--") {
        return absl::InvalidArgumentError(absl::StrCat(name, " needs a value"));
      }
      value = arguments[++i];
    }
    if (value->empty()) return absl::InvalidArgumentError(absl::StrCat(name, " needs a value"));
    *target = *value;
  }
  options.program.assign(arguments.begin() + static_cast<ptrdiff_t>(i), arguments.end());
  if (options.program.empty()) {
    return absl::InvalidArgumentError(
        "no program given: tidepool run [OPTIONS] -- PROGRAM [ARG...]");
  }
  if (options.budget.has_value()) {
    absl::StatusOr<Budget> budget = ParseBudget(*options.budget);
    if (!budget.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--budget: ", budget.status().message()));
    }
  }
  if (options.policy.has_value()) {
    if (absl::Status status = CheckPolicy(*options.policy); !status.ok()) return status;
  }
  return options;
}

}  // namespace tidepool
