// Hooks of allocation, memsets and questions about memory.
#include <algorithm>
#include <cstring>

#include "runtime/intercept/graph.h"
#include "runtime/intercept/hook.h"
#include "runtime/intercept/host_memory.h"

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

CUresult Fill(const char* name, CUdeviceptr at, size_t pitch, unsigned value, unsigned bytes,
              size_t width, size_t height, CUstream stream, bool per_thread,
              absl::FunctionRef<CUresult()> issue) {
  Engine* engine = ActiveEngine();
  if (engine == nullptr || width == 0 || height == 0) return issue();
  if (Capturing(stream, per_thread)) {
    if (CUresult r = PinForGraph(engine, at); r != CUDA_SUCCESS) return r;
    return issue();
  }
  // More than there can be, and then the driver is to say so, or all between first and last byte.
  uint64_t row = 0, extent = 0;
  if (__builtin_mul_overflow(width, bytes, &row) ||
      __builtin_mul_overflow(height - 1, pitch, &extent) ||
      __builtin_add_overflow(extent, row, &extent)) {
    return issue();
  }
  const Engine::Place place = engine->Locate(at, extent);
  if (place == Engine::Place::kBeyond) return CUDA_ERROR_INVALID_VALUE;
  if (place == Engine::Place::kElsewhere) return issue();
  OpRequest request;
  request.kind = OpKind::kMemset;
  request.name = name;
  request.stream = {stream, per_thread};
  const bool whole = height == 1 || pitch == row;
  request.regions.push_back({at, extent, AccessMode::kWrite, whole});
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
    auto pass = [&] { return real(out, pitch, width, height, element); };
    if (pitch == nullptr || width == 0 || height == 0 ||
        (element != 4 && element != 8 && element != 16)) return pass();
    size_t rows = 0, bytes = 0;
    if (__builtin_add_overflow(width, 511, &rows) ||
        __builtin_mul_overflow(rows / 512 * 512, height, &bytes)) return pass();
    bool ours = true; CUresult result = Allocate(out, bytes,
                                                 [&] {
                                                   ours = false;
                                                   return pass();
                                                 });
    if (ours && result == CUDA_SUCCESS) * pitch = rows / 512 * 512; return result;)

// The driver knows only chunks, and might take an address in the pool for its own.
#define TIDEPOOL_REFUSE_IN_POOL(engine, at, error) \
  if ((engine) != nullptr && (engine)->Locate(at, 1) != Engine::Place::kElsewhere) return error;

TIDEPOOL_HOOK(
    cuMemFree_v2, (CUdeviceptr at), Engine* engine = ActiveEngine(); BufferInfo info;
    if (engine != nullptr && engine->Find(at, &info) && info.address == at) {
      if (AnyCapture()) {
        FreeAfterCaptures(at);
        return CUDA_SUCCESS;
      }
      // The driver's own free waits for the device, and programs rely on it.
      CUresult result = GetDriverApi().CtxSynchronize();
      if (result != CUDA_SUCCESS) return result;
      if (engine->Free(at)) return CUDA_SUCCESS;
    } TIDEPOOL_REFUSE_IN_POOL(engine, at, CUDA_ERROR_INVALID_VALUE) HostMemory::Get()
        .Remove(at);
    return real(at);)
TIDEPOOL_HOOKS(
    cuMemAllocAsync, _ptsz, (CUdeviceptr * out, size_t bytes, CUstream s),
    auto pass = [&] { return real(out, bytes, s); };
    // In a graph it is a node of it, with memory of the driver's.
    if (Capturing(s, kPerThread)) return pass(); return Allocate(out, bytes, pass);)
TIDEPOOL_HOOKS(
    cuMemFreeAsync, _ptsz, (CUdeviceptr at, CUstream s), Engine* engine = ActiveEngine();
    BufferInfo info; if (engine != nullptr && Capturing(s, kPerThread) && engine->Find(at, &info) &&
                         info.address == at) {
      // A graph will free it, perhaps: it is kept.
      return CUDA_SUCCESS;
    } if (engine != nullptr && engine->FreeOrdered(at, {s, kPerThread})) return CUDA_SUCCESS;
    TIDEPOOL_REFUSE_IN_POOL(engine, at, CUDA_ERROR_INVALID_VALUE) return real(at, s);)
