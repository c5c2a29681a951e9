#include "tools/simgpu/driver/capture.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "tools/simgpu/driver/api.h"

namespace simgpu {
namespace {

struct State {
  std::mutex mutex;
  std::set<std::shared_ptr<Capture>> active;
  uint64_t next_id = 1;
};
State& GetState() {
  static State* state = new State;
  return *state;
}
// How many are active: calls outside of any capture need no lock.
std::atomic<int> active_count{0};
thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

// A capture that the legacy stream would have to wait for.
Capture* BlockingCapture(State& state) {
  for (const auto& capture : state.active) {
    for (const Stream* stream : capture->streams) {
      if (stream->blocking) return capture.get();
    }
  }
  return nullptr;
}

// The legacy stream may not be used while a stream that it waits for is captured.
bool LegacyRefused(State& state, const Stream* stream, CUresult* result) {
  if (!stream->legacy) return false;
  Capture* capture = BlockingCapture(state);
  if (capture == nullptr) return false;
  capture->invalidated = true;
  *result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  return true;
}

void Merge(std::vector<GraphNode*>* into, const std::vector<GraphNode*>& from) {
  for (GraphNode* node : from) {
    if (std::find(into->begin(), into->end(), node) == into->end()) into->push_back(node);
  }
}

void End(State& state, const std::shared_ptr<Capture>& capture) {
  for (Stream* stream : capture->streams) {
    stream->capture = nullptr;
    stream->captured.clear();
  }
  capture->streams.clear();
  capture->ended = true;
  active_count -= static_cast<int>(state.active.erase(capture));
}

}  // namespace

CUresult UnsafeCall() {
  if (active_count.load() == 0 || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
    return CUDA_SUCCESS;
  }
  State& state = GetState();
  std::lock_guard<std::mutex> lock(state.mutex);
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : state.active) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool conflicts = own ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                               : capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                     thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!conflicts) continue;
    capture->invalidated = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

bool AddToCapture(Stream* stream, const std::function<void(GraphNode&)>& fill, CUresult* result) {
  if (active_count.load() == 0) return false;
  State& state = GetState();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (stream->capture == nullptr) return LegacyRefused(state, stream, result);
  *result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream->capture->invalidated) return true;
  GraphNode* node = stream->capture->graph->Add(stream->captured);
  fill(*node);
  stream->captured = {node};
  *result = CUDA_SUCCESS;
  return true;
}

bool CaptureRecord(Stream* stream, Event* event, bool external, CUresult* result) {
  State& state = GetState();
  if (external) {
    if (AddToCapture(
            stream,
            [&](GraphNode& node) {
              node.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
              node.event = reinterpret_cast<CUevent>(event);
            },
            result)) {
      return true;
    }
  }
  std::lock_guard<std::mutex> lock(state.mutex);
  if (stream->capture == nullptr) {
    if (LegacyRefused(state, stream, result)) return true;
    event->capture = nullptr;
    event->captured.clear();
    return false;
  }
  *result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream->capture->invalidated) return true;
  event->capture = stream->capture;
  event->captured = stream->captured;
  *result = CUDA_SUCCESS;
  return true;
}

bool CaptureWait(Stream* stream, Event* event, bool external, CUresult* result) {
  State& state = GetState();
  std::unique_lock<std::mutex> lock(state.mutex);
  if (event->capture == nullptr || external) {
    if (stream->capture == nullptr) return LegacyRefused(state, stream, result);
    *result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->capture->invalidated) return true;
    if (external) {
      lock.unlock();
      return AddToCapture(
          stream,
          [&](GraphNode& node) {
            node.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
            node.event = reinterpret_cast<CUevent>(event);
          },
          result);
    }
    // The graph would depend on work outside of it.
    stream->capture->invalidated = true;
    *result = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    return true;
  }
  const std::shared_ptr<Capture> capture = event->capture;
  if (capture->ended) {
    *result = CUDA_ERROR_CAPTURED_EVENT;
    if (stream->capture != nullptr) stream->capture->invalidated = true;
    return true;
  }
  *result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture->invalidated) return true;
  if (stream->legacy) {
    capture->invalidated = true;
    *result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    return true;
  }
  if (stream->capture != nullptr && stream->capture != capture) {
    capture->invalidated = stream->capture->invalidated = true;
    *result = CUDA_ERROR_STREAM_CAPTURE_MERGE;
    return true;
  }
  stream->capture = capture;
  capture->streams.insert(stream);
  Merge(&stream->captured, event->captured);
  *result = CUDA_SUCCESS;
  return true;
}

