// The driver's functions that the runtime needs, and the road to them: dlopen("libcuda.so.1"),
// dlsym of cuGetProcAddress_v2, and every other function through the pointer which that returns.
// Versions are those that the published runtime of CUDA 13.0 asks for. Nothing here knows simgpu.
#pragma once

#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

namespace cudart {

// Which default stream a call means by stream 0: the legacy one, or the calling thread's.
enum Form { kLegacy = 0, kPerThread = 1 };

// A driver function. Calling one that the driver does not have answers CUDA_ERROR_NOT_SUPPORTED.
template <typename Pointer>
class Entry;
template <typename... Args>
class Entry<CUresult (*)(Args...)> {
 public:
  CUresult operator()(Args... args) const {
    return function_ == nullptr ? CUDA_ERROR_NOT_SUPPORTED : function_(args...);
  }
  void Set(void* address) { function_ = reinterpret_cast<CUresult (*)(Args...)>(address); }
  bool exists() const { return function_ != nullptr; }

 private:
  CUresult (*function_)(Args...) = nullptr;
};

// clang-format off
// X(name without "cu", version)
#define CUDART_DRIVER(X)                                                                          \
  X(Init, 2000) X(DriverGetVersion, 2020) X(GetProcAddress, 12000)                                \
  X(DeviceGetCount, 2000) X(DeviceGetName, 2000) X(DeviceTotalMem, 3020)                          \
  X(DeviceGetAttribute, 2000) X(DeviceGetUuid, 9020)                      \
  X(DeviceGetPCIBusId, 4010) X(DeviceGetByPCIBusId, 4010) X(DeviceGetP2PAttribute, 8000)          \
  X(DeviceGetHostAtomicCapabilities, 13000) X(DeviceGetP2PAtomicCapabilities, 13000)              \
  X(DeviceGetTexture1DLinearMaxWidth, 11010) X(DeviceCanAccessPeer, 4000)                         \
  X(DeviceGetDefaultMemPool, 11020) X(DeviceSetMemPool, 11020) X(DeviceGetMemPool, 11020)         \
  X(FlushGPUDirectRDMAWrites, 11030)                                                              \
  X(DevicePrimaryCtxRetain, 7000) X(DevicePrimaryCtxRelease, 11000)                                \
  X(DevicePrimaryCtxSetFlags, 11000) X(DevicePrimaryCtxGetState, 7000)                            \
  X(DevicePrimaryCtxReset, 11000)                                                                  \
  X(CtxGetCurrent, 4000) X(CtxSetCurrent, 4000) X(CtxGetDevice, 2000) X(CtxSynchronize, 2000)     \
  X(CtxGetLimit, 3010) X(CtxSetLimit, 3010) X(CtxGetCacheConfig, 3020)                            \
  X(CtxSetCacheConfig, 3020) X(CtxGetStreamPriorityRange, 5050)                                   \
  X(CtxResetPersistingL2Cache, 11000) X(CtxEnablePeerAccess, 4000) X(CtxDisablePeerAccess, 4000)  \
  X(ModuleLoadData, 2000) X(ModuleUnload, 2000) X(ModuleGetFunction, 2000)                        \
  X(ModuleGetGlobal, 3020)                                                                        \
  X(LibraryLoadData, 12000) X(LibraryLoadFromFile, 12000) X(LibraryUnload, 12000)                 \
  X(LibraryGetKernel, 12000) X(LibraryGetGlobal, 12000) X(LibraryGetManaged, 12000)               \
  X(LibraryGetUnifiedFunction, 12000) X(LibraryGetKernelCount, 12040)                             \
  X(LibraryEnumerateKernels, 12040)                                                               \
  X(KernelGetFunction, 12000) X(KernelSetAttribute, 12000) X(FuncGetName, 12030)                  \
  X(FuncGetParamInfo, 12040) X(FuncGetAttribute, 2020) X(FuncSetAttribute, 9000)                  \
  X(FuncSetCacheConfig, 3000)                                                                     \
  X(LinkCreate, 6050) X(LinkAddData, 6050) X(LinkComplete, 5050) X(LinkDestroy, 5050)             \
  X(MemGetInfo, 3020) X(MemAlloc, 3020) X(MemAllocPitch, 3020) X(MemAllocManaged, 6000)           \
  X(MemFree, 3020) X(MemFreeHost, 2000) X(MemHostAlloc, 2020) X(MemHostGetDevicePointer, 3020)    \
  X(MemHostGetFlags, 2030) X(MemHostRegister, 6050) X(MemHostUnregister, 4000)                    \
  X(PointerGetAttributes, 7000) X(MemAdvise, 12020) X(MemRangeGetAttribute, 8000)                 \
  X(MemRangeGetAttributes, 8000)                                                                  \
  X(MemPoolTrimTo, 11020) X(MemPoolSetAttribute, 11020) X(MemPoolGetAttribute, 11020)             \
  X(MemPoolSetAccess, 11020) X(MemPoolGetAccess, 11020) X(MemPoolCreate, 11020)                   \
  X(MemPoolDestroy, 11020) X(MemPoolExportToShareableHandle, 11020)                               \
  X(MemPoolImportFromShareableHandle, 11020) X(MemPoolExportPointer, 11020)                       \
  X(MemPoolImportPointer, 11020) X(MemGetDefaultMemPool, 13000) X(MemGetMemPool, 13000)           \
  X(MemSetMemPool, 13000)                                                                         \
  X(IpcGetEventHandle, 4010) X(IpcOpenEventHandle, 4010) X(IpcGetMemHandle, 4010)                 \
  X(IpcOpenMemHandle, 11000) X(IpcCloseMemHandle, 4010)                                           \
  X(EventCreate, 2000) X(EventQuery, 2000) X(EventSynchronize, 2000) X(EventDestroy, 4000)        \
  X(EventElapsedTime, 12080)                                                                      \
  X(StreamCreate, 2000) X(StreamCreateWithPriority, 5050) X(StreamDestroy, 4000)                  \
  X(ThreadExchangeStreamCaptureMode, 10010)                                                       \
  X(OccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000)                                     \
  X(OccupancyAvailableDynamicSMemPerBlock, 10020) X(OccupancyMaxPotentialClusterSize, 11070)      \
  X(OccupancyMaxActiveClusters, 11070) X(ProfilerStart, 4000) X(ProfilerStop, 4000)               \
  X(GraphCreate, 10000) X(GraphDestroy, 10000) X(GraphClone, 10000)                               \
  X(GraphNodeFindInClone, 10000) X(GraphNodeGetType, 10000) X(GraphGetNodes, 10000)               \
  X(GraphGetRootNodes, 10000) X(GraphGetEdges, 12030) X(GraphNodeGetDependencies, 12030)          \
  X(GraphNodeGetDependentNodes, 12030) X(GraphAddDependencies, 12030)                             \
  X(GraphRemoveDependencies, 12030) X(GraphDestroyNode, 10000)                                    \
  X(GraphInstantiateWithFlags, 11040) X(GraphExecDestroy, 10000) X(GraphExecGetFlags, 12000)      \
  X(GraphExecUpdate, 12000) X(GraphDebugDotPrint, 11030)                                          \
  X(GraphAddKernelNode, 12000) X(GraphKernelNodeGetParams, 12000)                                 \
  X(GraphKernelNodeSetParams, 12000) X(GraphExecKernelNodeSetParams, 12000)                       \
  X(GraphKernelNodeCopyAttributes, 11000) X(GraphKernelNodeGetAttribute, 11000)                   \
  X(GraphKernelNodeSetAttribute, 11000)                                                           \
  X(GraphAddMemcpyNode, 10000) X(GraphMemcpyNodeGetParams, 10000)                                 \
  X(GraphMemcpyNodeSetParams, 10000) X(GraphExecMemcpyNodeSetParams, 10020)                       \
  X(GraphAddMemsetNode, 10000) X(GraphMemsetNodeGetParams, 10000)                                 \
  X(GraphMemsetNodeSetParams, 10000) X(GraphExecMemsetNodeSetParams, 10020)                       \
  X(GraphAddHostNode, 10000) X(GraphHostNodeGetParams, 10000) X(GraphHostNodeSetParams, 10000)    \
  X(GraphExecHostNodeSetParams, 10020)                                                            \
  X(GraphAddChildGraphNode, 10000) X(GraphChildGraphNodeGetGraph, 10000)                          \
  X(GraphExecChildGraphNodeSetParams, 11010) X(GraphAddEmptyNode, 10000)                          \
  X(GraphAddEventRecordNode, 11010) X(GraphEventRecordNodeGetEvent, 11010)                        \
  X(GraphEventRecordNodeSetEvent, 11010) X(GraphAddEventWaitNode, 11010)                          \
  X(GraphEventWaitNodeGetEvent, 11010) X(GraphEventWaitNodeSetEvent, 11010)                       \
  X(GraphExecEventRecordNodeSetEvent, 11010) X(GraphExecEventWaitNodeSetEvent, 11010)             \
  X(GraphAddMemAllocNode, 11040) X(GraphMemAllocNodeGetParams, 11040)                             \
  X(GraphAddMemFreeNode, 11040) X(GraphMemFreeNodeGetParams, 11040)                               \
  X(DeviceGraphMemTrim, 11040) X(DeviceGetGraphMemAttribute, 11040)                               \
  X(DeviceSetGraphMemAttribute, 11040) X(GraphNodeSetEnabled, 11060)                              \
  X(GraphNodeGetEnabled, 11060) X(UserObjectCreate, 11030) X(UserObjectRetain, 11030)             \
  X(UserObjectRelease, 11030) X(GraphRetainUserObject, 11030) X(GraphReleaseUserObject, 11030)    \
  X(GraphConditionalHandleCreate, 12030)

// The same for functions that come in two forms: X(name, version, version of the per-thread form).
#define CUDART_STREAM_DRIVER(X)                                                                   \
  X(Memcpy, 4000, 7000) X(MemcpyAsync, 4000, 7000)                                                \
  X(MemcpyPeer, 4000, 7000) X(MemcpyPeerAsync, 4000, 7000)                                        \
  X(MemcpyHtoD, 3020, 7000) X(MemcpyHtoDAsync, 3020, 7000)                                        \
  X(MemcpyDtoH, 3020, 7000) X(MemcpyDtoHAsync, 3020, 7000)                                        \
  X(MemcpyDtoD, 3020, 7000) X(MemcpyDtoDAsync, 3020, 7000)                                        \
  X(Memcpy2DUnaligned, 3020, 7000) X(Memcpy2DAsync, 3020, 7000)                                   \
  X(Memcpy3D, 3020, 7000) X(Memcpy3DAsync, 3020, 7000)                                            \
  X(Memcpy3DPeer, 4000, 7000) X(Memcpy3DPeerAsync, 4000, 7000)                                    \
  X(MemcpyBatchAsync, 13000, 13000) X(Memcpy3DBatchAsync, 13000, 13000)                           \
  X(MemsetD8, 3020, 7000) X(MemsetD8Async, 3020, 7000)                                            \
  X(MemsetD2D8, 3020, 7000) X(MemsetD2D8Async, 3020, 7000)                                        \
  X(MemAllocAsync, 11020, 11020) X(MemAllocFromPoolAsync, 11020, 11020)                           \
  X(MemFreeAsync, 11020, 11020) X(MemPrefetchAsync, 12020, 12020)                                 \
  X(MemPrefetchBatchAsync, 13000, 13000) X(MemDiscardBatchAsync, 13000, 13000)                    \
  X(MemDiscardAndPrefetchBatchAsync, 13000, 13000)                                                \
  X(LaunchKernel, 4000, 7000) X(LaunchKernelEx, 11060, 11060)                                     \
  X(LaunchCooperativeKernel, 9000, 9000) X(LaunchHostFunc, 10000, 10000)                          \
  X(StreamAddCallback, 5000, 7000) X(EventRecord, 2000, 7000)                                     \
  X(EventRecordWithFlags, 11010, 11010) X(StreamWaitEvent, 3020, 7000)                            \
  X(StreamSynchronize, 2000, 7000) X(StreamQuery, 2000, 7000) X(StreamGetFlags, 5050, 7000)       \
  X(StreamGetPriority, 5050, 7000) X(StreamGetId, 12000, 12000)                                   \
  X(StreamGetDevice, 12080, 12080) X(StreamAttachMemAsync, 6000, 7000)                            \
  X(StreamCopyAttributes, 11000, 11000) X(StreamGetAttribute, 11000, 11000)                       \
  X(StreamSetAttribute, 11000, 11000) X(StreamBeginCapture, 10010, 10010)                         \
  X(StreamBeginCaptureToGraph, 12030, 12030) X(StreamEndCapture, 10000, 10000)                    \
  X(StreamIsCapturing, 10000, 10000) X(StreamGetCaptureInfo, 12030, 12030)                        \
  X(StreamUpdateCaptureDependencies, 12030, 12030) X(GraphUpload, 11010, 11010)                   \
  X(GraphLaunch, 10000, 10000) X(GraphInstantiateWithParams, 12000, 12000)
// clang-format on

struct Driver {
#define CUDART_MEMBER(name, version) Entry<PFN_cu##name##_v##version> name;
  CUDART_DRIVER(CUDART_MEMBER)
#undef CUDART_MEMBER
#define CUDART_MEMBER(name, version, per_thread) Entry<PFN_cu##name##_v##version> name[2];
  CUDART_STREAM_DRIVER(CUDART_MEMBER)
#undef CUDART_MEMBER

  // What a call that needs the driver returns: cudaSuccess, cudaErrorInsufficientDriver without a
  // driver of CUDA 13 or later, cudaErrorNoDevice, or what cuInit said.
  cudaError_t error = cudaSuccess;
  int device_count = 0;
};

// Loads the driver on the first call. Thread-safe; lives until the process ends.
const Driver& GetDriver();

// True once the process has begun to end, from where on the driver is left alone.
bool Exiting();

}  // namespace cudart
