// Allocation and what is known of an address.
#include "tools/simgpu/cudart/runtime.h"

namespace {

using cudart::Form;
using cudart::GetDriver;
using cudart::Note;
using cudart::ToDevice;
using cudart::ToPointer;

cudaError_t Give(CUresult r, CUdeviceptr address, void** out) {
  if (r == CUDA_SUCCESS) *out = ToPointer(address);
  return Note(r);
}

CUmemLocation ToLocation(const cudaMemLocation& location) {
  CUmemLocation l = {};
  l.type = static_cast<CUmemLocationType>(location.type);
  l.id = location.id;
  return l;
}

}  // namespace

CUDART_API cudaMalloc(void** out, size_t bytes) {
  CUDART_ENTER();
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  if (bytes == 0) {
    *out = nullptr;
    return cudaSuccess;
  }
  CUdeviceptr address = 0;
  const CUresult r = GetDriver().MemAlloc(&address, bytes);
  return Give(r, address, out);
}
CUDART_API cudaFree(void* at) {
  CUDART_ENTER();
  return at == nullptr ? cudaSuccess : Note(GetDriver().MemFree(ToDevice(at)));
}
CUDART_API cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  CUDART_ENTER();
  if (out == nullptr || pitch == nullptr) return Note(cudaErrorInvalidValue);
  if (width == 0 || height == 0) {
    *out = nullptr;
    *pitch = 0;
    return cudaSuccess;
  }
  CUdeviceptr address = 0;
  // The widest element that the driver knows: rows suit every smaller one too.
  const CUresult r = GetDriver().MemAllocPitch(&address, pitch, width, height, 16);
  return Give(r, address, out);
}
CUDART_API cudaMalloc3D(cudaPitchedPtr* out, cudaExtent extent) {
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  void* address = nullptr;
  size_t pitch = 0;
  size_t rows = 0;
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) {
    return Note(cudaErrorMemoryAllocation);
  }
  const cudaError_t e = cudaMallocPitch(&address, &pitch, extent.width, rows);
  if (e == cudaSuccess) *out = {address, pitch, extent.width, extent.height};
  return e;
}
CUDART_API cudaHostAlloc(void** out, size_t bytes, unsigned flags) {
  CUDART_ENTER();
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  if (bytes == 0) {
    *out = nullptr;
    return cudaSuccess;
  }
  return Note(GetDriver().MemHostAlloc(out, bytes, flags));
}
CUDART_API cudaMallocHost(void** out, size_t bytes) {
  return cudaHostAlloc(out, bytes, cudaHostAllocDefault);
}
CUDART_API cudaFreeHost(void* at) {
  CUDART_ENTER();
  return at == nullptr ? cudaSuccess : Note(GetDriver().MemFreeHost(at));
}
CUDART_API cudaHostRegister(void* at, size_t bytes, unsigned flags) {
  CUDART_ENTER();
  return Note(GetDriver().MemHostRegister(at, bytes, flags));
}
CUDART_API cudaHostUnregister(void* at) {
  CUDART_ENTER();
  return Note(GetDriver().MemHostUnregister(at));
}
CUDART_API cudaHostGetDevicePointer(void** out, void* at, unsigned flags) {
  CUDART_ENTER();
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  CUdeviceptr address = 0;
  const CUresult r = GetDriver().MemHostGetDevicePointer(&address, at, flags);
  return Give(r, address, out);
}
CUDART_API cudaHostGetFlags(unsigned* flags, void* at) {
  CUDART_ENTER();
  return Note(GetDriver().MemHostGetFlags(flags, at));
}
CUDART_API cudaMallocManaged(void** out, size_t bytes, unsigned flags) {
  CUDART_ENTER();
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  CUdeviceptr address = 0;
  const CUresult r = GetDriver().MemAllocManaged(&address, bytes, flags);
  return Give(r, address, out);
}
CUDART_API cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  CUDART_ENTER();
  return Note(GetDriver().MemGetInfo(free_bytes, total));
}
CUDART_API cudaMemAdvise(const void* at, size_t bytes, cudaMemoryAdvise advice,
                         cudaMemLocation location) {
  CUDART_ENTER();
  return Note(GetDriver().MemAdvise(ToDevice(at), bytes, static_cast<CUmem_advise>(advice),
                                    ToLocation(location)));
}
CUDART_API cudaMemRangeGetAttribute(void* data, size_t size, cudaMemRangeAttribute attribute,
                                    const void* at, size_t bytes) {
  CUDART_ENTER();
  return Note(GetDriver().MemRangeGetAttribute(
      data, size, static_cast<CUmem_range_attribute>(attribute), ToDevice(at), bytes));
}
CUDART_API cudaMemRangeGetAttributes(void** data, size_t* sizes, cudaMemRangeAttribute* attributes,
                                     size_t count, const void* at, size_t bytes) {
  CUDART_ENTER();
  return Note(GetDriver().MemRangeGetAttributes(
      data, sizes, reinterpret_cast<CUmem_range_attribute*>(attributes), count, ToDevice(at),
      bytes));
}

