// Hooks of allocation, copies, memsets and questions about memory.
#include <cstring>
#include <vector>

#include "runtime/intercept/hook.h"

namespace tidepool {
namespace {

class MemsetReplay final : public Replay {
 public:
  MemsetReplay(CUdeviceptr address, size_t pitch, unsigned value, unsigned bytes, size_t width,
               size_t height)
      : address_(address),
        pitch_(pitch),
        value_(value),
        bytes_(bytes),
        width_(width),
        height_(height) {}
  CUresult Issue(CUstream s) const override {
    const DriverApi& api = GetDriverApi();
    const auto byte = static_cast<unsigned char>(value_);
    const auto half = static_cast<unsigned short>(value_);
    if (height_ <= 1) {
      return bytes_ == 1   ? api.MemsetD8Async(address_, byte, width_, s)
             : bytes_ == 2 ? api.MemsetD16Async(address_, half, width_, s)
                           : api.MemsetD32Async(address_, value_, width_, s);
    }
    return bytes_ == 1   ? api.MemsetD2D8Async(address_, pitch_, byte, width_, height_, s)
           : bytes_ == 2 ? api.MemsetD2D16Async(address_, pitch_, half, width_, height_, s)
                         : api.MemsetD2D32Async(address_, pitch_, value_, width_, height_, s);
  }
  uint64_t footprint() const override { return sizeof(*this); }

