// Nodes of graphs: the runtime's descriptions of kernels, copies and fills put into the driver's.
#include "tools/simgpu/cudart/copy.h"
#include "tools/simgpu/cudart/images.h"

namespace {

using cudart::GetDriver;
using cudart::Note;
using Node = cudaGraphNode_t;

static_assert(sizeof(cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS));
static_assert(sizeof(cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS));
static_assert(sizeof(cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));

CUcontext CurrentContext() {
  CUcontext context = nullptr;
  GetDriver().CtxGetCurrent(&context);
  return context;
}

cudaError_t ToDriver(const cudaKernelNodeParams* params, CUDA_KERNEL_NODE_PARAMS* out) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUDA_KERNEL_NODE_PARAMS p = {};
  if (cudaError_t e = cudart::FindFunction(params->func, &p.func); e != cudaSuccess) return e;
  p.gridDimX = params->gridDim.x;
  p.gridDimY = params->gridDim.y;
  p.gridDimZ = params->gridDim.z;
  p.blockDimX = params->blockDim.x;
  p.blockDimY = params->blockDim.y;
  p.blockDimZ = params->blockDim.z;
  p.sharedMemBytes = params->sharedMemBytes;
  p.kernelParams = params->kernelParams;
  p.extra = params->extra;
  *out = p;
  return cudaSuccess;
}

cudaError_t ToDriver(const cudaMemcpy3DParms* params, CUDA_MEMCPY3D* out) {
  return params == nullptr ? cudaErrorInvalidValue : cudart::DescribeCopy(*params, out);
}

cudaMemcpy3DParms Line(void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  cudaMemcpy3DParms p = {};
  p.srcPtr = {const_cast<void*>(from), n, n, 1};
  p.dstPtr = {to, n, n, 1};
  p.extent = {n, 1, 1};
  p.kind = kind;
  return p;
}

cudaError_t Part(const void* symbol, size_t n, size_t offset, void** out) {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  if (cudaError_t e = cudart::FindSymbol(symbol, &address, &bytes); e != cudaSuccess) return e;
  if (offset > bytes || n > bytes - offset) return cudaErrorInvalidValue;
  *out = cudart::ToPointer(address + offset);
  return cudaSuccess;
}

cudaMemcpyKind KindOf(CUmemorytype from, CUmemorytype to) {
  if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
  if (from == CU_MEMORYTYPE_HOST) {
    return to == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  }
  return to == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

}  // namespace

// --- Kernels ---

CUDART_API cudaGraphAddKernelNode(Node* out, cudaGraph_t graph, const Node* after, size_t count,
                                  const cudaKernelNodeParams* params) {
  CUDART_ENTER();
  CUDA_KERNEL_NODE_PARAMS p;
  if (cudaError_t e = ToDriver(params, &p); e != cudaSuccess) return Note(e);
  return Note(GetDriver().GraphAddKernelNode(out, graph, after, count, &p));
}
CUDART_API cudaGraphKernelNodeGetParams(Node node, cudaKernelNodeParams* out) {
  CUDART_ENTER();
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  CUDA_KERNEL_NODE_PARAMS p = {};
  if (CUresult r = GetDriver().GraphKernelNodeGetParams(node, &p); r != CUDA_SUCCESS) {
    return Note(r);
  }
  const void* stub = cudart::FindStub(p.func, p.kern);
  if (stub == nullptr) return Note(cudaErrorInvalidDeviceFunction);
  out->func = const_cast<void*>(stub);
  out->gridDim = {p.gridDimX, p.gridDimY, p.gridDimZ};
  out->blockDim = {p.blockDimX, p.blockDimY, p.blockDimZ};
  out->sharedMemBytes = p.sharedMemBytes;
  out->kernelParams = p.kernelParams;
  out->extra = p.extra;
  return cudaSuccess;
}
CUDART_API cudaGraphKernelNodeSetParams(Node node, const cudaKernelNodeParams* params) {
  CUDART_ENTER();
  CUDA_KERNEL_NODE_PARAMS p;
  if (cudaError_t e = ToDriver(params, &p); e != cudaSuccess) return Note(e);
  return Note(GetDriver().GraphKernelNodeSetParams(node, &p));
}
CUDART_API cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, Node node,
                                            const cudaKernelNodeParams* params) {
  CUDART_ENTER();
  CUDA_KERNEL_NODE_PARAMS p;
  if (cudaError_t e = ToDriver(params, &p); e != cudaSuccess) return Note(e);
  return Note(GetDriver().GraphExecKernelNodeSetParams(exec, node, &p));
}
CUDART_API cudaGraphKernelNodeCopyAttributes(Node to, Node from) {
  CUDART_ENTER();
  return Note(GetDriver().GraphKernelNodeCopyAttributes(to, from));
}
CUDART_API cudaGraphKernelNodeGetAttribute(Node node, cudaLaunchAttributeID id,
                                           cudaLaunchAttributeValue* value) {
  CUDART_ENTER();
  return Note(
      GetDriver().GraphKernelNodeGetAttribute(node, static_cast<CUlaunchAttributeID>(id),
                                              reinterpret_cast<CUlaunchAttributeValue*>(value)));
}
CUDART_API cudaGraphKernelNodeSetAttribute(Node node, cudaLaunchAttributeID id,
                                           const cudaLaunchAttributeValue* value) {
  CUDART_ENTER();
  return Note(GetDriver().GraphKernelNodeSetAttribute(
      node, static_cast<CUlaunchAttributeID>(id),
      reinterpret_cast<const CUlaunchAttributeValue*>(value)));
}

