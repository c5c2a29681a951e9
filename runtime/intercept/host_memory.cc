#include "runtime/intercept/host_memory.h"

#include <algorithm>
#include <mutex>

#include "runtime/intercept/hook.h"
#include "runtime/residency/word_scan.h"

namespace tidepool {

HostMemory& HostMemory::Get() {
  static HostMemory* memory = new HostMemory;
  return *memory;
}

void HostMemory::Add(uint64_t address, uint64_t bytes) {
  if (address == 0 || bytes == 0) return;
  std::unique_lock<std::shared_mutex> lock(mutex_);
  ranges_[address] = address + bytes;
  low_ = std::min(low_.load(), address);
  high_ = std::max(high_.load(), address + bytes);
}

void HostMemory::Remove(uint64_t address) {
  std::unique_lock<std::shared_mutex> lock(mutex_);
  ranges_.erase(address);
}

bool HostMemory::Contains(uint64_t address) const {
  if (address < low_ || address >= high_) return false;
  std::shared_lock<std::shared_mutex> lock(mutex_);
  auto it = ranges_.upper_bound(address);
  return it != ranges_.begin() && address < std::prev(it)->second;
}

bool HostMemory::IsShared(uint64_t address) const {
  if (Contains(address)) return true;
  static const bool pageable = [] {
    int value = 0;
    const DriverApi& api = GetDriverApi();
    return api.DeviceGetAttribute == nullptr ||
           api.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
                                  ManagedDevice()) != CUDA_SUCCESS ||
           value != 0;
  }();
  // What lies beyond the addresses of user space is a number.
  constexpr uint64_t kFirst = uint64_t{1} << 32, kLast = uint64_t{1} << 47;
  return pageable && address > kFirst && address < kLast &&
         KindOf(address) == MemoryKind::kPageable;
}

bool HostMemory::NamedIn(const void* data, uint64_t bytes) const {
  const uint64_t low = low_, high = high_;
  if (low > high) return false;
  // Any result but success ends the scan.
  return ForEachWordWithin(data, bytes, low, high, [this](uint64_t word) {
           return Contains(word) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
         }) != CUDA_SUCCESS;
}

MemoryKind KindOf(uint64_t address) {
  using F = CUresult(CUDAAPI*)(void*, CUpointer_attribute, CUdeviceptr);
  static const auto real = Real<F>("cuPointerGetAttribute");
  unsigned type = 0, managed = 0;
  if (real == nullptr || real(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS) {
    return MemoryKind::kPageable;
  }
  if (real(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS && managed != 0) {
    return MemoryKind::kManaged;
  }
  return type == CU_MEMORYTYPE_HOST ? MemoryKind::kPinned : MemoryKind::kDevice;
}

}  // namespace tidepool