 private:
  CUdeviceptr address_;
  size_t pitch_;
  unsigned value_, bytes_;
  size_t width_, height_;
};

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

CUdeviceptr Address(const void* at) { return reinterpret_cast<CUdeviceptr>(at); }

// One contiguous copy; either side may be in the pool, on the host, or memory of the driver's.
CUresult Copy(const char* name, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream,
              bool per_thread, bool blocking, absl::FunctionRef<CUresult()> issue) {
  Engine* engine = ActiveEngine();
  if (engine == nullptr || bytes == 0) return issue();
  const bool to_pool = engine->InPool(to), from_pool = engine->InPool(from);
  if (!to_pool && !from_pool) return issue();
  OpRequest request;
  request.name = name;
  request.stream = {stream, per_thread};
  if (from_pool) request.regions.push_back({from, bytes, AccessMode::kRead, false});
  if (to_pool) request.regions.push_back({to, bytes, AccessMode::kWrite, true});
  if (to_pool && from_pool) {
    request.kind = OpKind::kCopy;
    request.cost_key = (bytes << 8) | 3;
    request.replay = std::make_shared<CopyReplay>(to, from, bytes);
  } else if (to_pool) {
    request.kind = OpKind::kUpload;
    request.blocking = blocking;
    request.no_replay_reason = "uploaded from the host";
    if (CUresult r = engine->PinPointersIn(reinterpret_cast<const void*>(from), bytes);
        r != CUDA_SUCCESS) {
      return r;
    }
  } else {
    request.kind = OpKind::kDownload;
    request.blocking = blocking;
  }
  return engine->Run(request, issue);
}

// A copy of rows: which bytes of a buffer it covers is not worked out, so it updates.
CUresult CopyRows(const char* name, bool to_device, CUdeviceptr to, bool from_device,
                  CUdeviceptr from, const void* from_host, size_t host_pitch, size_t width,
                  size_t rows, CUstream stream, bool per_thread, bool blocking,
                  absl::FunctionRef<CUresult()> issue) {
  Engine* engine = ActiveEngine();
  if (engine == nullptr) return issue();
  OpRequest request;
  request.name = name;
  request.stream = {stream, per_thread};
  request.no_replay_reason = "a copy of rows";
  request.kind = to_device ? (from_device ? OpKind::kOther : OpKind::kUpload) : OpKind::kDownload;
  request.blocking = blocking && !(to_device && from_device);
  if (from_device && engine->InPool(from)) {
    request.regions.push_back({from, 0, AccessMode::kRead, false});
  }
  if (to_device && engine->InPool(to))
    request.regions.push_back({to, 0, AccessMode::kWrite, false});
  if (request.regions.empty()) return issue();
  if (to_device && !from_device && from_host != nullptr) {
    for (size_t row = 0; row < rows; ++row) {
      const char* at = static_cast<const char*>(from_host) + row * host_pitch;
      if (CUresult r = engine->PinPointersIn(at, width); r != CUDA_SUCCESS) return r;
    }
  }
  return engine->Run(request, issue);
}

CUresult Copy2D(const char* name, const CUDA_MEMCPY2D* c, CUstream stream, bool per_thread,
                bool blocking, absl::FunctionRef<CUresult()> issue) {
  if (c == nullptr) return issue();
  auto unified = [](CUmemorytype type) { return type == CU_MEMORYTYPE_UNIFIED; };
  const bool to_device = c->dstMemoryType == CU_MEMORYTYPE_DEVICE || unified(c->dstMemoryType);
  const bool from_device = c->srcMemoryType == CU_MEMORYTYPE_DEVICE || unified(c->srcMemoryType);
  Engine* engine = ActiveEngine();
  const bool host_source =
      c->srcMemoryType == CU_MEMORYTYPE_HOST ||
      (unified(c->srcMemoryType) && engine != nullptr && !engine->InPool(c->srcDevice));
  const char* host = c->srcMemoryType == CU_MEMORYTYPE_HOST
                         ? static_cast<const char*>(c->srcHost)
                         : reinterpret_cast<const char*>(c->srcDevice);
  const size_t pitch = c->srcPitch != 0 ? c->srcPitch : c->WidthInBytes;
  if (host != nullptr) host += c->srcY * pitch + c->srcXInBytes;
  return CopyRows(name, to_device, c->dstDevice, from_device && !host_source, c->srcDevice,
                  host_source ? host : nullptr, pitch, c->WidthInBytes, c->Height, stream,
                  per_thread, blocking, issue);
}

CUresult Copy3D(const char* name, const CUDA_MEMCPY3D* c, CUstream stream, bool per_thread,
                bool blocking, absl::FunctionRef<CUresult()> issue) {
  if (c == nullptr) return issue();
  const bool host_source = c->srcMemoryType == CU_MEMORYTYPE_HOST;
  const bool to_device =
      c->dstMemoryType == CU_MEMORYTYPE_DEVICE || c->dstMemoryType == CU_MEMORYTYPE_UNIFIED;
  const size_t pitch = c->srcPitch != 0 ? c->srcPitch : c->WidthInBytes;
  const size_t rows = (c->srcHeight != 0 ? c->srcHeight : c->Height) * c->Depth;
  return CopyRows(name, to_device, c->dstDevice, !host_source, c->srcDevice,
                  host_source ? c->srcHost : nullptr, pitch, c->WidthInBytes, rows, stream,
                  per_thread, blocking, issue);
}

CUresult Fill(const char* name, CUdeviceptr at, size_t pitch, unsigned value, unsigned bytes,
              size_t width, size_t height, CUstream stream, bool per_thread,
              absl::FunctionRef<CUresult()> issue) {
  Engine* engine = ActiveEngine();
  if (engine == nullptr || !engine->InPool(at) || width == 0 || height == 0) return issue();
  OpRequest request;
  request.kind = OpKind::kMemset;
  request.name = name;
  request.stream = {stream, per_thread};
  const bool whole = height == 1 || pitch == width * bytes;
  request.regions.push_back({at, whole ? width * bytes * height : 0, AccessMode::kWrite, whole});
  request.replay = std::make_shared<MemsetReplay>(at, pitch, value, bytes, width, height);
  request.cost_key = (width * height * bytes) << 8 | 5;
  return engine->Run(request, issue);
}

CUresult Allocate(CUdeviceptr* out, size_t bytes, absl::FunctionRef<CUresult()> pass) {
  Engine* engine = EngineForAllocation();
  if (engine == nullptr) return pass();
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  return engine->Allocate(bytes, out);
}

}  // namespace
}  // namespace tidepool

using namespace tidepool;

TIDEPOOL_HOOK(cuMemAlloc_v2, (CUdeviceptr * out, size_t bytes),
              return Allocate(out, bytes, [&] { return real(out, bytes); });)
TIDEPOOL_HOOK(
    cuMemAllocPitch_v2,
    (CUdeviceptr * out, size_t* pitch, size_t width, size_t height, unsigned int element),
    if (pitch == nullptr || width == 0 || height == 0 ||
        (element != 4 && element != 8 && element != 16)) {
      return real(out, pitch, width, height, element);
    } const size_t rows = (width + 511) / 512 * 512;
    bool ours = true; CUresult result = Allocate(out, rows* height,
                                                 [&] {
                                                   ours = false;
                                                   return real(out, pitch, width, height, element);
                                                 });
    if (ours && result == CUDA_SUCCESS) * pitch = rows; return result;)
