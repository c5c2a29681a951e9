// Order between streams, as far as Tidepool has to add to it: who used which memory on which
// stream, device side waits (cuStreamWaitEvent) and host side waits (cuEventSynchronize) for
// exactly that.
//
// Ops on a stream are numbered; every few ops an event is recorded, so that a wait for an old op
// finds an event shortly behind it and not the end of all queued work. Not thread-safe (the
// engine's lock).
#pragma once

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "runtime/driver/driver_api.h"
#include "runtime/lineage/use_set.h"
#include "runtime/residency/op_request.h"

namespace tidepool {

class StreamOrder {
 public:
  explicit StreamOrder(const DriverApi* api) : api_(api) {}
  ~StreamOrder();
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;

  // The engine's number of the stream; handle 0 means the legacy default stream, or, in per-thread
  // calls, the calling thread's own. A destroyed stream's handle gets a new number when it comes
  // again.
  uint32_t Resolve(StreamRef stream);
  // What to pass to the (legacy-form) driver functions for this stream.
  CUstream Handle(uint32_t stream) const { return streams_[stream].handle; }

  // An op was issued on the stream: its sequence number.
  uint64_t Commit(uint32_t stream);

  // Work issued on `stream` from now on runs after these uses.
  absl::Status WaitFor(uint32_t stream, const UseSet& uses);
  // Returns once these uses are complete. `*waited` is set if the host may have blocked.
  absl::Status HostWait(const UseSet& uses, bool* waited);

  // The same for all that was issued on one stream, or on every stream.
  absl::Status HostWaitFor(uint32_t stream);
  absl::Status HostWaitAll();

  void OnDestroy(CUstream handle);
  // The context is gone with all its streams and events.
  void Abandon();

 private:
  struct Checkpoint {
    uint64_t sequence = 0;
    CUevent event = nullptr;
  };
  struct Stream {
    CUstream handle = nullptr;
    bool per_thread_default = false;  // its events can be recorded by its own thread only
    bool destroyed = false;
    uint64_t issued = 0;
    uint64_t completed = 0;              // known to be complete up to here
    std::deque<Checkpoint> checkpoints;  // by sequence
    std::vector<uint64_t> waited_for;  // [other stream] = ops of it that this one already waits for
  };

  absl::Status AddCheckpoint(Stream& stream);
  // The earliest checkpoint at or behind `sequence`, made now if there is none.
  absl::Status CheckpointFor(Stream& stream, uint64_t sequence, Checkpoint* out);

  const DriverApi* api_;
  std::deque<Stream> streams_;
  absl::flat_hash_map<uint64_t, uint32_t> by_handle_;
  std::vector<CUevent> spare_events_;
};

}  // namespace tidepool
