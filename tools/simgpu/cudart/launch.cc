// Launches, and questions about kernels.
#include <cstring>
#include <limits>
#include <vector>

#include "tools/simgpu/cudart/images.h"

namespace {

using cudart::FindFunction;
using cudart::Form;
using cudart::FromDriver;
using cudart::GetDriver;
using cudart::Note;

static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));

struct CallConfiguration {
  dim3 grid, block;
  size_t shared = 0;
  void* stream = nullptr;
};
// A kernel's arguments may themselves launch kernels: a stack.
thread_local std::vector<CallConfiguration> configurations;

// The driver says "invalid value" to every launch that cannot be; the runtime tells a grid or block
// that no kernel could have from other mistakes.
bool ConfigurationFits(const dim3& grid, const dim3& block) {
  auto limit = [](CUdevice_attribute attribute) {
    int value = 0;
    const bool known =
        GetDriver().DeviceGetAttribute(&value, attribute, cudart::CurrentDevice()) == CUDA_SUCCESS;
    return known ? static_cast<unsigned>(value) : std::numeric_limits<unsigned>::max();
  };
  auto within = [&](unsigned value, CUdevice_attribute attribute) {
    return value != 0 && value <= limit(attribute);
  };
  return within(grid.x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) &&
         within(grid.y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) &&
         within(grid.z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z) &&
         within(block.x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) &&
         within(block.y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y) &&
         within(block.z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z) &&
         uint64_t{block.x} * block.y * block.z <= limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
}

cudaError_t Launched(CUresult result, const dim3& grid, const dim3& block) {
  if (result == CUDA_ERROR_INVALID_VALUE && !ConfigurationFits(grid, block)) {
    return Note(cudaErrorInvalidConfiguration);
  }
  return Note(result);
}

cudaError_t Launch(Form form, const void* kernel, dim3 grid, dim3 block, void** args, size_t shared,
                   cudaStream_t stream) {
  CUDART_ENTER();
  CUfunction function = nullptr;
  if (cudaError_t e = FindFunction(kernel, &function); e != cudaSuccess) return Note(e);
  if (shared > std::numeric_limits<unsigned>::max()) return Note(cudaErrorInvalidValue);
  return Launched(
      GetDriver().LaunchKernel[form](function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                     static_cast<unsigned>(shared), stream, args, nullptr),
      grid, block);
}

cudaError_t LaunchCooperative(Form form, const void* kernel, dim3 grid, dim3 block, void** args,
                              size_t shared, cudaStream_t stream) {
  CUDART_ENTER();
  CUfunction function = nullptr;
  if (cudaError_t e = FindFunction(kernel, &function); e != cudaSuccess) return Note(e);
  if (shared > std::numeric_limits<unsigned>::max()) return Note(cudaErrorInvalidValue);
  return Launched(GetDriver().LaunchCooperativeKernel[form](
                      function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                      static_cast<unsigned>(shared), stream, args),
                  grid, block);
}

CUlaunchConfig ToDriverConfig(const cudaLaunchConfig_t& config) {
  CUlaunchConfig c = {};
  c.gridDimX = config.gridDim.x;
  c.gridDimY = config.gridDim.y;
  c.gridDimZ = config.gridDim.z;
  c.blockDimX = config.blockDim.x;
  c.blockDimY = config.blockDim.y;
  c.blockDimZ = config.blockDim.z;
  c.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
  c.hStream = config.stream;
  c.attrs = reinterpret_cast<CUlaunchAttribute*>(config.attrs);
  c.numAttrs = config.numAttrs;
  return c;
}

cudaError_t LaunchEx(Form form, const cudaLaunchConfig_t* config, const void* kernel, void** args) {
  CUDART_ENTER();
  if (config == nullptr) return Note(cudaErrorInvalidValue);
  if (config->dynamicSmemBytes > std::numeric_limits<unsigned>::max()) {
    return Note(cudaErrorInvalidValue);
  }
  CUfunction function = nullptr;
  if (cudaError_t e = FindFunction(kernel, &function); e != cudaSuccess) return Note(e);
  const CUlaunchConfig c = ToDriverConfig(*config);
  return Launched(GetDriver().LaunchKernelEx[form](&c, function, args, nullptr), config->gridDim,
                  config->blockDim);
}

}  // namespace

CUDART_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                   CUstream_st* stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
CUDART_EXPORT cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared,
                                                     void* stream) {
  if (configurations.empty()) return Note(cudaErrorMissingConfiguration);
  const CallConfiguration& top = configurations.back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  std::memcpy(stream, &top.stream, sizeof(top.stream));
  configurations.pop_back();
  return cudaSuccess;
}

#define LAUNCH_PARAMS(First) \
  (First kernel, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t stream)
