// The timeline: Tidepool's own events, memory counters and, where CUPTI loads, the device's
// activity, as a Chrome trace (JSON) that Perfetto and chrome://tracing open.
//
// Rows: process "Tidepool" has one track per stream (ops of the program as they were issued, and
// the replays inside them), one for memory (binds, drops, pins, rescues, waits) and the counters;
// process "GPU" has one track per CUDA stream, from CUPTI. Times are microseconds since the
// recorder was made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "profiler/recorder.h"

namespace tidepool {

// A piece of device activity, from CUPTI. Times in nanoseconds of Recorder::Now().
struct DeviceActivity {
  enum class Kind : uint8_t { kKernel, kMemcpy, kMemset };
  Kind kind = Kind::kKernel;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t stream = 0;
  uint32_t device = 0;
  uint64_t bytes = 0;
  uint64_t correlation = 0;
  std::string name;
};

struct MemorySample {
  uint64_t time_ns = 0;
  uint64_t physical = 0, resident = 0, live = 0, pinned = 0;  // bytes
};

struct TimelineEvent {
  EventKind kind = EventKind::kOp;
  uint64_t start_ns = 0;
  uint64_t duration_ns = 0;
  uint32_t name = 0;  // index into Timeline::names
  uint32_t stream = 0;
  uint64_t bytes = 0;
  uint64_t buffer = 0;
};

struct Timeline {
  std::vector<std::string> names;
  std::vector<TimelineEvent> events;
  std::vector<MemorySample> memory;
  std::vector<DeviceActivity> device;
  uint64_t dropped_events = 0;  // beyond the recorder's bound
  std::string note;             // why there is no device activity, if so
};

// The trace as text: one JSON object.
std::string ChromeTrace(const Timeline& timeline);

// A recorder that writes the trace to `path` when finished (or destroyed): to a temporary name
// beside it, then renamed. Null, with `*error` set, if the path cannot be written to.
std::unique_ptr<Recorder> MakeTimelineRecorder(const std::string& path, std::string* error);

}  // namespace tidepool
