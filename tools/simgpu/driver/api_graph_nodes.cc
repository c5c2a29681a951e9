// Nodes of graphs by their kinds: added, asked about, changed, in the graph or in what was
// instantiated from it.
#include <algorithm>

#include "tools/simgpu/driver/api.h"
#include "tools/simgpu/driver/entry_points.h"
#include "tools/simgpu/driver/graph_exec.h"

using namespace simgpu;

namespace {

using Node = CUgraphNode;

// Puts what the program says of a node into one. Nothing changes unless all of it is valid.
CUresult Set(const CUDA_KERNEL_NODE_PARAMS* p, GraphNode* node) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  KernelLaunch launch{nullptr,
                      {p->gridDimX, p->gridDimY, p->gridDimZ},
                      {p->blockDimX, p->blockDimY, p->blockDimZ},
                      p->sharedMemBytes,
                      node->kernel.cooperative,
                      {}};
  const CUfunction function = p->func != nullptr ? p->func : reinterpret_cast<CUfunction>(p->kern);
  if (CUresult r = CompleteLaunch(function, p->kernelParams, p->extra, &launch);
      r != CUDA_SUCCESS) {
    return r;
  }
  node->kernel = std::move(launch);
  return CUDA_SUCCESS;
}
CUresult Set(const CUDA_MEMCPY3D* p, GraphNode* node) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  if (CUresult r = WorkOf(*p, &work); r != CUDA_SUCCESS) return r;
  node->copy = *p;
  return CUDA_SUCCESS;
}
CUresult Set(const CUDA_MEMSET_NODE_PARAMS* p, GraphNode* node) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  if (CUresult r = WorkOf(*p, &work); r != CUDA_SUCCESS) return r;
  node->fill = *p;
  return CUDA_SUCCESS;
}
CUresult Set(const CUDA_HOST_NODE_PARAMS* p, GraphNode* node) {
  if (p == nullptr || p->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->host = *p;
  return CUDA_SUCCESS;
}
CUresult Set(CUevent event, GraphNode* node) {
  if (Scheduler::Get().FindEvent(event) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  node->event = event;
  return CUDA_SUCCESS;
}
CUresult Set(const GraphNode* other, GraphNode* node) {
  CopyParameters(*other, node);
  return CUDA_SUCCESS;
}

template <typename Parameters>
CUresult Add(Node* out, CUgraph graph, const Node* after, size_t count, CUgraphNodeType type,
             Parameters parameters) {
  SIMGPU_ENTER();
  Graph* g = Graphs::Get().Find(graph);
  if (out == nullptr || g == nullptr || (count > 0 && after == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<GraphNode*> nodes;
  for (size_t i = 0; i < count; ++i) {
    GraphNode* on = Graphs::Get().FindNode(after[i]);
    if (on == nullptr || on->graph != g ||
        std::find(nodes.begin(), nodes.end(), on) != nodes.end()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    nodes.push_back(on);
  }
  GraphNode fresh;
  fresh.type = type;
  if (CUresult r = Set(parameters, &fresh); r != CUDA_SUCCESS) return r;
  GraphNode* node = g->Add(nodes);
  CopyParameters(fresh, node);
  *out = reinterpret_cast<Node>(node);
  return CUDA_SUCCESS;
}

CUresult Find(Node handle, CUgraphNodeType type, GraphNode** node) {
  SIMGPU_ENTER();
  *node = Graphs::Get().FindNode(handle);
  return *node != nullptr && (*node)->type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <typename Parameters>
CUresult Change(Node handle, CUgraphNodeType type, Parameters parameters) {
  GraphNode* node = nullptr;
  if (CUresult r = Find(handle, type, &node); r != CUDA_SUCCESS) return r;
  return Set(parameters, node);
}

// In the instantiated graph: the node itself keeps its parameters.
template <typename Parameters>
CUresult ChangeStep(CUgraphExec exec, Node handle, CUgraphNodeType type, Parameters parameters) {
  SIMGPU_ENTER();
  SIMGPU_EXEC(e, exec);
  const size_t i = StepOf(*e, handle);
  if (i == e->steps.size() || e->sources[i].type != type) return CUDA_ERROR_INVALID_VALUE;
  GraphNode changed;
  changed.type = type;
  if (const GraphNode* node = Graphs::Get().FindNode(handle)) {
    changed.kernel.cooperative = node->kernel.cooperative;
  }
  if (CUresult r = Set(parameters, &changed); r != CUDA_SUCCESS) return r;
  Work work;
  if (CUresult r = WorkOf(changed, &work); r != CUDA_SUCCESS) return r;
  e->steps[i].work = std::move(work);
  e->sources[i].event = changed.event;
  e->sources[i].function = changed.kernel.function;
  return CUDA_SUCCESS;
}

// A node of the type's parameters, to be given out.
#define SIMGPU_PARAMETERS(name, handle, type, out)                                              \
  GraphNode* name = nullptr;                                                                    \
  if (CUresult r = Find(handle, CU_GRAPH_NODE_TYPE_##type, &name); r != CUDA_SUCCESS) return r; \
  if ((out) == nullptr) return CUDA_ERROR_INVALID_VALUE

}  // namespace

// --- Kernels ---

SIMGPU_API cuGraphAddKernelNode_v2(Node* out, CUgraph graph, const Node* after, size_t count,
                                   const CUDA_KERNEL_NODE_PARAMS* params) {
  return Add(out, graph, after, count, CU_GRAPH_NODE_TYPE_KERNEL, params);
}
SIMGPU_API cuGraphKernelNodeGetParams_v2(Node node, CUDA_KERNEL_NODE_PARAMS* out) {
  SIMGPU_PARAMETERS(n, node, KERNEL, out);
  const KernelLaunch& k = n->kernel;
  n->arguments.clear();
  for (const auto& param : Info(*k.function->kernel).params) {
    n->arguments.push_back(n->kernel.parameters.data() + param.offset);
  }
  *out = {};
  out->func = reinterpret_cast<CUfunction>(k.function);
  out->gridDimX = k.grid.x;
  out->gridDimY = k.grid.y;
  out->gridDimZ = k.grid.z;
  out->blockDimX = k.block.x;
  out->blockDimY = k.block.y;
  out->blockDimZ = k.block.z;
  out->sharedMemBytes = k.shared;
  out->kernelParams = n->arguments.data();
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphKernelNodeSetParams_v2(Node node, const CUDA_KERNEL_NODE_PARAMS* params) {
  return Change(node, CU_GRAPH_NODE_TYPE_KERNEL, params);
}
SIMGPU_API cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, Node node,
                                             const CUDA_KERNEL_NODE_PARAMS* params) {
  return ChangeStep(exec, node, CU_GRAPH_NODE_TYPE_KERNEL, params);
}
SIMGPU_API cuGraphKernelNodeCopyAttributes(Node to, Node from) {
  GraphNode *t = nullptr, *f = nullptr;
  if (CUresult r = Find(to, CU_GRAPH_NODE_TYPE_KERNEL, &t); r != CUDA_SUCCESS) return r;
  if (CUresult r = Find(from, CU_GRAPH_NODE_TYPE_KERNEL, &f); r != CUDA_SUCCESS) return r;
  t->kernel.cooperative = f->kernel.cooperative;
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphKernelNodeGetAttribute(Node node, CUkernelNodeAttrID id,
                                         CUkernelNodeAttrValue* value) {
  SIMGPU_PARAMETERS(n, node, KERNEL, value);
  *value = {};
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) value->cooperative = n->kernel.cooperative ? 1 : 0;
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphKernelNodeSetAttribute(Node node, CUkernelNodeAttrID id,
                                         const CUkernelNodeAttrValue* value) {
  SIMGPU_PARAMETERS(n, node, KERNEL, value);
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      n->kernel.cooperative = value->cooperative != 0;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      return CUDA_SUCCESS;  // hints
    default:
      return NotSupported("attribute of kernel nodes");
  }
}

// --- Copies and fills ---

SIMGPU_API cuGraphAddMemcpyNode(Node* out, CUgraph graph, const Node* after, size_t count,
                                const CUDA_MEMCPY3D* params, CUcontext) {
  return Add(out, graph, after, count, CU_GRAPH_NODE_TYPE_MEMCPY, params);
}
SIMGPU_API cuGraphMemcpyNodeGetParams(Node node, CUDA_MEMCPY3D* out) {
  SIMGPU_PARAMETERS(n, node, MEMCPY, out);
  *out = n->copy;
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphMemcpyNodeSetParams(Node node, const CUDA_MEMCPY3D* params) {
  return Change(node, CU_GRAPH_NODE_TYPE_MEMCPY, params);
}
SIMGPU_API cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, Node node, const CUDA_MEMCPY3D* params,
                                          CUcontext) {
  return ChangeStep(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY, params);
}
SIMGPU_API cuGraphAddMemsetNode(Node* out, CUgraph graph, const Node* after, size_t count,
                                const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  return Add(out, graph, after, count, CU_GRAPH_NODE_TYPE_MEMSET, params);
}
SIMGPU_API cuGraphMemsetNodeGetParams(Node node, CUDA_MEMSET_NODE_PARAMS* out) {
  SIMGPU_PARAMETERS(n, node, MEMSET, out);
  *out = n->fill;
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphMemsetNodeSetParams(Node node, const CUDA_MEMSET_NODE_PARAMS* params) {
  return Change(node, CU_GRAPH_NODE_TYPE_MEMSET, params);
}
SIMGPU_API cuGraphExecMemsetNodeSetParams(CUgraphExec exec, Node node,
                                          const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  return ChangeStep(exec, node, CU_GRAPH_NODE_TYPE_MEMSET, params);
}

// --- Host functions ---

SIMGPU_API cuGraphAddHostNode(Node* out, CUgraph graph, const Node* after, size_t count,
                              const CUDA_HOST_NODE_PARAMS* params) {
  return Add(out, graph, after, count, CU_GRAPH_NODE_TYPE_HOST, params);
}
SIMGPU_API cuGraphHostNodeGetParams(Node node, CUDA_HOST_NODE_PARAMS* out) {
  SIMGPU_PARAMETERS(n, node, HOST, out);
  *out = n->host;
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphHostNodeSetParams(Node node, const CUDA_HOST_NODE_PARAMS* params) {
  return Change(node, CU_GRAPH_NODE_TYPE_HOST, params);
}
SIMGPU_API cuGraphExecHostNodeSetParams(CUgraphExec exec, Node node,
                                        const CUDA_HOST_NODE_PARAMS* params) {
  return ChangeStep(exec, node, CU_GRAPH_NODE_TYPE_HOST, params);
}

// --- Children, events, nothing ---

SIMGPU_API cuGraphAddChildGraphNode(Node* out, CUgraph graph, const Node* after, size_t count,
                                    CUgraph child) {
  const Graph* c = Graphs::Get().Find(child);
  if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // The node has a clone of it.
  GraphNode model;
  model.type = CU_GRAPH_NODE_TYPE_GRAPH;
  model.child = std::make_unique<Graph>();
  CopyGraph(*c, model.child.get());
  return Add(out, graph, after, count, CU_GRAPH_NODE_TYPE_GRAPH,
             static_cast<const GraphNode*>(&model));
}
SIMGPU_API cuGraphChildGraphNodeGetGraph(Node node, CUgraph* out) {
  SIMGPU_PARAMETERS(n, node, GRAPH, out);
  *out = reinterpret_cast<CUgraph>(n->child.get());
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphAddEmptyNode(Node* out, CUgraph graph, const Node* after, size_t count) {
  const GraphNode empty;
  return Add(out, graph, after, count, CU_GRAPH_NODE_TYPE_EMPTY, &empty);
}
SIMGPU_API cuGraphAddEventRecordNode(Node* out, CUgraph graph, const Node* after, size_t count,
                                     CUevent event) {
  return Add(out, graph, after, count, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}
SIMGPU_API cuGraphEventRecordNodeGetEvent(Node node, CUevent* out) {
  SIMGPU_PARAMETERS(n, node, EVENT_RECORD, out);
  *out = n->event;
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphEventRecordNodeSetEvent(Node node, CUevent event) {
  return Change(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}
SIMGPU_API cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, Node node, CUevent event) {
  return ChangeStep(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}
SIMGPU_API cuGraphAddEventWaitNode(Node* out, CUgraph graph, const Node* after, size_t count,
                                   CUevent event) {
  return Add(out, graph, after, count, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}
SIMGPU_API cuGraphEventWaitNodeGetEvent(Node node, CUevent* out) {
  SIMGPU_PARAMETERS(n, node, WAIT_EVENT, out);
  *out = n->event;
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphEventWaitNodeSetEvent(Node node, CUevent event) {
  return Change(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}
SIMGPU_API cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, Node node, CUevent event) {
  return ChangeStep(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

// --- Any kind ---

// Calls `use` with the parameters of the node's kind.
template <typename Use>
static CUresult WithParameters(CUgraphNodeParams* p, Use use) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS_v3& k = p->kernel;
      CUDA_KERNEL_NODE_PARAMS kernel = {};
      kernel.func = k.func;
      kernel.gridDimX = k.gridDimX;
      kernel.gridDimY = k.gridDimY;
      kernel.gridDimZ = k.gridDimZ;
      kernel.blockDimX = k.blockDimX;
      kernel.blockDimY = k.blockDimY;
      kernel.blockDimZ = k.blockDimZ;
      kernel.sharedMemBytes = k.sharedMemBytes;
      kernel.kernelParams = k.kernelParams;
      kernel.extra = k.extra;
      kernel.kern = k.kern;
      kernel.ctx = k.ctx;
      return use(static_cast<const CUDA_KERNEL_NODE_PARAMS*>(&kernel));
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return use(static_cast<const CUDA_MEMCPY3D*>(&p->memcpy.copyParams));
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& m = p->memset;
      const CUDA_MEMSET_NODE_PARAMS fill = {m.dst,         m.pitch, m.value,
                                            m.elementSize, m.width, m.height};
      return use(&fill);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS host = {p->host.fn, p->host.userData};
      return use(&host);
    }
    case CU_GRAPH_NODE_TYPE_EMPTY: {
      const GraphNode empty;
      return use(&empty);
    }
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return use(p->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return use(p->eventWait.event);
    default:
      return NotSupported("a graph node of this type");
  }
}
SIMGPU_API cuGraphAddNode_v2(Node* out, CUgraph graph, const Node* after, const CUgraphEdgeData*,
                             size_t count, CUgraphNodeParams* params) {
  if (params != nullptr && params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    return cuGraphAddChildGraphNode(out, graph, after, count, params->graph.graph);
  }
  return WithParameters(params,
                        [&](auto p) { return Add(out, graph, after, count, params->type, p); });
}
SIMGPU_API cuGraphNodeSetParams(Node node, CUgraphNodeParams* params) {
  return WithParameters(params, [&](auto p) { return Change(node, params->type, p); });
}
SIMGPU_API cuGraphExecNodeSetParams(CUgraphExec exec, Node node, CUgraphNodeParams* params) {
  return WithParameters(params, [&](auto p) { return ChangeStep(exec, node, params->type, p); });
}
