#include "tools/simgpu/exec/heap.h"

#include <cstring>

namespace simgpu {
namespace {

constexpr uint64_t kLimit = uint64_t{8} << 20;

}  // namespace

DeviceHeap& DeviceHeap::Get() {
  static DeviceHeap* const heap = new DeviceHeap;
  return *heap;
}

uint64_t DeviceHeap::Allocate(uint64_t bytes) {
  if (bytes == 0 || bytes > kLimit) return 0;
  const uint64_t rounded = (bytes + 15) / 16 * 16;
  std::lock_guard<std::mutex> lock(mutex_);
  if (used_ + rounded > kLimit) return 0;
  Piece piece;
  piece.storage = std::make_unique<uint8_t[]>(rounded + 16);
  piece.bytes = bytes;
  const uint64_t address = (reinterpret_cast<uint64_t>(piece.storage.get()) + 15) / 16 * 16;
  std::memset(reinterpret_cast<void*>(address), 0xcd, rounded);
  used_ += rounded;
  pieces_[address] = std::move(piece);
  return address;
}

bool DeviceHeap::Free(uint64_t address) {
  if (address == 0) return true;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = pieces_.find(address);
  if (found == pieces_.end()) return false;
  used_ -= (found->second.bytes + 15) / 16 * 16;
  pieces_.erase(found);
  return true;
}

bool DeviceHeap::Contains(uint64_t address, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = pieces_.upper_bound(address);
  if (found == pieces_.begin()) return false;
  --found;
  const uint64_t offset = address - found->first;
  return offset < found->second.bytes && bytes <= found->second.bytes - offset;
}

}  // namespace simgpu
