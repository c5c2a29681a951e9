// The real driver's functions that Tidepool itself calls, as a table, so that the runtime never
// calls its own hooks and tests can put a fake in. Filled once, before the engine starts; read-only
// afterwards.
#pragma once

#include <cuda.h>

namespace tidepool {

// X(member, exported symbol, signature): every entry is resolved by its exported name, per ABI
// version.
#define TIDEPOOL_DRIVER_FUNCTIONS(X)                                                         \
  X(GetErrorName, cuGetErrorName, (CUresult, const char**))                                  \
  X(CtxGetCurrent, cuCtxGetCurrent, (CUcontext*))                                            \
  X(CtxSynchronize, cuCtxSynchronize, (void))                                                \
  X(CtxGetDevice, cuCtxGetDevice, (CUdevice*))                                               \
  X(DeviceGetAttribute, cuDeviceGetAttribute, (int*, CUdevice_attribute, CUdevice))          \
  X(DeviceTotalMem, cuDeviceTotalMem_v2, (size_t*, CUdevice))                                \
  X(MemGetInfo, cuMemGetInfo_v2, (size_t*, size_t*))                                         \
  X(MemAlloc, cuMemAlloc_v2, (CUdeviceptr*, size_t))                                         \
  X(MemFree, cuMemFree_v2, (CUdeviceptr))                                                    \
  X(MemAddressReserve, cuMemAddressReserve,                                                  \
    (CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long))                         \
  X(MemAddressFree, cuMemAddressFree, (CUdeviceptr, size_t))                                 \
  X(MemCreate, cuMemCreate,                                                                  \
    (CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*, unsigned long long)) \
  X(MemRelease, cuMemRelease, (CUmemGenericAllocationHandle))                                \
  X(MemMap, cuMemMap,                                                                        \
    (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long))         \
  X(MemUnmap, cuMemUnmap, (CUdeviceptr, size_t))                                             \
  X(MemSetAccess, cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc*, size_t))     \
  X(MemGetAllocationGranularity, cuMemGetAllocationGranularity,                              \
    (size_t*, const CUmemAllocationProp*, CUmemAllocationGranularity_flags))                 \
  X(MemHostAlloc, cuMemHostAlloc, (void**, size_t, unsigned int))                            \
  X(MemFreeHost, cuMemFreeHost, (void*))                                                     \
  X(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void*, size_t, CUstream))     \
  X(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void*, CUdeviceptr, size_t, CUstream))           \
  X(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream))     \
  X(MemsetD8Async, cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))          \
  X(MemsetD16Async, cuMemsetD16Async, (CUdeviceptr, unsigned short, size_t, CUstream))       \
  X(MemsetD32Async, cuMemsetD32Async, (CUdeviceptr, unsigned int, size_t, CUstream))         \
  X(MemsetD2D8Async, cuMemsetD2D8Async,                                                      \
    (CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream))                          \
  X(MemsetD2D16Async, cuMemsetD2D16Async,                                                    \
    (CUdeviceptr, size_t, unsigned short, size_t, size_t, CUstream))                         \
  X(MemsetD2D32Async, cuMemsetD2D32Async,                                                    \
    (CUdeviceptr, size_t, unsigned int, size_t, size_t, CUstream))                           \
  X(Memcpy2DAsync, cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D*, CUstream))                     \
  X(Memcpy3DAsync, cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D*, CUstream))                     \
  X(LaunchKernelEx, cuLaunchKernelEx, (const CUlaunchConfig*, CUfunction, void**, void**))   \
  X(FuncGetParamInfo, cuFuncGetParamInfo, (CUfunction, size_t, size_t*, size_t*))            \
  X(KernelGetParamInfo, cuKernelGetParamInfo, (CUkernel, size_t, size_t*, size_t*))          \
  X(EventCreate, cuEventCreate, (CUevent*, unsigned int))                                    \
  X(EventDestroy, cuEventDestroy_v2, (CUevent))                                              \
  X(EventRecord, cuEventRecord, (CUevent, CUstream))                                         \
  X(EventQuery, cuEventQuery, (CUevent))                                                     \
  X(EventSynchronize, cuEventSynchronize, (CUevent))                                         \
  X(EventElapsedTime, cuEventElapsedTime_v2, (float*, CUevent, CUevent))                     \
  X(StreamCreate, cuStreamCreate, (CUstream*, unsigned int))                                 \
  X(StreamDestroy, cuStreamDestroy_v2, (CUstream))                                           \
  X(StreamWaitEvent, cuStreamWaitEvent, (CUstream, CUevent, unsigned int))                   \
  X(StreamIsCapturing, cuStreamIsCapturing, (CUstream, CUstreamCaptureStatus*))              \
  X(ThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode*))

// Null where the driver does not have the function (MemAlloc and the newer ones may be missing).
struct DriverApi {
#define TIDEPOOL_MEMBER(member, symbol, signature) CUresult(CUDAAPI* member) signature = nullptr;
  TIDEPOOL_DRIVER_FUNCTIONS(TIDEPOOL_MEMBER)
#undef TIDEPOOL_MEMBER
};

}  // namespace tidepool
