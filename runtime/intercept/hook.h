// How hooks are declared. Internal to runtime/intercept.
#pragma once

#include <cuda.h>

#include "runtime/intercept/launch.h"
#include "runtime/intercept/real.h"
#include "runtime/intercept/registry.h"
#include "runtime/intercept/state.h"

// A hook of exactly this exported symbol; `real` is the driver's function. What it returns goes to
// the program.
#define TIDEPOOL_HOOK(symbol, params, ...)                                           \
  extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI symbol params { \
    static const auto real = tidepool::Real<CUresult(CUDAAPI*) params>(#symbol);     \
    if (real == nullptr) return CUDA_ERROR_NOT_FOUND;                                \
    __VA_ARGS__                                                                      \
  }

// The legacy and the per-thread form of a function; the body sees `kPerThread`.
#define TIDEPOOL_HOOKS(symbol, suffix, params, ...)                                               \
  TIDEPOOL_HOOK(symbol, params, constexpr bool kPerThread = false; (void)kPerThread; __VA_ARGS__) \
  TIDEPOOL_HOOK(symbol##suffix, params, constexpr bool kPerThread = true; (void)kPerThread;       \
                __VA_ARGS__)
