// Hooks of memory that host and device share, and of functions of the host among device work. All
// of it passes to the driver; only what it may mean for pointers is noted.
#include "runtime/intercept/hook.h"
#include "runtime/intercept/host_memory.h"

using namespace tidepool;

namespace {

uint64_t Number(const void* at) { return reinterpret_cast<uint64_t>(at); }

}  // namespace

TIDEPOOL_HOOK(cuMemAllocManaged, (CUdeviceptr * out, size_t bytes, unsigned int flags),
              CUresult result = real(out, bytes, flags);
              if (result == CUDA_SUCCESS) HostMemory::Get().Add(*out, bytes); return result;)
TIDEPOOL_HOOK(cuMemHostAlloc, (void** out, size_t bytes, unsigned int flags),
              CUresult result = real(out, bytes, flags);
              if (result == CUDA_SUCCESS) HostMemory::Get().Add(Number(*out), bytes);
              return result;)
TIDEPOOL_HOOK(cuMemAllocHost_v2, (void** out, size_t bytes), CUresult result = real(out, bytes);
              if (result == CUDA_SUCCESS) HostMemory::Get().Add(Number(*out), bytes);
              return result;)
TIDEPOOL_HOOK(cuMemFreeHost, (void* at), CUresult result = real(at);
              if (result == CUDA_SUCCESS) HostMemory::Get().Remove(Number(at)); return result;)
TIDEPOOL_HOOK(cuMemHostRegister_v2, (void* at, size_t bytes, unsigned int flags),
              CUresult result = real(at, bytes, flags);
              if (result == CUDA_SUCCESS) HostMemory::Get().Add(Number(at), bytes); return result;)
TIDEPOOL_HOOK(cuMemHostUnregister, (void* at), CUresult result = real(at);
              if (result == CUDA_SUCCESS) HostMemory::Get().Remove(Number(at)); return result;)
// Where the device's address differs from the host's.
TIDEPOOL_HOOK(cuMemHostGetDevicePointer_v2, (CUdeviceptr * out, void* at, unsigned int flags),
              CUresult result = real(out, at, flags);
              if (result == CUDA_SUCCESS && *out != Number(at)) HostMemory::Get().Add(*out, 1);
              return result;)

TIDEPOOL_HOOKS(cuLaunchHostFunc, _ptsz, (CUstream s, CUhostFn function, void* data),
               HostMemory::Get().OnHostFunction();
               return real(s, function, data);)
TIDEPOOL_HOOKS(cuStreamAddCallback, _ptsz,
               (CUstream s, CUstreamCallback callback, void* data, unsigned int flags),
               HostMemory::Get().OnHostFunction();
               return real(s, callback, data, flags);)
