// Copies and memsets, in every direction and shape that needs no arrays.
#include <cstring>
#include <memory>
#include <vector>

#include "tools/simgpu/driver/api.h"
#include "tools/simgpu/driver/capture.h"

using namespace simgpu;

namespace {

// What a call says of an address: memory of the device, of the host, or either.
enum class Side : uint8_t { kDevice, kHost, kEither };

struct Shape {  // rows of `width` bytes
  uint64_t to = 0, from = 0;
  uint64_t width = 0, height = 1, depth = 1;
  uint64_t to_pitch = 0, from_pitch = 0, to_slice = 0, from_slice = 0;
  Side to_side = Side::kEither, from_side = Side::kEither;
  uint64_t bytes() const { return width * height * depth; }
};

// All that lies between the first and the last byte of a box.
uint64_t Extent(uint64_t width, uint64_t height, uint64_t depth, uint64_t pitch, uint64_t slice) {
  return width + (height - 1) * pitch + (depth - 1) * slice;
}

// Device addresses are checked when the call is made, as the documentation of the copies has it: an
// invalid one is the call's error and does the context no harm.
bool IsValid(Side side, uint64_t address, uint64_t extent) {
  DeviceMemory& memory = DeviceMemory::Get();
  if (side == Side::kDevice) return memory.IsReachable(address, extent);
  return address != 0 && (!memory.InWindow(address) || memory.IsReachable(address, extent));
}

enum class Direction { kToDevice, kToHost, kOnDevice, kOnHost };

bool IsDevice(uint64_t address) {
  return DeviceMemory::Get().InWindow(address) && !DeviceMemory::Get().IsPinnedHost(address);
}

OpOutcome RunCopy(const Shape& s, Direction direction, const std::vector<uint8_t>* staged) {
  OpOutcome outcome;
  const DeviceModel& model = GetDeviceModel();
  for (uint64_t z = 0; z < s.depth; ++z) {
    for (uint64_t y = 0; y < s.height; ++y) {
      void* to = reinterpret_cast<void*>(s.to + z * s.to_slice + y * s.to_pitch);
      const void* from =
          staged != nullptr
              ? static_cast<const void*>(staged->data() + (z * s.height + y) * s.width)
              : reinterpret_cast<const void*>(s.from + z * s.from_slice + y * s.from_pitch);
      if (!SafeCopy(to, from, s.width)) {
        outcome.error = CUDA_ERROR_ILLEGAL_ADDRESS;
        outcome.message = "a copy met an address without memory";
        return outcome;
      }
    }
  }
  const double rate =
      direction == Direction::kOnDevice ? model.memory_bytes_per_ns / 2 : model.link_bytes_per_ns;
  outcome.duration_ns =
      model.copy_ns + static_cast<uint64_t>(static_cast<double>(s.bytes()) / rate);
  return outcome;
}

Direction DirectionOf(const Shape& shape) {
  const bool to_device = IsDevice(shape.to), from_device = IsDevice(shape.from);
  return to_device && from_device ? Direction::kOnDevice
         : to_device              ? Direction::kToDevice
         : from_device            ? Direction::kToHost
                                  : Direction::kOnHost;
}
Engine EngineOf(Direction direction) {
  return direction == Direction::kToDevice ? Engine::kCopyIn
         : direction == Direction::kToHost ? Engine::kCopyOut
                                           : Engine::kCompute;
}

// The same as a node's parameters.
CUDA_MEMCPY3D BoxOf(const Shape& s) {
  auto type = [](Side side) {
    return side == Side::kHost     ? CU_MEMORYTYPE_HOST
           : side == Side::kDevice ? CU_MEMORYTYPE_DEVICE
                                   : CU_MEMORYTYPE_UNIFIED;
  };
  CUDA_MEMCPY3D box = {};
  box.srcMemoryType = type(s.from_side);
  box.dstMemoryType = type(s.to_side);
  if (s.from_side == Side::kHost) {
    box.srcHost = reinterpret_cast<const void*>(s.from);
  } else {
    box.srcDevice = s.from;
  }
  if (s.to_side == Side::kHost) {
    box.dstHost = reinterpret_cast<void*>(s.to);
  } else {
    box.dstDevice = s.to;
  }
  box.srcPitch = s.from_pitch != 0 ? s.from_pitch : s.width;
  box.dstPitch = s.to_pitch != 0 ? s.to_pitch : s.width;
  box.srcHeight = s.from_slice != 0 ? s.from_slice / box.srcPitch : s.height;
  box.dstHeight = s.to_slice != 0 ? s.to_slice / box.dstPitch : s.height;
  box.WidthInBytes = s.width;
  box.Height = s.height;
  box.Depth = s.depth;
  return box;
}

bool IsValid(const Shape& s) {
  return IsValid(s.to_side, s.to, Extent(s.width, s.height, s.depth, s.to_pitch, s.to_slice)) &&
         IsValid(s.from_side, s.from,
                 Extent(s.width, s.height, s.depth, s.from_pitch, s.from_slice));
}

// `wait`: the call returns when the copy is done (or, between device addresses, when it is issued).
CUresult Copy(const Shape& shape, CUstream handle, bool per_thread, bool wait) {
  SIMGPU_ENTER(GetDeviceModel().call_launch_ns);
  if (shape.bytes() == 0) return CUDA_SUCCESS;
  if (!IsValid(shape)) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_STREAM(stream, handle, per_thread);
  if (wait) {
    if (CUresult r = Forbidden(stream); r != CUDA_SUCCESS) return r;
  }
  CUresult captured;
  if (AddToCapture(
          stream,
          [&](GraphNode& node) {
            node.type = CU_GRAPH_NODE_TYPE_MEMCPY;
            node.copy = BoxOf(shape);
          },
          &captured)) {
    return captured;
  }
  const Direction direction = DirectionOf(shape);
  std::shared_ptr<std::vector<uint8_t>> staged;
  DeviceMemory& memory = DeviceMemory::Get();
  if (direction == Direction::kToDevice && !memory.IsPinnedHost(shape.from) && !wait) {
    // Pageable memory: the source may be reused when the call returns.
    staged = std::make_shared<std::vector<uint8_t>>(shape.bytes());
    for (uint64_t z = 0; z < shape.depth; ++z) {
      for (uint64_t y = 0; y < shape.height; ++y) {
        std::memcpy(
            staged->data() + (z * shape.height + y) * shape.width,
            reinterpret_cast<const void*>(shape.from + z * shape.from_slice + y * shape.from_pitch),
            shape.width);
      }
    }
  }
  if (direction == Direction::kToHost && !memory.IsPinnedHost(shape.to)) wait = true;
  if (direction == Direction::kOnDevice) wait = false;
  std::shared_ptr<Op> op = Scheduler::Get().Enqueue(
      stream, EngineOf(direction),
      [shape, direction, staged] { return RunCopy(shape, direction, staged.get()); });
  if (!wait) return CUDA_SUCCESS;
  Scheduler::Get().Wait(op);
  return Scheduler::Get().error();
}

Shape Line(uint64_t to, Side to_side, uint64_t from, Side from_side, uint64_t bytes) {
  Shape s;
  s.to_side = to_side;
  s.from_side = from_side;
  s.to = to;
  s.from = from;
  s.width = bytes;
  return s;
}
Side SideOf(CUmemorytype type) {
  return type == CU_MEMORYTYPE_HOST     ? Side::kHost
         : type == CU_MEMORYTYPE_DEVICE ? Side::kDevice
                                        : Side::kEither;
}
uint64_t Address(const void* at) { return reinterpret_cast<uint64_t>(at); }

CUresult Shape2D(const CUDA_MEMCPY2D* c, Shape* s) {
  if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto base = [](CUmemorytype type, const void* host, CUdeviceptr device, uint64_t* out) {
    if (type == CU_MEMORYTYPE_HOST) {
      *out = Address(host);
    } else if (type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED) {
      *out = device;
    } else {
      return false;
    }
    return true;
  };
  if (!base(c->dstMemoryType, c->dstHost, c->dstDevice, &s->to) ||
      !base(c->srcMemoryType, c->srcHost, c->srcDevice, &s->from)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  s->to_side = SideOf(c->dstMemoryType);
  s->from_side = SideOf(c->srcMemoryType);
  s->to_pitch = c->dstPitch != 0 ? c->dstPitch : c->WidthInBytes;
  s->from_pitch = c->srcPitch != 0 ? c->srcPitch : c->WidthInBytes;
  if (s->to_pitch < c->WidthInBytes || s->from_pitch < c->WidthInBytes)
    return CUDA_ERROR_INVALID_VALUE;
  s->to += c->dstY * s->to_pitch + c->dstXInBytes;
  s->from += c->srcY * s->from_pitch + c->srcXInBytes;
  s->width = c->WidthInBytes;
  s->height = c->Height;
  return CUDA_SUCCESS;
}

CUresult Shape3D(const CUDA_MEMCPY3D* c, Shape* s) {
  if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY || c->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  s->to_side = SideOf(c->dstMemoryType);
  s->from_side = SideOf(c->srcMemoryType);
  s->to = c->dstMemoryType == CU_MEMORYTYPE_HOST ? Address(c->dstHost) : c->dstDevice;
  s->from = c->srcMemoryType == CU_MEMORYTYPE_HOST ? Address(c->srcHost) : c->srcDevice;
  s->to_pitch = c->dstPitch != 0 ? c->dstPitch : c->WidthInBytes;
  s->from_pitch = c->srcPitch != 0 ? c->srcPitch : c->WidthInBytes;
  s->to_slice = s->to_pitch * (c->dstHeight != 0 ? c->dstHeight : c->Height);
  s->from_slice = s->from_pitch * (c->srcHeight != 0 ? c->srcHeight : c->Height);
  s->to += c->dstZ * s->to_slice + c->dstY * s->to_pitch + c->dstXInBytes;
  s->from += c->srcZ * s->from_slice + c->srcY * s->from_pitch + c->srcXInBytes;
  s->width = c->WidthInBytes;
  s->height = c->Height;
  s->depth = c->Depth;
  return CUDA_SUCCESS;
}

OpOutcome RunFill(const CUDA_MEMSET_NODE_PARAMS& p) {
  OpOutcome outcome;
  for (uint64_t y = 0; y < p.height; ++y) {
    if (!SafeFill(reinterpret_cast<void*>(p.dst + y * p.pitch), p.value, p.elementSize, p.width)) {
      outcome.error = CUDA_ERROR_ILLEGAL_ADDRESS;
      outcome.message = "a memset met an address without memory";
      return outcome;
    }
  }
  const DeviceModel& model = GetDeviceModel();
  outcome.duration_ns =
      model.copy_ns +
      static_cast<uint64_t>(static_cast<double>(p.width * p.height * p.elementSize) /
                            model.memory_bytes_per_ns);
  return outcome;
}

CUresult Fill(uint64_t address, uint64_t pitch, uint32_t pattern, uint32_t size, uint64_t width,
              uint64_t height, CUstream handle, bool per_thread) {
  SIMGPU_ENTER(GetDeviceModel().call_launch_ns);
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  const CUDA_MEMSET_NODE_PARAMS fill = {address, pitch, pattern, size, width, height};
  Work work;
  if (CUresult r = WorkOf(fill, &work); r != CUDA_SUCCESS) return r;
  SIMGPU_STREAM(stream, handle, per_thread);
  CUresult captured;
  if (AddToCapture(
          stream,
          [&](GraphNode& node) {
            node.type = CU_GRAPH_NODE_TYPE_MEMSET;
            node.fill = fill;
          },
          &captured)) {
    return captured;
  }
  Scheduler::Get().Enqueue(stream, work.engine, std::move(work.run));
  return CUDA_SUCCESS;
}

}  // namespace

namespace simgpu {

CUresult WorkOf(const CUDA_MEMCPY3D& box, Work* work) {
  Shape shape;
  if (CUresult r = Shape3D(&box, &shape); r != CUDA_SUCCESS) return r;
  if (shape.bytes() == 0) {
    *work = {};
    return CUDA_SUCCESS;
  }
  if (!IsValid(shape)) return CUDA_ERROR_INVALID_VALUE;
  const Direction direction = DirectionOf(shape);
  *work = {EngineOf(direction), [shape, direction] { return RunCopy(shape, direction, nullptr); },
           false};
  return CUDA_SUCCESS;
}

CUresult WorkOf(const CUDA_MEMSET_NODE_PARAMS& fill, Work* work) {
  if ((fill.elementSize != 1 && fill.elementSize != 2 && fill.elementSize != 4) ||
      fill.dst % fill.elementSize != 0 || fill.width == 0 || fill.height == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!IsValid(Side::kDevice, fill.dst,
               Extent(fill.width * fill.elementSize, fill.height, 1, fill.pitch, 0))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *work = {Engine::kCompute, [fill] { return RunFill(fill); }, false};
  return CUDA_SUCCESS;
}

}  // namespace simgpu

#define COPY_PAIR(symbol, params, to, to_side, from, from_side)                         \
  template <bool kPt>                                                                   \
  static CUresult Impl_##symbol params {                                                \
    return Copy(Line(to, Side::to_side, from, Side::from_side, n), nullptr, kPt, true); \
  }
#define COPY_ASYNC(symbol, params, to, to_side, from, from_side)                   \
  template <bool kPt>                                                              \
  static CUresult Impl_##symbol params {                                           \
    return Copy(Line(to, Side::to_side, from, Side::from_side, n), s, kPt, false); \
  }