CUDART_API cudaPointerGetAttributes(cudaPointerAttributes* out, const void* at) {
  CUDART_ENTER();
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  unsigned type = 0, managed = 0;
  int ordinal = 0;
  CUdeviceptr device = 0;
  void* host = nullptr;
  CUpointer_attribute which[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
      CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
      CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* data[] = {&type, &ordinal, &managed, &device, &host};
  if (CUresult r = GetDriver().PointerGetAttributes(5, which, data, ToDevice(at));
      r != CUDA_SUCCESS) {
    return Note(r);
  }
  cudaPointerAttributes a = {};
  if (type == 0) {
    a.type = cudaMemoryTypeUnregistered;
    a.device = cudaInvalidDeviceId;
    a.hostPointer = const_cast<void*>(at);
  } else {
    a.type = managed != 0                   ? cudaMemoryTypeManaged
             : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                            : cudaMemoryTypeHost;
    a.device = ordinal;
    a.devicePointer = ToPointer(device);
    a.hostPointer = host;
  }
  *out = a;
  return cudaSuccess;
}

// --- Stream-ordered ---

static cudaError_t AllocAsync(Form form, void** out, size_t bytes, cudaStream_t stream) {
  CUDART_ENTER();
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  if (bytes == 0) {
    *out = nullptr;
    return cudaSuccess;
  }
  CUdeviceptr address = 0;
  const CUresult r = GetDriver().MemAllocAsync[form](&address, bytes, stream);
  return Give(r, address, out);
}
CUDART_TWO_FORMS(cudaMallocAsync, _ptsz, AllocAsync,
                 (void** out, size_t bytes, cudaStream_t stream), (out, bytes, stream))

static cudaError_t AllocFromPool(Form form, void** out, size_t bytes, cudaMemPool_t pool,
                                 cudaStream_t stream) {
  CUDART_ENTER();
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  CUdeviceptr address = 0;
  const CUresult r = GetDriver().MemAllocFromPoolAsync[form](&address, bytes, pool, stream);
  return Give(r, address, out);
}
CUDART_TWO_FORMS(cudaMallocFromPoolAsync, _ptsz, AllocFromPool,
                 (void** out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
                 (out, bytes, pool, stream))

static cudaError_t FreeAsync(Form form, void* at, cudaStream_t stream) {
  CUDART_ENTER();
  return at == nullptr ? cudaSuccess : Note(GetDriver().MemFreeAsync[form](ToDevice(at), stream));
}
CUDART_TWO_FORMS(cudaFreeAsync, _ptsz, FreeAsync, (void* at, cudaStream_t stream), (at, stream))

static cudaError_t Prefetch(Form form, const void* at, size_t bytes, cudaMemLocation location,
                            unsigned flags, cudaStream_t stream) {
  CUDART_ENTER();
  return Note(
      GetDriver().MemPrefetchAsync[form](ToDevice(at), bytes, ToLocation(location), flags, stream));
}
CUDART_TWO_FORMS(cudaMemPrefetchAsync, _ptsz, Prefetch,
                 (const void* at, size_t bytes, cudaMemLocation location, unsigned flags,
                  cudaStream_t stream),
                 (at, bytes, location, flags, stream))
