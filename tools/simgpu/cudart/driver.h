// The road to the driver, as the real CUDA runtime takes it: dlopen, dlsym of cuGetProcAddress_v2,
// and every other function through what that returns. Nothing here knows simgpu.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

namespace cudart {

// X(name without "cu", version): the form that the runtime asks for.
#define CUDART_DRIVER(X)                                                                           \
  X(Init, 2000)                                                                                    \
  X(DriverGetVersion, 2020)                                                                        \
  X(DeviceGet, 2000)                                                                               \
  X(DeviceGetCount, 2000) X(DeviceGetName, 2000) X(DeviceTotalMem, 3020) X(                        \
      DeviceGetAttribute, 2000) X(DeviceGetUuid, 9020) X(DeviceGetPCIBusId, 4010)                  \
      X(DeviceCanAccessPeer, 4000) X(DevicePrimaryCtxRetain, 7000) X(DevicePrimaryCtxReset, 11000) \
          X(CtxGetCurrent, 4000) X(CtxSetCurrent, 4000) X(CtxSynchronize, 2000) X(                 \
              CtxGetLimit, 3010) X(CtxSetLimit, 3010) X(CtxGetStreamPriorityRange, 5050)           \
              X(LibraryLoadData, 12000) X(LibraryUnload, 12000) X(LibraryGetKernel, 12000) X(      \
                  LibraryGetGlobal, 12000) X(KernelGetFunction, 12000) X(FuncGetAttribute, 2020)   \
                  X(FuncSetAttribute, 9000) X(MemAlloc, 3020) X(MemAllocPitch, 3020) X(            \
                      MemFree, 3020) X(MemGetInfo, 3020) X(MemHostAlloc, 2020)                     \
                      X(MemFreeHost, 2000) X(MemHostRegister, 6050) X(MemHostUnregister, 4000) X(  \
                          MemHostGetDevicePointer, 3020) X(MemHostGetFlags, 2030)                  \
                          X(MemAllocManaged, 6000) X(PointerGetAttributes, 7000) X(                \
                              EventCreate, 2000) X(EventQuery, 2000) X(EventSynchronize, 2000)     \
                              X(EventDestroy, 4000) X(EventElapsedTime, 2000)                      \
                                  X(StreamCreateWithPriority, 5050) X(StreamDestroy, 4000)         \
                                      X(OccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000)  \
                                                                                                   \
                                          X(GetErrorName, 6000) X(GetErrorString, 6000)

// The same for functions that have a per-thread form: X(name, version, version of that form).
#define CUDART_STREAM_DRIVER(X)                                                                    \
  X(Memcpy, 4000, 7000)                                                                            \
  X(MemcpyAsync, 4000, 7000)                                                                       \
  X(MemcpyHtoD, 3020, 7000)                                                                        \
  X(MemcpyDtoH, 3020, 7000) X(MemcpyDtoD, 3020, 7000) X(MemcpyHtoDAsync, 3020, 7000) X(            \
      MemcpyDtoHAsync, 3020, 7000) X(MemcpyDtoDAsync, 3020, 7000) X(Memcpy2DUnaligned, 3020, 7000) \
      X(Memcpy2DAsync, 3020, 7000) X(Memcpy3D, 3020, 7000) X(Memcpy3DAsync, 3020, 7000)            \
          X(MemsetD8, 3020, 7000) X(MemsetD8Async, 3020, 7000) X(MemsetD2D8, 3020, 7000)           \
              X(MemsetD2D8Async, 3020, 7000) X(MemAllocAsync, 11020, 11020)                        \
                  X(MemFreeAsync, 11020, 11020) X(LaunchKernel, 4000, 7000)                        \
                      X(LaunchKernelEx, 11060, 11060) X(LaunchCooperativeKernel, 9000, 9000)       \
                          X(LaunchHostFunc, 10000, 10000) X(StreamAddCallback, 5000, 7000)         \
                              X(EventRecord, 2000, 7000) X(EventRecordWithFlags, 11010, 11010)     \
                                  X(StreamWaitEvent, 3020, 7000) X(StreamSynchronize, 2000, 7000)  \
                                      X(StreamQuery, 2000, 7000) X(StreamGetFlags, 5050, 7000)     \
                                          X(StreamGetPriority, 5050, 7000)

struct Driver {
#define CUDART_MEMBER(name, version) PFN_cu##name##_v##version name = nullptr;
  CUDART_DRIVER(CUDART_MEMBER)
#undef CUDART_MEMBER
#define CUDART_MEMBER(name, version, per_thread) PFN_cu##name##_v##version name[2] = {};
  CUDART_STREAM_DRIVER(CUDART_MEMBER)
#undef CUDART_MEMBER
  cudaError_t error = cudaSuccess;  // cudaErrorInsufficientDriver without a driver
};
const Driver& GetDriver();

// The driver ready and a context current on this thread; otherwise what the call returns.
cudaError_t Enter();
// Only the driver.
cudaError_t EnterDriver();
// Notes the thread's last error. Success leaves it alone.
cudaError_t Note(cudaError_t error);
inline cudaError_t Note(CUresult result) { return Note(static_cast<cudaError_t>(result)); }
cudaError_t TakeLastError(bool reset);

int CurrentDevice();
cudaError_t SetCurrentDevice(int device);

// The driver's handle of a kernel that the program registered by its host stub.
cudaError_t FindKernel(const void* stub, CUfunction* function);
cudaError_t FindSymbol(const void* symbol, CUdeviceptr* address, size_t* bytes);

}  // namespace cudart

#define CUDART_API extern "C" __attribute__((visibility("default"))) cudaError_t CUDARTAPI
#define CUDART_ENTER() \
  if (cudaError_t entered_ = cudart::Enter(); entered_ != cudaSuccess) return cudart::Note(entered_)
