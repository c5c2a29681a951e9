// Streams and events.
#include <algorithm>

#include "tools/simgpu/driver/api.h"
#include "tools/simgpu/driver/capture.h"

#undef cuEventElapsedTime

using namespace simgpu;

static CUresult NewStream(CUstream* out, unsigned int flags, int priority) {
  SIMGPU_ENTER(GetDeviceModel().call_small_ns);
  if (out == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  // Priorities outside of the range are taken as its ends.
  priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
  *out = reinterpret_cast<CUstream>(
      Scheduler::Get().Create(flags != CU_STREAM_NON_BLOCKING, priority));
  return CUDA_SUCCESS;
}
SIMGPU_API cuStreamCreate(CUstream* out, unsigned int flags) { return NewStream(out, flags, 0); }
SIMGPU_API cuStreamCreateWithPriority(CUstream* out, unsigned int flags, int priority) {
  return NewStream(out, flags, priority);
}
SIMGPU_API cuStreamDestroy_v2(CUstream handle) {
  SIMGPU_ENTER();
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (Stream* stream = Scheduler::Get().Find(handle, false)) OnStreamGone(stream);
  return Scheduler::Get().Destroy(handle);
}

template <bool kPt>
static CUresult Impl_cuStreamSynchronize(CUstream handle) {
  SIMGPU_ENTER(1000);
  SIMGPU_STREAM(stream, handle, kPt);
  if (CUresult r = Forbidden(stream); r != CUDA_SUCCESS) return r;
  Scheduler::Get().WaitStream(stream);
  return Scheduler::Get().error();
}
SIMGPU_TWO_FORMS(cuStreamSynchronize, _ptsz, (CUstream s), (s))
template <bool kPt>
static CUresult Impl_cuStreamQuery(CUstream handle) {
  SIMGPU_ENTER(GetDeviceModel().call_small_ns);
  SIMGPU_STREAM(stream, handle, kPt);
  if (CUresult r = Forbidden(stream); r != CUDA_SUCCESS) return r;
  return Scheduler::Get().StreamIdle(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
SIMGPU_TWO_FORMS(cuStreamQuery, _ptsz, (CUstream s), (s))
template <bool kPt>
static CUresult Impl_cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags) {
  SIMGPU_ENTER(GetDeviceModel().call_small_ns);
  SIMGPU_STREAM(stream, handle, kPt);
  Event* e = Scheduler::Get().FindEvent(event);
  if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult captured;
  if (CaptureWait(stream, e, (flags & CU_EVENT_WAIT_EXTERNAL) != 0, &captured)) return captured;
  Scheduler::Get().WaitEvent(stream, e);
  return CUDA_SUCCESS;
}
SIMGPU_TWO_FORMS(cuStreamWaitEvent, _ptsz, (CUstream s, CUevent e, unsigned int flags),
                 (s, e, flags))
template <bool kPt>
static CUresult Impl_cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  SIMGPU_ENTER();
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_STREAM(stream, handle, kPt);
  *flags = stream->blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
  return CUDA_SUCCESS;
}
SIMGPU_TWO_FORMS(cuStreamGetFlags, _ptsz, (CUstream s, unsigned int* flags), (s, flags))
template <bool kPt>
static CUresult Impl_cuStreamGetPriority(CUstream handle, int* priority) {
  SIMGPU_ENTER();
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_STREAM(stream, handle, kPt);
  *priority = stream->priority;
  return CUDA_SUCCESS;
}
SIMGPU_TWO_FORMS(cuStreamGetPriority, _ptsz, (CUstream s, int* priority), (s, priority))
template <bool kPt>
static CUresult Impl_cuStreamGetId(CUstream handle, unsigned long long* id) {
  SIMGPU_ENTER();
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_STREAM(stream, handle, kPt);
  *id = stream->id;
  return CUDA_SUCCESS;
}
SIMGPU_TWO_FORMS(cuStreamGetId, _ptsz, (CUstream s, unsigned long long* id), (s, id))
template <bool kPt>
static CUresult Impl_cuStreamGetCtx(CUstream, CUcontext* context) {
  return cuCtxGetCurrent(context);
}
SIMGPU_TWO_FORMS(cuStreamGetCtx, _ptsz, (CUstream s, CUcontext* context), (s, context))
SIMGPU_API cuEventCreate(CUevent* out, unsigned int flags) {
  SIMGPU_ENTER(GetDeviceModel().call_small_ns);
  if (out == nullptr || flags > 7) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = reinterpret_cast<CUevent>(
      Scheduler::Get().CreateEvent((flags & CU_EVENT_DISABLE_TIMING) == 0));
  return CUDA_SUCCESS;
}
SIMGPU_API cuEventDestroy_v2(CUevent event) {
  SIMGPU_ENTER();
  return Scheduler::Get().DestroyEvent(event);
}
template <bool kPt>
static CUresult Record(CUevent event, CUstream handle, bool external) {
  SIMGPU_ENTER(GetDeviceModel().call_small_ns);
  Event* e = Scheduler::Get().FindEvent(event);
  if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  SIMGPU_STREAM(stream, handle, kPt);
  CUresult captured;
  if (CaptureRecord(stream, e, external, &captured)) return captured;
  Scheduler::Get().Record(e, stream);
  return CUDA_SUCCESS;
}
template <bool kPt>
static CUresult Impl_cuEventRecord(CUevent event, CUstream handle) {
  return Record<kPt>(event, handle, false);
}
SIMGPU_TWO_FORMS(cuEventRecord, _ptsz, (CUevent e, CUstream s), (e, s))
template <bool kPt>
static CUresult Impl_cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned int flags) {
  return Record<kPt>(event, handle, (flags & CU_EVENT_RECORD_EXTERNAL) != 0);
}
SIMGPU_TWO_FORMS(cuEventRecordWithFlags, _ptsz, (CUevent e, CUstream s, unsigned int flags),
                 (e, s, flags))
SIMGPU_API cuEventQuery(CUevent event) {
  SIMGPU_ENTER(GetDeviceModel().call_small_ns);
  Event* e = Scheduler::Get().FindEvent(event);
  if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult r = ForbiddenEvent(e); r != CUDA_SUCCESS) return r;
  return Scheduler::Get().IsDone(e->op) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
SIMGPU_API cuEventSynchronize(CUevent event) {
  SIMGPU_ENTER(1000);
  Event* e = Scheduler::Get().FindEvent(event);
  if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult r = ForbiddenEvent(e); r != CUDA_SUCCESS) return r;
  Scheduler::Get().Wait(e->op);
  return Scheduler::Get().error();
}
SIMGPU_API cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  SIMGPU_ENTER();
  Event* b = Scheduler::Get().FindEvent(begin);
  Event* e = Scheduler::Get().FindEvent(end);
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (b == nullptr || e == nullptr || !b->timing || !e->timing || b->op == nullptr ||
      e->op == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!Scheduler::Get().IsDone(b->op) || !Scheduler::Get().IsDone(e->op))
    return CUDA_ERROR_NOT_READY;
  // Times are given in the order of issue; ops before these may not have one yet.
  if (!b->op->timed || !e->op->timed) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(
      (static_cast<double>(e->op->end_ns) - static_cast<double>(b->op->end_ns)) / 1e6);
  return CUDA_SUCCESS;
}
SIMGPU_API cuEventElapsedTime_v2(float* milliseconds, CUevent begin, CUevent end) {
  return cuEventElapsedTime(milliseconds, begin, end);
}
