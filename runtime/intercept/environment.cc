#include "runtime/intercept/environment.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "runtime/policy/policy.h"

namespace tidepool {

Environment ReadEnvironment() {
  Environment env;
  auto fail = [&](const char* name, const std::string& message) {
    if (env.error.empty()) env.error = absl::StrCat(name, ": ", message);
  };
  auto get = [](const char* name) -> std::optional<std::string> {
    const char* text = std::getenv(name);
    if (text == nullptr) return std::nullopt;
    return std::string(text);
  };
  if (auto text = get("TIDEPOOL_BUDGET")) {
    absl::StatusOr<Budget> budget = ParseBudget(*text);
    if (budget.ok()) {
      env.budget = *budget;
    } else {
      fail("TIDEPOOL_BUDGET", std::string(budget.status().message()));
    }
  }
  if (auto text = get("TIDEPOOL_HOST_BUDGET")) {
    absl::StatusOr<uint64_t> bytes = ParseSize(*text);
    if (bytes.ok()) {
      env.host_budget = *bytes;
    } else {
      fail("TIDEPOOL_HOST_BUDGET", std::string(bytes.status().message()));
    }
  }
  for (auto [name, target] :
       {std::pair<const char*, double*>{"TIDEPOOL_HIGH_WATERMARK", &env.high_watermark},
        {"TIDEPOOL_LOW_WATERMARK", &env.low_watermark}}) {
    if (auto text = get(name)) {
      absl::StatusOr<double> percent = ParsePercent(*text);
      if (percent.ok()) {
        *target = *percent / 100;
      } else {
        fail(name, std::string(percent.status().message()));
      }
    }
  }
  if (env.low_watermark > env.high_watermark) {
    if (auto text = get("TIDEPOOL_LOW_WATERMARK")) {
      fail("TIDEPOOL_LOW_WATERMARK",
           absl::StrCat("\"", *text, "\" is above the high watermark; accepted: up to ",
                        env.high_watermark * 100, "%"));
    }
    env.low_watermark = env.high_watermark;
  }
  if (auto text = get("TIDEPOOL_STRICT")) {
    if (*text == "1") {
      env.strict = true;
    } else if (*text != "0" && !text->empty()) {
      fail("TIDEPOOL_STRICT", absl::StrCat("\"", *text, "\" is not valid; accepted: 0 or 1"));
    }
  }
  if (auto text = get("TIDEPOOL_POLICY"); text.has_value() && !text->empty()) {
    auto made = policy::MakePolicy(*text);
    if (made.ok()) {
      env.policy = *text;
    } else {
      fail("TIDEPOOL_POLICY", std::string(made.status().message()));
    }
  }
  if (auto text = get("TIDEPOOL_LOG")) {
    if (*text == "debug") {
      env.debug = true;
    } else if (*text != "info" && *text != "warn" && *text != "error" && !text->empty()) {
      fail("TIDEPOOL_LOG",
           absl::StrCat("\"", *text, "\" is not valid; accepted: error, warn, info, debug"));
    }
  }
  if (auto path = get("TIDEPOOL_CONFIG"); path.has_value() && !path->empty()) {
    absl::StatusOr<std::vector<Annotation>> annotations = ReadConfig(*path);
    if (annotations.ok()) {
      env.annotations = *std::move(annotations);
    } else {
      fail("TIDEPOOL_CONFIG", std::string(annotations.status().message()));
    }
  }
  if (get("TIDEPOOL_TRACE").has_value()) fail("TIDEPOOL_TRACE", "not supported yet; unset it");
  env.report = get("TIDEPOOL_REPORT").value_or("");
  env.timeline = get("TIDEPOOL_TIMELINE").value_or("");
  return env;
}

}  // namespace tidepool