COPY_PAIR(cuMemcpyHtoD_v2, (CUdeviceptr d, const void* h, size_t n), d, kDevice, Address(h), kHost)
SIMGPU_TWO_FORMS(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr d, const void* h, size_t n), (d, h, n))
COPY_PAIR(cuMemcpyDtoH_v2, (void* h, CUdeviceptr d, size_t n), Address(h), kHost, d, kDevice)
SIMGPU_TWO_FORMS(cuMemcpyDtoH_v2, _ptds, (void* h, CUdeviceptr d, size_t n), (h, d, n))
COPY_PAIR(cuMemcpyDtoD_v2, (CUdeviceptr d, CUdeviceptr f, size_t n), d, kDevice, f, kDevice)
SIMGPU_TWO_FORMS(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr d, CUdeviceptr f, size_t n), (d, f, n))
COPY_PAIR(cuMemcpy, (CUdeviceptr d, CUdeviceptr f, size_t n), d, kEither, f, kEither)
SIMGPU_TWO_FORMS(cuMemcpy, _ptds, (CUdeviceptr d, CUdeviceptr f, size_t n), (d, f, n))
COPY_ASYNC(cuMemcpyHtoDAsync_v2, (CUdeviceptr d, const void* h, size_t n, CUstream s), d, kDevice,
           Address(h), kHost)
