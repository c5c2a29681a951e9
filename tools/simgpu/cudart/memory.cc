// Memory, copies and memsets.
#include "tools/simgpu/cudart/driver.h"

using namespace cudart;

static CUdeviceptr Device(const void* at) { return reinterpret_cast<CUdeviceptr>(at); }

CUDART_API cudaMalloc(void** out, size_t bytes) {
  CUDART_ENTER();
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  if (bytes == 0) {
    *out = nullptr;
    return cudaSuccess;
  }
  CUdeviceptr address = 0;
  CUresult r = GetDriver().MemAlloc(&address, bytes);
  if (r == CUDA_SUCCESS) *out = reinterpret_cast<void*>(address);
  return Note(r);
}
CUDART_API cudaFree(void* at) {
  CUDART_ENTER();
  return at == nullptr ? cudaSuccess : Note(GetDriver().MemFree(Device(at)));
}
CUDART_API cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  CUDART_ENTER();
  CUdeviceptr address = 0;
  CUresult r = GetDriver().MemAllocPitch(&address, pitch, width, height, 4);
  if (r == CUDA_SUCCESS) *out = reinterpret_cast<void*>(address);
  return Note(r);
}
CUDART_API cudaHostAlloc(void** out, size_t bytes, unsigned flags) {
  CUDART_ENTER();
  return Note(GetDriver().MemHostAlloc(out, bytes, flags));
}
CUDART_API cudaMallocHost(void** out, size_t bytes) { return cudaHostAlloc(out, bytes, 0); }
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
  CUdeviceptr address = 0;
  CUresult r = GetDriver().MemHostGetDevicePointer(&address, at, flags);
  if (r == CUDA_SUCCESS) *out = reinterpret_cast<void*>(address);
  return Note(r);
}
CUDART_API cudaMallocManaged(void** out, size_t bytes, unsigned flags) {
  CUDART_ENTER();
  CUdeviceptr address = 0;
  CUresult r = GetDriver().MemAllocManaged(&address, bytes, flags);
  if (r == CUDA_SUCCESS) *out = reinterpret_cast<void*>(address);
  return Note(r);
}
CUDART_API cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  CUDART_ENTER();
  return Note(GetDriver().MemGetInfo(free_bytes, total));
}
CUDART_API cudaPointerGetAttributes(cudaPointerAttributes* out, const void* at) {
  CUDART_ENTER();
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  unsigned type = 0;
  int ordinal = 0, managed = 0;
  CUdeviceptr device = 0;
  void* host = nullptr;
  CUpointer_attribute which[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
      CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
      CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* data[] = {&type, &ordinal, &managed, &device, &host};
  if (CUresult r = GetDriver().PointerGetAttributes(5, which, data, Device(at));
      r != CUDA_SUCCESS) {
    return Note(r);
  }
  *out = {};
  out->type = type == 0                      ? cudaMemoryTypeUnregistered
              : managed != 0                 ? cudaMemoryTypeManaged
              : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                             : cudaMemoryTypeHost;
  out->device = ordinal;
  out->devicePointer = reinterpret_cast<void*>(device);
  out->hostPointer = type == 0 ? const_cast<void*>(at) : host;
  return cudaSuccess;
}

template <int kForm>
static cudaError_t Copy(void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  CUDART_ENTER();
  if (n == 0) return cudaSuccess;
  const Driver& d = GetDriver();
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return Note(d.MemcpyHtoD[kForm](Device(to), from, n));
    case cudaMemcpyDeviceToHost:
      return Note(d.MemcpyDtoH[kForm](to, Device(from), n));
    case cudaMemcpyDeviceToDevice:
      return Note(d.MemcpyDtoD[kForm](Device(to), Device(from), n));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return Note(d.Memcpy[kForm](Device(to), Device(from), n));
  }
  return Note(cudaErrorInvalidMemcpyDirection);
}
template <int kForm>
static cudaError_t CopyAsync(void* to, const void* from, size_t n, cudaMemcpyKind kind,
                             cudaStream_t s) {
  CUDART_ENTER();
  if (n == 0) return cudaSuccess;
  const Driver& d = GetDriver();
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return Note(d.MemcpyHtoDAsync[kForm](Device(to), from, n, s));
    case cudaMemcpyDeviceToHost:
      return Note(d.MemcpyDtoHAsync[kForm](to, Device(from), n, s));
    case cudaMemcpyDeviceToDevice:
      return Note(d.MemcpyDtoDAsync[kForm](Device(to), Device(from), n, s));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return Note(d.MemcpyAsync[kForm](Device(to), Device(from), n, s));
  }
  return Note(cudaErrorInvalidMemcpyDirection);
}
CUDART_API cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  return Copy<0>(to, from, n, kind);
}
CUDART_API cudaMemcpy_ptds(void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  return Copy<1>(to, from, n, kind);
}
CUDART_API cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind kind,
                           cudaStream_t s) {
  return CopyAsync<0>(to, from, n, kind, s);
}
CUDART_API cudaMemcpyAsync_ptsz(void* to, const void* from, size_t n, cudaMemcpyKind kind,
                                cudaStream_t s) {
  return CopyAsync<1>(to, from, n, kind, s);
}
CUDART_API cudaMemcpyPeer(void* to, int, const void* from, int, size_t n) {
  return Copy<0>(to, from, n, cudaMemcpyDeviceToDevice);
}
CUDART_API cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t n, cudaStream_t s) {
  return CopyAsync<0>(to, from, n, cudaMemcpyDeviceToDevice, s);
}

