// What nvcc's code registers before main, modules loaded when first needed, and launches.
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/simgpu/cudart/driver.h"

namespace cudart {
namespace {

struct Image {
  void* wrapper = nullptr;
  CUlibrary library = nullptr;
  bool tried = false;
  CUresult error = CUDA_SUCCESS;
};
struct Registered {
  Image* image = nullptr;
  std::string name;
  CUkernel kernel = nullptr;
};

std::mutex& Mutex() {
  static std::mutex* mutex = new std::mutex;
  return *mutex;
}
std::map<const void*, Registered>& Functions() {
  static auto* functions = new std::map<const void*, Registered>;
  return *functions;
}
std::map<const void*, Registered>& Variables() {
  static auto* variables = new std::map<const void*, Registered>;
  return *variables;
}

CUresult LoadImage(Image* image) {
  if (!image->tried) {
    image->tried = true;
    image->error = GetDriver().LibraryLoadData(&image->library, image->wrapper, nullptr, nullptr, 0,
                                               nullptr, nullptr, 0);
  }
  return image->error;
}

struct CallConfiguration {
  dim3 grid, block;
  size_t shared;
  void* stream;
};
thread_local std::vector<CallConfiguration> configurations;

}  // namespace

cudaError_t FindKernel(const void* stub, CUfunction* function) {
  std::lock_guard<std::mutex> lock(Mutex());
  auto it = Functions().find(stub);
  if (it == Functions().end()) return cudaErrorInvalidDeviceFunction;
  Registered& entry = it->second;
  if (CUresult r = LoadImage(entry.image); r != CUDA_SUCCESS) return static_cast<cudaError_t>(r);
  if (entry.kernel == nullptr) {
    CUresult r =
        GetDriver().LibraryGetKernel(&entry.kernel, entry.image->library, entry.name.c_str());
    if (r != CUDA_SUCCESS) return cudaErrorInvalidDeviceFunction;
  }
  return static_cast<cudaError_t>(GetDriver().KernelGetFunction(function, entry.kernel));
}

cudaError_t FindSymbol(const void* symbol, CUdeviceptr* address, size_t* bytes) {
  std::lock_guard<std::mutex> lock(Mutex());
  auto it = Variables().find(symbol);
  if (it == Variables().end()) return cudaErrorInvalidSymbol;
  Registered& entry = it->second;
  if (CUresult r = LoadImage(entry.image); r != CUDA_SUCCESS) return static_cast<cudaError_t>(r);
  CUresult r =
      GetDriver().LibraryGetGlobal(address, bytes, entry.image->library, entry.name.c_str());
  return r == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidSymbol;
}

}  // namespace cudart

using namespace cudart;

#define CUDART_INTERNAL extern "C" __attribute__((visibility("default")))

CUDART_INTERNAL void** __cudaRegisterFatBinary(void* wrapper) {
  auto* image = new Image;
  image->wrapper = wrapper;
  return reinterpret_cast<void**>(image);
}
CUDART_INTERNAL void __cudaRegisterFatBinaryEnd(void**) {}
CUDART_INTERNAL void __cudaUnregisterFatBinary(void**) {}
CUDART_INTERNAL void __cudaRegisterFunction(void** image, const char* stub, char*, const char* name,
                                            int, uint3*, uint3*, dim3*, dim3*, int*) {
  std::lock_guard<std::mutex> lock(Mutex());
  Functions()[stub] = {reinterpret_cast<Image*>(image), name, nullptr};
}
CUDART_INTERNAL void __cudaRegisterVar(void** image, char* shadow, char*, const char* name, int,
                                       size_t, int, int) {
  std::lock_guard<std::mutex> lock(Mutex());
  Variables()[shadow] = {reinterpret_cast<Image*>(image), name, nullptr};
}
CUDART_INTERNAL void __cudaRegisterManagedVar(void** image, void** shadow, char*, const char* name,
                                              int, size_t, int, int) {
  std::lock_guard<std::mutex> lock(Mutex());
  Variables()[shadow] = {reinterpret_cast<Image*>(image), name, nullptr};
}
CUDART_INTERNAL char __cudaInitModule(void**) { return 0; }

CUDART_INTERNAL unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                     void* stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
CUDART_INTERNAL cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared,
                                                       void* stream) {
  if (configurations.empty()) return Note(cudaErrorMissingConfiguration);
  const CallConfiguration& top = configurations.back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  std::memcpy(stream, &top.stream, sizeof(void*));
  configurations.pop_back();
  return cudaSuccess;
}
CUDART_INTERNAL cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  // The stub itself serves as the handle: loading waits until a launch.
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}

