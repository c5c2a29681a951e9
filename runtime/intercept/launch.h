// A kernel launch as the engine is to see it.
#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/driver/driver_api.h"
#include "runtime/intercept/registry.h"
#include "runtime/residency/engine.h"

namespace tidepool {

struct LaunchCall {
  CUlaunchConfig config = {};  // attributes included, as long as the call lasts
  CUfunction function = nullptr;
  void** params = nullptr;
  void** extra = nullptr;
  bool per_thread = false;
  bool cooperative = false;
};

// The parameter block in the device's layout. False: the layout is not known, or the arguments are
// not valid (the driver is to say so).
bool PackParameters(const KernelRecord& record, void** params, void** extra,
                    std::vector<uint8_t>* block);

// Decides what the launch touches, then runs it through the engine; `issue` is the program's own
// call.
CUresult RunLaunch(Engine* engine, const DriverApi& api, const LaunchCall& call,
                   absl::FunctionRef<CUresult()> issue);

}  // namespace tidepool
