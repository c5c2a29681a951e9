// Copies and fills.
#include "tools/simgpu/cudart/copy.h"

#include <cstring>
#include <utility>

#include "tools/simgpu/cudart/images.h"

namespace cudart {

bool IsValidKind(cudaMemcpyKind kind) {
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

CUmemorytype SourceType(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  const bool host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
  return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUmemorytype DestinationType(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  const bool host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
  return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

cudaError_t DescribeCopy(const cudaMemcpy3DParms& p, CUDA_MEMCPY3D* out) {
  if (!IsValidKind(p.kind)) return cudaErrorInvalidMemcpyDirection;
  if (p.srcArray != nullptr || p.dstArray != nullptr) return cudaErrorNotSupported;
  if (p.srcPtr.ptr == nullptr || p.dstPtr.ptr == nullptr) return cudaErrorInvalidValue;
  const bool rows = p.extent.height > 1 || p.extent.depth > 1;
  if (rows && (p.extent.width > p.srcPtr.pitch || p.extent.width > p.dstPtr.pitch)) {
    return cudaErrorInvalidPitchValue;
  }
  CUDA_MEMCPY3D c = {};
  c.srcMemoryType = SourceType(p.kind);
  c.srcHost = p.srcPtr.ptr;
  c.srcDevice = ToDevice(p.srcPtr.ptr);
  c.srcPitch = p.srcPtr.pitch;
  c.srcHeight = p.srcPtr.ysize;
  c.srcXInBytes = p.srcPos.x;
  c.srcY = p.srcPos.y;
  c.srcZ = p.srcPos.z;
  c.dstMemoryType = DestinationType(p.kind);
  c.dstHost = p.dstPtr.ptr;
  c.dstDevice = ToDevice(p.dstPtr.ptr);
  c.dstPitch = p.dstPtr.pitch;
  c.dstHeight = p.dstPtr.ysize;
  c.dstXInBytes = p.dstPos.x;
  c.dstY = p.dstPos.y;
  c.dstZ = p.dstPos.z;
  c.WidthInBytes = p.extent.width;
  c.Height = p.extent.height;
  c.Depth = p.extent.depth;
  *out = c;
  return cudaSuccess;
}

}  // namespace cudart

namespace {

using cudart::DestinationType;
using cudart::Driver;
using cudart::Form;
using cudart::GetDriver;
using cudart::IsValidKind;
using cudart::Note;
using cudart::SourceType;
using cudart::ToDevice;

cudaError_t Copy(Form form, void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  CUDART_ENTER();
  if (!IsValidKind(kind)) return Note(cudaErrorInvalidMemcpyDirection);
  if (n == 0) return cudaSuccess;
  const Driver& d = GetDriver();
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return Note(d.MemcpyHtoD[form](ToDevice(to), from, n));
    case cudaMemcpyDeviceToHost:
      return Note(d.MemcpyDtoH[form](to, ToDevice(from), n));
    case cudaMemcpyDeviceToDevice:
      return Note(d.MemcpyDtoD[form](ToDevice(to), ToDevice(from), n));
    default:
      return Note(d.Memcpy[form](ToDevice(to), ToDevice(from), n));
  }
}

cudaError_t CopyAsync(Form form, void* to, const void* from, size_t n, cudaMemcpyKind kind,
                      cudaStream_t stream) {
  CUDART_ENTER();
  if (!IsValidKind(kind)) return Note(cudaErrorInvalidMemcpyDirection);
  if (n == 0) return cudaSuccess;
  const Driver& d = GetDriver();
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return Note(d.MemcpyHtoDAsync[form](ToDevice(to), from, n, stream));
    case cudaMemcpyDeviceToHost:
      return Note(d.MemcpyDtoHAsync[form](to, ToDevice(from), n, stream));
    case cudaMemcpyDeviceToDevice:
      return Note(d.MemcpyDtoDAsync[form](ToDevice(to), ToDevice(from), n, stream));
    default:
      return Note(d.MemcpyAsync[form](ToDevice(to), ToDevice(from), n, stream));
  }
}

cudaError_t FindPart(const void* symbol, size_t n, size_t offset, void** out) {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  if (cudaError_t e = cudart::FindSymbol(symbol, &address, &bytes); e != cudaSuccess) return e;
  if (offset > bytes || n > bytes - offset) return cudaErrorInvalidValue;
  *out = cudart::ToPointer(address + offset);
  return cudaSuccess;
}

cudaError_t ToSymbol(Form form, const void* symbol, const void* from, size_t n, size_t offset,
                     cudaMemcpyKind kind) {
  CUDART_ENTER();
  if (DestinationType(kind) == CU_MEMORYTYPE_HOST) return Note(cudaErrorInvalidMemcpyDirection);
  void* to = nullptr;
  if (cudaError_t e = FindPart(symbol, n, offset, &to); e != cudaSuccess) return Note(e);
  return Copy(form, to, from, n, kind);
}
cudaError_t FromSymbol(Form form, void* to, const void* symbol, size_t n, size_t offset,
                       cudaMemcpyKind kind) {
  CUDART_ENTER();
  if (SourceType(kind) == CU_MEMORYTYPE_HOST) return Note(cudaErrorInvalidMemcpyDirection);
  void* from = nullptr;
  if (cudaError_t e = FindPart(symbol, n, offset, &from); e != cudaSuccess) return Note(e);
  return Copy(form, to, from, n, kind);
}
cudaError_t ToSymbolAsync(Form form, const void* symbol, const void* from, size_t n, size_t offset,
                          cudaMemcpyKind kind, cudaStream_t stream) {
  CUDART_ENTER();
  if (DestinationType(kind) == CU_MEMORYTYPE_HOST) return Note(cudaErrorInvalidMemcpyDirection);
  void* to = nullptr;
  if (cudaError_t e = FindPart(symbol, n, offset, &to); e != cudaSuccess) return Note(e);
  return CopyAsync(form, to, from, n, kind, stream);
}
cudaError_t FromSymbolAsync(Form form, void* to, const void* symbol, size_t n, size_t offset,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  CUDART_ENTER();
  if (SourceType(kind) == CU_MEMORYTYPE_HOST) return Note(cudaErrorInvalidMemcpyDirection);
  void* from = nullptr;
  if (cudaError_t e = FindPart(symbol, n, offset, &from); e != cudaSuccess) return Note(e);
  return CopyAsync(form, to, from, n, kind, stream);
}

cudaError_t Describe2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                       size_t height, cudaMemcpyKind kind, CUDA_MEMCPY2D* out) {
  if (!IsValidKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
  CUDA_MEMCPY2D c = {};
  c.srcMemoryType = SourceType(kind);
  c.srcHost = from;
  c.srcDevice = ToDevice(from);
  c.srcPitch = from_pitch;
  c.dstMemoryType = DestinationType(kind);
  c.dstHost = to;
  c.dstDevice = ToDevice(to);
  c.dstPitch = to_pitch;
  c.WidthInBytes = width;
  c.Height = height;
  *out = c;
  return cudaSuccess;
}
cudaError_t Copy2D(Form form, void* to, size_t to_pitch, const void* from, size_t from_pitch,
                   size_t width, size_t height, cudaMemcpyKind kind) {
  CUDART_ENTER();
  CUDA_MEMCPY2D c;
  if (cudaError_t e = Describe2D(to, to_pitch, from, from_pitch, width, height, kind, &c);
      e != cudaSuccess) {
    return Note(e);
  }
  if (width == 0 || height == 0) return cudaSuccess;
  return Note(GetDriver().Memcpy2DUnaligned[form](&c));
}
cudaError_t Copy2DAsync(Form form, void* to, size_t to_pitch, const void* from, size_t from_pitch,
                        size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  CUDART_ENTER();
  CUDA_MEMCPY2D c;
  if (cudaError_t e = Describe2D(to, to_pitch, from, from_pitch, width, height, kind, &c);
      e != cudaSuccess) {
    return Note(e);
  }
  if (width == 0 || height == 0) return cudaSuccess;
  return Note(GetDriver().Memcpy2DAsync[form](&c, stream));
}

bool IsEmpty(const cudaExtent& e) { return e.width == 0 || e.height == 0 || e.depth == 0; }

cudaError_t Copy3D(Form form, const cudaMemcpy3DParms* p) {
  CUDART_ENTER();
  if (p == nullptr) return Note(cudaErrorInvalidValue);
  CUDA_MEMCPY3D c;
  if (cudaError_t e = cudart::DescribeCopy(*p, &c); e != cudaSuccess) return Note(e);
  return IsEmpty(p->extent) ? cudaSuccess : Note(GetDriver().Memcpy3D[form](&c));
}
cudaError_t Copy3DAsync(Form form, const cudaMemcpy3DParms* p, cudaStream_t stream) {
  CUDART_ENTER();
  if (p == nullptr) return Note(cudaErrorInvalidValue);
  CUDA_MEMCPY3D c;
  if (cudaError_t e = cudart::DescribeCopy(*p, &c); e != cudaSuccess) return Note(e);
  return IsEmpty(p->extent) ? cudaSuccess : Note(GetDriver().Memcpy3DAsync[form](&c, stream));
}

// --- Between devices ---

cudaError_t BothContexts(int to_device, int from_device, CUcontext* to, CUcontext* from) {
  if (cudaError_t e = cudart::PrimaryContext(to_device, to); e != cudaSuccess) return e;
  return cudart::PrimaryContext(from_device, from);
}

cudaError_t Describe3DPeer(const cudaMemcpy3DPeerParms& p, CUDA_MEMCPY3D_PEER* out) {
  cudaMemcpy3DParms plain = {};
  plain.srcArray = p.srcArray;
  plain.srcPos = p.srcPos;
  plain.srcPtr = p.srcPtr;
  plain.dstArray = p.dstArray;
  plain.dstPos = p.dstPos;
  plain.dstPtr = p.dstPtr;
  plain.extent = p.extent;
  plain.kind = cudaMemcpyDeviceToDevice;
  CUDA_MEMCPY3D c;
  if (cudaError_t e = cudart::DescribeCopy(plain, &c); e != cudaSuccess) return e;
  CUDA_MEMCPY3D_PEER peer = {};
  peer.srcXInBytes = c.srcXInBytes;
  peer.srcY = c.srcY;
  peer.srcZ = c.srcZ;
  peer.srcMemoryType = c.srcMemoryType;
  peer.srcDevice = c.srcDevice;
  peer.srcPitch = c.srcPitch;
  peer.srcHeight = c.srcHeight;
  peer.dstXInBytes = c.dstXInBytes;
  peer.dstY = c.dstY;
  peer.dstZ = c.dstZ;
  peer.dstMemoryType = c.dstMemoryType;
  peer.dstDevice = c.dstDevice;
  peer.dstPitch = c.dstPitch;
  peer.dstHeight = c.dstHeight;
  peer.WidthInBytes = c.WidthInBytes;
  peer.Height = c.Height;
  peer.Depth = c.Depth;
  *out = peer;
  return BothContexts(p.dstDevice, p.srcDevice, &out->dstContext, &out->srcContext);
}
cudaError_t Copy3DPeer(Form form, const cudaMemcpy3DPeerParms* p) {
  CUDART_ENTER();
  if (p == nullptr) return Note(cudaErrorInvalidValue);
  CUDA_MEMCPY3D_PEER c;
  if (cudaError_t e = Describe3DPeer(*p, &c); e != cudaSuccess) return Note(e);
  return IsEmpty(p->extent) ? cudaSuccess : Note(GetDriver().Memcpy3DPeer[form](&c));
}
cudaError_t Copy3DPeerAsync(Form form, const cudaMemcpy3DPeerParms* p, cudaStream_t stream) {
  CUDART_ENTER();
  if (p == nullptr) return Note(cudaErrorInvalidValue);
  CUDA_MEMCPY3D_PEER c;
  if (cudaError_t e = Describe3DPeer(*p, &c); e != cudaSuccess) return Note(e);
  return IsEmpty(p->extent) ? cudaSuccess : Note(GetDriver().Memcpy3DPeerAsync[form](&c, stream));
}

// --- Fills ---

cudaError_t Fill(Form form, void* at, int value, size_t n) {
  CUDART_ENTER();
  if (n == 0) return cudaSuccess;
  return Note(GetDriver().MemsetD8[form](ToDevice(at), static_cast<unsigned char>(value), n));
}
cudaError_t FillAsync(Form form, void* at, int value, size_t n, cudaStream_t stream) {
  CUDART_ENTER();
  if (n == 0) return cudaSuccess;
  return Note(
      GetDriver().MemsetD8Async[form](ToDevice(at), static_cast<unsigned char>(value), n, stream));
}
cudaError_t Fill2D(Form form, void* at, size_t pitch, int value, size_t width, size_t height) {
  CUDART_ENTER();
  if (width == 0 || height == 0) return cudaSuccess;
  return Note(GetDriver().MemsetD2D8[form](ToDevice(at), pitch, static_cast<unsigned char>(value),
                                           width, height));
}
cudaError_t Fill2DAsync(Form form, void* at, size_t pitch, int value, size_t width, size_t height,
                        cudaStream_t stream) {
  CUDART_ENTER();
  if (width == 0 || height == 0) return cudaSuccess;
  return Note(GetDriver().MemsetD2D8Async[form](
      ToDevice(at), pitch, static_cast<unsigned char>(value), width, height, stream));
}

// A box is a rectangle for each slice, or one for all of them where they follow each other.
template <typename FillRectangle>
cudaError_t FillSlices(const cudaPitchedPtr& to, const cudaExtent& extent, FillRectangle fill) {
  if (extent.height > to.ysize && extent.depth > 1) return Note(cudaErrorInvalidValue);
  if (extent.height == to.ysize) return fill(to.ptr, extent.height * extent.depth);
  for (size_t z = 0; z < extent.depth; ++z) {
    const cudaError_t e = fill(static_cast<char*>(to.ptr) + z * to.pitch * to.ysize, extent.height);
    if (e != cudaSuccess) return e;
  }
  return cudaSuccess;
}
cudaError_t Fill3D(Form form, cudaPitchedPtr to, int value, cudaExtent extent) {
  return FillSlices(to, extent, [&](void* at, size_t rows) {
    return Fill2D(form, at, to.pitch, value, extent.width, rows);
  });
}
cudaError_t Fill3DAsync(Form form, cudaPitchedPtr to, int value, cudaExtent extent,
                        cudaStream_t stream) {
  return FillSlices(to, extent, [&](void* at, size_t rows) {
    return Fill2DAsync(form, at, to.pitch, value, extent.width, rows, stream);
  });
}

}  // namespace

CUDART_TWO_FORMS(cudaMemcpy, _ptds, Copy,
                 (void* to, const void* from, size_t n, cudaMemcpyKind kind), (to, from, n, kind))
CUDART_TWO_FORMS(cudaMemcpyAsync, _ptsz, CopyAsync,
                 (void* to, const void* from, size_t n, cudaMemcpyKind kind, cudaStream_t stream),
                 (to, from, n, kind, stream))
CUDART_TWO_FORMS(cudaMemcpyToSymbol, _ptds, ToSymbol,
                 (const void* symbol, const void* from, size_t n, size_t offset,
                  cudaMemcpyKind kind),
                 (symbol, from, n, offset, kind))
CUDART_TWO_FORMS(cudaMemcpyFromSymbol, _ptds, FromSymbol,
                 (void* to, const void* symbol, size_t n, size_t offset, cudaMemcpyKind kind),
                 (to, symbol, n, offset, kind))
CUDART_TWO_FORMS(cudaMemcpyToSymbolAsync, _ptsz, ToSymbolAsync,
                 (const void* symbol, const void* from, size_t n, size_t offset,
                  cudaMemcpyKind kind, cudaStream_t stream),
                 (symbol, from, n, offset, kind, stream))
CUDART_TWO_FORMS(cudaMemcpyFromSymbolAsync, _ptsz, FromSymbolAsync,
                 (void* to, const void* symbol, size_t n, size_t offset, cudaMemcpyKind kind,
                  cudaStream_t stream),
                 (to, symbol, n, offset, kind, stream))
CUDART_TWO_FORMS(cudaMemcpy2D, _ptds, Copy2D,
                 (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                  size_t height, cudaMemcpyKind kind),
                 (to, to_pitch, from, from_pitch, width, height, kind))
CUDART_TWO_FORMS(cudaMemcpy2DAsync, _ptsz, Copy2DAsync,
                 (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                  size_t height, cudaMemcpyKind kind, cudaStream_t stream),
                 (to, to_pitch, from, from_pitch, width, height, kind, stream))
CUDART_TWO_FORMS(cudaMemcpy3D, _ptds, Copy3D, (const cudaMemcpy3DParms* p), (p))
CUDART_TWO_FORMS(cudaMemcpy3DAsync, _ptsz, Copy3DAsync,
                 (const cudaMemcpy3DParms* p, cudaStream_t stream), (p, stream))
CUDART_TWO_FORMS(cudaMemcpy3DPeer, _ptds, Copy3DPeer, (const cudaMemcpy3DPeerParms* p), (p))
CUDART_TWO_FORMS(cudaMemcpy3DPeerAsync, _ptsz, Copy3DPeerAsync,
                 (const cudaMemcpy3DPeerParms* p, cudaStream_t stream), (p, stream))
CUDART_TWO_FORMS(cudaMemset, _ptds, Fill, (void* at, int value, size_t n), (at, value, n))
CUDART_TWO_FORMS(cudaMemsetAsync, _ptsz, FillAsync,
                 (void* at, int value, size_t n, cudaStream_t stream), (at, value, n, stream))
CUDART_TWO_FORMS(cudaMemset2D, _ptds, Fill2D,
                 (void* at, size_t pitch, int value, size_t width, size_t height),
                 (at, pitch, value, width, height))
CUDART_TWO_FORMS(cudaMemset2DAsync, _ptsz, Fill2DAsync,
                 (void* at, size_t pitch, int value, size_t width, size_t height,
                  cudaStream_t stream),
                 (at, pitch, value, width, height, stream))
CUDART_TWO_FORMS(cudaMemset3D, _ptds, Fill3D, (cudaPitchedPtr to, int value, cudaExtent extent),
                 (to, value, extent))
CUDART_TWO_FORMS(cudaMemset3DAsync, _ptsz, Fill3DAsync,
                 (cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream),
                 (to, value, extent, stream))

CUDART_API cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t n) {
  CUDART_ENTER();
  CUcontext to_context = nullptr, from_context = nullptr;
  if (cudaError_t e = BothContexts(to_device, from_device, &to_context, &from_context);
      e != cudaSuccess) {
    return Note(e);
  }
  if (n == 0) return cudaSuccess;
  return Note(GetDriver().MemcpyPeer[cudart::kLegacy](ToDevice(to), to_context, ToDevice(from),
                                                      from_context, n));
}
CUDART_API cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t n,
                               cudaStream_t stream) {
  CUDART_ENTER();
  CUcontext to_context = nullptr, from_context = nullptr;
  if (cudaError_t e = BothContexts(to_device, from_device, &to_context, &from_context);
      e != cudaSuccess) {
    return Note(e);
  }
  if (n == 0) return cudaSuccess;
  return Note(GetDriver().MemcpyPeerAsync[cudart::kLegacy](ToDevice(to), to_context, ToDevice(from),
                                                           from_context, n, stream));
}

