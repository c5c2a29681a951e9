// Allocation, virtual memory management and questions about memory.
#include <unistd.h>

#include <mutex>
#include <set>
#include <string>

#include "tools/simgpu/driver/api.h"
#include "tools/simgpu/driver/capture.h"
#include "tools/simgpu/driver/entry_points.h"

namespace simgpu {

CUresult NotSupported(const char* symbol) {
  static std::mutex* mutex = new std::mutex;
  static auto* said = new std::set<std::string>;
  std::lock_guard<std::mutex> lock(*mutex);
  if (said->insert(symbol).second) {
    const std::string line = std::string("simgpu: ") + symbol + " is not supported\n";
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace simgpu

using namespace simgpu;

static DeviceMemory& Memory() { return DeviceMemory::Get(); }

SIMGPU_API cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  SIMGPU_ENTER_UNSAFE(GetDeviceModel().call_alloc_ns);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  CUresult result = Memory().Alloc(bytes, &address);
  if (result == CUDA_SUCCESS) *out = address;
  return result;
}

SIMGPU_API cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                              unsigned int element) {
  SIMGPU_ENTER();
  if (out == nullptr || pitch == nullptr || width == 0 || height == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  size_t row = 0, bytes = 0;
  if (__builtin_add_overflow(width, 511, &row) ||
      __builtin_mul_overflow(row / 512 * 512, height, &bytes)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const CUresult result = cuMemAlloc_v2(out, bytes);
  if (result == CUDA_SUCCESS) *pitch = row / 512 * 512;
  return result;
}

SIMGPU_API cuMemFree_v2(CUdeviceptr address) {
  SIMGPU_ENTER_UNSAFE(GetDeviceModel().call_alloc_ns);
  Scheduler::Get().WaitAll();
  if (CUresult error = Scheduler::Get().error(); error != CUDA_SUCCESS) return error;
  return Memory().IsManaged(address) ? Memory().FreeHost(address, true) : Memory().Free(address);
}

template <bool kPerThread>
static CUresult Impl_cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream handle) {
  SIMGPU_ENTER(GetDeviceModel().call_small_ns);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_STREAM(stream, handle, kPerThread);
  if (IsCapturing(stream)) return NotSupported("cuMemAllocAsync during capture");
  uint64_t address = 0;
  CUresult result = Memory().Alloc(bytes, &address);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    Scheduler::Get().WaitAll();  // frees may be under way
    result = Memory().Alloc(bytes, &address);
  }
  if (result == CUDA_SUCCESS) *out = address;
  return result;
}
SIMGPU_TWO_FORMS(cuMemAllocAsync, _ptsz, (CUdeviceptr * out, size_t bytes, CUstream handle),
                 (out, bytes, handle))

template <bool kPerThread>
static CUresult Impl_cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  SIMGPU_ENTER(GetDeviceModel().call_small_ns);
  SIMGPU_STREAM(stream, handle, kPerThread);
  if (IsCapturing(stream)) return NotSupported("cuMemFreeAsync during capture");
  uint64_t base = 0, bytes = 0;
  if (!Memory().FindRange(address, &base, &bytes) || base != address)
    return CUDA_ERROR_INVALID_VALUE;
  Scheduler::Get().Enqueue(stream, Engine::kNone, [address] {
    Memory().Free(address);
    return OpOutcome();
  });
  return CUDA_SUCCESS;
}
SIMGPU_TWO_FORMS(cuMemFreeAsync, _ptsz, (CUdeviceptr address, CUstream handle), (address, handle))

SIMGPU_API cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  SIMGPU_ENTER(6000);
  if (free_bytes != nullptr) *free_bytes = Memory().capacity() - Memory().stats().physical;
  if (total != nullptr) *total = Memory().capacity();
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  SIMGPU_ENTER();
  uint64_t start = 0, size = 0;
  if (!Memory().FindRange(address, &start, &size)) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = start;
  if (bytes != nullptr) *bytes = size;
  return CUDA_SUCCESS;
}

static CUresult HostAlloc(void** out, size_t bytes, unsigned flags, bool managed) {
  SIMGPU_ENTER_UNSAFE(GetDeviceModel().call_alloc_ns);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  CUresult result = Memory().AllocHost(bytes, flags, managed, &address);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<void*>(address);
  return result;
}
// With unified addressing all of it is mapped, asked for or not.
SIMGPU_API cuMemHostAlloc(void** out, size_t bytes, unsigned int flags) {
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  return HostAlloc(out, bytes, flags | CU_MEMHOSTALLOC_DEVICEMAP, false);
}
SIMGPU_API cuMemAllocHost_v2(void** out, size_t bytes) {
  return HostAlloc(out, bytes, CU_MEMHOSTALLOC_DEVICEMAP, false);
}
SIMGPU_API cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned int flags) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  void* at = nullptr;
  CUresult result = HostAlloc(&at, bytes, 0, true);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUdeviceptr>(at);
  return result;
}
SIMGPU_API cuMemFreeHost(void* at) {
  SIMGPU_ENTER_UNSAFE();
  Scheduler::Get().WaitAll();
  return Memory().FreeHost(reinterpret_cast<uint64_t>(at), false);
}
SIMGPU_API cuMemHostRegister_v2(void* at, size_t bytes, unsigned int flags) {
  SIMGPU_ENTER_UNSAFE();
  return Memory().RegisterHost(reinterpret_cast<uint64_t>(at), bytes,
                               flags | CU_MEMHOSTREGISTER_DEVICEMAP);
}
SIMGPU_API cuMemHostUnregister(void* at) {
  SIMGPU_ENTER_UNSAFE();
  return Memory().UnregisterHost(reinterpret_cast<uint64_t>(at));
}
SIMGPU_API cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* at, unsigned int) {
  SIMGPU_ENTER();
  if (out == nullptr || !Memory().IsPinnedHost(reinterpret_cast<uint64_t>(at))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = reinterpret_cast<CUdeviceptr>(at);
  return CUDA_SUCCESS;
}
SIMGPU_API cuMemHostGetFlags(unsigned int* flags, void* at) {
  SIMGPU_ENTER();
  if (flags == nullptr || !Memory().HostFlags(reinterpret_cast<uint64_t>(at), flags)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

static CUresult OneAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  uint64_t base = 0, bytes = 0;
  const bool host = Memory().IsPinnedHost(address);
  const bool device = !host && Memory().FindRange(address, &base, &bytes);
  if (!host && !device) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) =
          host && !Memory().IsManaged(address) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(data) = address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!host) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<void**>(data) = reinterpret_cast<void*>(address);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(data) = Memory().IsManaged(address) ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = base;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(data) = bytes;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<int*>(data) = 1;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return cuCtxGetCurrent(static_cast<CUcontext*>(data));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<unsigned long long*>(data) = base;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}
