// Capture of streams.
#include "tools/simgpu/driver/api.h"
#include "tools/simgpu/driver/capture.h"

using namespace simgpu;

template <bool kPt>
static CUresult Impl_cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  SIMGPU_ENTER();
  SIMGPU_STREAM(stream, handle, kPt);
  return BeginCapture(stream, mode, nullptr, {});
}
SIMGPU_TWO_FORMS(cuStreamBeginCapture_v2, _ptsz, (CUstream s, CUstreamCaptureMode mode), (s, mode))

template <bool kPt>
static CUresult Impl_cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph,
                                                 const CUgraphNode* after, size_t count,
                                                 CUstreamCaptureMode mode) {
  SIMGPU_ENTER();
  SIMGPU_STREAM(stream, handle, kPt);
  Graph* g = Graphs::Get().Find(graph);
  if (g == nullptr || (count > 0 && after == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> nodes;
  for (size_t i = 0; i < count; ++i) {
    nodes.push_back(Graphs::Get().FindNode(after[i]));
    if (nodes.back() == nullptr || nodes.back()->graph != g) return CUDA_ERROR_INVALID_VALUE;
  }
  return BeginCapture(stream, mode, g, std::move(nodes));
}
SIMGPU_TWO_FORMS(cuStreamBeginCaptureToGraph, _ptsz,
                 (CUstream s, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData*,
                  size_t count, CUstreamCaptureMode mode),
                 (s, graph, after, count, mode))

template <bool kPt>
static CUresult Impl_cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  SIMGPU_ENTER();
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_STREAM(stream, handle, kPt);
  Graph* made = nullptr;
  const CUresult result = EndCapture(stream, &made);
  *graph = reinterpret_cast<CUgraph>(made);
  return result;
}
SIMGPU_TWO_FORMS(cuStreamEndCapture, _ptsz, (CUstream s, CUgraph* graph), (s, graph))

template <bool kPt>
static CUresult Impl_cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  SIMGPU_ENTER();
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_STREAM(stream, handle, kPt);
  std::shared_ptr<Capture> capture;
  return CaptureStatus(stream, status, &capture);
}
SIMGPU_TWO_FORMS(cuStreamIsCapturing, _ptsz, (CUstream s, CUstreamCaptureStatus* status),
                 (s, status))

static CUresult Info(CUstream handle, bool per_thread, CUstreamCaptureStatus* status,
                     cuuint64_t* id, CUgraph* graph, const CUgraphNode** nodes, size_t* count) {
  SIMGPU_ENTER();
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_STREAM(stream, handle, per_thread);
  std::shared_ptr<Capture> capture;
  if (CUresult r = CaptureStatus(stream, status, &capture); r != CUDA_SUCCESS) return r;
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id != nullptr) *id = capture->id;
  if (graph != nullptr) *graph = reinterpret_cast<CUgraph>(capture->graph);
  // Valid until the next call on the stream, as documented.
  if (nodes != nullptr) {
    *nodes = reinterpret_cast<const CUgraphNode*>(stream->captured.data());
  }
  if (count != nullptr) *count = stream->captured.size();
  return CUDA_SUCCESS;
}
template <bool kPt>
static CUresult Impl_cuStreamGetCaptureInfo_v2(CUstream s, CUstreamCaptureStatus* status,
                                               cuuint64_t* id, CUgraph* graph,
                                               const CUgraphNode** nodes, size_t* count) {
  return Info(s, kPt, status, id, graph, nodes, count);
}
SIMGPU_TWO_FORMS(cuStreamGetCaptureInfo_v2, _ptsz,
                 (CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                  const CUgraphNode** nodes, size_t* count),
                 (s, status, id, graph, nodes, count))
template <bool kPt>
static CUresult Impl_cuStreamGetCaptureInfo_v3(CUstream s, CUstreamCaptureStatus* status,
                                               cuuint64_t* id, CUgraph* graph,
                                               const CUgraphNode** nodes,
                                               const CUgraphEdgeData** edges, size_t* count) {
  if (edges != nullptr) *edges = nullptr;  // none has any
  return Info(s, kPt, status, id, graph, nodes, count);
}
SIMGPU_TWO_FORMS(cuStreamGetCaptureInfo_v3, _ptsz,
                 (CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                  const CUgraphNode** nodes, const CUgraphEdgeData** edges, size_t* count),
                 (s, status, id, graph, nodes, edges, count))

template <bool kPt>
static CUresult Impl_cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* nodes,
                                                          size_t count, unsigned int flags) {
  SIMGPU_ENTER();
  SIMGPU_STREAM(stream, handle, kPt);
  CUstreamCaptureStatus status;
  std::shared_ptr<Capture> capture;
  if (CUresult r = CaptureStatus(stream, &status, &capture); r != CUDA_SUCCESS) return r;
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> after;
  if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES) after = stream->captured;
  for (size_t i = 0; i < count; ++i) {
    GraphNode* node = Graphs::Get().FindNode(nodes[i]);
    if (node == nullptr || node->graph != capture->graph) return CUDA_ERROR_INVALID_VALUE;
    after.push_back(node);
  }
  stream->captured = std::move(after);
  return CUDA_SUCCESS;
}
SIMGPU_TWO_FORMS(cuStreamUpdateCaptureDependencies_v2, _ptsz,
                 (CUstream s, CUgraphNode* nodes, const CUgraphEdgeData*, size_t count,
                  unsigned int flags),
                 (s, nodes, count, flags))

SIMGPU_API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  *mode = ExchangeMode(*mode);
  return CUDA_SUCCESS;
}
