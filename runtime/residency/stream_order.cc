#include "runtime/residency/stream_order.h"

#include <algorithm>
#include <atomic>

#include "runtime/residency/vmm_device.h"

namespace tidepool {
namespace {

// Recording an event costs about half a microsecond of host time, so not every op gets one.
constexpr uint64_t kOpsPerCheckpoint = 8;
constexpr size_t kMaxCheckpoints = 64;

// Handles of per-thread default streams all read CU_STREAM_PER_THREAD: told apart by a thread
// number. Numbers are never reused, unlike thread ids.
uint64_t ThisThread() {
  static std::atomic<uint64_t> next{1};
  thread_local uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

constexpr uint64_t kThreadKeyBit = 1ull << 63;  // no host pointer has it set

}  // namespace

StreamOrder::~StreamOrder() {
  for (Stream& stream : streams_) {
    for (const Checkpoint& checkpoint : stream.checkpoints) api_->EventDestroy(checkpoint.event);
  }
  for (CUevent event : spare_events_) api_->EventDestroy(event);
}

void StreamOrder::Abandon() {
  streams_.clear();
  by_handle_.clear();
  spare_events_.clear();
}

uint32_t StreamOrder::Resolve(StreamRef ref) {
  const bool own = ref.handle == CU_STREAM_PER_THREAD || (ref.handle == nullptr && ref.per_thread);
  CUstream handle = own ? CU_STREAM_PER_THREAD
                    : (ref.handle == nullptr || ref.handle == CU_STREAM_LEGACY) ? CU_STREAM_LEGACY
                                                                                : ref.handle;
  const uint64_t key = own ? (kThreadKeyBit | ThisThread()) : reinterpret_cast<uint64_t>(handle);
  auto [it, inserted] = by_handle_.try_emplace(key, static_cast<uint32_t>(streams_.size()));
  if (inserted) {
    Stream& stream = streams_.emplace_back();
    stream.handle = handle;
    stream.per_thread_default = own;
  }
  return it->second;
}

uint64_t StreamOrder::Commit(uint32_t id) {
  Stream& stream = streams_[id];
  ++stream.issued;
  const uint64_t last = stream.checkpoints.empty() ? 0 : stream.checkpoints.back().sequence;
  if (stream.per_thread_default || stream.issued - last >= kOpsPerCheckpoint) {
    // A failure shows again, and is reported, when somebody needs to wait.
    AddCheckpoint(stream).IgnoreError();
  }
  return stream.issued;
}

absl::Status StreamOrder::AddCheckpoint(Stream& stream) {
  Checkpoint checkpoint{stream.issued, nullptr};
  if (stream.checkpoints.size() >= kMaxCheckpoints) {
    // A wait for something this old takes the next one.
    checkpoint.event = stream.checkpoints.front().event;
    stream.checkpoints.pop_front();
  } else if (!spare_events_.empty()) {
    checkpoint.event = spare_events_.back();
    spare_events_.pop_back();
  } else {
    absl::Status status = DriverStatus(
        *api_, "cuEventCreate", api_->EventCreate(&checkpoint.event, CU_EVENT_DISABLE_TIMING));
    if (!status.ok()) return status;
  }
  absl::Status status =
      DriverStatus(*api_, "cuEventRecord", api_->EventRecord(checkpoint.event, stream.handle));
  if (!status.ok()) {
    spare_events_.push_back(checkpoint.event);
    return status;
  }
  stream.checkpoints.push_back(checkpoint);
  return absl::OkStatus();
}

absl::Status StreamOrder::CheckpointFor(Stream& stream, uint64_t sequence, Checkpoint* out) {
  auto it = std::lower_bound(stream.checkpoints.begin(), stream.checkpoints.end(), sequence,
                             [](const Checkpoint& c, uint64_t s) { return c.sequence < s; });
  if (it == stream.checkpoints.end()) {
    if (stream.destroyed || stream.per_thread_default) {
      return absl::InternalError("no event behind the last op of a stream that cannot be reached");
    }
    if (absl::Status status = AddCheckpoint(stream); !status.ok()) return status;
    it = stream.checkpoints.end() - 1;
  }
  *out = *it;
  return absl::OkStatus();
}

absl::Status StreamOrder::WaitFor(uint32_t id, const UseSet& uses) {
  for (const StreamUse& use : uses.uses()) {
    if (use.stream == id) continue;
    Stream& self = streams_[id];
    Stream& other = streams_[use.stream];
    if (use.sequence <= other.completed) continue;
    if (self.waited_for.size() <= use.stream) self.waited_for.resize(use.stream + 1, 0);
    if (self.waited_for[use.stream] >= use.sequence) continue;
    Checkpoint checkpoint;
    if (absl::Status status = CheckpointFor(other, use.sequence, &checkpoint); !status.ok()) {
      return status;
    }
    absl::Status status =
        DriverStatus(*api_, "cuStreamWaitEvent",
                     api_->StreamWaitEvent(self.handle, checkpoint.event, CU_EVENT_WAIT_DEFAULT));
    if (!status.ok()) return status;
    self.waited_for[use.stream] = checkpoint.sequence;
  }
  return absl::OkStatus();
}

absl::Status StreamOrder::HostWait(const UseSet& uses, bool* waited) {
  for (const StreamUse& use : uses.uses()) {
    Stream& stream = streams_[use.stream];
    if (use.sequence <= stream.completed) continue;
    Checkpoint checkpoint;
    if (absl::Status status = CheckpointFor(stream, use.sequence, &checkpoint); !status.ok()) {
      return status;
    }
    if (api_->EventQuery(checkpoint.event) != CUDA_SUCCESS) {
      *waited = true;
      absl::Status status =
          DriverStatus(*api_, "cuEventSynchronize", api_->EventSynchronize(checkpoint.event));
      if (!status.ok()) return status;
    }
    stream.completed = std::max(stream.completed, checkpoint.sequence);
  }
  return absl::OkStatus();
}

absl::Status StreamOrder::HostWaitFor(uint32_t id) {
  if (streams_[id].issued == 0) return absl::OkStatus();
  UseSet all;
  all.Add(id, streams_[id].issued);
  bool waited = false;
  return HostWait(all, &waited);
}

absl::Status StreamOrder::HostWaitAll() {
  for (uint32_t id = 0; id < streams_.size(); ++id) {
    if (absl::Status status = HostWaitFor(id); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void StreamOrder::OnDestroy(CUstream handle) {
  auto it = by_handle_.find(reinterpret_cast<uint64_t>(handle));
  if (it == by_handle_.end()) return;
  Stream& stream = streams_[it->second];
  const uint64_t last = stream.checkpoints.empty() ? 0 : stream.checkpoints.back().sequence;
  if (stream.issued > std::max(last, stream.completed)) AddCheckpoint(stream).IgnoreError();
  stream.destroyed = true;
  by_handle_.erase(it);
}

}  // namespace tidepool
