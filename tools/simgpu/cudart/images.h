// What the program registered: fat binaries, and the kernels and variables in them, known by the
// addresses of their host stubs and shadows. Images are loaded into the driver when first needed.
// Thread-safe.
#pragma once

#include <cstddef>

#include "tools/simgpu/cudart/runtime.h"

namespace cudart {

// The kernel's function in the current context. `kernel` is a host stub, or a handle that
// cudaGetKernel, __cudaGetKernel or cudaLibraryGetKernel gave. A context must be current.
// Errors: cudaErrorInvalidDeviceFunction for anything else; what loading its image met.
cudaError_t FindFunction(const void* kernel, CUfunction* function);
// The kernel's context-independent handle.
cudaError_t FindKernel(const void* kernel, CUkernel* handle);

// Where a variable lies in the current context. `symbol` is its shadow on the host; for a managed
// variable, also its address. Errors: cudaErrorInvalidSymbol; what loading its image met.
cudaError_t FindSymbol(const void* symbol, CUdeviceptr* address, size_t* bytes);

// The way back from the driver's handles: a kernel's stub, or its handle where it has none. Null
// for a function that no registered kernel has given.
const void* FindStub(CUfunction function, CUkernel handle);

// Kernels of a library that the program loaded itself may be launched like registered ones.
void AdoptKernel(CUkernel handle, CUlibrary library);
void ForgetLibrary(CUlibrary library);

}  // namespace cudart
