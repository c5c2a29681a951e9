// Resolves addresses that the loads' fast paths did not: other windows, registered host memory,
// faults.
#include "tools/simgpu/exec/heap.h"
#include "tools/simgpu/exec/warp.h"

namespace simgpu {

void ThrowFault(Fault fault, uint64_t address, int lane, const char* text) {
  throw FaultError{fault, address, lane, text};
}

namespace {

bool Misaligned(uint64_t address, uint32_t bytes) { return (address & (bytes - 1)) != 0; }

const char* AccessName(bool write) { return write ? "write" : "read"; }

}  // namespace

uint8_t* SharedPointer(Warp& warp, int lane, uint64_t address, uint32_t bytes) {
  const Block& block = *warp.block;
  if (address >= block.shared_bytes || bytes > block.shared_bytes - address) {
    ThrowFault(Fault::kIllegalAddress, address, lane, "outside shared memory");
  }
  if (Misaligned(address, bytes)) {
    ThrowFault(Fault::kMisalignedAddress, address, lane, "shared memory");
  }
  return block.shared + address;
}

uint8_t* LocalPointer(Warp& warp, int lane, uint64_t address, uint32_t bytes) {
  const uint32_t stride = warp.block->local_stride;
  if (address >= stride || bytes > stride - address) {
    ThrowFault(Fault::kIllegalAddress, address, lane, "outside local memory");
  }
  if (Misaligned(address, bytes)) {
    ThrowFault(Fault::kMisalignedAddress, address, lane, "local memory");
  }
  return warp.local + static_cast<size_t>(lane) * stride + address;
}

uint8_t* GlobalPointer(Warp& warp, int lane, uint64_t address, uint32_t bytes, bool write) {
  const Block& block = *warp.block;
  const MemoryMap& memory = *block.launch->memory;
  auto* const host = reinterpret_cast<uint8_t*>(address);
  const bool in_window = address - block.window_base < block.window_size &&
                         bytes <= block.window_size - (address - block.window_base);
  if (!in_window) {
    const auto workspace = reinterpret_cast<uint64_t>(block.launch->grid_workspace);
    const bool known = address - workspace < sizeof(block.launch->grid_workspace) ||
                       DeviceHeap::Get().Contains(address, bytes) ||
                       (memory.other && memory.other(address, bytes, write));
    if (!known) ThrowFault(Fault::kIllegalAddress, address, lane, AccessName(write));
  }
  if (Misaligned(address, bytes)) {
    ThrowFault(Fault::kMisalignedAddress, address, lane, AccessName(write));
  }
  return host;
}

uint8_t* GenericPointer(Warp& warp, int lane, uint64_t address, uint32_t bytes, bool write) {
  if (address - kSharedWindow < kWindowBytes) {
    return SharedPointer(warp, lane, address - kSharedWindow, bytes);
  }
  if (address - kLocalWindow < kWindowBytes) {
    return LocalPointer(warp, lane, address - kLocalWindow, bytes);
  }
  if (address - kParamWindow < kWindowBytes) {
    const Block& block = *warp.block;
    const uint64_t offset = address - kParamWindow;
    if (write || offset >= block.params_bytes || bytes > block.params_bytes - offset) {
      ThrowFault(Fault::kIllegalAddress, address, lane, "kernel parameters");
    }
    return const_cast<uint8_t*>(block.params) + offset;
  }
  return GlobalPointer(warp, lane, address, bytes, write);
}

}  // namespace simgpu
