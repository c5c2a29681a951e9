// Graphs as a whole: made, looked through, instantiated, launched. The driver's and the runtime's
// handles are the same.
#include "tools/simgpu/cudart/runtime.h"

using cudart::Form;
using cudart::GetDriver;
using cudart::Note;

static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));
static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));

CUDART_API cudaGraphCreate(cudaGraph_t* out, unsigned flags) {
  CUDART_ENTER();
  return Note(GetDriver().GraphCreate(out, flags));
}
CUDART_API cudaGraphDestroy(cudaGraph_t graph) {
  CUDART_ENTER();
  return Note(GetDriver().GraphDestroy(graph));
}
CUDART_API cudaGraphClone(cudaGraph_t* out, cudaGraph_t graph) {
  CUDART_ENTER();
  return Note(GetDriver().GraphClone(out, graph));
}
CUDART_API cudaGraphNodeFindInClone(cudaGraphNode_t* out, cudaGraphNode_t node, cudaGraph_t graph) {
  CUDART_ENTER();
  return Note(GetDriver().GraphNodeFindInClone(out, node, graph));
}
CUDART_API cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  CUDART_ENTER();
  return Note(GetDriver().GraphNodeGetType(node, reinterpret_cast<CUgraphNodeType*>(type)));
}
CUDART_API cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  CUDART_ENTER();
  return Note(GetDriver().GraphGetNodes(graph, nodes, count));
}
CUDART_API cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  CUDART_ENTER();
  return Note(GetDriver().GraphGetRootNodes(graph, nodes, count));
}
CUDART_API cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                             cudaGraphEdgeData* edges, size_t* count) {
  CUDART_ENTER();
  return Note(
      GetDriver().GraphGetEdges(graph, from, to, reinterpret_cast<CUgraphEdgeData*>(edges), count));
}
CUDART_API cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                        cudaGraphEdgeData* edges, size_t* count) {
  CUDART_ENTER();
  return Note(GetDriver().GraphNodeGetDependencies(
      node, nodes, reinterpret_cast<CUgraphEdgeData*>(edges), count));
}
CUDART_API cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                          cudaGraphEdgeData* edges, size_t* count) {
  CUDART_ENTER();
  return Note(GetDriver().GraphNodeGetDependentNodes(
      node, nodes, reinterpret_cast<CUgraphEdgeData*>(edges), count));
}
CUDART_API cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                    const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                    size_t count) {
  CUDART_ENTER();
  return Note(GetDriver().GraphAddDependencies(
      graph, from, to, reinterpret_cast<const CUgraphEdgeData*>(edges), count));
}
CUDART_API cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                       const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                       size_t count) {
  CUDART_ENTER();
  return Note(GetDriver().GraphRemoveDependencies(
      graph, from, to, reinterpret_cast<const CUgraphEdgeData*>(edges), count));
}
CUDART_API cudaGraphDestroyNode(cudaGraphNode_t node) {
  CUDART_ENTER();
  return Note(GetDriver().GraphDestroyNode(node));
}
CUDART_API cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned flags) {
  CUDART_ENTER();
  return Note(GetDriver().GraphDebugDotPrint(graph, path, flags));
}

// --- Instantiated graphs ---

CUDART_API cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph,
                                         unsigned long long flags) {
  CUDART_ENTER();
  return Note(GetDriver().GraphInstantiateWithFlags(out, graph, flags));
}
CUDART_API cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(out, graph, flags);
}
static cudaError_t InstantiateWithParams(Form form, cudaGraphExec_t* out, cudaGraph_t graph,
                                         cudaGraphInstantiateParams* params) {
  CUDART_ENTER();
  return Note(GetDriver().GraphInstantiateWithParams[form](
      out, graph, reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(params)));
}
CUDART_TWO_FORMS(cudaGraphInstantiateWithParams, _ptsz, InstantiateWithParams,
                 (cudaGraphExec_t * out, cudaGraph_t graph, cudaGraphInstantiateParams* params),
                 (out, graph, params))
static cudaError_t LaunchGraph(Form form, cudaGraphExec_t graph, cudaStream_t stream) {
  CUDART_ENTER();
  return Note(GetDriver().GraphLaunch[form](graph, stream));
}
CUDART_TWO_FORMS(cudaGraphLaunch, _ptsz, LaunchGraph, (cudaGraphExec_t graph, cudaStream_t stream),
                 (graph, stream))
static cudaError_t Upload(Form form, cudaGraphExec_t graph, cudaStream_t stream) {
  CUDART_ENTER();
  return Note(GetDriver().GraphUpload[form](graph, stream));
}
CUDART_TWO_FORMS(cudaGraphUpload, _ptsz, Upload, (cudaGraphExec_t graph, cudaStream_t stream),
                 (graph, stream))
CUDART_API cudaGraphExecDestroy(cudaGraphExec_t graph) {
  CUDART_ENTER();
  return Note(GetDriver().GraphExecDestroy(graph));
}
CUDART_API cudaGraphExecGetFlags(cudaGraphExec_t graph, unsigned long long* flags) {
  CUDART_ENTER();
  return Note(GetDriver().GraphExecGetFlags(graph, reinterpret_cast<cuuint64_t*>(flags)));
}
CUDART_API cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                               cudaGraphExecUpdateResultInfo* info) {
  CUDART_ENTER();
  return Note(GetDriver().GraphExecUpdate(exec, graph,
                                          reinterpret_cast<CUgraphExecUpdateResultInfo*>(info)));
}
CUDART_API cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  CUDART_ENTER();
  return Note(GetDriver().GraphNodeSetEnabled(exec, node, enabled));
}
CUDART_API cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled) {
  CUDART_ENTER();
  return Note(GetDriver().GraphNodeGetEnabled(exec, node, enabled));
}

// --- Memory of graphs, objects that graphs keep ---

CUDART_API cudaDeviceGraphMemTrim(int device) {
  CUDART_ENTER();
  return Note(GetDriver().DeviceGraphMemTrim(device));
}
CUDART_API cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                          void* value) {
  CUDART_ENTER();
  return Note(GetDriver().DeviceGetGraphMemAttribute(
      device, static_cast<CUgraphMem_attribute>(attribute), value));
}
CUDART_API cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                          void* value) {
  CUDART_ENTER();
  return Note(GetDriver().DeviceSetGraphMemAttribute(
      device, static_cast<CUgraphMem_attribute>(attribute), value));
}
CUDART_API cudaUserObjectCreate(cudaUserObject_t* out, void* object, cudaHostFn_t destroy,
                                unsigned count, unsigned flags) {
  CUDART_ENTER();
  return Note(GetDriver().UserObjectCreate(out, object, destroy, count, flags));
}
CUDART_API cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  CUDART_ENTER();
  return Note(GetDriver().UserObjectRetain(object, count));
}
CUDART_API cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  CUDART_ENTER();
  return Note(GetDriver().UserObjectRelease(object, count));
}
CUDART_API cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                     unsigned flags) {
  CUDART_ENTER();
  return Note(GetDriver().GraphRetainUserObject(graph, object, count, flags));
}
CUDART_API cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
  CUDART_ENTER();
  return Note(GetDriver().GraphReleaseUserObject(graph, object, count));
}
