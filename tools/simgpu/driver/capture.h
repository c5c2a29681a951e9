// Capture of streams into graphs: what is given to a captured stream becomes a node. Thread-safe.
//
// The rules are those of the programming guide ("Creating a Graph Using Stream Capture"): forks and
// joins by events, what is forbidden meanwhile, and how what is forbidden ends a capture.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <thread>

#include "tools/simgpu/driver/graph.h"
#include "tools/simgpu/driver/scheduler.h"

namespace simgpu {

struct Capture {
  uint64_t id = 0;
  Graph* graph = nullptr;
  std::unique_ptr<Graph> owned;  // null: to a graph of the program's
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  Stream* origin = nullptr;
  std::set<Stream*> streams;
  bool invalidated = false, ended = false;
};

// If the stream is captured (or may not be used because of one that is): true, and what the call is
// to return. Otherwise false: the call goes on.
bool AddToCapture(Stream* stream, const std::function<void(GraphNode&)>& fill, CUresult* result);
bool CaptureRecord(Stream* stream, Event* event, bool external, CUresult* result);
bool CaptureWait(Stream* stream, Event* event, bool external, CUresult* result);
bool IsCapturing(Stream* stream);

// Of calls that wait for a stream or ask about it (null: the whole device): their error, and the
// captures that they disturb end. CUDA_SUCCESS where nothing is captured.
CUresult Forbidden(Stream* stream);
CUresult ForbiddenEvent(Event* event);
void OnStreamGone(Stream* stream);

CUresult BeginCapture(Stream* stream, CUstreamCaptureMode mode, Graph* graph,
                      std::vector<GraphNode*> after);
CUresult EndCapture(Stream* stream, Graph** graph);
CUstreamCaptureMode ExchangeMode(CUstreamCaptureMode mode);
CUresult CaptureStatus(Stream* stream, CUstreamCaptureStatus* status,
                       std::shared_ptr<Capture>* capture);

}  // namespace simgpu
