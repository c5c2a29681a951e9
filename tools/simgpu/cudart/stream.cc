// Streams, events, host functions and capture.
#include "tools/simgpu/cudart/runtime.h"

namespace {

using cudart::Form;
using cudart::GetDriver;
using cudart::Note;

static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(CUlaunchAttributeValue));
static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));

}  // namespace

CUDART_API cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int priority) {
  CUDART_ENTER();
  return Note(GetDriver().StreamCreateWithPriority(out, flags, priority));
}
CUDART_API cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  CUDART_ENTER();
  return Note(GetDriver().StreamCreate(out, flags));
}
CUDART_API cudaStreamCreate(cudaStream_t* out) {
  return cudaStreamCreateWithFlags(out, cudaStreamDefault);
}
CUDART_API cudaStreamDestroy(cudaStream_t stream) {
  CUDART_ENTER();
  return Note(GetDriver().StreamDestroy(stream));
}
CUDART_API cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  CUDART_ENTER();
  return Note(
      GetDriver().ThreadExchangeStreamCaptureMode(reinterpret_cast<CUstreamCaptureMode*>(mode)));
}

// An entry point in both forms whose body is one driver call, itself in both forms.
#define CUDART_PASS(name, params, args, call)                      \
  static cudaError_t name##Impl(Form form, CUDART_UNWRAP params) { \
    CUDART_ENTER();                                                \
    return Note(GetDriver().call);                                 \
  }                                                                \
  CUDART_TWO_FORMS(name, _ptsz, name##Impl, params, args)

CUDART_PASS(cudaStreamSynchronize, (cudaStream_t s), (s), StreamSynchronize[form](s))
CUDART_PASS(cudaStreamQuery, (cudaStream_t s), (s), StreamQuery[form](s))
CUDART_PASS(cudaStreamWaitEvent, (cudaStream_t s, cudaEvent_t e, unsigned flags), (s, e, flags),
            StreamWaitEvent[form](s, e, flags))
CUDART_PASS(cudaStreamGetFlags, (cudaStream_t s, unsigned* flags), (s, flags),
            StreamGetFlags[form](s, flags))
CUDART_PASS(cudaStreamGetPriority, (cudaStream_t s, int* priority), (s, priority),
            StreamGetPriority[form](s, priority))
CUDART_PASS(cudaStreamGetId, (cudaStream_t s, unsigned long long* id), (s, id),
            StreamGetId[form](s, id))
CUDART_PASS(cudaStreamGetDevice, (cudaStream_t s, int* device), (s, device),
            StreamGetDevice[form](s, device))
CUDART_PASS(cudaStreamAttachMemAsync, (cudaStream_t s, void* at, size_t bytes, unsigned flags),
            (s, at, bytes, flags),
            StreamAttachMemAsync[form](s, cudart::ToDevice(at), bytes, flags))
CUDART_PASS(cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from), (to, from),
            StreamCopyAttributes[form](to, from))
CUDART_PASS(cudaStreamGetAttribute,
            (cudaStream_t s, cudaLaunchAttributeID id, cudaLaunchAttributeValue* value),
            (s, id, value),
            StreamGetAttribute[form](s, static_cast<CUlaunchAttributeID>(id),
                                     reinterpret_cast<CUlaunchAttributeValue*>(value)))
CUDART_PASS(cudaStreamSetAttribute,
            (cudaStream_t s, cudaLaunchAttributeID id, const cudaLaunchAttributeValue* value),
            (s, id, value),
            StreamSetAttribute[form](s, static_cast<CUlaunchAttributeID>(id),
                                     reinterpret_cast<const CUlaunchAttributeValue*>(value)))
CUDART_PASS(cudaLaunchHostFunc, (cudaStream_t s, cudaHostFn_t function, void* data),
            (s, function, data), LaunchHostFunc[form](s, function, data))
// The callback gets the driver's code, whose numbers are the runtime's.
CUDART_PASS(cudaStreamAddCallback,
            (cudaStream_t s, cudaStreamCallback_t function, void* data, unsigned flags),
            (s, function, data, flags),
            StreamAddCallback[form](s, reinterpret_cast<CUstreamCallback>(function), data, flags))
CUDART_PASS(cudaEventRecord, (cudaEvent_t e, cudaStream_t s), (e, s), EventRecord[form](e, s))
CUDART_PASS(cudaEventRecordWithFlags, (cudaEvent_t e, cudaStream_t s, unsigned flags),
            (e, s, flags), EventRecordWithFlags[form](e, s, flags))

CUDART_PASS(cudaStreamBeginCapture, (cudaStream_t s, cudaStreamCaptureMode mode), (s, mode),
            StreamBeginCapture[form](s, static_cast<CUstreamCaptureMode>(mode)))
CUDART_PASS(cudaStreamBeginCaptureToGraph,
            (cudaStream_t s, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
             const cudaGraphEdgeData* edges, size_t count, cudaStreamCaptureMode mode),
            (s, graph, dependencies, edges, count, mode),
            StreamBeginCaptureToGraph[form](s, graph, dependencies,
                                            reinterpret_cast<const CUgraphEdgeData*>(edges), count,
                                            static_cast<CUstreamCaptureMode>(mode)))
CUDART_PASS(cudaStreamEndCapture, (cudaStream_t s, cudaGraph_t* graph), (s, graph),
            StreamEndCapture[form](s, graph))
CUDART_PASS(cudaStreamIsCapturing, (cudaStream_t s, cudaStreamCaptureStatus* status), (s, status),
            StreamIsCapturing[form](s, reinterpret_cast<CUstreamCaptureStatus*>(status)))
CUDART_PASS(cudaStreamGetCaptureInfo,
            (cudaStream_t s, cudaStreamCaptureStatus* status, unsigned long long* id,
             cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
             const cudaGraphEdgeData** edges, size_t* count),
            (s, status, id, graph, dependencies, edges, count),
            StreamGetCaptureInfo[form](s, reinterpret_cast<CUstreamCaptureStatus*>(status),
                                       reinterpret_cast<cuuint64_t*>(id), graph, dependencies,
                                       reinterpret_cast<const CUgraphEdgeData**>(edges), count))
CUDART_PASS(cudaStreamUpdateCaptureDependencies,
            (cudaStream_t s, cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
             size_t count, unsigned flags),
            (s, dependencies, edges, count, flags),
            StreamUpdateCaptureDependencies[form](s, dependencies,
                                                  reinterpret_cast<const CUgraphEdgeData*>(edges),
                                                  count, flags))

// --- Events ---

CUDART_API cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
  CUDART_ENTER();
  return Note(GetDriver().EventCreate(out, flags));
}
CUDART_API cudaEventCreate(cudaEvent_t* out) {
  return cudaEventCreateWithFlags(out, cudaEventDefault);
}
CUDART_API cudaEventDestroy(cudaEvent_t event) {
  CUDART_ENTER();
  return Note(GetDriver().EventDestroy(event));
}
CUDART_API cudaEventQuery(cudaEvent_t event) {
  CUDART_ENTER();
  return Note(GetDriver().EventQuery(event));
}
CUDART_API cudaEventSynchronize(cudaEvent_t event) {
  CUDART_ENTER();
  return Note(GetDriver().EventSynchronize(event));
}
CUDART_API cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  CUDART_ENTER();
  return Note(GetDriver().EventElapsedTime(ms, start, end));
}
