// Devices, streams, events and errors.
#include <cstring>

#include "tools/simgpu/cudart/driver.h"

using namespace cudart;

CUDART_API cudaGetLastError() { return TakeLastError(true); }
CUDART_API cudaPeekAtLastError() { return TakeLastError(false); }

extern "C" __attribute__((visibility("default"))) const char* CUDARTAPI
cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define NAME(name) \
  case name:       \
    return #name
    NAME(cudaSuccess);
    NAME(cudaErrorInvalidValue);
    NAME(cudaErrorMemoryAllocation);
    NAME(cudaErrorInitializationError);
    NAME(cudaErrorCudartUnloading);
    NAME(cudaErrorInvalidConfiguration);
    NAME(cudaErrorInvalidPitchValue);
    NAME(cudaErrorInvalidSymbol);
    NAME(cudaErrorInvalidMemcpyDirection);
    NAME(cudaErrorInsufficientDriver);
    NAME(cudaErrorMissingConfiguration);
    NAME(cudaErrorInvalidDeviceFunction);
    NAME(cudaErrorNoDevice);
    NAME(cudaErrorInvalidDevice);
    NAME(cudaErrorInvalidKernelImage);
    NAME(cudaErrorNoKernelImageForDevice);
    NAME(cudaErrorInvalidPtx);
    NAME(cudaErrorInvalidResourceHandle);
    NAME(cudaErrorSymbolNotFound);
    NAME(cudaErrorNotReady);
    NAME(cudaErrorIllegalAddress);
    NAME(cudaErrorLaunchOutOfResources);
    NAME(cudaErrorLaunchTimeout);
    NAME(cudaErrorAssert);
    NAME(cudaErrorMisalignedAddress);
    NAME(cudaErrorLaunchFailure);
    NAME(cudaErrorNotSupported);
    NAME(cudaErrorHostMemoryAlreadyRegistered);
    NAME(cudaErrorHostMemoryNotRegistered);
    NAME(cudaErrorDeviceUninitialized);
    NAME(cudaErrorContextIsDestroyed);
    NAME(cudaErrorUnknown);
#undef NAME
    default:
      return "unrecognized error code";
  }
}
extern "C" __attribute__((visibility("default"))) const char* CUDARTAPI
cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInitializationError:
      return "initialization error";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidSymbol:
      return "invalid device symbol";
    case cudaErrorInvalidMemcpyDirection:
      return "invalid copy direction for memcpy";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorInvalidDeviceFunction:
      return "invalid device function";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNoKernelImageForDevice:
      return "no kernel image is available for execution on the device";
    case cudaErrorInvalidPtx:
      return "a PTX JIT compilation failed";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchOutOfResources:
      return "too many resources requested for launch";
    case cudaErrorLaunchTimeout:
      return "the launch timed out and was terminated";
    case cudaErrorAssert:
      return "device-side assert triggered";
    case cudaErrorMisalignedAddress:
      return "misaligned address";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorNotSupported:
      return "operation not supported";
    case cudaErrorUnknown:
      return "unknown error";
    default:
      return cudaGetErrorName(error);
  }
}

