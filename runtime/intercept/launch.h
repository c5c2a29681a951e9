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
  bool to_graph = false;  // it becomes a node of a graph
};

// The parameter block in the device's layout. False: the layout is not known, or the arguments are
// not valid (the driver is to say so).
bool PackParameters(const KernelRecord& record, void** params, void** extra,
                    std::vector<uint8_t>* block);

// The configuration without the permission to overlap the kernel before it on the stream. Memory
// changes hands in the order of streams, so that a kernel that begins early could write what the
// one before still reads; to begin when that is over is always allowed. `storage` holds the
// attributes.
CUlaunchConfig WithoutOverlap(const CUlaunchConfig& config,
                              std::vector<CUlaunchAttribute>* storage);

// (What goes into a graph is only pinned.)
// Decides what the launch touches, then runs it through the engine; `issue` is the program's own
// call.
CUresult RunLaunch(Engine* engine, const DriverApi& api, const LaunchCall& call,
                   absl::FunctionRef<CUresult()> issue);

}  // namespace tidepool