// --- Copies ---

CUDART_API cudaGraphAddMemcpyNode(Node* out, cudaGraph_t graph, const Node* after, size_t count,
                                  const cudaMemcpy3DParms* params) {
  CUDART_ENTER();
  CUDA_MEMCPY3D c;
  if (cudaError_t e = ToDriver(params, &c); e != cudaSuccess) return Note(e);
  return Note(GetDriver().GraphAddMemcpyNode(out, graph, after, count, &c, CurrentContext()));
}
CUDART_API cudaGraphAddMemcpyNode1D(Node* out, cudaGraph_t graph, const Node* after, size_t count,
                                    void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  const cudaMemcpy3DParms line = Line(to, from, n, kind);
  return cudaGraphAddMemcpyNode(out, graph, after, count, &line);
}
CUDART_API cudaGraphAddMemcpyNodeToSymbol(Node* out, cudaGraph_t graph, const Node* after,
                                          size_t count, const void* symbol, const void* from,
                                          size_t n, size_t offset, cudaMemcpyKind kind) {
  CUDART_ENTER();
  void* to = nullptr;
  if (cudaError_t e = Part(symbol, n, offset, &to); e != cudaSuccess) return Note(e);
  return cudaGraphAddMemcpyNode1D(out, graph, after, count, to, from, n, kind);
}
CUDART_API cudaGraphAddMemcpyNodeFromSymbol(Node* out, cudaGraph_t graph, const Node* after,
                                            size_t count, void* to, const void* symbol, size_t n,
                                            size_t offset, cudaMemcpyKind kind) {
  CUDART_ENTER();
  void* from = nullptr;
  if (cudaError_t e = Part(symbol, n, offset, &from); e != cudaSuccess) return Note(e);
  return cudaGraphAddMemcpyNode1D(out, graph, after, count, to, from, n, kind);
}
CUDART_API cudaGraphMemcpyNodeGetParams(Node node, cudaMemcpy3DParms* out) {
  CUDART_ENTER();
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  CUDA_MEMCPY3D c = {};
  if (CUresult r = GetDriver().GraphMemcpyNodeGetParams(node, &c); r != CUDA_SUCCESS) {
    return Note(r);
  }
  auto end = [](CUmemorytype type, const void* host, CUdeviceptr device) {
    return type == CU_MEMORYTYPE_HOST ? const_cast<void*>(host) : cudart::ToPointer(device);
  };
  *out = {};
  out->srcPos = {c.srcXInBytes, c.srcY, c.srcZ};
  out->srcPtr = {end(c.srcMemoryType, c.srcHost, c.srcDevice), c.srcPitch, c.WidthInBytes,
                 c.srcHeight};
  out->dstPos = {c.dstXInBytes, c.dstY, c.dstZ};
  out->dstPtr = {end(c.dstMemoryType, c.dstHost, c.dstDevice), c.dstPitch, c.WidthInBytes,
                 c.dstHeight};
  out->extent = {c.WidthInBytes, c.Height, c.Depth};
  out->kind = KindOf(c.srcMemoryType, c.dstMemoryType);
  return cudaSuccess;
}
CUDART_API cudaGraphMemcpyNodeSetParams(Node node, const cudaMemcpy3DParms* params) {
  CUDART_ENTER();
  CUDA_MEMCPY3D c;
  if (cudaError_t e = ToDriver(params, &c); e != cudaSuccess) return Note(e);
  return Note(GetDriver().GraphMemcpyNodeSetParams(node, &c));
}
CUDART_API cudaGraphMemcpyNodeSetParams1D(Node node, void* to, const void* from, size_t n,
                                          cudaMemcpyKind kind) {
  const cudaMemcpy3DParms line = Line(to, from, n, kind);
  return cudaGraphMemcpyNodeSetParams(node, &line);
}
CUDART_API cudaGraphMemcpyNodeSetParamsToSymbol(Node node, const void* symbol, const void* from,
                                                size_t n, size_t offset, cudaMemcpyKind kind) {
  CUDART_ENTER();
  void* to = nullptr;
  if (cudaError_t e = Part(symbol, n, offset, &to); e != cudaSuccess) return Note(e);
  return cudaGraphMemcpyNodeSetParams1D(node, to, from, n, kind);
}
CUDART_API cudaGraphMemcpyNodeSetParamsFromSymbol(Node node, void* to, const void* symbol, size_t n,
                                                  size_t offset, cudaMemcpyKind kind) {
  CUDART_ENTER();
  void* from = nullptr;
  if (cudaError_t e = Part(symbol, n, offset, &from); e != cudaSuccess) return Note(e);
  return cudaGraphMemcpyNodeSetParams1D(node, to, from, n, kind);
}
CUDART_API cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, Node node,
                                            const cudaMemcpy3DParms* params) {
  CUDART_ENTER();
  CUDA_MEMCPY3D c;
  if (cudaError_t e = ToDriver(params, &c); e != cudaSuccess) return Note(e);
  return Note(GetDriver().GraphExecMemcpyNodeSetParams(exec, node, &c, CurrentContext()));
}
CUDART_API cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, Node node, void* to,
                                              const void* from, size_t n, cudaMemcpyKind kind) {
  const cudaMemcpy3DParms line = Line(to, from, n, kind);
  return cudaGraphExecMemcpyNodeSetParams(exec, node, &line);
}
CUDART_API cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, Node node,
                                                    const void* symbol, const void* from, size_t n,
                                                    size_t offset, cudaMemcpyKind kind) {
  CUDART_ENTER();
  void* to = nullptr;
  if (cudaError_t e = Part(symbol, n, offset, &to); e != cudaSuccess) return Note(e);
  return cudaGraphExecMemcpyNodeSetParams1D(exec, node, to, from, n, kind);
}
CUDART_API cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, Node node, void* to,
                                                      const void* symbol, size_t n, size_t offset,
                                                      cudaMemcpyKind kind) {
  CUDART_ENTER();
  void* from = nullptr;
  if (cudaError_t e = Part(symbol, n, offset, &from); e != cudaSuccess) return Note(e);
  return cudaGraphExecMemcpyNodeSetParams1D(exec, node, to, from, n, kind);
}

