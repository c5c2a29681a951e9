#include "tools/simgpu/cudart/driver.h"

#include <dlfcn.h>

#include <mutex>

namespace cudart {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int device = 0;
thread_local bool has_context = false;

Driver Load() {
  Driver driver;
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  auto lookup =
      library == nullptr
          ? nullptr
          : reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (lookup == nullptr) {
    driver.error = cudaErrorInsufficientDriver;
    return driver;
  }
  // As the real runtime does: the rest goes through the pointer that this lookup returns.
  void* again = nullptr;
  if (lookup("cuGetProcAddress", &again, 12000, 0, nullptr) == CUDA_SUCCESS && again != nullptr) {
    lookup = reinterpret_cast<PFN_cuGetProcAddress_v12000>(again);
  }
  auto get = [&](const char* name, int version, int flags, auto* out) {
    void* address = nullptr;
    if (lookup(name, &address, version, static_cast<cuuint64_t>(flags), nullptr) == CUDA_SUCCESS) {
      *out = reinterpret_cast<std::remove_pointer_t<decltype(out)>>(address);
    }
  };
#define CUDART_LOAD(name, version) get("cu" #name, version, 0, &driver.name);
  CUDART_DRIVER(CUDART_LOAD)
#undef CUDART_LOAD
#define CUDART_LOAD(name, version, per_thread)  \
  get("cu" #name, version, 0, &driver.name[0]); \
  get("cu" #name, per_thread, 2, &driver.name[1]);
  CUDART_STREAM_DRIVER(CUDART_LOAD)
#undef CUDART_LOAD
  int version = 0;
  if (driver.Init == nullptr || driver.DriverGetVersion == nullptr ||
      driver.DriverGetVersion(&version) != CUDA_SUCCESS || version < CUDART_VERSION) {
    driver.error = cudaErrorInsufficientDriver;
    return driver;
  }
  const CUresult result = driver.Init(0);
  int count = 0;
  if (result != CUDA_SUCCESS) {
    driver.error = static_cast<cudaError_t>(result);
  } else if (driver.DeviceGetCount(&count) != CUDA_SUCCESS || count == 0) {
    driver.error = cudaErrorNoDevice;
  }
  return driver;
}

}  // namespace

const Driver& GetDriver() {
  static const Driver* driver = new Driver(Load());
  return *driver;
}

cudaError_t EnterDriver() { return GetDriver().error; }

cudaError_t Enter() {
  const Driver& driver = GetDriver();
  if (driver.error != cudaSuccess) return driver.error;
  CUcontext current = nullptr;
  if (CUresult r = driver.CtxGetCurrent(&current); r != CUDA_SUCCESS) {
    return static_cast<cudaError_t>(r);
  }
  if (current != nullptr && has_context) return cudaSuccess;
  if (current == nullptr || !has_context) {
    if (current == nullptr) {
      CUcontext context = nullptr;
      if (CUresult r = driver.DevicePrimaryCtxRetain(&context, device); r != CUDA_SUCCESS) {
        return static_cast<cudaError_t>(r);
      }
      if (CUresult r = driver.CtxSetCurrent(context); r != CUDA_SUCCESS) {
        return static_cast<cudaError_t>(r);
      }
    }
    has_context = true;
  }
  return cudaSuccess;
}

cudaError_t Note(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

cudaError_t TakeLastError(bool reset) {
  const cudaError_t error = last_error;
  if (reset) last_error = cudaSuccess;
  return error;
}

int CurrentDevice() { return device; }

cudaError_t SetCurrentDevice(int wanted) {
  int count = 0;
  if (GetDriver().DeviceGetCount(&count) != CUDA_SUCCESS) return cudaErrorNoDevice;
  if (wanted < 0 || wanted >= count) return cudaErrorInvalidDevice;
  if (wanted != device) {
    device = wanted;
    has_context = false;
    GetDriver().CtxSetCurrent(nullptr);
  }
  return cudaSuccess;
}

}  // namespace cudart
