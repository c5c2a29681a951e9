// The driver's functions, found as a program that links only the runtime finds them.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

// What a driver call gave, by name.
inline const char* DriverErrorName(CUresult result);

#define EXPECT_DRIVER(wanted, call) EXPECT_STREQ(DriverErrorName(wanted), DriverErrorName(call))
#define ASSERT_DRIVER(wanted, call) ASSERT_STREQ(DriverErrorName(wanted), DriverErrorName(call))
#define EXPECT_DRIVER_OK(call) EXPECT_DRIVER(CUDA_SUCCESS, call)
#define ASSERT_DRIVER_OK(call) ASSERT_DRIVER(CUDA_SUCCESS, call)

template <typename Function>
Function DriverFunction(const char* name, unsigned version) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t e =
      cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableLegacyStream, &found);
  EXPECT_EQ(e, cudaSuccess) << name;
  EXPECT_EQ(found, cudaDriverEntryPointSuccess) << name;
  return reinterpret_cast<Function>(address);
}

struct DriverApi {
#define DRIVER_FUNCTION(name, version) \
  PFN_cu##name##_v##version name = DriverFunction<PFN_cu##name##_v##version>("cu" #name, version);
  DRIVER_FUNCTION(GetErrorName, 6000)
  DRIVER_FUNCTION(MemAddressReserve, 10020)
  DRIVER_FUNCTION(MemAddressFree, 10020)
  DRIVER_FUNCTION(MemCreate, 10020)
  DRIVER_FUNCTION(MemRelease, 10020)
  DRIVER_FUNCTION(MemMap, 10020)
  DRIVER_FUNCTION(MemUnmap, 10020)
  DRIVER_FUNCTION(MemSetAccess, 10020)
  DRIVER_FUNCTION(MemGetAccess, 10020)
  DRIVER_FUNCTION(MemGetAllocationGranularity, 10020)
  DRIVER_FUNCTION(MemGetAllocationPropertiesFromHandle, 10020)
  DRIVER_FUNCTION(MemRetainAllocationHandle, 11000)
  DRIVER_FUNCTION(MemGetAddressRange, 3020)
  DRIVER_FUNCTION(PointerGetAttribute, 4000)
  DRIVER_FUNCTION(ModuleLoadData, 2000)
  DRIVER_FUNCTION(ModuleLoadDataEx, 2010)
  DRIVER_FUNCTION(ModuleLoadFatBinary, 2000)
  DRIVER_FUNCTION(ModuleLoad, 2000)
  DRIVER_FUNCTION(ModuleUnload, 2000)
  DRIVER_FUNCTION(ModuleGetFunction, 2000)
  DRIVER_FUNCTION(ModuleGetGlobal, 3020)
  DRIVER_FUNCTION(LibraryLoadData, 12000)
  DRIVER_FUNCTION(LibraryUnload, 12000)
  DRIVER_FUNCTION(LibraryGetKernel, 12000)
  DRIVER_FUNCTION(LibraryGetGlobal, 12000)
  DRIVER_FUNCTION(LibraryGetKernelCount, 12040)
  DRIVER_FUNCTION(KernelGetFunction, 12000)
  DRIVER_FUNCTION(KernelGetName, 12030)
  DRIVER_FUNCTION(FuncGetName, 12030)
  DRIVER_FUNCTION(FuncGetParamInfo, 12040)
  DRIVER_FUNCTION(FuncGetAttribute, 2020)
  DRIVER_FUNCTION(LaunchKernel, 4000)
  DRIVER_FUNCTION(LaunchKernelEx, 11060)
  DRIVER_FUNCTION(CtxGetCurrent, 4000)
  DRIVER_FUNCTION(CtxSynchronize, 2000)
  DRIVER_FUNCTION(MemsetD32, 3020)
  DRIVER_FUNCTION(MemsetD16, 3020)
  DRIVER_FUNCTION(MemcpyDtoH, 3020)
#undef DRIVER_FUNCTION
};

inline const DriverApi& Driver() {
  static const DriverApi api;
  return api;
}

inline const char* DriverErrorName(CUresult result) {
  const char* name = nullptr;
  Driver().GetErrorName(result, &name);
  return name == nullptr ? "unknown" : name;
}
