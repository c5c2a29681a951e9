// Collects the runtime's own events for the timeline: cheap, bounded, thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tidepool {

enum class EventKind : uint8_t {
  kOp,       // an op of the program, issued
  kRebuild,  // an op replayed
  kBind,     // a value got chunks
  kDrop,     // a value was dropped
  kSwapOut,  // a value was copied to the host and gave its chunks up
  kSwapIn,   // and back
  kPin,
  kRescue,
  kStall,  // the host waited for the device
  kOutOfMemory,
};
std::string_view EventKindName(EventKind kind);

struct Event {
  EventKind kind = EventKind::kOp;
  uint64_t start_ns = 0;     // Recorder::Now()
  uint64_t duration_ns = 0;  // 0: an instant
  std::string_view name;     // copied (interned) by the recorder
  uint64_t stream = 0;       // the engine's stream number
  uint64_t bytes = 0;
  uint64_t buffer = 0;  // buffer id, 0 for none
};

class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual uint64_t Now() = 0;  // nanoseconds, monotonic
  virtual void Record(const Event& event) = 0;
  // Writes what was collected, once; called when the program ends. Errors are the implementation's
  // to report.
  virtual void Finish() {}
  // One sample of the memory counters, in bytes.
  virtual void Memory(uint64_t physical, uint64_t resident, uint64_t live, uint64_t pinned) = 0;
};

}  // namespace tidepool