static cudaError_t Launch(const void* stub, dim3 grid, dim3 block, void** args, size_t shared,
                          cudaStream_t stream, int form) {
  CUDART_ENTER();
  CUfunction function = nullptr;
  if (cudaError_t e = FindKernel(stub, &function); e != cudaSuccess) return Note(e);
  CUresult r =
      GetDriver().LaunchKernel[form](function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                     static_cast<unsigned>(shared), stream, args, nullptr);
  // The runtime calls a launch that asks for the impossible a wrong configuration.
  if (r == CUDA_ERROR_INVALID_VALUE) return Note(cudaErrorInvalidConfiguration);
  return Note(r);
}
CUDART_INTERNAL cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                               void** args, size_t shared, cudaStream_t stream) {
  return Launch(kernel, grid, block, args, shared, stream, 0);
}
CUDART_INTERNAL cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                    void** args, size_t shared,
                                                    cudaStream_t stream) {
  return Launch(kernel, grid, block, args, shared, stream, 1);
}
CUDART_API cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** args, size_t shared,
                            cudaStream_t stream) {
  return Launch(stub, grid, block, args, shared, stream, 0);
}
CUDART_API cudaLaunchKernel_ptsz(const void* stub, dim3 grid, dim3 block, void** args,
                                 size_t shared, cudaStream_t stream) {
  return Launch(stub, grid, block, args, shared, stream, 1);
}
static cudaError_t LaunchEx(const cudaLaunchConfig_t* config, const void* stub, void** args,
                            int form) {
  CUDART_ENTER();
  if (config == nullptr) return Note(cudaErrorInvalidValue);
  CUfunction function = nullptr;
  if (cudaError_t e = FindKernel(stub, &function); e != cudaSuccess) return Note(e);
  CUlaunchConfig c = {};
  c.gridDimX = config->gridDim.x;
  c.gridDimY = config->gridDim.y;
  c.gridDimZ = config->gridDim.z;
  c.blockDimX = config->blockDim.x;
  c.blockDimY = config->blockDim.y;
  c.blockDimZ = config->blockDim.z;
  c.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
  c.hStream = config->stream;
  c.attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);
  c.numAttrs = config->numAttrs;
  return Note(GetDriver().LaunchKernelEx[form](&c, function, args, nullptr));
}
CUDART_API cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub, void** args) {
  return LaunchEx(config, stub, args, 0);
}
CUDART_API cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* stub,
                                    void** args) {
  return LaunchEx(config, stub, args, 1);
}
CUDART_API cudaLaunchCooperativeKernel(const void* stub, dim3 grid, dim3 block, void** args,
                                       size_t shared, cudaStream_t stream) {
  CUDART_ENTER();
  CUfunction function = nullptr;
  if (cudaError_t e = FindKernel(stub, &function); e != cudaSuccess) return Note(e);
  return Note(GetDriver().LaunchCooperativeKernel[0](function, grid.x, grid.y, grid.z, block.x,
                                                     block.y, block.z,
                                                     static_cast<unsigned>(shared), stream, args));
}
CUDART_API cudaGetFuncBySymbol(cudaFunction_t* function, const void* stub) {
  CUDART_ENTER();
  return Note(FindKernel(stub, function));
}
CUDART_API cudaFuncGetAttributes(cudaFuncAttributes* a, const void* stub) {
  CUDART_ENTER();
  if (a == nullptr) return Note(cudaErrorInvalidValue);
  CUfunction f = nullptr;
  if (cudaError_t e = FindKernel(stub, &f); e != cudaSuccess) return Note(e);
  std::memset(a, 0, sizeof(*a));
  auto get = [&](CUfunction_attribute attribute) {
    int value = 0;
    GetDriver().FuncGetAttribute(&value, attribute, f);
    return value;
  };
  a->sharedSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  a->constSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
  a->localSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  a->maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  a->numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
  a->ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  a->binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  a->maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  return cudaSuccess;
}
CUDART_API cudaFuncSetAttribute(const void* stub, cudaFuncAttribute attribute, int value) {
  CUDART_ENTER();
  CUfunction f = nullptr;
  if (cudaError_t e = FindKernel(stub, &f); e != cudaSuccess) return Note(e);
  return Note(GetDriver().FuncSetAttribute(f, static_cast<CUfunction_attribute>(attribute), value));
}
CUDART_API cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }
CUDART_API cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* stub,
                                                                  int threads, size_t dynamic,
                                                                  unsigned flags) {
  CUDART_ENTER();
  CUfunction f = nullptr;
  if (cudaError_t e = FindKernel(stub, &f); e != cudaSuccess) return Note(e);
  return Note(GetDriver().OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, threads,
                                                                             dynamic, flags));
}
CUDART_API cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub, int threads,
                                                         size_t dynamic) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, stub, threads, dynamic, 0);
}
CUDART_API cudaGetSymbolAddress(void** out, const void* symbol) {
  CUDART_ENTER();
  CUdeviceptr address = 0;
  size_t bytes = 0;
  if (cudaError_t e = FindSymbol(symbol, &address, &bytes); e != cudaSuccess) return Note(e);
  *out = reinterpret_cast<void*>(address);
  return cudaSuccess;
}
CUDART_API cudaGetSymbolSize(size_t* out, const void* symbol) {
  CUDART_ENTER();
  CUdeviceptr address = 0;
  return Note(FindSymbol(symbol, &address, out));
}