TIDEPOOL_HOOK(cuMemFree_v2, (CUdeviceptr at), Engine* engine = ActiveEngine(); BufferInfo info;
              if (engine == nullptr || !engine->Find(at, &info) ||
                  info.address != at) return real(at);
              // The driver's own free waits for the device, and programs rely on it.
              CUresult result = GetDriverApi().CtxSynchronize();
              if (result != CUDA_SUCCESS) return result;
              return engine->Free(at) ? CUDA_SUCCESS : real(at);)
TIDEPOOL_HOOKS(cuMemAllocAsync, _ptsz, (CUdeviceptr * out, size_t bytes, CUstream s),
               return Allocate(out, bytes, [&] { return real(out, bytes, s); });)
TIDEPOOL_HOOKS(cuMemFreeAsync, _ptsz, (CUdeviceptr at, CUstream s), Engine* engine = ActiveEngine();
               if (engine != nullptr && engine->Free(at)) return CUDA_SUCCESS; return real(at, s);)
TIDEPOOL_HOOK(cuMemGetInfo_v2, (size_t * free_bytes, size_t* total),
              Engine* engine = EngineForAllocation();
              if (engine == nullptr) return real(free_bytes, total);
              engine->MemGetInfo(free_bytes, total); return CUDA_SUCCESS;)
TIDEPOOL_HOOK(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t* bytes, CUdeviceptr at),
              Engine* engine = ActiveEngine();
              BufferInfo info;
              if (engine == nullptr || !engine->Find(at, &info)) return real(base, bytes, at);
              if (base != nullptr) * base = info.address;
              if (bytes != nullptr) * bytes = info.bytes; return CUDA_SUCCESS;)

namespace tidepool {
namespace {

// What Tidepool knows better than the driver, whose answer would be about chunks and reservations.
bool Attribute(const BufferInfo& info, CUpointer_attribute attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      std::memcpy(data, &info.address, sizeof(info.address));
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: {
      const size_t bytes = info.bytes;
      std::memcpy(data, &bytes, sizeof(bytes));
      return true;
    }
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: {
      const unsigned long long id = info.id;
      std::memcpy(data, &id, sizeof(id));
      return true;
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: {
      const unsigned type = CU_MEMORYTYPE_DEVICE;
      std::memcpy(data, &type, sizeof(type));
      return true;
    }
    default:
      return false;
  }
}

// Memory may not be bound yet, and then the driver knows nothing of the address: it is pinned to be
// asked about.
bool Describe(CUdeviceptr at, BufferInfo* info) {
  Engine* engine = ActiveEngine();
  return engine != nullptr && engine->Find(at, info);
}

}  // namespace
}  // namespace tidepool

TIDEPOOL_HOOK(
    cuPointerGetAttribute, (void* data, CUpointer_attribute attribute, CUdeviceptr at),
    BufferInfo info;
    if (data != nullptr && Describe(at, &info)) {
      if (Attribute(info, attribute, data)) return CUDA_SUCCESS;
      if (CUresult r = ActiveEngine()->Pin(at, PinReason::kUnknownCall); r != CUDA_SUCCESS)
        return r;
    } return real(data, attribute, at);)
TIDEPOOL_HOOK(
    cuPointerGetAttributes,
    (unsigned int count, CUpointer_attribute* attributes, void** data, CUdeviceptr at),
    BufferInfo info;
    if (attributes == nullptr || data == nullptr || !Describe(at, &info)) {
      return real(count, attributes, data, at);
    } if (CUresult r = ActiveEngine()->Pin(at, PinReason::kUnknownCall);
          r != CUDA_SUCCESS) return r;
    CUresult result = real(count, attributes, data, at); if (result != CUDA_SUCCESS) return result;
    for (unsigned i = 0; i < count; ++i) Attribute(info, attributes[i], data[i]); return result;)

// --- Copies ---
TIDEPOOL_HOOKS(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr d, const void* h, size_t n),
               return Copy("cuMemcpyHtoD", d, Address(h), n, nullptr, kPerThread, true,
                           [&] { return real(d, h, n); });)
