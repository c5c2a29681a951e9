// Hooks of copies, in every direction and shape.
#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/intercept/graph.h"
#include "runtime/intercept/hook.h"
#include "runtime/intercept/host_memory.h"

namespace tidepool {
namespace {

using Place = Engine::Place;

class CopyReplay final : public Replay {
 public:
  CopyReplay(CUdeviceptr to, CUdeviceptr from, size_t bytes)
      : to_(to), from_(from), bytes_(bytes) {}
  CUresult Issue(CUstream s) const override {
    return GetDriverApi().MemcpyDtoDAsync(to_, from_, bytes_, s);
  }
  uint64_t footprint() const override { return sizeof(*this); }

 private:
  CUdeviceptr to_, from_;
  size_t bytes_;
};

class BoxReplay final : public Replay {
 public:
  explicit BoxReplay(const CUDA_MEMCPY3D& box) : box_(box) {}
  CUresult Issue(CUstream s) const override { return GetDriverApi().Memcpy3DAsync(&box_, s); }
  uint64_t footprint() const override { return sizeof(*this); }

 private:
  CUDA_MEMCPY3D box_;
};

CUdeviceptr Address(const void* at) { return reinterpret_cast<CUdeviceptr>(at); }

// Whether the call returns when the copy is done.
enum class Form : bool { kAsync, kSync };

// The host's memory is about to be copied to the device: buffers that it names are pinned.
CUresult LookAtSource(Engine* engine, const void* data, uint64_t bytes, MemoryKind kind,
                      Form form) {
  HostMemory& memory = HostMemory::Get();
  // Kernels and host functions that are still to run may change it before the copy reads it. (From
  // pageable memory the driver reads before the call returns.)
  if (kind == MemoryKind::kManaged ||
      (kind == MemoryKind::kPinned && form == Form::kAsync && memory.host_functions())) {
    memory.OnUnseenPointers();
    if (kind == MemoryKind::kManaged) return CUDA_SUCCESS;  // reading would move its pages
  }
  if (!memory.unseen_pointers() && memory.NamedIn(data, bytes)) memory.OnUnseenPointers();
  return engine->PinPointersIn(data, bytes);
}

// One contiguous copy; either side may be in the pool, on the host, or memory of the driver's.
CUresult Copy(const char* name, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream,
              bool per_thread, Form form, absl::FunctionRef<CUresult()> issue) {
  Engine* engine = ActiveEngine();
  if (engine == nullptr || bytes == 0) return issue();
  if (Capturing(stream, per_thread)) {
    if (CUresult r = PinForGraph(engine, to, from); r != CUDA_SUCCESS) return r;
    return issue();
  }
  const Place to_place = engine->Locate(to, bytes), from_place = engine->Locate(from, bytes);
  if (to_place == Place::kBeyond || from_place == Place::kBeyond) return CUDA_ERROR_INVALID_VALUE;
  const bool to_pool = to_place == Place::kInside, from_pool = from_place == Place::kInside;
  OpRequest request;
  request.name = name;
  request.stream = {stream, per_thread};
  if (from_pool) request.regions.push_back({from, bytes, AccessMode::kRead, false});
  if (to_pool) request.regions.push_back({to, bytes, AccessMode::kWrite, true});
  if (to_pool && from_pool) {
    request.kind = OpKind::kCopy;
    request.cost_key = (bytes << 8) | 3;
    request.replay = std::make_shared<CopyReplay>(to, from, bytes);
    return engine->Run(request, issue);
  }
  if (from_pool) {
    request.kind = OpKind::kDownload;
    request.blocking = true;  // to pageable memory, whatever the form
    return engine->Run(request, issue);
  }
  // To memory of the driver's too: a module variable may be told an address. Copies between two
  // places of the host are looked at without need: only the driver could tell them apart.
  const MemoryKind kind = KindOf(from);
  if (kind != MemoryKind::kDevice) {
    if (CUresult r = LookAtSource(engine, reinterpret_cast<const void*>(from), bytes, kind, form);
        r != CUDA_SUCCESS) {
      return r;
    }
  }
  if (!to_pool) return issue();
  request.kind = OpKind::kUpload;
  request.blocking = form == Form::kSync || kind == MemoryKind::kPageable;
  request.no_replay_reason = kind == MemoryKind::kDevice ? "a copy from memory outside of the pool"
                                                         : "uploaded from the host";
  return engine->Run(request, issue);
}

// One side of a copy of boxes: rows of `width` bytes.
struct Side {
  CUmemorytype type;
  CUdeviceptr address;  // of the first byte
  size_t pitch, slice;
  uint64_t Extent(const CUDA_MEMCPY3D& c) const {
    return c.WidthInBytes + (c.Height - 1) * pitch + (c.Depth - 1) * slice;
  }
};
Side MakeSide(const CUDA_MEMCPY3D& c, CUmemorytype type, const void* host, CUdeviceptr device,
              size_t pitch, size_t height, size_t x, size_t y, size_t z) {
  Side side{type, type == CU_MEMORYTYPE_HOST ? Address(host) : device, pitch, 0};
  if (side.pitch == 0) side.pitch = c.WidthInBytes;
  side.slice = side.pitch * (height != 0 ? height : c.Height);
  side.address += z * side.slice + y * side.pitch + x;
  return side;
}

// `replay` is a copy of boxes that does the same between device addresses.
CUresult CopyBox(const char* name, const CUDA_MEMCPY3D& c, CUstream stream, bool per_thread,
                 Form form, absl::FunctionRef<CUresult()> issue) {
  Engine* engine = ActiveEngine();
  if (engine == nullptr || c.WidthInBytes == 0 || c.Height == 0 || c.Depth == 0) return issue();
  if (Capturing(stream, per_thread)) {
    if (CUresult r = PinForGraph(engine, c); r != CUDA_SUCCESS) return r;
    return issue();
  }
  const Side to = MakeSide(c, c.dstMemoryType, c.dstHost, c.dstDevice, c.dstPitch, c.dstHeight,
                           c.dstXInBytes, c.dstY, c.dstZ);
  const Side from = MakeSide(c, c.srcMemoryType, c.srcHost, c.srcDevice, c.srcPitch, c.srcHeight,
                             c.srcXInBytes, c.srcY, c.srcZ);
  // Rows that overlap are the driver's to refuse.
  if (to.pitch < c.WidthInBytes || from.pitch < c.WidthInBytes) return issue();
  const bool to_linear = to.type != CU_MEMORYTYPE_ARRAY;
  const bool from_linear = from.type != CU_MEMORYTYPE_ARRAY;
  const Place to_place = to_linear ? engine->Locate(to.address, to.Extent(c)) : Place::kElsewhere;
  const Place from_place =
      from_linear ? engine->Locate(from.address, from.Extent(c)) : Place::kElsewhere;
  if (to_place == Place::kBeyond || from_place == Place::kBeyond) return CUDA_ERROR_INVALID_VALUE;
  const bool to_pool = to_place == Place::kInside, from_pool = from_place == Place::kInside;
  if (!from_pool && from_linear) {
    const MemoryKind kind = KindOf(from.address);
    if (kind != MemoryKind::kDevice) {
      for (size_t z = 0; z < c.Depth; ++z) {
        for (size_t y = 0; y < c.Height; ++y) {
          const auto* row =
              reinterpret_cast<const void*>(from.address + z * from.slice + y * from.pitch);
          if (CUresult r = LookAtSource(engine, row, c.WidthInBytes, kind, form);
              r != CUDA_SUCCESS) {
            return r;
          }
        }
      }
    }
  }
  if (!to_pool && !from_pool) return issue();
  OpRequest request;
  request.name = name;
  request.stream = {stream, per_thread};
  request.kind = to_pool ? (from_pool ? OpKind::kCopy : OpKind::kUpload) : OpKind::kDownload;
  request.blocking = !(to_pool && from_pool);
  // Which bytes of the buffer the rows cover is not worked out: it updates.
  if (from_pool) {
    request.regions.push_back({from.address, from.Extent(c), AccessMode::kRead, false});
  }
  if (to_pool) request.regions.push_back({to.address, to.Extent(c), AccessMode::kWrite, false});
  if (to_pool && from_pool) {
    request.cost_key = (c.WidthInBytes * c.Height * c.Depth) << 8 | 7;
    request.replay = std::make_shared<BoxReplay>(c);
  } else {
    request.no_replay_reason = "a copy of rows from or to the outside";
  }
  return engine->Run(request, issue);
}

CUresult Copy2D(const char* name, const CUDA_MEMCPY2D* c, CUstream stream, bool per_thread,
                Form form, absl::FunctionRef<CUresult()> issue) {
  if (c == nullptr) return issue();
  CUDA_MEMCPY3D box = {};
  box.srcXInBytes = c->srcXInBytes;
  box.srcY = c->srcY;
  box.srcMemoryType = c->srcMemoryType;
  box.srcHost = c->srcHost;
  box.srcDevice = c->srcDevice;
  box.srcArray = c->srcArray;
  box.srcPitch = c->srcPitch;
  box.dstXInBytes = c->dstXInBytes;
  box.dstY = c->dstY;
  box.dstMemoryType = c->dstMemoryType;
  box.dstHost = c->dstHost;
  box.dstDevice = c->dstDevice;
  box.dstArray = c->dstArray;
  box.dstPitch = c->dstPitch;
  box.WidthInBytes = c->WidthInBytes;
  box.Height = c->Height;
  box.Depth = 1;
  return CopyBox(name, box, stream, per_thread, form, issue);
}

CUresult Copy3D(const char* name, const CUDA_MEMCPY3D* c, CUstream stream, bool per_thread,
                Form form, absl::FunctionRef<CUresult()> issue) {
  return c == nullptr ? issue() : CopyBox(name, *c, stream, per_thread, form, issue);
}

// Both sides may be of the one context that is managed; where they are not, Locate says so.
CUresult Copy3DPeer(const char* name, const CUDA_MEMCPY3D_PEER* c, CUstream stream, bool per_thread,
                    Form form, absl::FunctionRef<CUresult()> issue) {
  if (c == nullptr) return issue();
  CUDA_MEMCPY3D box = {};
  box.srcXInBytes = c->srcXInBytes;
  box.srcY = c->srcY;
  box.srcZ = c->srcZ;
  box.srcMemoryType = c->srcMemoryType;
  box.srcHost = c->srcHost;
  box.srcDevice = c->srcDevice;
  box.srcArray = c->srcArray;
  box.srcPitch = c->srcPitch;
  box.srcHeight = c->srcHeight;
  box.dstXInBytes = c->dstXInBytes;
  box.dstY = c->dstY;
  box.dstZ = c->dstZ;
  box.dstMemoryType = c->dstMemoryType;
  box.dstHost = c->dstHost;
  box.dstDevice = c->dstDevice;
  box.dstArray = c->dstArray;
  box.dstPitch = c->dstPitch;
  box.dstHeight = c->dstHeight;
  box.WidthInBytes = c->WidthInBytes;
  box.Height = c->Height;
  box.Depth = c->Depth;
  return CopyBox(name, box, stream, per_thread, form, issue);
}

// Several contiguous copies in one call, in any order among themselves.
CUresult CopyBatch(const char* name, const CUdeviceptr* to, const CUdeviceptr* from,
                   const size_t* sizes, size_t count, CUstream stream, bool per_thread,
                   absl::FunctionRef<CUresult()> issue) {
  Engine* engine = ActiveEngine();
  if (engine == nullptr || to == nullptr || from == nullptr || sizes == nullptr) return issue();
  if (Capturing(stream, per_thread)) {
    for (size_t i = 0; i < count; ++i) {
      if (CUresult r = PinForGraph(engine, to[i], from[i]); r != CUDA_SUCCESS) return r;
    }
    return issue();
  }
  OpRequest request;
  request.name = name;
  request.stream = {stream, per_thread};
  request.blocking = true;
  request.no_replay_reason = "a batch of copies";
  for (size_t i = 0; i < count; ++i) {
    const Place to_place = engine->Locate(to[i], sizes[i]);
    const Place from_place = engine->Locate(from[i], sizes[i]);
    if (to_place == Place::kBeyond || from_place == Place::kBeyond) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (to_place == Place::kInside) {
      request.regions.push_back({to[i], sizes[i], AccessMode::kWrite, false});
    }
    if (from_place == Place::kInside) {
      request.regions.push_back({from[i], sizes[i], AccessMode::kRead, false});
      continue;
    }
    const MemoryKind kind = KindOf(from[i]);
    if (kind == MemoryKind::kDevice) continue;
    // Its source may be read at any time in stream order, or later: attributes decide.
    HostMemory::Get().OnUnseenPointers();
    if (CUresult r = LookAtSource(engine, reinterpret_cast<const void*>(from[i]), sizes[i], kind,
                                  Form::kAsync);
        r != CUDA_SUCCESS) {
      return r;
    }
  }
  return engine->Run(request, issue);
}

}  // namespace
}  // namespace tidepool

