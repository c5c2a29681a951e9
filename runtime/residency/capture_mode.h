// While the program captures a stream, calls that the driver calls potentially unsafe (allocations,
// mappings, questions about events) end the capture, unless the calling thread's mode is "relaxed".
// The engine makes its own calls in that mode; the program's calls are made in the program's.
#pragma once

#include <cuda.h>

#include <atomic>

#include "runtime/driver/driver_api.h"

namespace tidepool {

// Set for good when the process's first capture begins: before it no call is needed.
inline std::atomic<bool> captures_seen{false};

// Relaxed from construction to destruction, except between Suspend and Resume.
class RelaxedCaptureMode {
 public:
  explicit RelaxedCaptureMode(const DriverApi& api) : api_(api) { Resume(); }
  ~RelaxedCaptureMode() { Suspend(); }
  RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
  RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

  void Suspend() {
    if (relaxed_) api_.ThreadExchangeStreamCaptureMode(&mode_);
    relaxed_ = false;
  }
  void Resume() {
    if (relaxed_ || !captures_seen.load(std::memory_order_relaxed) ||
        api_.ThreadExchangeStreamCaptureMode == nullptr) {
      return;
    }
    mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
    relaxed_ = api_.ThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
  }

 private:
  const DriverApi& api_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // the program's, while relaxed
  bool relaxed_ = false;
};

}  // namespace tidepool
