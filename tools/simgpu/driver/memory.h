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
  CUresult AllocHost(uint64_t bytes, unsigned flags, bool managed, uint64_t* address);
  // Managed memory is freed as device memory is, other host memory as such.
  CUresult FreeHost(uint64_t address, bool managed);
  CUresult RegisterHost(uint64_t address, uint64_t bytes, unsigned flags);
  CUresult UnregisterHost(uint64_t address);
  bool IsPinnedHost(uint64_t address);
  // As it was allocated or registered; false for other memory.
  bool HostFlags(uint64_t address, unsigned* flags);
  bool IsManaged(uint64_t address);
  // Every byte can be reached from the device: inside one allocation, one piece of host memory or a
  // module's variables, or in mappings with access that follow each other.
  bool IsReachable(uint64_t address, uint64_t bytes);
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
  CUresult GetAccess(uint64_t address, unsigned long long* flags);

  // Frees the allocations of device and host memory that belong to a context. Memory made by Create
  // belongs to the process.
  void Reset();

  const MemoryMap& map() const { return map_; }

 private:
  struct Chunk {
    uint64_t offset = 0, bytes = 0;
    uint32_t references = 1, mappings = 0;
  };
  struct Mapping {
    uint64_t bytes = 0, handle = 0;
    unsigned long long access = 0;  // CUmemAccess_flags
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

  struct HostBlock {
    uint64_t bytes = 0;
    unsigned flags = 0;
    bool managed = false;
  };

  DeviceMemory();
  void FreeLocked(std::map<uint64_t, Allocation>::iterator it);
  void FreeHostLocked(std::map<uint64_t, HostBlock>::iterator it);
  const HostBlock* FindHost(uint64_t address, uint64_t* base) const;
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
  std::map<uint64_t, HostBlock> host_, registered_;
  std::map<uint64_t, uint64_t> variables_;  // areas of module variables
  uint64_t variable_at_ = 0, variable_end_ = 0;
  uint64_t next_handle_ = 1;
  MemoryStats stats_;
  MemoryMap map_;
};

}  // namespace simgpu
