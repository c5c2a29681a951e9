// Device activity from CUPTI, loaded at run time: kernels, copies and memsets with their times.
// Without the library, or with one of another version, there is none, and the reason is said.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "profiler/timeline.h"

namespace tidepool {

class CuptiActivity {
 public:
  virtual ~CuptiActivity() = default;
  // Stops collecting and returns what came, in the order of CUPTI's buffers.
  virtual std::vector<DeviceActivity> Stop() = 0;

  // `now`: the clock that the times are to be given in, nanoseconds. Null, with `*reason`, if CUPTI
  // cannot be used. One per process at a time.
  static std::unique_ptr<CuptiActivity> Start(const std::function<uint64_t()>& now,
                                              std::string* reason);
};

}  // namespace tidepool