TIDEPOOL_HOOK(cuMemGetInfo_v2, (size_t * free_bytes, size_t* total),
              Engine* engine = EngineForAllocation();
              if (engine == nullptr) return real(free_bytes, total);
              engine->MemGetInfo(free_bytes, total); return CUDA_SUCCESS;)
TIDEPOOL_HOOK(
    cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t* bytes, CUdeviceptr at),
    Engine* engine = ActiveEngine();
    BufferInfo info; if (engine != nullptr && engine->Find(at, &info)) {
      if (base != nullptr) *base = info.address;
      if (bytes != nullptr) *bytes = info.bytes;
      return CUDA_SUCCESS;
    } TIDEPOOL_REFUSE_IN_POOL(engine, at, CUDA_ERROR_NOT_FOUND) return real(base, bytes, at);)

namespace tidepool {
namespace {

template <typename T>
CUresult Answer(void* data, T value) {
  std::memcpy(data, &value, sizeof(value));  // NOLINT(bugprone-sizeof-expression): or a pointer
  return CUDA_SUCCESS;
}

// Memory may not be bound yet, and then the driver knows nothing of the address; where it is, the
// driver's answer would be about chunks and reservations. So Tidepool answers as the driver would
// of memory from cuMemAlloc. `*known` is cleared for what only the driver can do.
CUresult Attribute(const BufferInfo& info, CUpointer_attribute attribute, CUdeviceptr at,
                   void* data, bool* known) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return Answer(data, ManagedContext());
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Answer(data, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Answer(data, at);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return Answer(data, static_cast<unsigned long long>(info.id));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Answer(data, static_cast<int>(ManagedDevice()));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return Answer(data, info.address);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return Answer(data, static_cast<size_t>(info.bytes));
    // A byte in some descriptions and a word in others: zero is the same, written as the byte.
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED: {
      const bool mapped = attribute == CU_POINTER_ATTRIBUTE_MAPPED;
      return Answer(data, static_cast<unsigned>(mapped ? 1 : 0));
    }
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Answer(data, uint64_t{0});
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return Answer(data, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    default:
      *known = false;
      return CUDA_SUCCESS;
  }
}

// An address of the host that the driver knows nothing of.
const int unknown_to_the_driver = 0;

}  // namespace
}  // namespace tidepool

TIDEPOOL_HOOK(
    cuPointerGetAttribute, (void* data, CUpointer_attribute attribute, CUdeviceptr at),
    Engine* engine = ActiveEngine();
    BufferInfo info; if (engine != nullptr && data != nullptr && engine->Find(at, &info)) {
      bool known = true;
      CUresult result = Attribute(info, attribute, at, data, &known);
      if (known) return result;
      result = engine->Pin(at, PinReason::kUnknownCall);
      if (result != CUDA_SUCCESS) return result;
    } else {
      TIDEPOOL_REFUSE_IN_POOL(engine, at, CUDA_ERROR_INVALID_VALUE)
    } return real(data, attribute, at);)
TIDEPOOL_HOOK(
    cuPointerGetAttributes,
    (unsigned int count, CUpointer_attribute* attributes, void** data, CUdeviceptr at),
    Engine* engine = ActiveEngine();
    BufferInfo info; if (engine == nullptr || attributes == nullptr || data == nullptr ||
                         engine->Locate(at, 1) == Engine::Place::kElsewhere) {
      return real(count, attributes, data, at);
    } const auto nothing = reinterpret_cast<CUdeviceptr>(&unknown_to_the_driver);
    // Of what is unknown, the driver says so in each attribute, and that is no error.
    if (!engine->Find(at, &info)) return real(count, attributes, data, nothing);
    for (unsigned i = 0; i < count; ++i) {
      bool known = true;
      if (Attribute(info, attributes[i], at, data[i], &known) == CUDA_SUCCESS && known) continue;
      if (!known) {
        CUresult result = engine->Pin(at, PinReason::kUnknownCall);
        if (result != CUDA_SUCCESS) return result;
      }
      CUresult result = real(1, &attributes[i], &data[i], at);
      if (result != CUDA_SUCCESS) return result;
      if (known) Answer(data[i], uint64_t{0});  // there is none: no host pointer
    } return CUDA_SUCCESS;)

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
