// The process's one runtime: environment, driver table, engine, report. Thread-safe.
#pragma once

#include <cuda.h>

#include <string_view>

#include "runtime/driver/driver_api.h"
#include "runtime/intercept/environment.h"
#include "runtime/residency/engine.h"

namespace tidepool {

const Environment& GetEnvironment();
const DriverApi& GetDriverApi();

// The program reached the driver (cuInit or a lookup). False: the environment is wrong, one line
// was said, and the driver is not to be initialised.
bool OnFirstCall();

// The engine, if it exists and this is the process that made it; null otherwise.
Engine* ActiveEngine();
// Makes it if need be, for the current context. Null: pass through.
Engine* EngineForAllocation();
// The context and the device that the engine manages.
CUcontext ManagedContext();
CUdevice ManagedDevice();

// What is given to this stream now becomes part of a graph and does not run. `per_thread`: handle 0
// means the calling thread's default stream.
bool Capturing(CUstream stream, bool per_thread);

// The context that the engine manages is going away.
void OnContextGone(CUcontext context);

void WriteReport();
// One line on stderr, if TIDEPOOL_LOG=debug.
void Debug(std::string_view text);

// For programs that link the library: a budget given in code instead of the environment. False if
// the engine exists already or the budget is not valid.
bool StartWithBudget(const char* budget);
void StopManaging();

}  // namespace tidepool