#define LAUNCH_ARGS (kernel, grid, block, args, shared, stream)
CUDART_TWO_FORMS(__cudaLaunchKernel, _ptsz, Launch, LAUNCH_PARAMS(cudaKernel_t), LAUNCH_ARGS)
CUDART_TWO_FORMS(cudaLaunchKernel, _ptsz, Launch, LAUNCH_PARAMS(const void*), LAUNCH_ARGS)
CUDART_TWO_FORMS(cudaLaunchCooperativeKernel, _ptsz, LaunchCooperative, LAUNCH_PARAMS(const void*),
                 LAUNCH_ARGS)
CUDART_TWO_FORMS(cudaLaunchKernelExC, _ptsz, LaunchEx,
                 (const cudaLaunchConfig_t* config, const void* kernel, void** args),
                 (config, kernel, args))

#define CUDART_FIND(kernel, function) \
  CUDART_ENTER();                     \
  CUfunction function = nullptr;      \
  if (cudaError_t e = FindFunction(kernel, &function); e != cudaSuccess) return Note(e)

CUDART_API cudaFuncGetAttributes(cudaFuncAttributes* out, const void* kernel) {
  CUDART_FIND(kernel, function);
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  CUresult failure = CUDA_SUCCESS;
  auto get = [&](CUfunction_attribute attribute) {
    int value = 0;
    CUresult r = GetDriver().FuncGetAttribute(&value, attribute, function);
    if (r != CUDA_SUCCESS && failure == CUDA_SUCCESS) failure = r;
    return value;
  };
  auto bytes = [&](CUfunction_attribute attribute) { return static_cast<size_t>(get(attribute)); };
  cudaFuncAttributes a = {};
  a.sharedSizeBytes = bytes(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  a.constSizeBytes = bytes(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
  a.localSizeBytes = bytes(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  a.maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  a.numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
  a.ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  a.binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  a.cacheModeCA = get(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
  a.maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  a.preferredShmemCarveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  a.clusterDimMustBeSet = get(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
  a.requiredClusterWidth = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
  a.requiredClusterHeight = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
  a.requiredClusterDepth = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
  a.clusterSchedulingPolicyPreference = get(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
  a.nonPortableClusterSizeAllowed = get(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  if (failure != CUDA_SUCCESS) return Note(failure);
  *out = a;
  return cudaSuccess;
}
CUDART_API cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  CUDART_FIND(kernel, function);
  return Note(
      GetDriver().FuncSetAttribute(function, static_cast<CUfunction_attribute>(attribute), value));
}
CUDART_API cudaFuncSetCacheConfig(const void* kernel, cudaFuncCache config) {
  CUDART_FIND(kernel, function);
  return Note(GetDriver().FuncSetCacheConfig(function, static_cast<CUfunc_cache>(config)));
}
// The configuration of shared memory banks has had no effect since Maxwell.
CUDART_API cudaFuncSetSharedMemConfig(const void* kernel, cudaSharedMemConfig) {
  CUDART_FIND(kernel, function);
  return cudaSuccess;
}
CUDART_API cudaFuncGetName(const char** name, const void* kernel) {
  CUDART_FIND(kernel, function);
  return Note(GetDriver().FuncGetName(name, function));
}
CUDART_API cudaFuncGetParamInfo(const void* kernel, size_t index, size_t* offset, size_t* size) {
  CUDART_FIND(kernel, function);
  return Note(GetDriver().FuncGetParamInfo(function, index, offset, size));
}
CUDART_API cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel,
                                                                  int threads, size_t dynamic,
                                                                  unsigned flags) {
  CUDART_FIND(kernel, function);
  return Note(GetDriver().OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, function, threads, dynamic, flags));
}
CUDART_API cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                         int threads, size_t dynamic) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, threads, dynamic,
                                                                cudaOccupancyDefault);
}
CUDART_API cudaOccupancyAvailableDynamicSMemPerBlock(size_t* dynamic, const void* kernel,
                                                     int blocks, int threads) {
  CUDART_FIND(kernel, function);
  return Note(
      GetDriver().OccupancyAvailableDynamicSMemPerBlock(dynamic, function, blocks, threads));
}
CUDART_API cudaOccupancyMaxPotentialClusterSize(int* size, const void* kernel,
                                                const cudaLaunchConfig_t* config) {
  CUDART_FIND(kernel, function);
  if (config == nullptr) return Note(cudaErrorInvalidValue);
  const CUlaunchConfig c = ToDriverConfig(*config);
  return Note(GetDriver().OccupancyMaxPotentialClusterSize(size, function, &c));
}
CUDART_API cudaOccupancyMaxActiveClusters(int* clusters, const void* kernel,
                                          const cudaLaunchConfig_t* config) {
  CUDART_FIND(kernel, function);
  if (config == nullptr) return Note(cudaErrorInvalidValue);
  const CUlaunchConfig c = ToDriverConfig(*config);
  return Note(GetDriver().OccupancyMaxActiveClusters(clusters, function, &c));
}
