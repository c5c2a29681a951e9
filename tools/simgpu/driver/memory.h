// Device memory: one large window of addresses without access, physical memory as ranges of one
// memfd that can be mapped at several addresses, and allocations made of both. Thread-safe.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "tools/simgpu/exec/exec.h"

namespace simgpu {

struct MemoryStats {
  uint64_t physical = 0, peak_physical = 0;
  uint64_t create = 0, map = 0, unmap = 0, set_access = 0, alloc = 0, free = 0;
};

class DeviceMemory {
 public:
  static DeviceMemory& Get();

  uint64_t window_base() const { return window_; }
  uint64_t window_bytes() const { return window_bytes_; }
  uint64_t capacity() const { return capacity_; }
  uint64_t page() const { return page_; }
  MemoryStats stats();

  // cuMemAlloc and friends.
  CUresult Alloc(uint64_t bytes, uint64_t* address);
  CUresult Free(uint64_t address);
  // The allocation or reservation-mapped chunk that contains the address.
  bool FindRange(uint64_t address, uint64_t* base, uint64_t* bytes);

  // Memory that kernels can reach and the host owns. Window addresses too, so that kernels reach it
  // directly.
  CUresult AllocHost(uint64_t bytes, uint64_t* address);
  CUresult FreeHost(uint64_t address);
  CUresult RegisterHost(uint64_t address, uint64_t bytes);
  CUresult UnregisterHost(uint64_t address);
  bool IsPinnedHost(uint64_t address);
  bool InWindow(uint64_t address) const { return address - window_ < window_bytes_; }

  // Memory of module variables: not counted.
  uint64_t AllocVariable(uint64_t bytes, uint64_t align);

  // Virtual memory management.
  CUresult Reserve(uint64_t bytes, uint64_t alignment, uint64_t* address);
  CUresult Unreserve(uint64_t address, uint64_t bytes);
  CUresult Create(uint64_t bytes, uint64_t* handle);
  CUresult Release(uint64_t handle);
  CUresult Retain(uint64_t address, uint64_t* handle);
  CUresult Map(uint64_t address, uint64_t bytes, uint64_t handle);
  CUresult Unmap(uint64_t address, uint64_t bytes);
  CUresult SetAccess(uint64_t address, uint64_t bytes, bool read, bool write);

  const MemoryMap& map() const { return map_; }

 private:
  struct Chunk {
    uint64_t offset = 0, bytes = 0;
    uint32_t references = 1, mappings = 0;
  };
  struct Mapping {
    uint64_t bytes = 0, handle = 0;
    bool access = false;
  };
  struct Allocation {
    uint64_t bytes = 0;   // as asked
    uint64_t handle = 0;  // 0: inside a block
    uint64_t block = 0;
  };
  struct Block {
    uint64_t handle = 0;
    uint64_t live = 0;
    std::map<uint64_t, uint64_t> free;  // offset -> bytes
  };

  DeviceMemory();
  uint64_t TakeAddress(uint64_t bytes, uint64_t align);
  void GiveAddress(uint64_t address, uint64_t bytes);
  CUresult CreateLocked(uint64_t bytes, uint64_t* handle);
  void DropReference(uint64_t handle);
  CUresult MapLocked(uint64_t address, uint64_t handle, int protection);
  void Poison(uint64_t offset, uint64_t bytes);

  std::mutex mutex_;
  uint64_t window_ = 0, window_bytes_ = 0, capacity_ = 0, page_ = 0;
  int fd_ = -1;
  std::map<uint64_t, uint64_t> free_addresses_, free_offsets_;
  std::map<uint64_t, Chunk> chunks_;
  std::map<uint64_t, uint64_t> reservations_;
  std::map<uint64_t, Mapping> mappings_;
  std::map<uint64_t, Allocation> allocations_;
  std::map<uint64_t, Block> blocks_;
  std::map<uint64_t, uint64_t> host_, registered_;
  uint64_t variable_at_ = 0, variable_end_ = 0;
  uint64_t next_handle_ = 1;
  MemoryStats stats_;
  MemoryMap map_;
};

}  // namespace simgpu
