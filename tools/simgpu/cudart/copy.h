// Copies between plain (pitched) memory, described for the driver.
#pragma once

#include "tools/simgpu/cudart/runtime.h"

namespace cudart {

bool IsValidKind(cudaMemcpyKind kind);

// The memory types that `kind` states; cudaMemcpyDefault leaves both to the driver.
CUmemorytype SourceType(cudaMemcpyKind kind);
CUmemorytype DestinationType(cudaMemcpyKind kind);

// Errors: cudaErrorInvalidMemcpyDirection, cudaErrorInvalidPitchValue, cudaErrorInvalidValue for
// missing ends; cudaErrorNotSupported for CUDA arrays.
cudaError_t DescribeCopy(const cudaMemcpy3DParms& params, CUDA_MEMCPY3D* out);

}  // namespace cudart
