// Hooks of calls that name memory for uses that are not seen afterwards: what they name stays
// resident, and the report says why.
#include "runtime/intercept/hook.h"

using namespace tidepool;

namespace {

CUresult Pin(CUdeviceptr at, PinReason reason) {
  Engine* engine = ActiveEngine();
  return engine != nullptr && engine->InPool(at) ? engine->Pin(at, reason) : CUDA_SUCCESS;
}
CUresult Pin(const void* at, PinReason reason) {
  return Pin(reinterpret_cast<CUdeviceptr>(at), reason);
}

CUresult PinResource(const CUDA_RESOURCE_DESC* resource) {
  if (resource == nullptr) return CUDA_SUCCESS;
  if (resource->resType == CU_RESOURCE_TYPE_LINEAR) {
    return Pin(resource->res.linear.devPtr, PinReason::kTexture);
  }
  if (resource->resType == CU_RESOURCE_TYPE_PITCH2D) {
    return Pin(resource->res.pitch2D.devPtr, PinReason::kTexture);
  }
  return CUDA_SUCCESS;
}

CUresult PinBatch(const CUstreamBatchMemOpParams* ops, unsigned count) {
  for (unsigned i = 0; ops != nullptr && i < count; ++i) {
    CUdeviceptr at = 0;
    switch (ops[i].operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        at = ops[i].waitValue.address;
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        at = ops[i].writeValue.address;
        break;
      default:
        continue;
    }
    if (CUresult r = Pin(at, PinReason::kUnknownCall); r != CUDA_SUCCESS) return r;
  }
  return CUDA_SUCCESS;
}

CUresult PinBoxes(const CUDA_MEMCPY3D_BATCH_OP* ops, size_t count) {
  for (size_t i = 0; ops != nullptr && i < count; ++i) {
    for (const CUmemcpy3DOperand* operand : {&ops[i].src, &ops[i].dst}) {
      if (operand->type != CU_MEMCPY_OPERAND_TYPE_POINTER) continue;
      if (CUresult r = Pin(operand->op.ptr.ptr, PinReason::kUnknownCall); r != CUDA_SUCCESS) {
        return r;
      }
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

#define TIDEPOOL_PIN_FIRST(pin) \
  if (CUresult pinned = pin; pinned != CUDA_SUCCESS) return pinned;

// --- Textures, surfaces, tensor maps ---
TIDEPOOL_HOOK(cuTexObjectCreate,
              (CUtexObject * out, const CUDA_RESOURCE_DESC* resource,
               const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view),
              TIDEPOOL_PIN_FIRST(PinResource(resource)) return real(out, resource, texture, view);)
TIDEPOOL_HOOK(cuSurfObjectCreate, (CUsurfObject * out, const CUDA_RESOURCE_DESC* resource),
              TIDEPOOL_PIN_FIRST(PinResource(resource)) return real(out, resource);)
TIDEPOOL_HOOK(cuTensorMapEncodeTiled,
              (CUtensorMap * out, CUtensorMapDataType type, cuuint32_t rank, void* at,
               const cuuint64_t* dim, const cuuint64_t* strides, const cuuint32_t* box,
               const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
               CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill fill),
              TIDEPOOL_PIN_FIRST(Pin(at, PinReason::kTexture)) return real(
                  out, type, rank, at, dim, strides, box, element_strides, interleave, swizzle, l2,
                  fill);)
TIDEPOOL_HOOK(cuTensorMapEncodeIm2col,
              (CUtensorMap * out, CUtensorMapDataType type, cuuint32_t rank, void* at,
               const cuuint64_t* dim, const cuuint64_t* strides, const int* lower, const int* upper,
               cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* element_strides,
               CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
               CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill fill),
              TIDEPOOL_PIN_FIRST(Pin(at, PinReason::kTexture)) return real(
                  out, type, rank, at, dim, strides, lower, upper, channels, pixels,
                  element_strides, interleave, swizzle, l2, fill);)
TIDEPOOL_HOOK(cuTensorMapReplaceAddress, (CUtensorMap * map, void* at),
              TIDEPOOL_PIN_FIRST(Pin(at, PinReason::kTexture)) return real(map, at);)

// --- Other processes, devices and libraries ---
TIDEPOOL_HOOK(cuIpcGetMemHandle, (CUipcMemHandle * out, CUdeviceptr at),
              TIDEPOOL_PIN_FIRST(Pin(at, PinReason::kShared)) return real(out, at);)
TIDEPOOL_HOOK(cuMemPoolExportPointer, (CUmemPoolPtrExportData * out, CUdeviceptr at),
              TIDEPOOL_PIN_FIRST(Pin(at, PinReason::kShared)) return real(out, at);)
TIDEPOOL_HOOK(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * out, void* at),
              TIDEPOOL_PIN_FIRST(Pin(at, PinReason::kShared)) return real(out, at);)
TIDEPOOL_HOOK(cuMemGetHandleForAddressRange,
              (void* out, CUdeviceptr at, size_t bytes, CUmemRangeHandleType type,
               unsigned long long flags),
              TIDEPOOL_PIN_FIRST(Pin(at, PinReason::kShared)) return real(out, at, bytes, type,
                                                                          flags);)
TIDEPOOL_HOOK(cuMulticastBindAddr,
              (CUmemGenericAllocationHandle group, size_t offset, CUdeviceptr at, size_t bytes,
               unsigned long long flags),
              TIDEPOOL_PIN_FIRST(Pin(at, PinReason::kShared)) return real(group, offset, at, bytes,
                                                                          flags);)
TIDEPOOL_HOOK(cuPointerSetAttribute,
              (const void* value, CUpointer_attribute attribute, CUdeviceptr at),
              TIDEPOOL_PIN_FIRST(Pin(at, PinReason::kShared)) return real(value, attribute, at);)

// --- Several operations in one call ---
TIDEPOOL_HOOKS(cuStreamBatchMemOp_v2, _ptsz,
               (CUstream s, unsigned int count, CUstreamBatchMemOpParams* ops, unsigned int flags),
               TIDEPOOL_PIN_FIRST(PinBatch(ops, count)) return real(s, count, ops, flags);)
TIDEPOOL_HOOKS(cuMemcpy3DBatchAsync_v2, _ptsz,
               (size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, unsigned long long flags, CUstream s),
               TIDEPOOL_PIN_FIRST(PinBoxes(ops, count)) return real(count, ops, flags, s);)