CUDART_API cudaGetDeviceCount(int* count) {
  if (count == nullptr) return Note(cudaErrorInvalidValue);
  *count = 0;
  if (cudaError_t e = EnterDriver(); e != cudaSuccess) return Note(e);
  return Note(GetDriver().DeviceGetCount(count));
}
CUDART_API cudaGetDevice(int* device) {
  if (device == nullptr) return Note(cudaErrorInvalidValue);
  if (cudaError_t e = EnterDriver(); e != cudaSuccess) return Note(e);
  *device = CurrentDevice();
  return cudaSuccess;
}
CUDART_API cudaSetDevice(int device) {
  if (cudaError_t e = EnterDriver(); e != cudaSuccess) return Note(e);
  if (cudaError_t e = SetCurrentDevice(device); e != cudaSuccess) return Note(e);
  return Note(Enter());
}
CUDART_API cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (cudaError_t e = EnterDriver(); e != cudaSuccess) return Note(e);
  return Note(
      GetDriver().DeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), device));
}
CUDART_API cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  if (p == nullptr) return Note(cudaErrorInvalidValue);
  if (cudaError_t e = EnterDriver(); e != cudaSuccess) return Note(e);
  const Driver& d = GetDriver();
  std::memset(p, 0, sizeof(*p));
  if (CUresult r = d.DeviceGetName(p->name, sizeof(p->name), device); r != CUDA_SUCCESS)
    return Note(r);
  d.DeviceTotalMem(&p->totalGlobalMem, device);
  auto get = [&](CUdevice_attribute attribute) {
    int value = 0;
    d.DeviceGetAttribute(&value, attribute, device);
    return value;
  };
  p->sharedMemPerBlock = static_cast<size_t>(get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
  p->regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  p->warpSize = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  p->memPitch = static_cast<size_t>(get(CU_DEVICE_ATTRIBUTE_MAX_PITCH));
  p->maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  p->maxThreadsDim[0] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  p->maxThreadsDim[1] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  p->maxThreadsDim[2] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  p->maxGridSize[0] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  p->maxGridSize[1] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  p->maxGridSize[2] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  p->totalConstMem = static_cast<size_t>(get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY));
  p->major = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  p->minor = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  p->textureAlignment = static_cast<size_t>(get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT));
  p->multiProcessorCount = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  p->canMapHostMemory = get(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
  p->concurrentKernels = get(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
  p->ECCEnabled = get(CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
  p->pciBusID = get(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  p->asyncEngineCount = get(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  p->unifiedAddressing = get(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  p->memoryBusWidth = get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  p->l2CacheSize = get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  p->maxThreadsPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  p->sharedMemPerMultiprocessor =
      static_cast<size_t>(get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  p->regsPerMultiprocessor = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  p->managedMemory = get(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  p->sharedMemPerBlockOptin =
      static_cast<size_t>(get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  p->cooperativeLaunch = get(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
  p->memoryPoolsSupported = get(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  return cudaSuccess;
}
CUDART_API cudaDeviceSynchronize() {
  CUDART_ENTER();
  return Note(GetDriver().CtxSynchronize());
}
CUDART_API cudaDeviceReset() {
  CUDART_ENTER();
  return Note(GetDriver().DevicePrimaryCtxReset(CurrentDevice()));
}
CUDART_API cudaDeviceCanAccessPeer(int* can, int a, int b) {
  CUDART_ENTER();
  return Note(GetDriver().DeviceCanAccessPeer(can, a, b));
}
CUDART_API cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  CUDART_ENTER();
  return Note(GetDriver().CtxGetLimit(value, static_cast<CUlimit>(limit)));
}
CUDART_API cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  CUDART_ENTER();
  return Note(GetDriver().CtxSetLimit(static_cast<CUlimit>(limit), value));
}
CUDART_API cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
CUDART_API cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  CUDART_ENTER();
  return Note(GetDriver().CtxGetStreamPriorityRange(least, greatest));
}
CUDART_API cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
CUDART_API cudaDriverGetVersion(int* version) {
  if (version == nullptr) return Note(cudaErrorInvalidValue);
  *version = 0;
  if (GetDriver().DriverGetVersion == nullptr) return cudaSuccess;
  return Note(GetDriver().DriverGetVersion(version));
}
CUDART_API cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return Note(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}
CUDART_API cudaProfilerStart() { return cudaSuccess; }
CUDART_API cudaProfilerStop() { return cudaSuccess; }

CUDART_API cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int priority) {
  CUDART_ENTER();
  return Note(GetDriver().StreamCreateWithPriority(out, flags, priority));
}
CUDART_API cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  return cudaStreamCreateWithPriority(out, flags, 0);
}
CUDART_API cudaStreamCreate(cudaStream_t* out) { return cudaStreamCreateWithPriority(out, 0, 0); }
CUDART_API cudaStreamDestroy(cudaStream_t s) {
  CUDART_ENTER();
  return Note(GetDriver().StreamDestroy(s));
}

#define STREAM_CALL(name, suffix, params, call) \
  template <int kForm>                          \
  static cudaError_t name##Form params {        \
    CUDART_ENTER();                             \
    return Note(call);                          \
  }
#define FORMS(name, params, args)                       \
  CUDART_API name params { return name##Form<0> args; } \
  CUDART_API name##_ptsz params { return name##Form<1> args; }

STREAM_CALL(cudaStreamSynchronize, _ptsz, (cudaStream_t s), GetDriver().StreamSynchronize[kForm](s))
FORMS(cudaStreamSynchronize, (cudaStream_t s), (s))
STREAM_CALL(cudaStreamQuery, _ptsz, (cudaStream_t s), GetDriver().StreamQuery[kForm](s))
FORMS(cudaStreamQuery, (cudaStream_t s), (s))
STREAM_CALL(cudaStreamWaitEvent, _ptsz, (cudaStream_t s, cudaEvent_t e, unsigned f),
            GetDriver().StreamWaitEvent[kForm](s, e, f))
FORMS(cudaStreamWaitEvent, (cudaStream_t s, cudaEvent_t e, unsigned f), (s, e, f))
STREAM_CALL(cudaStreamGetFlags, _ptsz, (cudaStream_t s, unsigned* f),
            GetDriver().StreamGetFlags[kForm](s, f))
FORMS(cudaStreamGetFlags, (cudaStream_t s, unsigned* f), (s, f))
STREAM_CALL(cudaStreamGetPriority, _ptsz, (cudaStream_t s, int* p),
            GetDriver().StreamGetPriority[kForm](s, p))
FORMS(cudaStreamGetPriority, (cudaStream_t s, int* p), (s, p))
STREAM_CALL(cudaLaunchHostFunc, _ptsz, (cudaStream_t s, cudaHostFn_t f, void* d),
            GetDriver().LaunchHostFunc[kForm](s, f, d))
FORMS(cudaLaunchHostFunc, (cudaStream_t s, cudaHostFn_t f, void* d), (s, f, d))
STREAM_CALL(cudaEventRecord, _ptsz, (cudaEvent_t e, cudaStream_t s),
            GetDriver().EventRecord[kForm](e, s))
FORMS(cudaEventRecord, (cudaEvent_t e, cudaStream_t s), (e, s))

CUDART_API cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
  CUDART_ENTER();
  return Note(GetDriver().EventCreate(out, flags));
}
CUDART_API cudaEventCreate(cudaEvent_t* out) { return cudaEventCreateWithFlags(out, 0); }
CUDART_API cudaEventDestroy(cudaEvent_t e) {
  CUDART_ENTER();
  return Note(GetDriver().EventDestroy(e));
}
CUDART_API cudaEventQuery(cudaEvent_t e) {
  CUDART_ENTER();
  return Note(GetDriver().EventQuery(e));
}
CUDART_API cudaEventSynchronize(cudaEvent_t e) {
  CUDART_ENTER();
  return Note(GetDriver().EventSynchronize(e));
}
CUDART_API cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
  CUDART_ENTER();
  return Note(GetDriver().EventElapsedTime(ms, a, b));
}