// --- Fills ---

CUDART_API cudaGraphAddMemsetNode(Node* out, cudaGraph_t graph, const Node* after, size_t count,
                                  const cudaMemsetParams* params) {
  CUDART_ENTER();
  return Note(GetDriver().GraphAddMemsetNode(
      out, graph, after, count, reinterpret_cast<const CUDA_MEMSET_NODE_PARAMS*>(params),
      CurrentContext()));
}
CUDART_API cudaGraphMemsetNodeGetParams(Node node, cudaMemsetParams* out) {
  CUDART_ENTER();
  return Note(
      GetDriver().GraphMemsetNodeGetParams(node, reinterpret_cast<CUDA_MEMSET_NODE_PARAMS*>(out)));
}
CUDART_API cudaGraphMemsetNodeSetParams(Node node, const cudaMemsetParams* params) {
  CUDART_ENTER();
  return Note(GetDriver().GraphMemsetNodeSetParams(
      node, reinterpret_cast<const CUDA_MEMSET_NODE_PARAMS*>(params)));
}
CUDART_API cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, Node node,
                                            const cudaMemsetParams* params) {
  CUDART_ENTER();
  return Note(GetDriver().GraphExecMemsetNodeSetParams(
      exec, node, reinterpret_cast<const CUDA_MEMSET_NODE_PARAMS*>(params), CurrentContext()));
}

// --- Host functions, events, child graphs, memory ---