using namespace tidepool;

TIDEPOOL_HOOKS(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr d, const void* h, size_t n),
               return Copy("cuMemcpyHtoD", d, Address(h), n, nullptr, kPerThread, Form::kSync,
                           [&] { return real(d, h, n); });)
TIDEPOOL_HOOKS(cuMemcpyDtoH_v2, _ptds, (void* h, CUdeviceptr d, size_t n),
               return Copy("cuMemcpyDtoH", Address(h), d, n, nullptr, kPerThread, Form::kSync,
                           [&] { return real(h, d, n); });)
TIDEPOOL_HOOKS(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr d, CUdeviceptr f, size_t n),
               return Copy("cuMemcpyDtoD", d, f, n, nullptr, kPerThread, Form::kAsync,
                           [&] { return real(d, f, n); });)
TIDEPOOL_HOOKS(cuMemcpy, _ptds, (CUdeviceptr d, CUdeviceptr f, size_t n),
               return Copy("cuMemcpy", d, f, n, nullptr, kPerThread, Form::kSync,
                           [&] { return real(d, f, n); });)
TIDEPOOL_HOOKS(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr d, const void* h, size_t n, CUstream s),
               return Copy("cuMemcpyHtoDAsync", d, Address(h), n, s, kPerThread, Form::kAsync,
                           [&] { return real(d, h, n, s); });)
