// The heap of device-side malloc and free: host memory that kernels may touch. Process-wide,
// thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace simgpu {

class DeviceHeap {
 public:
  static DeviceHeap& Get();
  // 16-byte aligned, poisoned; 0 when the heap's limit (CUDA's default of 8 MiB) is reached.
  uint64_t Allocate(uint64_t bytes);
  // False: nothing of that address is allocated. Freeing 0 is fine.
  bool Free(uint64_t address);
  bool Contains(uint64_t address, uint64_t bytes);

 private:
  struct Piece {
    std::unique_ptr<uint8_t[]> storage;
    uint64_t bytes = 0;
  };
  std::mutex mutex_;
  std::map<uint64_t, Piece> pieces_;  // by address
  uint64_t used_ = 0;
};

}  // namespace simgpu
