#include "tools/simgpu/cudart/runtime.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace cudart {
namespace {

struct Primary {
  CUcontext context = nullptr;
  bool retained = false;
};

struct Contexts {
  std::mutex mutex;
  std::vector<Primary> primaries;  // by device
  std::vector<int> valid_devices;  // empty: all of them
  std::atomic<uint64_t> epoch{1};
};

Contexts& GetContexts() {
  static auto* contexts = new Contexts;
  return *contexts;
}

struct Thread {
  cudaError_t last_error = cudaSuccess;
  int device = -1;  // not chosen yet
  // The context found usable by the last call, as of `epoch`.
  CUcontext context = nullptr;
  uint64_t epoch = 0;
};
thread_local Thread thread;

int ChosenDevice() {
  if (thread.device >= 0) return thread.device;
  Contexts& contexts = GetContexts();
  std::lock_guard<std::mutex> lock(contexts.mutex);
  return contexts.valid_devices.empty() ? 0 : contexts.valid_devices.front();
}

CUresult Retain(Contexts& contexts, int device, CUcontext* out) {
  contexts.primaries.resize(static_cast<size_t>(GetDriver().device_count));
  Primary& primary = contexts.primaries[static_cast<size_t>(device)];
  if (!primary.retained) {
    if (CUresult r = GetDriver().DevicePrimaryCtxRetain(&primary.context, device);
        r != CUDA_SUCCESS) {
      return r;
    }
    primary.retained = true;
  }
  *out = primary.context;
  return CUDA_SUCCESS;
}

// True if `context` is a primary context that this runtime has reset and not made again.
bool WasReset(Contexts& contexts, CUcontext context) {
  for (const Primary& primary : contexts.primaries) {
    if (primary.context == context) return !primary.retained;
  }
  return false;
}

}  // namespace

cudaError_t FromDriver(CUresult result) {
  return result == CUDA_ERROR_CONTEXT_ALREADY_CURRENT || result == CUDA_ERROR_KEY_ROTATION
             ? cudaErrorUnknown
             : static_cast<cudaError_t>(result);
}

cudaError_t Note(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) thread.last_error = error;
  return error;
}

cudaError_t Enter() {
  const Driver& driver = GetDriver();
  if (driver.error != cudaSuccess) return driver.error;
  CUcontext current = nullptr;
  if (CUresult r = driver.CtxGetCurrent(&current); r != CUDA_SUCCESS) return FromDriver(r);
  Contexts& contexts = GetContexts();
  const uint64_t epoch = contexts.epoch.load(std::memory_order_acquire);
  if (current != nullptr && current == thread.context && thread.epoch == epoch) return cudaSuccess;
  const int device = ChosenDevice();
  std::lock_guard<std::mutex> lock(contexts.mutex);
  if (current == nullptr || WasReset(contexts, current)) {
    if (CUresult r = Retain(contexts, device, &current); r != CUDA_SUCCESS) return FromDriver(r);
    if (CUresult r = driver.CtxSetCurrent(current); r != CUDA_SUCCESS) return FromDriver(r);
  }
  thread.context = current;
  thread.epoch = epoch;
  return cudaSuccess;
}

int CurrentDevice() {
  CUcontext current = nullptr;
  CUdevice device = 0;
  if (GetDriver().CtxGetCurrent(&current) == CUDA_SUCCESS && current != nullptr &&
      GetDriver().CtxGetDevice(&device) == CUDA_SUCCESS) {
    return device;
  }
  return ChosenDevice();
}

cudaError_t ChooseDevice(int device) {
  if (cudaError_t e = EnterDriver(); e != cudaSuccess) return e;
  if (device < 0 || device >= GetDriver().device_count) return cudaErrorInvalidDevice;
  CUcontext context = nullptr;
  if (cudaError_t e = PrimaryContext(device, &context); e != cudaSuccess) return e;
  if (CUresult r = GetDriver().CtxSetCurrent(context); r != CUDA_SUCCESS) return FromDriver(r);
  thread.device = device;
  return cudaSuccess;
}

cudaError_t SetValidDevices(const int* devices, int count) {
  if (cudaError_t e = EnterDriver(); e != cudaSuccess) return e;
  if (count < 0 || (count > 0 && devices == nullptr)) return cudaErrorInvalidValue;
  for (int i = 0; i < count; ++i) {
    if (devices[i] < 0 || devices[i] >= GetDriver().device_count) return cudaErrorInvalidDevice;
  }
  Contexts& contexts = GetContexts();
  std::lock_guard<std::mutex> lock(contexts.mutex);
  contexts.valid_devices.assign(devices, devices + count);
  return cudaSuccess;
}

cudaError_t PrimaryContext(int device, CUcontext* out) {
  if (cudaError_t e = EnterDriver(); e != cudaSuccess) return e;
  if (device < 0 || device >= GetDriver().device_count) return cudaErrorInvalidDevice;
  Contexts& contexts = GetContexts();
  std::lock_guard<std::mutex> lock(contexts.mutex);
  return FromDriver(Retain(contexts, device, out));
}

cudaError_t ResetCurrentDevice() {
  if (cudaError_t e = EnterDriver(); e != cudaSuccess) return e;
  const int device = CurrentDevice();
  Contexts& contexts = GetContexts();
  std::lock_guard<std::mutex> lock(contexts.mutex);
  contexts.primaries.resize(static_cast<size_t>(GetDriver().device_count));
  Primary& primary = contexts.primaries[static_cast<size_t>(device)];
  if (primary.retained) {
    // Let go first: a reset context that is still retained would be brought back by its next use.
    if (CUresult r = GetDriver().DevicePrimaryCtxRelease(device); r != CUDA_SUCCESS) {
      return FromDriver(r);
    }
    primary.retained = false;
  }
  contexts.epoch.fetch_add(1, std::memory_order_acq_rel);
  const CUresult reset = GetDriver().DevicePrimaryCtxReset(device);
  GetDriver().CtxSetCurrent(nullptr);
  return FromDriver(reset);
}

uint64_t ContextEpoch() { return GetContexts().epoch.load(std::memory_order_acquire); }

}  // namespace cudart

CUDART_API cudaGetLastError() {
  const cudaError_t error = cudart::thread.last_error;
  cudart::thread.last_error = cudaSuccess;
  return error;
}
CUDART_API cudaPeekAtLastError() { return cudart::thread.last_error; }