TIDEPOOL_HOOKS(cuMemcpyDtoHAsync_v2, _ptsz, (void* h, CUdeviceptr d, size_t n, CUstream s),
               return Copy("cuMemcpyDtoHAsync", Address(h), d, n, s, kPerThread, Form::kSync,
                           [&] { return real(h, d, n, s); });)
TIDEPOOL_HOOKS(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream s),
               return Copy("cuMemcpyDtoDAsync", d, f, n, s, kPerThread, Form::kAsync,
                           [&] { return real(d, f, n, s); });)
TIDEPOOL_HOOKS(cuMemcpyAsync, _ptsz, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream s),
               return Copy("cuMemcpyAsync", d, f, n, s, kPerThread, Form::kAsync,
                           [&] { return real(d, f, n, s); });)
TIDEPOOL_HOOKS(cuMemcpyPeer, _ptds,
               (CUdeviceptr d, CUcontext dc, CUdeviceptr f, CUcontext fc, size_t n),
               return Copy("cuMemcpyPeer", d, f, n, nullptr, kPerThread, Form::kAsync,
                           [&] { return real(d, dc, f, fc, n); });)
TIDEPOOL_HOOKS(cuMemcpyPeerAsync, _ptsz,
               (CUdeviceptr d, CUcontext dc, CUdeviceptr f, CUcontext fc, size_t n, CUstream s),
               return Copy("cuMemcpyPeerAsync", d, f, n, s, kPerThread, Form::kAsync,
                           [&] { return real(d, dc, f, fc, n, s); });)
