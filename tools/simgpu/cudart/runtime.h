// What every entry point of the runtime needs: errors, the calling thread's device and context.
// All of it is thread-safe.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "tools/simgpu/cudart/driver_table.h"

namespace cudart {

// The two enumerations agree in their numbers; codes that only the driver has become
// cudaErrorUnknown.
cudaError_t FromDriver(CUresult result);

// Every entry point returns through Note: a failure becomes the calling thread's last error,
// success leaves that alone. cudaErrorNotReady is an answer, not an error, and is not kept (CUDA
// C++ Programming Guide, "Error Checking").
cudaError_t Note(cudaError_t error);
inline cudaError_t Note(CUresult result) { return Note(FromDriver(result)); }

// The driver is ready; otherwise the error that the call returns.
inline cudaError_t EnterDriver() { return GetDriver().error; }
// The driver is ready and a context is current: the program's own, or else the primary context of
// the thread's device, which is made now if need be.
cudaError_t Enter();

// The device of the current context, or else the one that the thread has chosen, 0 at first.
int CurrentDevice();
// Makes the primary context of `device` current.
cudaError_t ChooseDevice(int device);
// The devices that threads which choose none may get, best first.
cudaError_t SetValidDevices(const int* devices, int count);
// The primary context of `device`, made if need be, without making it current.
cudaError_t PrimaryContext(int device, CUcontext* out);
// Destroys the primary context of the current device.
cudaError_t ResetCurrentDevice();

inline CUdeviceptr ToDevice(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }
inline void* ToPointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// Counts resets of contexts: handles found before one are not used after it.
uint64_t ContextEpoch();

}  // namespace cudart

#define CUDART_EXPORT extern "C" __attribute__((visibility("default")))
#define CUDART_API CUDART_EXPORT cudaError_t CUDARTAPI
#define CUDART_ENTER() \
  if (cudaError_t entered_ = cudart::Enter(); entered_ != cudaSuccess) return cudart::Note(entered_)
#define CUDART_ENTER_DRIVER()                                                \
  if (cudaError_t entered_ = cudart::EnterDriver(); entered_ != cudaSuccess) \
  return cudart::Note(entered_)

// An entry point in its two forms, both of which call implementation(form, args...).
#define CUDART_UNWRAP(...) __VA_ARGS__
#define CUDART_TWO_FORMS(name, suffix, implementation, params, args)                     \
  CUDART_API name params { return implementation(cudart::kLegacy, CUDART_UNWRAP args); } \
  CUDART_API name##suffix params { return implementation(cudart::kPerThread, CUDART_UNWRAP args); }
