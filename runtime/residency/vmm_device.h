// MemoryDevice and HostMemory by the driver's virtual memory management and pinned host memory.
// Thread-safe as far as the driver is.
#pragma once

#include <cuda.h>

#include "allocator/host_pool.h"
#include "allocator/memory_device.h"
#include "runtime/driver/driver_api.h"

namespace tidepool {

// InvalidArgument and the like never come: a driver error is ResourceExhausted for
// CUDA_ERROR_OUT_OF_MEMORY, and otherwise Internal with the call's and the error's name.
absl::Status DriverStatus(const DriverApi& api, const char* call, CUresult result);

// The driver's result that such a status was made from, or what comes nearest to another status.
CUresult ResultOf(const absl::Status& status);

class VmmDevice final : public MemoryDevice, public HostMemory {
 public:
  // Errors: the driver lacks a function that is needed, or cannot tell its granularity.
  static absl::StatusOr<VmmDevice> Create(const DriverApi& api, CUdevice device);

  // The context is gone: every later call succeeds and does nothing.
  void Abandon() { abandoned_ = true; }
  // The same for a new context on the same device.
  VmmDevice Renewed() const {
    VmmDevice copy = *this;
    copy.abandoned_ = false;
    return copy;
  }

  uint64_t Granularity() const override { return granularity_; }
  absl::StatusOr<uint64_t> CreateChunk(uint64_t bytes) override;
  absl::Status ReleaseChunk(uint64_t handle) override;
  absl::StatusOr<uint64_t> Reserve(uint64_t bytes) override;
  absl::Status Unreserve(uint64_t address, uint64_t bytes) override;
  absl::Status Map(uint64_t address, uint64_t bytes, uint64_t handle) override;
  absl::Status SetAccess(uint64_t address, uint64_t bytes) override;
  absl::Status Unmap(uint64_t address, uint64_t bytes) override;
  absl::StatusOr<void*> AllocateHost(uint64_t bytes) override;
  absl::Status FreeHost(void* data) override;

 private:
  VmmDevice(const DriverApi& api, CUdevice device);
  const DriverApi* api_;
  CUmemAllocationProp properties_ = {};
  CUmemAccessDesc access_ = {};
  uint64_t granularity_ = 0;
  bool abandoned_ = false;
};

}  // namespace tidepool