bool IsCapturing(Stream* stream) {
  if (active_count.load() == 0) return false;
  std::lock_guard<std::mutex> lock(GetState().mutex);
  return stream->capture != nullptr;
}

CUresult Forbidden(Stream* stream) {
  if (active_count.load() == 0) return CUDA_SUCCESS;
  State& state = GetState();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (stream == nullptr) {
    for (const auto& capture : state.active) capture->invalidated = true;
    return state.active.empty() ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  CUresult result = CUDA_SUCCESS;
  if (LegacyRefused(state, stream, &result) || stream->capture == nullptr) return result;
  stream->capture->invalidated = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult ForbiddenEvent(Event* event) {
  {
    std::lock_guard<std::mutex> lock(GetState().mutex);
    if (event->capture != nullptr) {
      event->capture->invalidated = true;
      return CUDA_ERROR_CAPTURED_EVENT;
    }
  }
  return UnsafeCall();
}

void OnStreamGone(Stream* stream) {
  State& state = GetState();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (stream->capture == nullptr) return;
  const std::shared_ptr<Capture> capture = stream->capture;
  capture->invalidated = true;
  capture->streams.erase(stream);
  if (capture->origin == stream) End(state, capture);
}

CUresult BeginCapture(Stream* stream, CUstreamCaptureMode mode, Graph* graph,
                      std::vector<GraphNode*> after) {
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  State& state = GetState();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = state.next_id++;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = stream;
  capture->streams = {stream};
  if (graph == nullptr) {
    capture->owned = std::make_unique<Graph>();
    capture->owned->owned = true;
    graph = capture->owned.get();
    Graphs::Get().OnGraph(graph, true);
  }
  capture->graph = graph;
  stream->capture = capture;
  stream->captured = std::move(after);
  state.active.insert(std::move(capture));
  ++active_count;
  return CUDA_SUCCESS;
}

CUresult EndCapture(Stream* stream, Graph** graph) {
  *graph = nullptr;
  State& state = GetState();
  std::unique_lock<std::mutex> lock(state.mutex);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  bool joined = true;
  if (!capture->invalidated) {
    // Everything of the forked streams must lie before the end of the stream that was begun with.
    std::vector<GraphNode*> open = stream->captured;
    std::set<GraphNode*> before;
    while (!open.empty()) {
      GraphNode* node = open.back();
      open.pop_back();
      if (before.insert(node).second) {
        open.insert(open.end(), node->after.begin(), node->after.end());
      }
    }
    for (const Stream* other : capture->streams) {
      for (GraphNode* node : other->captured) joined = joined && before.contains(node);
    }
  }
  const bool invalidated = capture->invalidated;
  End(state, capture);
  lock.unlock();
  if (invalidated || !joined) {
    capture->owned = nullptr;
    capture->graph = nullptr;
    return invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  *graph = capture->graph;
  if (capture->owned != nullptr) Graphs::Get().Publish(std::move(capture->owned));
  return CUDA_SUCCESS;
}

CUstreamCaptureMode ExchangeMode(CUstreamCaptureMode mode) {
  std::swap(mode, thread_mode);
  return mode;
}

CUresult CaptureStatus(Stream* stream, CUstreamCaptureStatus* status,
                       std::shared_ptr<Capture>* capture) {
  State& state = GetState();
  std::lock_guard<std::mutex> lock(state.mutex);
  // Asking about the legacy stream does not end the capture that is in its way.
  if (stream->legacy && BlockingCapture(state) != nullptr) {
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  *capture = stream->capture;
  *status = stream->capture == nullptr     ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                           : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
