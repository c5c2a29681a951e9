#include "tools/simgpu/driver/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tools/simgpu/driver/settings.h"

namespace simgpu {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// First fit among free ranges; 0 if none.
bool TakeFrom(std::map<uint64_t, uint64_t>* ranges, uint64_t bytes, uint64_t align, uint64_t* at) {
  for (auto it = ranges->begin(); it != ranges->end(); ++it) {
    const uint64_t start = RoundUp(it->first, align);
    const uint64_t end = it->first + it->second;
    if (start + bytes > end) continue;
    const uint64_t first = it->first;
    ranges->erase(it);
    if (start > first) (*ranges)[first] = start - first;
    if (end > start + bytes) (*ranges)[start + bytes] = end - start - bytes;
    *at = start;
    return true;
  }
  return false;
}

void GiveTo(std::map<uint64_t, uint64_t>* ranges, uint64_t at, uint64_t bytes) {
  auto next = ranges->lower_bound(at);
  if (next != ranges->end() && at + bytes == next->first) {
    bytes += next->second;
    next = ranges->erase(next);
  }
  if (next != ranges->begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == at) {
      before->second += bytes;
      return;
    }
  }
  (*ranges)[at] = bytes;
}

}  // namespace

DeviceMemory& DeviceMemory::Get() {
  static DeviceMemory* memory = new DeviceMemory;
  return *memory;
}

DeviceMemory::DeviceMemory() {
  const Settings& settings = GetSettings();
  page_ = settings.page_bytes;
  capacity_ = settings.memory_bytes / page_ * page_;
  for (window_bytes_ = uint64_t{1} << 40; window_bytes_ >= uint64_t{1} << 34; window_bytes_ /= 2) {
    void* at = mmap(nullptr, window_bytes_ + page_, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) {
      window_ = RoundUp(reinterpret_cast<uint64_t>(at), page_);
      break;
    }
  }
  window_bytes_ = window_ != 0 ? window_bytes_ / page_ * page_ : 0;
  free_addresses_[window_] = window_bytes_;
  fd_ = memfd_create("simgpu", MFD_CLOEXEC);
  if (fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(capacity_)) != 0) {
    close(fd_);
    fd_ = -1;
  }
  if (fd_ >= 0) free_offsets_[0] = capacity_;
  map_.window_base = window_;
  map_.window_size = window_bytes_;
  map_.other = [this](uint64_t address, uint64_t bytes, bool) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = registered_.upper_bound(address);
    if (it == registered_.begin()) return false;
    --it;
    return address + bytes <= it->first + it->second.bytes;
  };
}

MemoryStats DeviceMemory::stats() {
  std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

uint64_t DeviceMemory::TakeAddress(uint64_t bytes, uint64_t align) {
  uint64_t at = 0;
  // A page without access behind every range, so that running off its end is noticed.
  return TakeFrom(&free_addresses_, bytes + page_, std::max(align, page_), &at) ? at : 0;
}

void DeviceMemory::GiveAddress(uint64_t address, uint64_t bytes) {
  GiveTo(&free_addresses_, address, bytes + page_);
}

void DeviceMemory::Poison(uint64_t offset, uint64_t bytes) {
  // A pattern that is a NaN as a float and far from zero as anything else, other with every seed.
  const uint32_t pattern = 0x7fc0dead ^ static_cast<uint32_t>(GetSettings().seed * 0x01010101u);
  constexpr uint64_t kMost = uint64_t{1}
                             << 30;  // what of one allocation is worth the host's memory
  const uint64_t length = std::min(bytes, kMost);
  void* at =
      mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(offset));
  if (at == MAP_FAILED) return;
  auto* words = static_cast<uint32_t*>(at);
  std::fill(words, words + length / 4, pattern);
  munmap(at, length);
}

CUresult DeviceMemory::CreateLocked(uint64_t bytes, uint64_t* handle) {
  uint64_t offset = 0;
  if (stats_.physical + bytes > capacity_ || !TakeFrom(&free_offsets_, bytes, page_, &offset)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Poison(offset, bytes);
  *handle = next_handle_++;
  chunks_[*handle] = {offset, bytes, 1, 0};
  stats_.physical += bytes;
  stats_.peak_physical = std::max(stats_.peak_physical, stats_.physical);
  return CUDA_SUCCESS;
}

void DeviceMemory::DropReference(uint64_t handle) {
  auto it = chunks_.find(handle);
  if (it == chunks_.end() || it->second.references > 0 || it->second.mappings > 0) return;
  stats_.physical -= it->second.bytes;
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(it->second.offset),
            static_cast<off_t>(it->second.bytes));
  GiveTo(&free_offsets_, it->second.offset, it->second.bytes);
  chunks_.erase(it);
}

