// The TIDEPOOL_* variables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/access/config.h"
#include "runtime/intercept/size.h"

namespace tidepool {

struct Environment {
  std::optional<Budget> budget;  // none: Tidepool passes everything through
  double high_watermark = 1.0, low_watermark = 1.0;
  bool strict = false;
  std::string policy = "dtr-eq";
  std::string report, timeline;
  std::optional<uint64_t>
      host_budget;  // bytes for swapping; none: half of what the host has available
  bool debug = false;
  std::vector<Annotation> annotations;  // of the file that TIDEPOOL_CONFIG names
  std::string error;  // what is wrong, naming variable, value and accepted form; empty if nothing
};

Environment ReadEnvironment();

}  // namespace tidepool
