// Hooks of capture and of graphs: what is put into a graph is looked at when it is put there.
#include "runtime/intercept/graph.h"
#include "runtime/intercept/hook.h"

using namespace tidepool;

namespace {

CUresult PinKernel(const CUDA_KERNEL_NODE_PARAMS* p) {
  Engine* engine = ActiveEngine();
  if (engine == nullptr || p == nullptr) return CUDA_SUCCESS;
  LaunchCall call;
  call.config = {p->gridDimX,  p->gridDimY,       p->gridDimZ, p->blockDimX, p->blockDimY,
                 p->blockDimZ, p->sharedMemBytes, nullptr,     nullptr,      0};
  call.function = p->func != nullptr ? p->func : reinterpret_cast<CUfunction>(p->kern);
  call.params = p->kernelParams;
  call.extra = p->extra;
  call.to_graph = true;
  return RunLaunch(engine, GetDriverApi(), call, [] { return CUDA_SUCCESS; });
}
CUresult PinCopy(const CUDA_MEMCPY3D* p) {
  Engine* engine = ActiveEngine();
  return engine == nullptr || p == nullptr ? CUDA_SUCCESS : PinForGraph(engine, *p);
}
CUresult PinFill(const CUDA_MEMSET_NODE_PARAMS* p) {
  Engine* engine = ActiveEngine();
  return engine == nullptr || p == nullptr ? CUDA_SUCCESS : PinForGraph(engine, p->dst);
}

CUresult PinNode(const CUgraphNodeParams* p) {
  Engine* engine = ActiveEngine();
  if (engine == nullptr || p == nullptr) return CUDA_SUCCESS;
  switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS kernel = {};
      kernel.func = p->kernel.func;
      kernel.gridDimX = p->kernel.gridDimX;
      kernel.gridDimY = p->kernel.gridDimY;
      kernel.gridDimZ = p->kernel.gridDimZ;
      kernel.blockDimX = p->kernel.blockDimX;
      kernel.blockDimY = p->kernel.blockDimY;
      kernel.blockDimZ = p->kernel.blockDimZ;
      kernel.kernelParams = p->kernel.kernelParams;
      kernel.extra = p->kernel.extra;
      kernel.kern = p->kernel.kern;
      return PinKernel(&kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return PinForGraph(engine, p->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return PinForGraph(engine, p->memset.dst);
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_GRAPH:  // its nodes were seen
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return CUDA_SUCCESS;
    default:
      return engine->PinAll(PinReason::kGraph);
  }
}

CUresult Began(CUstream stream, CUresult result) {
  if (result == CUDA_SUCCESS) OnCaptureBegan(stream);
  return result;
}
CUresult Ended(CUstream stream, CUresult result, bool was, bool is) {
  if (was && !is) OnCaptureEnded(stream);
  return result;
}

}  // namespace

#define TIDEPOOL_GRAPH_PIN(pin) \
  if (CUresult pinned = pin; pinned != CUDA_SUCCESS) return pinned;

// --- Capture ---
TIDEPOOL_HOOKS(cuStreamBeginCapture_v2, _ptsz, (CUstream s, CUstreamCaptureMode mode),
               OnCaptureBegins();
               return Began(s, real(s, mode));)
TIDEPOOL_HOOKS(cuStreamBeginCaptureToGraph, _ptsz,
               (CUstream s, CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* edges,
                size_t count, CUstreamCaptureMode mode),
               OnCaptureBegins();
               return Began(s, real(s, graph, nodes, edges, count, mode));)
TIDEPOOL_HOOKS(cuStreamEndCapture, _ptsz, (CUstream s, CUgraph* graph),
               const bool was = Capturing(s, kPerThread);
               CUresult result = real(s, graph);
               return Ended(s, result, was, Capturing(s, kPerThread));)
TIDEPOOL_HOOKS(cuStreamWaitEvent, _ptsz, (CUstream s, CUevent event, unsigned int flags),
               BeforeStreamWait(s, kPerThread);
               return real(s, event, flags);)

// --- Launches: the operands are there, whatever the graph is ---
TIDEPOOL_HOOK(cuGraphInstantiateWithFlags,
              (CUgraphExec * out, CUgraph graph, unsigned long long flags),
              return real(out, graph, flags);)
TIDEPOOL_HOOKS(cuGraphInstantiateWithParams, _ptsz,
               (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params),
               return real(out, graph, params);)
TIDEPOOL_HOOKS(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream s),
               TIDEPOOL_GRAPH_PIN(BeforeGraphLaunch(ActiveEngine())) return real(exec, s);)

// --- Nodes ---
TIDEPOOL_HOOK(cuGraphAddKernelNode_v2,
              (CUgraphNode * out, CUgraph graph, const CUgraphNode* nodes, size_t count,
               const CUDA_KERNEL_NODE_PARAMS* p),
              TIDEPOOL_GRAPH_PIN(PinKernel(p)) return real(out, graph, nodes, count, p);)
TIDEPOOL_HOOK(cuGraphKernelNodeSetParams_v2, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* p),
              TIDEPOOL_GRAPH_PIN(PinKernel(p)) return real(node, p);)
TIDEPOOL_HOOK(cuGraphExecKernelNodeSetParams_v2,
              (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* p),
              TIDEPOOL_GRAPH_PIN(PinKernel(p)) return real(exec, node, p);)
TIDEPOOL_HOOK(cuGraphAddMemcpyNode,
              (CUgraphNode * out, CUgraph graph, const CUgraphNode* nodes, size_t count,
               const CUDA_MEMCPY3D* p, CUcontext context),
              TIDEPOOL_GRAPH_PIN(PinCopy(p)) return real(out, graph, nodes, count, p, context);)
TIDEPOOL_HOOK(cuGraphMemcpyNodeSetParams, (CUgraphNode node, const CUDA_MEMCPY3D* p),
              TIDEPOOL_GRAPH_PIN(PinCopy(p)) return real(node, p);)
TIDEPOOL_HOOK(cuGraphExecMemcpyNodeSetParams,
              (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* p, CUcontext context),
              TIDEPOOL_GRAPH_PIN(PinCopy(p)) return real(exec, node, p, context);)
TIDEPOOL_HOOK(cuGraphAddMemsetNode,
              (CUgraphNode * out, CUgraph graph, const CUgraphNode* nodes, size_t count,
               const CUDA_MEMSET_NODE_PARAMS* p, CUcontext context),
              TIDEPOOL_GRAPH_PIN(PinFill(p)) return real(out, graph, nodes, count, p, context);)
TIDEPOOL_HOOK(cuGraphMemsetNodeSetParams, (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* p),
              TIDEPOOL_GRAPH_PIN(PinFill(p)) return real(node, p);)
TIDEPOOL_HOOK(cuGraphExecMemsetNodeSetParams,
              (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* p,
               CUcontext context),
              TIDEPOOL_GRAPH_PIN(PinFill(p)) return real(exec, node, p, context);)
TIDEPOOL_HOOK(cuGraphAddNode_v2,
              (CUgraphNode * out, CUgraph graph, const CUgraphNode* nodes,
               const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* p),
              TIDEPOOL_GRAPH_PIN(PinNode(p)) return real(out, graph, nodes, edges, count, p);)
TIDEPOOL_HOOK(cuGraphNodeSetParams, (CUgraphNode node, CUgraphNodeParams* p),
              TIDEPOOL_GRAPH_PIN(PinNode(p)) return real(node, p);)
TIDEPOOL_HOOK(cuGraphExecNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* p),
              TIDEPOOL_GRAPH_PIN(PinNode(p)) return real(exec, node, p);)
