// The device memory calls that the allocator makes, as an interface: the runtime implements it with
// the driver's virtual memory management (cuMemCreate, cuMemAddressReserve, cuMemMap, ...), tests
// with a fake.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tidepool {

class MemoryDevice {
 public:
  virtual ~MemoryDevice() = default;

  // Allocation granularity in bytes: chunk sizes and mapped addresses are multiples of it.
  virtual uint64_t Granularity() const = 0;

  // Physical memory (cuMemCreate). ResourceExhausted if the device has no more.
  virtual absl::StatusOr<uint64_t> CreateChunk(uint64_t bytes) = 0;
  virtual absl::Status ReleaseChunk(uint64_t handle) = 0;

  // Address ranges (cuMemAddressReserve / cuMemAddressFree).
  virtual absl::StatusOr<uint64_t> Reserve(uint64_t bytes) = 0;
  virtual absl::Status Unreserve(uint64_t address, uint64_t bytes) = 0;

  // Mappings. Map takes a whole chunk; SetAccess makes a mapped range readable and writable and may
  // span several chunks; Unmap takes a range of whole mappings. None of them waits for the device.
  virtual absl::Status Map(uint64_t address, uint64_t bytes, uint64_t handle) = 0;
  virtual absl::Status SetAccess(uint64_t address, uint64_t bytes) = 0;
  virtual absl::Status Unmap(uint64_t address, uint64_t bytes) = 0;
};

}  // namespace tidepool