SIMGPU_TWO_FORMS(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr d, const void* h, size_t n, CUstream s),
                 (d, h, n, s))
COPY_ASYNC(cuMemcpyDtoHAsync_v2, (void* h, CUdeviceptr d, size_t n, CUstream s), Address(h), kHost,
           d, kDevice)
SIMGPU_TWO_FORMS(cuMemcpyDtoHAsync_v2, _ptsz, (void* h, CUdeviceptr d, size_t n, CUstream s),
                 (h, d, n, s))
COPY_ASYNC(cuMemcpyDtoDAsync_v2, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream s), d, kDevice,
           f, kDevice)
SIMGPU_TWO_FORMS(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream s),
                 (d, f, n, s))
COPY_ASYNC(cuMemcpyAsync, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream s), d, kEither, f,
           kEither)
SIMGPU_TWO_FORMS(cuMemcpyAsync, _ptsz, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream s),
                 (d, f, n, s))

template <bool kPt>
static CUresult Impl_cuMemcpy2D_v2(const CUDA_MEMCPY2D* c) {
  Shape s;
  if (CUresult r = Shape2D(c, &s); r != CUDA_SUCCESS) return r;
  return Copy(s, nullptr, kPt, true);
}
SIMGPU_TWO_FORMS(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* c), (c))
template <bool kPt>
static CUresult Impl_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* c) {
  return Impl_cuMemcpy2D_v2<kPt>(c);
}
SIMGPU_TWO_FORMS(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* c), (c))
template <bool kPt>
static CUresult Impl_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* c, CUstream h) {
  Shape s;
  if (CUresult r = Shape2D(c, &s); r != CUDA_SUCCESS) return r;
  return Copy(s, h, kPt, false);
}
SIMGPU_TWO_FORMS(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* c, CUstream h), (c, h))
template <bool kPt>
static CUresult Impl_cuMemcpy3D_v2(const CUDA_MEMCPY3D* c) {
  Shape s;
  if (CUresult r = Shape3D(c, &s); r != CUDA_SUCCESS) return r;
  return Copy(s, nullptr, kPt, true);
}
SIMGPU_TWO_FORMS(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D* c), (c))
template <bool kPt>
static CUresult Impl_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* c, CUstream h) {
  Shape s;
  if (CUresult r = Shape3D(c, &s); r != CUDA_SUCCESS) return r;
  return Copy(s, h, kPt, false);
}
SIMGPU_TWO_FORMS(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D* c, CUstream h), (c, h))