CUresult DeviceMemory::MapLocked(uint64_t address, uint64_t handle, int protection) {
  const Chunk& chunk = chunks_[handle];
  void* at = mmap(reinterpret_cast<void*>(address), chunk.bytes, protection, MAP_SHARED | MAP_FIXED,
                  fd_, static_cast<off_t>(chunk.offset));
  return at == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult DeviceMemory::Alloc(uint64_t bytes, uint64_t* address) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.alloc;
  if (bytes > page_ / 2) {
    const uint64_t size = RoundUp(bytes, page_);
    uint64_t handle = 0;
    if (CUresult result = CreateLocked(size, &handle); result != CUDA_SUCCESS) return result;
    const uint64_t at = TakeAddress(size, page_);
    if (at == 0 || MapLocked(at, handle, PROT_READ | PROT_WRITE) != CUDA_SUCCESS) {
      chunks_[handle].references = 0;
      DropReference(handle);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocations_[at] = {bytes, handle, 0};
    *address = at;
    return CUDA_SUCCESS;
  }
  const uint64_t size = RoundUp(bytes, 512);
  for (auto& [base, block] : blocks_) {
    uint64_t offset = 0;
    if (!TakeFrom(&block.free, size, 512, &offset)) continue;
    ++block.live;
    *address = base + offset;
    allocations_[*address] = {bytes, 0, base};
    return CUDA_SUCCESS;
  }
  uint64_t handle = 0;
  if (CUresult result = CreateLocked(page_, &handle); result != CUDA_SUCCESS) return result;
  const uint64_t at = TakeAddress(page_, page_);
  if (at == 0 || MapLocked(at, handle, PROT_READ | PROT_WRITE) != CUDA_SUCCESS) {
    chunks_[handle].references = 0;
    DropReference(handle);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Block& block = blocks_[at];
  block.handle = handle;
  block.live = 1;
  if (page_ > size) block.free[size] = page_ - size;
  allocations_[at] = {bytes, 0, at};
  *address = at;
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::Free(uint64_t address) {
  if (address == 0) return CUDA_SUCCESS;
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = allocations_.find(address);
  if (it == allocations_.end()) return CUDA_ERROR_INVALID_VALUE;
  ++stats_.free;
  FreeLocked(it);
  return CUDA_SUCCESS;
}

void DeviceMemory::FreeLocked(std::map<uint64_t, Allocation>::iterator it) {
  const uint64_t address = it->first;
  const Allocation allocation = it->second;
  allocations_.erase(it);
  uint64_t handle = allocation.handle, base = address;
  if (handle == 0) {
    Block& block = blocks_[allocation.block];
    GiveTo(&block.free, address - allocation.block, RoundUp(allocation.bytes, 512));
    if (--block.live > 0) return;
    handle = block.handle;
    base = allocation.block;
    blocks_.erase(allocation.block);
  }
  const uint64_t size = chunks_[handle].bytes;
  mmap(reinterpret_cast<void*>(base), size, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  GiveAddress(base, size);
  chunks_[handle].references = 0;
  DropReference(handle);
}

void DeviceMemory::Reset() {
  std::lock_guard<std::mutex> lock(mutex_);
  while (!allocations_.empty()) FreeLocked(allocations_.begin());
  while (!host_.empty()) FreeHostLocked(host_.begin());
  registered_.clear();
}

bool DeviceMemory::FindRange(uint64_t address, uint64_t* base, uint64_t* bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto inside = [&](uint64_t start, uint64_t size) {
    if (address - start >= size) return false;
    *base = start;
    *bytes = size;
    return true;
  };
  auto it = allocations_.upper_bound(address);
  if (it != allocations_.begin() && inside(std::prev(it)->first, std::prev(it)->second.bytes)) {
    return true;
  }
  auto mapping = mappings_.upper_bound(address);
  return mapping != mappings_.begin() &&
         inside(std::prev(mapping)->first, std::prev(mapping)->second.bytes);
}

CUresult DeviceMemory::AllocHost(uint64_t bytes, unsigned flags, bool managed, uint64_t* address) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t size = RoundUp(bytes, page_);
  const uint64_t at = TakeAddress(size, page_);
  if (at == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  void* mapped = mmap(reinterpret_cast<void*>(at), size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (mapped == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  host_[at] = {size, flags, managed};
  *address = at;
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::FreeHost(uint64_t address, bool managed) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = host_.find(address);
  if (it == host_.end() || it->second.managed != managed) return CUDA_ERROR_INVALID_VALUE;
  FreeHostLocked(it);
  return CUDA_SUCCESS;
}

void DeviceMemory::FreeHostLocked(std::map<uint64_t, HostBlock>::iterator it) {
  mmap(reinterpret_cast<void*>(it->first), it->second.bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  GiveAddress(it->first, it->second.bytes);
  host_.erase(it);
}

CUresult DeviceMemory::RegisterHost(uint64_t address, uint64_t bytes, unsigned flags) {
  if (bytes == 0 || address == 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> lock(mutex_);
  auto next = registered_.lower_bound(address);
  const bool overlaps_next = next != registered_.end() && next->first < address + bytes;
  const bool overlaps_last = next != registered_.begin() &&
                             std::prev(next)->first + std::prev(next)->second.bytes > address;
  if (overlaps_next || overlaps_last) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  registered_[address] = {bytes, flags, false};
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::UnregisterHost(uint64_t address) {
  std::lock_guard<std::mutex> lock(mutex_);
  return registered_.erase(address) != 0 ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

const DeviceMemory::HostBlock* DeviceMemory::FindHost(uint64_t address, uint64_t* base) const {
  for (const auto* table : {&host_, &registered_}) {
    auto it = table->upper_bound(address);
    if (it == table->begin()) continue;
    --it;
    if (address - it->first >= it->second.bytes) continue;
    *base = it->first;
    return &it->second;
  }
  return nullptr;
}

bool DeviceMemory::IsPinnedHost(uint64_t address) {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t base = 0;
  return FindHost(address, &base) != nullptr;
}

bool DeviceMemory::HostFlags(uint64_t address, unsigned* flags) {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t base = 0;
  const HostBlock* block = FindHost(address, &base);
  if (block == nullptr || block->managed) return false;
  *flags = block->flags;
  return true;
}

bool DeviceMemory::IsManaged(uint64_t address) {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t base = 0;
  const HostBlock* block = FindHost(address, &base);
  return block != nullptr && block->managed;
}

bool DeviceMemory::IsReachable(uint64_t address, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto inside = [&](uint64_t base, uint64_t size) {
    return address - base < size && bytes <= size - (address - base);
  };
  auto allocation = allocations_.upper_bound(address);
  if (allocation != allocations_.begin()) {
    --allocation;
    if (inside(allocation->first, allocation->second.bytes)) return true;
  }
  uint64_t base = 0;
  if (const HostBlock* block = FindHost(address, &base); block != nullptr) {
    return inside(base, block->bytes);
  }
  auto area = variables_.upper_bound(address);
  if (area != variables_.begin()) {
    --area;
    if (inside(area->first, area->second)) return true;
  }
  const uint64_t end = address + bytes;
  auto mapping = mappings_.upper_bound(address);
  if (mapping == mappings_.begin() || end < address) return false;
  uint64_t at = address;
  for (--mapping; mapping != mappings_.end() && mapping->first <= at; ++mapping) {
    if (mapping->second.access == CU_MEM_ACCESS_FLAGS_PROT_NONE) return false;
    if (at - mapping->first >= mapping->second.bytes) return false;
    at = mapping->first + mapping->second.bytes;
    if (at >= end) return true;
  }
  return false;
}

uint64_t DeviceMemory::AllocVariable(uint64_t bytes, uint64_t align) {
  std::lock_guard<std::mutex> lock(mutex_);
  variable_at_ = RoundUp(variable_at_, std::max<uint64_t>(align, 16));
  if (variable_at_ + bytes > variable_end_ || variable_at_ == 0) {
    const uint64_t size = RoundUp(std::max<uint64_t>(bytes, uint64_t{1} << 20), page_);
    const uint64_t at = TakeAddress(size, page_);
    if (at == 0) return 0;
    void* mapped = mmap(reinterpret_cast<void*>(at), size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (mapped == MAP_FAILED) return 0;
    variables_[at] = size;
    variable_at_ = at;
    variable_end_ = at + size;
  }
  const uint64_t at = variable_at_;
  variable_at_ += std::max<uint64_t>(bytes, 1);
  return at;
}

CUresult DeviceMemory::Reserve(uint64_t bytes, uint64_t alignment, uint64_t* address) {
  if (bytes == 0 || bytes % page_ != 0 || (alignment & (alignment - 1)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t at = TakeAddress(bytes, std::max(page_, alignment));
  if (at == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  reservations_[at] = bytes;
  *address = at;
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::Unreserve(uint64_t address, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = reservations_.find(address);
  if (it == reservations_.end() || it->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  auto mapping = mappings_.lower_bound(address);
  if (mapping != mappings_.end() && mapping->first < address + bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  reservations_.erase(it);
  GiveAddress(address, bytes);
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::Create(uint64_t bytes, uint64_t* handle) {
  if (bytes == 0 || bytes % page_ != 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.create;
  return CreateLocked(bytes, handle);
}

CUresult DeviceMemory::Release(uint64_t handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = chunks_.find(handle);
  if (it == chunks_.end() || it->second.references == 0) return CUDA_ERROR_INVALID_VALUE;
  --it->second.references;
  DropReference(handle);
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::Retain(uint64_t address, uint64_t* handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = mappings_.upper_bound(address);
  if (it == mappings_.begin()) return CUDA_ERROR_INVALID_VALUE;
  --it;
  if (address - it->first >= it->second.bytes) return CUDA_ERROR_INVALID_VALUE;
  *handle = it->second.handle;
  ++chunks_[*handle].references;
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::Map(uint64_t address, uint64_t bytes, uint64_t handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.map;
  auto chunk = chunks_.find(handle);
  if (chunk == chunks_.end() || chunk->second.references == 0 || chunk->second.bytes != bytes ||
      address % page_ != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto range = reservations_.upper_bound(address);
  if (range == reservations_.begin()) return CUDA_ERROR_INVALID_VALUE;
  --range;
  if (address + bytes > range->first + range->second) return CUDA_ERROR_INVALID_VALUE;
  auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first < address + bytes) return CUDA_ERROR_INVALID_VALUE;
  if (next != mappings_.begin() &&
      std::prev(next)->first + std::prev(next)->second.bytes > address) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (CUresult result = MapLocked(address, handle, PROT_NONE); result != CUDA_SUCCESS)
    return result;
  mappings_[address] = {bytes, handle, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  ++chunk->second.mappings;
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::Unmap(uint64_t address, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  // Whole mappings only, and all of the range mapped.
  uint64_t at = address, count = 0;
  while (at < address + bytes) {
    auto it = mappings_.find(at);
    if (it == mappings_.end()) return CUDA_ERROR_INVALID_VALUE;
    at += it->second.bytes;
    ++count;
  }
  if (at != address + bytes || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  stats_.unmap += count;
  mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  for (at = address; at < address + bytes;) {
    auto it = mappings_.find(at);
    at += it->second.bytes;
    const uint64_t handle = it->second.handle;
    --chunks_[handle].mappings;
    mappings_.erase(it);
    DropReference(handle);
  }
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::SetAccess(uint64_t address, uint64_t bytes, bool read, bool write) {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t at = address;
  while (at < address + bytes) {
    auto it = mappings_.find(at);
    if (it == mappings_.end()) return CUDA_ERROR_INVALID_VALUE;
    at += it->second.bytes;
  }
  if (at != address + bytes || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  for (at = address; at < address + bytes;) {
    Mapping& mapping = mappings_[at];
    mapping.access = write  ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                     : read ? CU_MEM_ACCESS_FLAGS_PROT_READ
                            : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    ++stats_.set_access;
    at += mapping.bytes;
  }
  const int protection = (read ? PROT_READ : 0) | (write ? PROT_WRITE : 0);
  return mprotect(reinterpret_cast<void*>(address), bytes, protection) == 0
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult DeviceMemory::GetAccess(uint64_t address, unsigned long long* flags) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = mappings_.upper_bound(address);
  if (it == mappings_.begin()) return CUDA_ERROR_INVALID_VALUE;
  --it;
  if (address - it->first >= it->second.bytes) return CUDA_ERROR_INVALID_VALUE;
  *flags = it->second.access;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