static cudaError_t Symbol(const void* symbol, size_t n, size_t offset, void** out) {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  if (cudaError_t e = FindSymbol(symbol, &address, &bytes); e != cudaSuccess) return e;
  if (offset > bytes || n > bytes - offset) return cudaErrorInvalidValue;
  *out = reinterpret_cast<void*>(address + offset);
  return cudaSuccess;
}
template <int kForm>
static cudaError_t ToSymbol(const void* symbol, const void* from, size_t n, size_t offset,
                            cudaMemcpyKind kind) {
  CUDART_ENTER();
  void* to = nullptr;
  if (cudaError_t e = Symbol(symbol, n, offset, &to); e != cudaSuccess) return Note(e);
  return Copy<kForm>(to, from, n, kind);
}
template <int kForm>
static cudaError_t FromSymbol(void* to, const void* symbol, size_t n, size_t offset,
                              cudaMemcpyKind kind) {
  CUDART_ENTER();
  void* from = nullptr;
  if (cudaError_t e = Symbol(symbol, n, offset, &from); e != cudaSuccess) return Note(e);
  return Copy<kForm>(to, from, n, kind);
}
CUDART_API cudaMemcpyToSymbol(const void* s, const void* from, size_t n, size_t offset,
                              cudaMemcpyKind k) {
  return ToSymbol<0>(s, from, n, offset, k);
}
CUDART_API cudaMemcpyToSymbol_ptds(const void* s, const void* from, size_t n, size_t offset,
                                   cudaMemcpyKind k) {
  return ToSymbol<1>(s, from, n, offset, k);
}
CUDART_API cudaMemcpyFromSymbol(void* to, const void* s, size_t n, size_t offset,
                                cudaMemcpyKind k) {
  return FromSymbol<0>(to, s, n, offset, k);
}
CUDART_API cudaMemcpyFromSymbol_ptds(void* to, const void* s, size_t n, size_t offset,
                                     cudaMemcpyKind k) {
  return FromSymbol<1>(to, s, n, offset, k);
}
CUDART_API cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t n, size_t offset,
                                   cudaMemcpyKind kind, cudaStream_t s) {
  CUDART_ENTER();
  void* to = nullptr;
  if (cudaError_t e = Symbol(symbol, n, offset, &to); e != cudaSuccess) return Note(e);
  return CopyAsync<0>(to, from, n, kind, s);
}

static CUDA_MEMCPY2D Rectangle(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                               size_t width, size_t height, cudaMemcpyKind kind) {
  CUDA_MEMCPY2D c = {};
  const bool host_to = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
  const bool host_from = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
  const CUmemorytype other =
      kind == cudaMemcpyDefault ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_DEVICE;
  c.dstMemoryType = host_to ? CU_MEMORYTYPE_HOST : other;
  c.srcMemoryType = host_from ? CU_MEMORYTYPE_HOST : other;
  c.dstHost = to;
  c.dstDevice = Device(to);
  c.srcHost = from;
  c.srcDevice = Device(from);
  c.dstPitch = to_pitch;
  c.srcPitch = from_pitch;
  c.WidthInBytes = width;
  c.Height = height;
  return c;
}
CUDART_API cudaMemcpy2D(void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h,
                        cudaMemcpyKind kind) {
  CUDART_ENTER();
  const CUDA_MEMCPY2D c = Rectangle(to, tp, from, fp, w, h, kind);
  return Note(GetDriver().Memcpy2DUnaligned[0](&c));
}
CUDART_API cudaMemcpy2DAsync(void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h,
                             cudaMemcpyKind kind, cudaStream_t s) {
  CUDART_ENTER();
  const CUDA_MEMCPY2D c = Rectangle(to, tp, from, fp, w, h, kind);
  return Note(GetDriver().Memcpy2DAsync[0](&c, s));
}
template <int kForm>
static cudaError_t Fill(void* at, int value, size_t n) {
  CUDART_ENTER();
  return n == 0
             ? cudaSuccess
             : Note(GetDriver().MemsetD8[kForm](Device(at), static_cast<unsigned char>(value), n));
}
template <int kForm>
static cudaError_t FillAsync(void* at, int value, size_t n, cudaStream_t s) {
  CUDART_ENTER();
  return n == 0 ? cudaSuccess
                : Note(GetDriver().MemsetD8Async[kForm](Device(at),
                                                        static_cast<unsigned char>(value), n, s));
}
CUDART_API cudaMemset(void* at, int value, size_t n) { return Fill<0>(at, value, n); }
CUDART_API cudaMemset_ptds(void* at, int value, size_t n) { return Fill<1>(at, value, n); }
CUDART_API cudaMemsetAsync(void* at, int value, size_t n, cudaStream_t s) {
  return FillAsync<0>(at, value, n, s);
}
CUDART_API cudaMemsetAsync_ptsz(void* at, int value, size_t n, cudaStream_t s) {
  return FillAsync<1>(at, value, n, s);
}
CUDART_API cudaMemset2D(void* at, size_t pitch, int value, size_t w, size_t h) {
  CUDART_ENTER();
  return Note(
      GetDriver().MemsetD2D8[0](Device(at), pitch, static_cast<unsigned char>(value), w, h));
}
CUDART_API cudaMallocAsync(void** out, size_t bytes, cudaStream_t s) {
  CUDART_ENTER();
  CUdeviceptr address = 0;
  CUresult r = GetDriver().MemAllocAsync[0](&address, bytes, s);
  if (r == CUDA_SUCCESS) *out = reinterpret_cast<void*>(address);
  return Note(r);
}
CUDART_API cudaFreeAsync(void* at, cudaStream_t s) {
  CUDART_ENTER();
  return Note(GetDriver().MemFreeAsync[0](Device(at), s));
}