// Between contexts of the one device: copies as any other.
template <bool kPt>
static CUresult Impl_cuMemcpyPeer(CUdeviceptr d, CUcontext, CUdeviceptr f, CUcontext, size_t n) {
  return Copy(Line(d, Side::kDevice, f, Side::kDevice, n), nullptr, kPt, true);
}
SIMGPU_TWO_FORMS(cuMemcpyPeer, _ptds,
                 (CUdeviceptr d, CUcontext dc, CUdeviceptr f, CUcontext fc, size_t n),
                 (d, dc, f, fc, n))
template <bool kPt>
static CUresult Impl_cuMemcpyPeerAsync(CUdeviceptr d, CUcontext, CUdeviceptr f, CUcontext, size_t n,
                                       CUstream s) {
  return Copy(Line(d, Side::kDevice, f, Side::kDevice, n), s, kPt, false);
}
SIMGPU_TWO_FORMS(cuMemcpyPeerAsync, _ptsz,
                 (CUdeviceptr d, CUcontext dc, CUdeviceptr f, CUcontext fc, size_t n, CUstream s),
                 (d, dc, f, fc, n, s))

// Whatever the attributes allow, sources are read in the order of the stream (of pageable memory,
// before the call returns).
template <bool kPt>
static CUresult Impl_cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes,
                                           size_t count, CUmemcpyAttributes* attributes,
                                           size_t* indices, size_t attribute_count, CUstream s) {
  if (to == nullptr || from == nullptr || sizes == nullptr || count == 0 || attributes == nullptr ||
      indices == nullptr || attribute_count == 0 || attribute_count > count || indices[0] != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) {
    CUresult r = Copy(Line(to[i], Side::kEither, from[i], Side::kEither, sizes[i]), s, kPt, false);
    if (r != CUDA_SUCCESS) return r;
  }
  return CUDA_SUCCESS;
}
SIMGPU_TWO_FORMS(cuMemcpyBatchAsync_v2, _ptsz,
                 (CUdeviceptr * to, CUdeviceptr* from, size_t* sizes, size_t count,
                  CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                  CUstream s),
                 (to, from, sizes, count, attributes, indices, attribute_count, s))

