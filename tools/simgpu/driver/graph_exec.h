// What the entry points for instantiated graphs share.
#pragma once

#include <cuda.h>

#include "tools/simgpu/driver/graph.h"

#define SIMGPU_EXEC(name, handle)                   \
  GraphExec* name = Graphs::Get().FindExec(handle); \
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE

namespace simgpu {

// The step that stands for the node; the number of steps if there is none.
inline size_t StepOf(const GraphExec& exec, CUgraphNode node) {
  size_t i = 0;
  while (i < exec.steps.size() &&
         (node == nullptr || exec.sources[i].node != reinterpret_cast<GraphNode*>(node))) {
    ++i;
  }
  return i;
}

}  // namespace simgpu
