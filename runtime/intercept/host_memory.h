// Memory that both the host and the device can reach (managed, pinned, registered), as far as
// pointers into the pool may lie there unseen: the host writes them without a call.
//
// A kernel that follows addresses loaded from memory may reach them. Whether any such road is open
// is known here; what to do about it is decided at the launch. Thread-safe.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <shared_mutex>

namespace tidepool {

class HostMemory {
 public:
  static HostMemory& Get();

  void Add(uint64_t address, uint64_t bytes);
  void Remove(uint64_t address);
  // True if the address lies in memory that was added.
  bool Contains(uint64_t address) const;
  // The same, and pageable memory of the host where the device can reach that.
  bool IsShared(uint64_t address) const;
  // True if some eight bytes of the host's [data, data + bytes) are such an address.
  bool NamedIn(const void* data, uint64_t bytes) const;

  // The program enqueued a function of the host: what lies in pinned memory when a copy is enqueued
  // is not what the copy will find.
  void OnHostFunction() { host_functions_ = true; }
  bool host_functions() const { return host_functions_; }

  // Device memory may hold addresses that were not seen on their way: an upload's content was not
  // final when it was looked at, or memory of the host was named in device memory.
  void OnUnseenPointers() { unseen_pointers_ = true; }
  bool unseen_pointers() const { return unseen_pointers_; }

 private:
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, uint64_t> ranges_;  // address to end
  std::atomic<uint64_t> low_{~uint64_t{0}}, high_{0};
  std::atomic<bool> host_functions_{false}, unseen_pointers_{false};
};

// What lies behind an address that a copy reads or a kernel is handed.
enum class MemoryKind : uint8_t {
  kPageable,  // of the host, unknown to the driver
  kPinned,    // of the host, allocated or registered
  kManaged,
  kDevice,  // of the driver's, or of another owner on the device
};
MemoryKind KindOf(uint64_t address);

}  // namespace tidepool