#define FILL(bits, type, size)                                                               \
  template <bool kPt>                                                                        \
  static CUresult Impl_cuMemsetD##bits##_v2(CUdeviceptr d, type v, size_t n) {               \
    return Fill(d, 0, v, size, n, 1, nullptr, kPt);                                          \
  }                                                                                          \
  template <bool kPt>                                                                        \
  static CUresult Impl_cuMemsetD##bits##Async(CUdeviceptr d, type v, size_t n, CUstream s) { \
    return Fill(d, 0, v, size, n, 1, s, kPt);                                                \
  }                                                                                          \
  template <bool kPt>                                                                        \
  static CUresult Impl_cuMemsetD2D##bits##_v2(CUdeviceptr d, size_t p, type v, size_t w,     \
                                              size_t h) {                                    \
    return Fill(d, p, v, size, w, h, nullptr, kPt);                                          \
  }                                                                                          \
  template <bool kPt>                                                                        \
  static CUresult Impl_cuMemsetD2D##bits##Async(CUdeviceptr d, size_t p, type v, size_t w,   \
                                                size_t h, CUstream s) {                      \
    return Fill(d, p, v, size, w, h, s, kPt);                                                \
  }
FILL(8, unsigned char, 1)
FILL(16, unsigned short, 2)
FILL(32, unsigned int, 4)
SIMGPU_TWO_FORMS(cuMemsetD8_v2, _ptds, (CUdeviceptr d, unsigned char v, size_t n), (d, v, n))
SIMGPU_TWO_FORMS(cuMemsetD16_v2, _ptds, (CUdeviceptr d, unsigned short v, size_t n), (d, v, n))
SIMGPU_TWO_FORMS(cuMemsetD32_v2, _ptds, (CUdeviceptr d, unsigned int v, size_t n), (d, v, n))
SIMGPU_TWO_FORMS(cuMemsetD8Async, _ptsz, (CUdeviceptr d, unsigned char v, size_t n, CUstream s),
                 (d, v, n, s))
