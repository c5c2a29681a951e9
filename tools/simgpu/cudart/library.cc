// Libraries of kernels that the program loads itself, and the road to the driver's own functions.
#include <vector>

#include "tools/simgpu/cudart/images.h"

namespace {

using cudart::Form;
using cudart::GetDriver;
using cudart::Note;

// The version of the entry point, and which form: the program's own default stream unless it asks.
cudaError_t EntryPoint(Form form, const char* symbol, void** out, unsigned version,
                       unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  CUDART_ENTER_DRIVER();
  if (symbol == nullptr || *symbol == '\0' || out == nullptr) return Note(cudaErrorInvalidValue);
  if (flags == cudaEnableDefault) {
    flags = form == cudart::kPerThread ? cudaEnablePerThreadDefaultStream : cudaEnableLegacyStream;
  }
  *out = nullptr;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult r =
      GetDriver().GetProcAddress(symbol, out, static_cast<int>(version), flags, &found);
  if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  // Not found is an answer where the caller takes the status, as the documentation has it.
  if (r == CUDA_ERROR_NOT_FOUND && status != nullptr) return cudaSuccess;
  return Note(r);
}
cudaError_t EntryPointNow(Form form, const char* symbol, void** out, unsigned long long flags,
                          cudaDriverEntryPointQueryResult* status) {
  return EntryPoint(form, symbol, out, CUDART_VERSION, flags, status);
}

}  // namespace

CUDART_TWO_FORMS(cudaGetDriverEntryPoint, _ptsz, EntryPointNow,
                 (const char* symbol, void** out, unsigned long long flags,
                  cudaDriverEntryPointQueryResult* status),
                 (symbol, out, flags, status))
CUDART_TWO_FORMS(cudaGetDriverEntryPointByVersion, _ptsz, EntryPoint,
                 (const char* symbol, void** out, unsigned version, unsigned long long flags,
                  cudaDriverEntryPointQueryResult* status),
                 (symbol, out, version, flags, status))

CUDART_API cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* jit,
                               void** jit_values, unsigned jit_count, cudaLibraryOption* options,
                               void** values, unsigned count) {
  CUDART_ENTER();
  return Note(GetDriver().LibraryLoadData(
      reinterpret_cast<CUlibrary*>(library), code, reinterpret_cast<CUjit_option*>(jit), jit_values,
      jit_count, reinterpret_cast<CUlibraryOption*>(options), values, count));
}
CUDART_API cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption* jit,
                                   void** jit_values, unsigned jit_count,
                                   cudaLibraryOption* options, void** values, unsigned count) {
  CUDART_ENTER();
  return Note(GetDriver().LibraryLoadFromFile(
      reinterpret_cast<CUlibrary*>(library), path, reinterpret_cast<CUjit_option*>(jit), jit_values,
      jit_count, reinterpret_cast<CUlibraryOption*>(options), values, count));
}
CUDART_API cudaLibraryUnload(cudaLibrary_t library) {
  CUDART_ENTER();
  const CUresult r = GetDriver().LibraryUnload(library);
  if (r == CUDA_SUCCESS) cudart::ForgetLibrary(library);
  return Note(r);
}
CUDART_API cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  CUDART_ENTER();
  const CUresult r = GetDriver().LibraryGetKernel(kernel, library, name);
  if (r == CUDA_SUCCESS) cudart::AdoptKernel(*kernel, library);
  return Note(r);
}
CUDART_API cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library,
                                const char* name) {
  CUDART_ENTER();
  CUdeviceptr found = 0;
  const CUresult r = GetDriver().LibraryGetGlobal(&found, bytes, library, name);
  if (r == CUDA_SUCCESS && address != nullptr) *address = cudart::ToPointer(found);
  return Note(r);
}
CUDART_API cudaLibraryGetManaged(void** address, size_t* bytes, cudaLibrary_t library,
                                 const char* name) {
  CUDART_ENTER();
  CUdeviceptr found = 0;
  const CUresult r = GetDriver().LibraryGetManaged(&found, bytes, library, name);
  if (r == CUDA_SUCCESS && address != nullptr) *address = cudart::ToPointer(found);
  return Note(r);
}
CUDART_API cudaLibraryGetUnifiedFunction(void** out, cudaLibrary_t library, const char* symbol) {
  CUDART_ENTER();
  return Note(GetDriver().LibraryGetUnifiedFunction(out, library, symbol));
}
CUDART_API cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  CUDART_ENTER();
  return Note(GetDriver().LibraryGetKernelCount(count, library));
}
CUDART_API cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count,
                                       cudaLibrary_t library) {
  CUDART_ENTER();
  unsigned there = 0;
  CUresult r = GetDriver().LibraryGetKernelCount(&there, library);
  if (r == CUDA_SUCCESS) r = GetDriver().LibraryEnumerateKernels(kernels, count, library);
  for (unsigned i = 0; r == CUDA_SUCCESS && i < count && i < there; ++i) {
    cudart::AdoptKernel(kernels[i], library);
  }
  return Note(r);
}
CUDART_API cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute,
                                           int value, int device) {
  CUDART_ENTER();
  CUkernel handle = nullptr;
  if (cudaError_t e = cudart::FindKernel(kernel, &handle); e != cudaSuccess) return Note(e);
  return Note(GetDriver().KernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value,
                                             handle, device));
}