CUDART_API cudaGraphAddHostNode(Node* out, cudaGraph_t graph, const Node* after, size_t count,
                                const cudaHostNodeParams* params) {
  CUDART_ENTER();
  return Note(GetDriver().GraphAddHostNode(out, graph, after, count,
                                           reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(params)));
}
CUDART_API cudaGraphHostNodeGetParams(Node node, cudaHostNodeParams* out) {
  CUDART_ENTER();
  return Note(
      GetDriver().GraphHostNodeGetParams(node, reinterpret_cast<CUDA_HOST_NODE_PARAMS*>(out)));
}
CUDART_API cudaGraphHostNodeSetParams(Node node, const cudaHostNodeParams* params) {
  CUDART_ENTER();
  return Note(GetDriver().GraphHostNodeSetParams(
      node, reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(params)));
}
CUDART_API cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, Node node,
                                          const cudaHostNodeParams* params) {
  CUDART_ENTER();
  return Note(GetDriver().GraphExecHostNodeSetParams(
      exec, node, reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(params)));
}
CUDART_API cudaGraphAddChildGraphNode(Node* out, cudaGraph_t graph, const Node* after, size_t count,
                                      cudaGraph_t child) {
  CUDART_ENTER();
  return Note(GetDriver().GraphAddChildGraphNode(out, graph, after, count, child));
}
CUDART_API cudaGraphChildGraphNodeGetGraph(Node node, cudaGraph_t* out) {
  CUDART_ENTER();
  return Note(GetDriver().GraphChildGraphNodeGetGraph(node, out));
}
CUDART_API cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, Node node,
                                                cudaGraph_t child) {
  CUDART_ENTER();
  return Note(GetDriver().GraphExecChildGraphNodeSetParams(exec, node, child));
}
CUDART_API cudaGraphAddEmptyNode(Node* out, cudaGraph_t graph, const Node* after, size_t count) {
  CUDART_ENTER();
  return Note(GetDriver().GraphAddEmptyNode(out, graph, after, count));
}
CUDART_API cudaGraphAddEventRecordNode(Node* out, cudaGraph_t graph, const Node* after,
                                       size_t count, cudaEvent_t event) {
  CUDART_ENTER();
  return Note(GetDriver().GraphAddEventRecordNode(out, graph, after, count, event));
}
CUDART_API cudaGraphEventRecordNodeGetEvent(Node node, cudaEvent_t* out) {
  CUDART_ENTER();
  return Note(GetDriver().GraphEventRecordNodeGetEvent(node, out));
}
CUDART_API cudaGraphEventRecordNodeSetEvent(Node node, cudaEvent_t event) {
  CUDART_ENTER();
  return Note(GetDriver().GraphEventRecordNodeSetEvent(node, event));
}
CUDART_API cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, Node node,
                                                cudaEvent_t event) {
  CUDART_ENTER();
  return Note(GetDriver().GraphExecEventRecordNodeSetEvent(exec, node, event));
}
CUDART_API cudaGraphAddEventWaitNode(Node* out, cudaGraph_t graph, const Node* after, size_t count,
                                     cudaEvent_t event) {
  CUDART_ENTER();
  return Note(GetDriver().GraphAddEventWaitNode(out, graph, after, count, event));
}
CUDART_API cudaGraphEventWaitNodeGetEvent(Node node, cudaEvent_t* out) {
  CUDART_ENTER();
  return Note(GetDriver().GraphEventWaitNodeGetEvent(node, out));
}
CUDART_API cudaGraphEventWaitNodeSetEvent(Node node, cudaEvent_t event) {
  CUDART_ENTER();
  return Note(GetDriver().GraphEventWaitNodeSetEvent(node, event));
}
CUDART_API cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, Node node, cudaEvent_t event) {
  CUDART_ENTER();
  return Note(GetDriver().GraphExecEventWaitNodeSetEvent(exec, node, event));
}
CUDART_API cudaGraphAddMemAllocNode(Node* out, cudaGraph_t graph, const Node* after, size_t count,
                                    cudaMemAllocNodeParams* params) {
  CUDART_ENTER();
  return Note(GetDriver().GraphAddMemAllocNode(
      out, graph, after, count, reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(params)));
}
CUDART_API cudaGraphMemAllocNodeGetParams(Node node, cudaMemAllocNodeParams* out) {
  CUDART_ENTER();
  return Note(GetDriver().GraphMemAllocNodeGetParams(
      node, reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(out)));
}
CUDART_API cudaGraphAddMemFreeNode(Node* out, cudaGraph_t graph, const Node* after, size_t count,
                                   void* at) {
  CUDART_ENTER();
  return Note(GetDriver().GraphAddMemFreeNode(out, graph, after, count, cudart::ToDevice(at)));
}
CUDART_API cudaGraphMemFreeNodeGetParams(Node node, void* out) {
  CUDART_ENTER();
  return Note(GetDriver().GraphMemFreeNodeGetParams(node, static_cast<CUdeviceptr*>(out)));
}