SIMGPU_TWO_FORMS(cuMemsetD16Async, _ptsz, (CUdeviceptr d, unsigned short v, size_t n, CUstream s),
                 (d, v, n, s))
SIMGPU_TWO_FORMS(cuMemsetD32Async, _ptsz, (CUdeviceptr d, unsigned int v, size_t n, CUstream s),
                 (d, v, n, s))
SIMGPU_TWO_FORMS(cuMemsetD2D8_v2, _ptds,
                 (CUdeviceptr d, size_t p, unsigned char v, size_t w, size_t h), (d, p, v, w, h))
SIMGPU_TWO_FORMS(cuMemsetD2D16_v2, _ptds,
                 (CUdeviceptr d, size_t p, unsigned short v, size_t w, size_t h), (d, p, v, w, h))
SIMGPU_TWO_FORMS(cuMemsetD2D32_v2, _ptds,
                 (CUdeviceptr d, size_t p, unsigned int v, size_t w, size_t h), (d, p, v, w, h))
SIMGPU_TWO_FORMS(cuMemsetD2D8Async, _ptsz,
                 (CUdeviceptr d, size_t p, unsigned char v, size_t w, size_t h, CUstream s),
                 (d, p, v, w, h, s))
SIMGPU_TWO_FORMS(cuMemsetD2D16Async, _ptsz,
                 (CUdeviceptr d, size_t p, unsigned short v, size_t w, size_t h, CUstream s),
                 (d, p, v, w, h, s))
SIMGPU_TWO_FORMS(cuMemsetD2D32Async, _ptsz,
                 (CUdeviceptr d, size_t p, unsigned int v, size_t w, size_t h, CUstream s),
                 (d, p, v, w, h, s))
