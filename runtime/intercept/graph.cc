#include "runtime/intercept/graph.h"

#include <atomic>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/intercept/host_memory.h"
#include "runtime/intercept/state.h"
#include "runtime/residency/capture_mode.h"

namespace tidepool {
namespace {

std::atomic<size_t> captures{0};
std::multiset<CUstream> captured;  // the streams they began with; a thread's own reads null
std::atomic<bool> follows_pointers{false};
std::mutex mutex;  // of `captured` and `deferred`
std::vector<CUdeviceptr> deferred;

// The host's memory is read at each launch of the graph: what lies there now says nothing.
void OnHostSource(CUdeviceptr from) {
  if (KindOf(from) != MemoryKind::kDevice) HostMemory::Get().OnUnseenPointers();
}

}  // namespace

void OnCaptureBegins() {
  captures_seen = true;
  if (Engine* engine = ActiveEngine()) engine->Settle(nullptr);
}
void OnCaptureBegan(CUstream stream) {
  if (stream == CU_STREAM_PER_THREAD) stream = nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  captured.insert(stream);
  captures = captured.size();
}
void OnCaptureEnded(CUstream stream) {
  if (stream == CU_STREAM_PER_THREAD) stream = nullptr;
  std::vector<CUdeviceptr> free;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto it = captured.find(stream);
    if (it == captured.end()) return;
    captured.erase(it);
    captures = captured.size();
    if (!captured.empty()) return;
    free.swap(deferred);
  }
  Engine* engine = ActiveEngine();
  if (free.empty() || engine == nullptr) return;
  if (GetDriverApi().CtxSynchronize() != CUDA_SUCCESS) return;  // kept for good
  for (CUdeviceptr at : free) engine->Free(at);
}
bool AnyCapture() { return captures.load(std::memory_order_relaxed) > 0; }

void BeforeStreamWait(CUstream stream, bool per_thread) {
  Engine* engine = ActiveEngine();
  if (engine == nullptr || !AnyCapture() || Capturing(stream, per_thread)) return;
  const StreamRef ref = {stream, per_thread};
  engine->Settle(&ref);
}

void FreeAfterCaptures(CUdeviceptr at) {
  std::lock_guard<std::mutex> lock(mutex);
  deferred.push_back(at);
}

CUresult PinForGraph(Engine* engine, CUdeviceptr filled) {
  return engine->InPool(filled) ? engine->Pin(filled, PinReason::kGraph) : CUDA_SUCCESS;
}

CUresult PinForGraph(Engine* engine, CUdeviceptr to, CUdeviceptr from) {
  if (!engine->InPool(from)) OnHostSource(from);
  if (CUresult r = PinForGraph(engine, from); r != CUDA_SUCCESS) return r;
  return PinForGraph(engine, to);
}

CUresult PinForGraph(Engine* engine, const CUDA_MEMCPY3D& c) {
  // Where a box begins, with its position in it: rows may be counted from another buffer's end.
  auto first = [](CUmemorytype type, const void* host, CUdeviceptr device, size_t pitch,
                  size_t height, size_t x, size_t y, size_t z) {
    const auto base = type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(host) : device;
    return base + (z * height + y) * pitch + x;
  };
  CUdeviceptr from = 0, to = 0;
  if (c.srcMemoryType != CU_MEMORYTYPE_ARRAY) {
    const size_t pitch = c.srcPitch != 0 ? c.srcPitch : c.WidthInBytes;
    const size_t height = c.srcHeight != 0 ? c.srcHeight : c.Height;
    from = first(c.srcMemoryType, c.srcHost, c.srcDevice, pitch, height, c.srcXInBytes, c.srcY,
                 c.srcZ);
  }
  if (c.dstMemoryType != CU_MEMORYTYPE_ARRAY) {
    const size_t pitch = c.dstPitch != 0 ? c.dstPitch : c.WidthInBytes;
    const size_t height = c.dstHeight != 0 ? c.dstHeight : c.Height;
    to = first(c.dstMemoryType, c.dstHost, c.dstDevice, pitch, height, c.dstXInBytes, c.dstY,
               c.dstZ);
  }
  if (from == 0) return PinForGraph(engine, to);
  return PinForGraph(engine, to, from);
}

void OnGraphFollowsPointers() { follows_pointers = true; }

CUresult BeforeGraphLaunch(Engine* engine) {
  if (engine == nullptr || !follows_pointers || !HostMemory::Get().unseen_pointers()) {
    return CUDA_SUCCESS;
  }
  return engine->PinAll(PinReason::kPointerInMemory);
}

}  // namespace tidepool