TIDEPOOL_HOOKS(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* c),
               return Copy2D("cuMemcpy2D", c, nullptr, kPerThread, Form::kSync,
                             [&] { return real(c); });)
TIDEPOOL_HOOKS(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* c),
               return Copy2D("cuMemcpy2D", c, nullptr, kPerThread, Form::kSync,
                             [&] { return real(c); });)
TIDEPOOL_HOOKS(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* c, CUstream s),
               return Copy2D("cuMemcpy2DAsync", c, s, kPerThread, Form::kAsync,
                             [&] { return real(c, s); });)
TIDEPOOL_HOOKS(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D* c),
               return Copy3D("cuMemcpy3D", c, nullptr, kPerThread, Form::kSync,
                             [&] { return real(c); });)
TIDEPOOL_HOOKS(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D* c, CUstream s),
               return Copy3D("cuMemcpy3DAsync", c, s, kPerThread, Form::kAsync,
                             [&] { return real(c, s); });)
TIDEPOOL_HOOKS(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER* c),
               return Copy3DPeer("cuMemcpy3DPeer", c, nullptr, kPerThread, Form::kSync,
                                 [&] { return real(c); });)
TIDEPOOL_HOOKS(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER* c, CUstream s),
               return Copy3DPeer("cuMemcpy3DPeerAsync", c, s, kPerThread, Form::kAsync,
                                 [&] { return real(c, s); });)
TIDEPOOL_HOOKS(cuMemcpyBatchAsync_v2, _ptsz,
               (CUdeviceptr * d, CUdeviceptr* f, size_t* n, size_t count, CUmemcpyAttributes* a,
                size_t* ai, size_t an, CUstream s),
               return CopyBatch("cuMemcpyBatchAsync", d, f, n, count, s, kPerThread,
                                [&] { return real(d, f, n, count, a, ai, an, s); });)