TIDEPOOL_HOOKS(cuMemcpyDtoH_v2, _ptds, (void* h, CUdeviceptr d, size_t n),
               return Copy("cuMemcpyDtoH", Address(h), d, n, nullptr, kPerThread, true,
                           [&] { return real(h, d, n); });)
TIDEPOOL_HOOKS(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr d, CUdeviceptr f, size_t n),
               return Copy("cuMemcpyDtoD", d, f, n, nullptr, kPerThread, false,
                           [&] { return real(d, f, n); });)
TIDEPOOL_HOOKS(cuMemcpy, _ptds, (CUdeviceptr d, CUdeviceptr f, size_t n),
               return Copy("cuMemcpy", d, f, n, nullptr, kPerThread, true,
                           [&] { return real(d, f, n); });)
TIDEPOOL_HOOKS(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr d, const void* h, size_t n, CUstream s),
               return Copy("cuMemcpyHtoDAsync", d, Address(h), n, s, kPerThread, false,
                           [&] { return real(d, h, n, s); });)
TIDEPOOL_HOOKS(cuMemcpyDtoHAsync_v2, _ptsz, (void* h, CUdeviceptr d, size_t n, CUstream s),
               return Copy("cuMemcpyDtoHAsync", Address(h), d, n, s, kPerThread, true,
                           [&] { return real(h, d, n, s); });)
TIDEPOOL_HOOKS(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream s),
               return Copy("cuMemcpyDtoDAsync", d, f, n, s, kPerThread, false,
                           [&] { return real(d, f, n, s); });)
TIDEPOOL_HOOKS(cuMemcpyAsync, _ptsz, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream s),
               return Copy("cuMemcpyAsync", d, f, n, s, kPerThread, true,
                           [&] { return real(d, f, n, s); });)
TIDEPOOL_HOOKS(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* c),
               return Copy2D("cuMemcpy2D", c, nullptr, kPerThread, true, [&] { return real(c); });)
TIDEPOOL_HOOKS(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* c),
               return Copy2D("cuMemcpy2D", c, nullptr, kPerThread, true, [&] { return real(c); });)
TIDEPOOL_HOOKS(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* c, CUstream s),
               return Copy2D("cuMemcpy2DAsync", c, s, kPerThread, true,
                             [&] { return real(c, s); });)
TIDEPOOL_HOOKS(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D* c),
               return Copy3D("cuMemcpy3D", c, nullptr, kPerThread, true, [&] { return real(c); });)
TIDEPOOL_HOOKS(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D* c, CUstream s),
               return Copy3D("cuMemcpy3DAsync", c, s, kPerThread, true,
                             [&] { return real(c, s); });)

// --- Memsets ---
#define TIDEPOOL_MEMSETS(bits, type)                                                              \
  TIDEPOOL_HOOKS(cuMemsetD##bits##_v2, _ptds, (CUdeviceptr d, type v, size_t n),                  \
                 return Fill("cuMemsetD" #bits, d, 0, v, bits / 8, n, 1, nullptr, kPerThread,     \
                             [&] { return real(d, v, n); });)                                     \
  TIDEPOOL_HOOKS(cuMemsetD##bits##Async, _ptsz, (CUdeviceptr d, type v, size_t n, CUstream s),    \
                 return Fill("cuMemsetD" #bits "Async", d, 0, v, bits / 8, n, 1, s, kPerThread,   \
                             [&] { return real(d, v, n, s); });)                                  \
  TIDEPOOL_HOOKS(cuMemsetD2D##bits##_v2, _ptds,                                                   \
                 (CUdeviceptr d, size_t p, type v, size_t w, size_t h),                           \
                 return Fill("cuMemsetD2D" #bits, d, p, v, bits / 8, w, h, nullptr, kPerThread,   \
                             [&] { return real(d, p, v, w, h); });)                               \
  TIDEPOOL_HOOKS(cuMemsetD2D##bits##Async, _ptsz,                                                 \
                 (CUdeviceptr d, size_t p, type v, size_t w, size_t h, CUstream s),               \
                 return Fill("cuMemsetD2D" #bits "Async", d, p, v, bits / 8, w, h, s, kPerThread, \
                             [&] { return real(d, p, v, w, h, s); });)
TIDEPOOL_MEMSETS(8, unsigned char)
TIDEPOOL_MEMSETS(16, unsigned short)
TIDEPOOL_MEMSETS(32, unsigned int)
