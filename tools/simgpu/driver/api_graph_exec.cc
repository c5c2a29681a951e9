// Graphs that were instantiated: updated, launched.
#include <algorithm>

#include "tools/simgpu/driver/api.h"
#include "tools/simgpu/driver/capture.h"
#include "tools/simgpu/driver/entry_points.h"
#include "tools/simgpu/driver/graph_exec.h"

using namespace simgpu;

static CUresult New(CUgraphExec* out, CUgraph graph, unsigned long long flags,
                    const GraphNode** failed) {
  SIMGPU_ENTER(GetDeviceModel().call_launch_ns);
  Graph* g = Graphs::Get().Find(graph);
  if (out == nullptr || g == nullptr || flags > 15) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
    return NotSupported("launching graphs from the device");
  }
  auto exec = std::make_unique<GraphExec>();
  exec->flags = flags;
  if (CUresult r = Instantiate(*g, exec.get(), failed); r != CUDA_SUCCESS) return r;
  *out = reinterpret_cast<CUgraphExec>(Graphs::Get().Add(std::move(exec)));
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  const GraphNode* failed = nullptr;
  return New(out, graph, flags, &failed);
}
template <bool kPt>
static CUresult Impl_cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph,
                                                  CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const GraphNode* failed = nullptr;
  const CUresult result = New(out, graph, params->flags, &failed);
  params->hErrNode_out = reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(failed));
  params->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}
SIMGPU_TWO_FORMS(cuGraphInstantiateWithParams, _ptsz,
                 (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params),
                 (out, graph, params))
SIMGPU_API cuGraphExecDestroy(CUgraphExec exec) {
  SIMGPU_ENTER();
  return Graphs::Get().DestroyExec(exec);
}
SIMGPU_API cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  SIMGPU_ENTER();
  SIMGPU_EXEC(e, exec);
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = e->flags;
  return CUDA_SUCCESS;
}

template <bool kPt>
static CUresult Impl_cuGraphUpload(CUgraphExec exec, CUstream handle) {
  SIMGPU_ENTER();
  SIMGPU_EXEC(e, exec);
  (void)e;
  SIMGPU_STREAM(stream, handle, kPt);
  return Forbidden(stream);
}
SIMGPU_TWO_FORMS(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream s), (exec, s))

template <bool kPt>
static CUresult Impl_cuGraphLaunch(CUgraphExec exec, CUstream handle) {
  SIMGPU_ENTER(GetDeviceModel().call_launch_ns);
  SIMGPU_EXEC(e, exec);
  SIMGPU_STREAM(stream, handle, kPt);
  // (A launch of a graph that is captured would become a child of the new graph.)
  if (IsCapturing(stream)) return NotSupported("cuGraphLaunch during capture");
  if (CUresult r = Forbidden(stream); r != CUDA_SUCCESS) return r;
  std::vector<GraphStep> steps = e->steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const GraphExec::Source& source = e->sources[i];
    if (!source.enabled) {
      steps[i].work = {};
      continue;
    }
    if (source.type != CU_GRAPH_NODE_TYPE_EVENT_RECORD &&
        source.type != CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
      continue;
    }
    Event* event = Scheduler::Get().FindEvent(source.event);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    (source.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? steps[i].records : steps[i].waits_for) =
        event;
  }
  e->last = Scheduler::Get().EnqueueGraph(stream, steps, e->last);
  return CUDA_SUCCESS;
}
SIMGPU_TWO_FORMS(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream s), (exec, s))

// Allowed are other parameters, not another shape of the graph.
SIMGPU_API cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                                CUgraphExecUpdateResultInfo* info) {
  SIMGPU_ENTER(GetDeviceModel().call_launch_ns);
  SIMGPU_EXEC(e, exec);
  Graph* g = Graphs::Get().Find(graph);
  if (g == nullptr || info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *info = {};
  GraphExec fresh;
  const GraphNode* failed = nullptr;
  auto refuse = [&](CUgraphExecUpdateResult why, const GraphNode* node) {
    info->result = why;
    info->errorNode = reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(node));
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  };
  if (Instantiate(*g, &fresh, &failed) != CUDA_SUCCESS) {
    return refuse(CU_GRAPH_EXEC_UPDATE_ERROR, failed);
  }
  if (fresh.steps.size() != e->steps.size()) {
    return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
  }
  for (size_t i = 0; i < fresh.steps.size(); ++i) {
    if (fresh.sources[i].type != e->sources[i].type) {
      return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, fresh.sources[i].node);
    }
    if (fresh.steps[i].after != e->steps[i].after) {
      return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, fresh.sources[i].node);
    }
  }
  for (size_t i = 0; i < fresh.steps.size(); ++i) {
    e->steps[i].work = fresh.steps[i].work;
    e->sources[i].event = fresh.sources[i].event;
    e->sources[i].function = fresh.sources[i].function;
  }
  info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  return CUDA_SUCCESS;
}

// Kernels, copies and fills can be left out of launches.
static GraphExec::Source* Switchable(GraphExec* exec, CUgraphNode node) {
  const size_t i = StepOf(*exec, node);
  if (i == exec->steps.size()) return nullptr;
  GraphExec::Source& source = exec->sources[i];
  const bool fits = source.type == CU_GRAPH_NODE_TYPE_KERNEL ||
                    source.type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                    source.type == CU_GRAPH_NODE_TYPE_MEMSET;
  return fits ? &source : nullptr;
}
SIMGPU_API cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled) {
  SIMGPU_ENTER();
  SIMGPU_EXEC(e, exec);
  GraphExec::Source* source = Switchable(e, node);
  if (source == nullptr) return CUDA_ERROR_INVALID_VALUE;
  source->enabled = enabled != 0;
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int* enabled) {
  SIMGPU_ENTER();
  SIMGPU_EXEC(e, exec);
  const GraphExec::Source* source = Switchable(e, node);
  if (source == nullptr || enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *enabled = source->enabled ? 1 : 0;
  return CUDA_SUCCESS;
}
