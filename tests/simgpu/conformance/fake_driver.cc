// Drivers with which the runtime cannot work. FAKE_VERSION and FAKE_INIT say what is wrong; without
// FAKE_VERSION the library is no driver at all.
#include <cuda.h>

#include <cstring>

#ifdef FAKE_VERSION
namespace {

CUresult Version(int* version) {
  *version = FAKE_VERSION;
  return CUDA_SUCCESS;
}
CUresult Init(unsigned) { return static_cast<CUresult>(FAKE_INIT); }

}  // namespace

#undef cuGetProcAddress
extern "C" __attribute__((visibility("default"))) CUresult cuGetProcAddress_v2(
    const char* symbol, void** function, int, cuuint64_t, CUdriverProcAddressQueryResult* status) {
  *function = std::strcmp(symbol, "cuDriverGetVersion") == 0 ? reinterpret_cast<void*>(&Version)
              : std::strcmp(symbol, "cuInit") == 0           ? reinterpret_cast<void*>(&Init)
                                                             : nullptr;
  if (status != nullptr) {
    *status =
        *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return CUDA_SUCCESS;
}
#endif
