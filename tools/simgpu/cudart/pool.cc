// Memory pools and handles for other processes: passed on, since the driver's and the runtime's
// types have the same layout.
#include "tools/simgpu/cudart/runtime.h"

namespace {

using cudart::GetDriver;
using cudart::Note;

static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));
static_assert(sizeof(cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData));
static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle));
static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle));

}  // namespace

CUDART_API cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  CUDART_ENTER();
  return Note(GetDriver().DeviceGetDefaultMemPool(pool, device));
}
CUDART_API cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  CUDART_ENTER();
  return Note(GetDriver().DeviceSetMemPool(device, pool));
}
CUDART_API cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  CUDART_ENTER();
  return Note(GetDriver().DeviceGetMemPool(pool, device));
}
CUDART_API cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  CUDART_ENTER();
  return Note(GetDriver().MemPoolTrimTo(pool, keep));
}
CUDART_API cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  CUDART_ENTER();
  return Note(
      GetDriver().MemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value));
}
CUDART_API cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  CUDART_ENTER();
  return Note(
      GetDriver().MemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value));
}
CUDART_API cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* list, size_t count) {
  CUDART_ENTER();
  return Note(
      GetDriver().MemPoolSetAccess(pool, reinterpret_cast<const CUmemAccessDesc*>(list), count));
}
CUDART_API cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                cudaMemLocation* location) {
  CUDART_ENTER();
  return Note(GetDriver().MemPoolGetAccess(reinterpret_cast<CUmemAccess_flags*>(flags), pool,
                                           reinterpret_cast<CUmemLocation*>(location)));
}
CUDART_API cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  CUDART_ENTER();
  return Note(GetDriver().MemPoolCreate(pool, reinterpret_cast<const CUmemPoolProps*>(props)));
}
CUDART_API cudaMemPoolDestroy(cudaMemPool_t pool) {
  CUDART_ENTER();
  return Note(GetDriver().MemPoolDestroy(pool));
}
CUDART_API cudaMemPoolExportToShareableHandle(void* handle, cudaMemPool_t pool,
                                              cudaMemAllocationHandleType type, unsigned flags) {
  CUDART_ENTER();
  return Note(GetDriver().MemPoolExportToShareableHandle(
      handle, pool, static_cast<CUmemAllocationHandleType>(type), flags));
}
CUDART_API cudaMemPoolImportFromShareableHandle(cudaMemPool_t* pool, void* handle,
                                                cudaMemAllocationHandleType type, unsigned flags) {
  CUDART_ENTER();
  return Note(GetDriver().MemPoolImportFromShareableHandle(
      pool, handle, static_cast<CUmemAllocationHandleType>(type), flags));
}
CUDART_API cudaMemPoolExportPointer(cudaMemPoolPtrExportData* data, void* at) {
  CUDART_ENTER();
  return Note(GetDriver().MemPoolExportPointer(reinterpret_cast<CUmemPoolPtrExportData*>(data),
                                               cudart::ToDevice(at)));
}
CUDART_API cudaMemPoolImportPointer(void** out, cudaMemPool_t pool,
                                    cudaMemPoolPtrExportData* data) {
  CUDART_ENTER();
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  CUdeviceptr address = 0;
  const CUresult r = GetDriver().MemPoolImportPointer(
      &address, pool, reinterpret_cast<CUmemPoolPtrExportData*>(data));
  if (r == CUDA_SUCCESS) *out = cudart::ToPointer(address);
  return Note(r);
}
CUDART_API cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                                    cudaMemAllocationType type) {
  CUDART_ENTER();
  return Note(GetDriver().MemGetDefaultMemPool(pool, reinterpret_cast<CUmemLocation*>(location),
                                               static_cast<CUmemAllocationType>(type)));
}
CUDART_API cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                             cudaMemAllocationType type) {
  CUDART_ENTER();
  return Note(GetDriver().MemGetMemPool(pool, reinterpret_cast<CUmemLocation*>(location),
                                        static_cast<CUmemAllocationType>(type)));
}
CUDART_API cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType type,
                             cudaMemPool_t pool) {
  CUDART_ENTER();
  return Note(GetDriver().MemSetMemPool(reinterpret_cast<CUmemLocation*>(location),
                                        static_cast<CUmemAllocationType>(type), pool));
}

CUDART_API cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* at) {
  CUDART_ENTER();
  return Note(
      GetDriver().IpcGetMemHandle(reinterpret_cast<CUipcMemHandle*>(handle), cudart::ToDevice(at)));
}
CUDART_API cudaIpcOpenMemHandle(void** out, cudaIpcMemHandle_t handle, unsigned flags) {
  CUDART_ENTER();
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  CUdeviceptr address = 0;
  const CUresult r = GetDriver().IpcOpenMemHandle(
      &address, *reinterpret_cast<const CUipcMemHandle*>(&handle), flags);
  if (r == CUDA_SUCCESS) *out = cudart::ToPointer(address);
  return Note(r);
}
CUDART_API cudaIpcCloseMemHandle(void* at) {
  CUDART_ENTER();
  return Note(GetDriver().IpcCloseMemHandle(cudart::ToDevice(at)));
}
CUDART_API cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  CUDART_ENTER();
  return Note(GetDriver().IpcGetEventHandle(reinterpret_cast<CUipcEventHandle*>(handle), event));
}
CUDART_API cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  CUDART_ENTER();
  return Note(
      GetDriver().IpcOpenEventHandle(event, *reinterpret_cast<const CUipcEventHandle*>(&handle)));
}