// --- Batches ---

static cudaError_t CopyBatch(Form form, void* const* to, const void* const* from,
                             const size_t* bytes, size_t count, cudaMemcpyAttributes* attributes,
                             size_t* first, size_t attribute_count, cudaStream_t stream) {
  static_assert(sizeof(cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes));
  CUDART_ENTER();
  return Note(GetDriver().MemcpyBatchAsync[form](
      reinterpret_cast<CUdeviceptr*>(const_cast<void**>(to)),
      reinterpret_cast<CUdeviceptr*>(const_cast<void**>(from)), const_cast<size_t*>(bytes), count,
      reinterpret_cast<CUmemcpyAttributes*>(attributes), first, attribute_count, stream));
}
CUDART_TWO_FORMS(cudaMemcpyBatchAsync, _ptsz, CopyBatch,
                 (void* const* to, const void* const* from, const size_t* bytes, size_t count,
                  cudaMemcpyAttributes* attributes, size_t* first, size_t attribute_count,
                  cudaStream_t stream),
                 (to, from, bytes, count, attributes, first, attribute_count, stream))

static cudaError_t CopyBatch3D(Form form, size_t count, cudaMemcpy3DBatchOp* ops,
                               unsigned long long flags, cudaStream_t stream) {
  static_assert(sizeof(cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP));
  CUDART_ENTER();
  return Note(GetDriver().Memcpy3DBatchAsync[form](
      count, reinterpret_cast<CUDA_MEMCPY3D_BATCH_OP*>(ops), flags, stream));
}
CUDART_TWO_FORMS(cudaMemcpy3DBatchAsync, _ptsz, CopyBatch3D,
                 (size_t count, cudaMemcpy3DBatchOp* ops, unsigned long long flags,
                  cudaStream_t stream),
                 (count, ops, flags, stream))
