#include "tools/simgpu/cudart/driver_table.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

#include "tools/simgpu/cudart/runtime.h"

namespace cudart {
namespace {

// A driver of the runtime's own major version or later can carry it.
constexpr int kOldestDriver = CUDART_VERSION / 1000 * 1000;
constexpr cuuint64_t kPerThreadFlag = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

std::atomic<bool> exiting{false};

Driver* Load() {
  auto* driver = new Driver;
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  auto lookup =
      library == nullptr
          ? nullptr
          : reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (lookup == nullptr) {
    driver->error = cudaErrorInsufficientDriver;
    return driver;
  }
  // The rest goes through the pointer that this lookup returns, so that who stands between the
  // runtime and the driver sees every request.
  void* again = nullptr;
  if (lookup("cuGetProcAddress", &again, 12000, 0, nullptr) == CUDA_SUCCESS && again != nullptr) {
    lookup = reinterpret_cast<PFN_cuGetProcAddress_v12000>(again);
  }
  auto get = [&](const char* name, int version, cuuint64_t flags, auto* entry) {
    void* address = nullptr;
    if (lookup(name, &address, version, flags, nullptr) == CUDA_SUCCESS) entry->Set(address);
  };
#define CUDART_LOAD(name, version) get("cu" #name, version, 0, &driver->name);
  CUDART_DRIVER(CUDART_LOAD)
#undef CUDART_LOAD
#define CUDART_LOAD(name, version, per_thread)         \
  get("cu" #name, version, 0, &driver->name[kLegacy]); \
  get("cu" #name, per_thread, kPerThreadFlag, &driver->name[kPerThread]);
  CUDART_STREAM_DRIVER(CUDART_LOAD)
#undef CUDART_LOAD
  int version = 0;
  if (driver->DriverGetVersion(&version) != CUDA_SUCCESS || version < kOldestDriver) {
    driver->error = cudaErrorInsufficientDriver;
    return driver;
  }
  driver->error = FromDriver(driver->Init(0));
  if (driver->error != cudaSuccess) return driver;
  driver->error = FromDriver(driver->DeviceGetCount(&driver->device_count));
  if (driver->error == cudaSuccess && driver->device_count == 0) driver->error = cudaErrorNoDevice;
  // Handlers run in reverse order: this one before those that the program's registration code set
  // up when it was loaded, and those then see that the driver may be gone.
  std::atexit([] { exiting.store(true, std::memory_order_relaxed); });
  return driver;
}

}  // namespace

const Driver& GetDriver() {
  static const Driver* driver = Load();
  return *driver;
}

bool Exiting() { return exiting.load(std::memory_order_relaxed); }

}  // namespace cudart
