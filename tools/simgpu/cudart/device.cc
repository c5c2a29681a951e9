// Devices: choosing one, its limits, and the versions.
#include <cstring>

#include "tools/simgpu/cudart/runtime.h"

using cudart::CurrentDevice;
using cudart::GetDriver;
using cudart::Note;
using cudart::PrimaryContext;

CUDART_API cudaGetDeviceCount(int* count) {
  if (count == nullptr) return Note(cudaErrorInvalidValue);
  *count = 0;
  CUDART_ENTER_DRIVER();
  *count = GetDriver().device_count;
  return cudaSuccess;
}
CUDART_API cudaGetDevice(int* device) {
  if (device == nullptr) return Note(cudaErrorInvalidValue);
  CUDART_ENTER_DRIVER();
  *device = CurrentDevice();
  return cudaSuccess;
}
CUDART_API cudaSetDevice(int device) { return Note(cudart::ChooseDevice(device)); }
CUDART_API cudaSetValidDevices(int* devices, int count) {
  return Note(cudart::SetValidDevices(devices, count));
}

// Mapped host memory needs no flag of the driver's any more; the runtime says that it is there.
static CUresult SetFlags(int device, unsigned flags) {
  return GetDriver().DevicePrimaryCtxSetFlags(device, flags & ~unsigned{cudaDeviceMapHost});
}
CUDART_API cudaSetDeviceFlags(unsigned flags) {
  CUDART_ENTER_DRIVER();
  return Note(SetFlags(CurrentDevice(), flags));
}
CUDART_API cudaGetDeviceFlags(unsigned* flags) {
  CUDART_ENTER_DRIVER();
  if (flags == nullptr) return Note(cudaErrorInvalidValue);
  int active = 0;
  const CUresult r = GetDriver().DevicePrimaryCtxGetState(CurrentDevice(), flags, &active);
  if (r == CUDA_SUCCESS) *flags |= cudaDeviceMapHost;
  return Note(r);
}
CUDART_API cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
  CUDART_ENTER_DRIVER();
  if ((flags & ~unsigned{cudaInitDeviceFlagsAreValid}) != 0) return Note(cudaErrorInvalidValue);
  if (device < 0 || device >= GetDriver().device_count) return Note(cudaErrorInvalidDevice);
  if ((flags & cudaInitDeviceFlagsAreValid) != 0) {
    if (CUresult r = SetFlags(device, device_flags); r != CUDA_SUCCESS) return Note(r);
  }
  CUcontext context = nullptr;
  return Note(PrimaryContext(device, &context));
}
CUDART_API cudaDeviceReset() { return Note(cudart::ResetCurrentDevice()); }
CUDART_API cudaDeviceSynchronize() {
  CUDART_ENTER();
  return Note(GetDriver().CtxSynchronize());
}

CUDART_API cudaDeviceGetByPCIBusId(int* device, const char* id) {
  CUDART_ENTER_DRIVER();
  return Note(GetDriver().DeviceGetByPCIBusId(device, id));
}
CUDART_API cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  CUDART_ENTER_DRIVER();
  return Note(GetDriver().DeviceGetPCIBusId(id, bytes, device));
}
CUDART_API cudaDeviceGetHostAtomicCapabilities(unsigned* capabilities,
                                               const cudaAtomicOperation* operations,
                                               unsigned count, int device) {
  CUDART_ENTER_DRIVER();
  return Note(GetDriver().DeviceGetHostAtomicCapabilities(
      capabilities, reinterpret_cast<const CUatomicOperation*>(operations), count, device));
}
CUDART_API cudaDeviceGetP2PAtomicCapabilities(unsigned* capabilities,
                                              const cudaAtomicOperation* operations, unsigned count,
                                              int from, int to) {
  CUDART_ENTER_DRIVER();
  return Note(GetDriver().DeviceGetP2PAtomicCapabilities(
      capabilities, reinterpret_cast<const CUatomicOperation*>(operations), count, from, to));
}

// --- Peers ---

CUDART_API cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  CUDART_ENTER_DRIVER();
  return Note(GetDriver().DeviceCanAccessPeer(can, device, peer));
}
CUDART_API cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  CUDART_ENTER();
  CUcontext context = nullptr;
  if (cudaError_t e = PrimaryContext(peer, &context); e != cudaSuccess) return Note(e);
  return Note(GetDriver().CtxEnablePeerAccess(context, flags));
}
CUDART_API cudaDeviceDisablePeerAccess(int peer) {
  CUDART_ENTER();
  CUcontext context = nullptr;
  if (cudaError_t e = PrimaryContext(peer, &context); e != cudaSuccess) return Note(e);
  return Note(GetDriver().CtxDisablePeerAccess(context));
}
CUDART_API cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int from, int to) {
  CUDART_ENTER_DRIVER();
  return Note(GetDriver().DeviceGetP2PAttribute(
      value, static_cast<CUdevice_P2PAttribute>(attribute), from, to));
}
CUDART_API cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget target,
                                              cudaFlushGPUDirectRDMAWritesScope scope) {
  CUDART_ENTER();
  return Note(
      GetDriver().FlushGPUDirectRDMAWrites(static_cast<CUflushGPUDirectRDMAWritesTarget>(target),
                                           static_cast<CUflushGPUDirectRDMAWritesScope>(scope)));
}

// --- Limits ---

CUDART_API cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  CUDART_ENTER();
  return Note(GetDriver().CtxGetLimit(value, static_cast<CUlimit>(limit)));
}
CUDART_API cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  CUDART_ENTER();
  return Note(GetDriver().CtxSetLimit(static_cast<CUlimit>(limit), value));
}
CUDART_API cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  CUDART_ENTER();
  return Note(GetDriver().CtxGetCacheConfig(reinterpret_cast<CUfunc_cache*>(config)));
}
CUDART_API cudaDeviceSetCacheConfig(cudaFuncCache config) {
  CUDART_ENTER();
  return Note(GetDriver().CtxSetCacheConfig(static_cast<CUfunc_cache>(config)));
}
// The configuration of shared memory banks has had no effect since Maxwell.
CUDART_API cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  CUDART_ENTER();
  if (config == nullptr) return Note(cudaErrorInvalidValue);
  *config = cudaSharedMemBankSizeFourByte;
  return cudaSuccess;
}
CUDART_API cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
  CUDART_ENTER();
  return cudaSuccess;
}
CUDART_API cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  CUDART_ENTER();
  return Note(GetDriver().CtxGetStreamPriorityRange(least, greatest));
}
CUDART_API cudaCtxResetPersistingL2Cache() {
  CUDART_ENTER();
  return Note(GetDriver().CtxResetPersistingL2Cache());
}

// --- Versions, profiler ---

CUDART_API cudaDriverGetVersion(int* version) {
  if (version == nullptr) return Note(cudaErrorInvalidValue);
  *version = 0;
  // No driver is an answer here: version 0.
  if (!GetDriver().DriverGetVersion.exists()) return cudaSuccess;
  return Note(GetDriver().DriverGetVersion(version));
}
CUDART_API cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return Note(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}
CUDART_API cudaProfilerStart() {
  CUDART_ENTER();
  return Note(GetDriver().ProfilerStart());
}
CUDART_API cudaProfilerStop() {
  CUDART_ENTER();
  return Note(GetDriver().ProfilerStop());
}
CUDART_EXPORT cudaChannelFormatDesc CUDARTAPI cudaCreateChannelDesc(int x, int y, int z, int w,
                                                                    cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}