SIMGPU_API cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  SIMGPU_ENTER();
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return OneAttribute(data, attribute, address);
}
SIMGPU_API cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                  CUdeviceptr address) {
  SIMGPU_ENTER();
  if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    // Of unknown pointers every attribute is zero, and that is no error.
    if (OneAttribute(data[i], attributes[i], address) != CUDA_SUCCESS) {
      const bool wide = attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
                        attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
                        attributes[i] == CU_POINTER_ATTRIBUTE_CONTEXT ||
                        attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
                        attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE ||
                        attributes[i] == CU_POINTER_ATTRIBUTE_BUFFER_ID;
      if (wide) {
        *static_cast<uint64_t*>(data[i]) = 0;
      } else {
        *static_cast<int*>(data[i]) = attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? -2 : 0;
      }
    }
  }
  return CUDA_SUCCESS;
}

// --- Virtual memory management ---

SIMGPU_API cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* properties,
                                         CUmemAllocationGranularity_flags) {
  if (CUresult r = EnterDriver(); r != CUDA_SUCCESS) return r;
  if (bytes == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = Memory().page();
  return CUDA_SUCCESS;
}
SIMGPU_API cuMemAddressReserve(CUdeviceptr* out, size_t bytes, size_t alignment, CUdeviceptr,
                               unsigned long long flags) {
  SIMGPU_ENTER_UNSAFE(GetDeviceModel().call_reserve_ns);
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  CUresult result = Memory().Reserve(bytes, alignment, &address);
  if (result == CUDA_SUCCESS) *out = address;
  return result;
}
SIMGPU_API cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  SIMGPU_ENTER_UNSAFE(GetDeviceModel().call_reserve_ns);
  return Memory().Unreserve(address, bytes);
}
SIMGPU_API cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                       const CUmemAllocationProp* properties, unsigned long long flags) {
  SIMGPU_ENTER_UNSAFE(GetDeviceModel().call_create_ns);
  if (handle == nullptr || properties == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (properties->location.id != 0) return CUDA_ERROR_INVALID_DEVICE;
  uint64_t made = 0;
  CUresult result = Memory().Create(bytes, &made);
  if (result == CUDA_SUCCESS) *handle = made;
  return result;
}
SIMGPU_API cuMemRelease(CUmemGenericAllocationHandle handle) {
  SIMGPU_ENTER_UNSAFE(GetDeviceModel().call_map_ns);
  return Memory().Release(handle);
}
SIMGPU_API cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle handle, unsigned long long flags) {
  SIMGPU_ENTER_UNSAFE(GetDeviceModel().call_map_ns);
  if (offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return Memory().Map(address, bytes, handle);
}
SIMGPU_API cuMemUnmap(CUdeviceptr address, size_t bytes) {
  SIMGPU_ENTER_UNSAFE(GetDeviceModel().call_unmap_ns *
                      ((bytes + Memory().page() - 1) / Memory().page()));
  return Memory().Unmap(address, bytes);
}
SIMGPU_API cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access,
                          size_t count) {
  SIMGPU_ENTER_UNSAFE(GetDeviceModel().call_access_ns *
                      ((bytes + Memory().page() - 1) / Memory().page()));
  if (access == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (access[0].location.type != CU_MEM_LOCATION_TYPE_DEVICE || access[0].location.id != 0) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  const bool read = access[0].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
  const bool write = access[0].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return Memory().SetAccess(address, bytes, read, write);
}
SIMGPU_API cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                          CUdeviceptr address) {
  SIMGPU_ENTER();
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || location->id != 0) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  return Memory().GetAccess(address, flags);
}
SIMGPU_API cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  SIMGPU_ENTER();
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t found = 0;
  CUresult result = Memory().Retain(reinterpret_cast<uint64_t>(address), &found);
  if (result == CUDA_SUCCESS) *handle = found;
  return result;
}
SIMGPU_API cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                  CUmemGenericAllocationHandle) {
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *properties = {};
  properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return CUDA_SUCCESS;
}
