// What every entry point needs. Internal to the driver.
#pragma once

#include <cuda.h>

#include "tools/simgpu/driver/memory.h"
#include "tools/simgpu/driver/module.h"
#include "tools/simgpu/driver/scheduler.h"
#include "tools/simgpu/driver/settings.h"

#define SIMGPU_API extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI

// An entry point in its legacy and its per-thread form: Impl<symbol> is a template on which.
#define SIMGPU_TWO_FORMS(symbol, suffix, params, args)           \
  SIMGPU_API symbol params { return Impl_##symbol<false> args; } \
  SIMGPU_API symbol##suffix params { return Impl_##symbol<true> args; }

namespace simgpu {

// CUDA_SUCCESS if calls that need a context may go on; otherwise what they return. Charges the host
// `ns`.
CUresult Enter(uint64_t ns = 200);
// The same for calls that need only cuInit.
CUresult EnterDriver();

// Of calls that may not be made while streams are captured (capture.h): what they return then.
CUresult UnsafeCall();

// Stream priorities: lower numbers come first.
constexpr int kLeastPriority = 0, kGreatestPriority = -5;

Workers& GetWorkers();
void CountLaunch(uint64_t duration_ns);
void WriteStats();

}  // namespace simgpu

#define SIMGPU_ENTER(...) \
  if (CUresult entered_ = simgpu::Enter(__VA_ARGS__); entered_ != CUDA_SUCCESS) return entered_
// For calls that are potentially unsafe while something is being captured.
#define SIMGPU_ENTER_UNSAFE(...) \
  SIMGPU_ENTER(__VA_ARGS__);     \
  if (CUresult unsafe_ = simgpu::UnsafeCall(); unsafe_ != CUDA_SUCCESS) return unsafe_
#define SIMGPU_STREAM(name, handle, per_thread)                             \
  simgpu::Stream* name = simgpu::Scheduler::Get().Find(handle, per_thread); \
  if (name == nullptr) return CUDA_ERROR_INVALID_HANDLE
