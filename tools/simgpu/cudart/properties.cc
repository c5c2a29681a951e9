// The properties of a device, from the driver's attributes.
#include <algorithm>
#include <cstring>
#include <utility>

#include "tools/simgpu/cudart/runtime.h"

namespace {

using cudart::GetDriver;
using cudart::Note;

// An attribute that the driver does not know is 0.
int Get(int device, CUdevice_attribute attribute) {
  int value = 0;
  return GetDriver().DeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS ? value : 0;
}

cudaError_t FillProperties(int device, cudaDeviceProp* p) {
  std::memset(p, 0, sizeof(*p));
  if (CUresult r = GetDriver().DeviceGetName(p->name, sizeof(p->name), device); r != CUDA_SUCCESS) {
    return cudart::FromDriver(r);
  }
  if (CUresult r = GetDriver().DeviceTotalMem(&p->totalGlobalMem, device); r != CUDA_SUCCESS) {
    return cudart::FromDriver(r);
  }
  GetDriver().DeviceGetUuid(&p->uuid, device);
#define PROPERTY(field, attribute) \
  p->field = static_cast<decltype(+p->field)>(Get(device, CU_DEVICE_ATTRIBUTE_##attribute))
  PROPERTY(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK);
  PROPERTY(regsPerBlock, MAX_REGISTERS_PER_BLOCK);
  PROPERTY(warpSize, WARP_SIZE);
  PROPERTY(memPitch, MAX_PITCH);
  PROPERTY(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK);
  PROPERTY(maxThreadsDim[0], MAX_BLOCK_DIM_X);
  PROPERTY(maxThreadsDim[1], MAX_BLOCK_DIM_Y);
  PROPERTY(maxThreadsDim[2], MAX_BLOCK_DIM_Z);
  PROPERTY(maxGridSize[0], MAX_GRID_DIM_X);
  PROPERTY(maxGridSize[1], MAX_GRID_DIM_Y);
  PROPERTY(maxGridSize[2], MAX_GRID_DIM_Z);
  PROPERTY(totalConstMem, TOTAL_CONSTANT_MEMORY);
  PROPERTY(major, COMPUTE_CAPABILITY_MAJOR);
  PROPERTY(minor, COMPUTE_CAPABILITY_MINOR);
  PROPERTY(textureAlignment, TEXTURE_ALIGNMENT);
  PROPERTY(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT);
  PROPERTY(multiProcessorCount, MULTIPROCESSOR_COUNT);
  PROPERTY(integrated, INTEGRATED);
  PROPERTY(canMapHostMemory, CAN_MAP_HOST_MEMORY);
  PROPERTY(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH);
  PROPERTY(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH);
  PROPERTY(maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH);
  PROPERTY(maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT);
  PROPERTY(maxTexture2DMipmap[0], MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH);
  PROPERTY(maxTexture2DMipmap[1], MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT);
  PROPERTY(maxTexture2DLinear[0], MAXIMUM_TEXTURE2D_LINEAR_WIDTH);
  PROPERTY(maxTexture2DLinear[1], MAXIMUM_TEXTURE2D_LINEAR_HEIGHT);
  PROPERTY(maxTexture2DLinear[2], MAXIMUM_TEXTURE2D_LINEAR_PITCH);
  PROPERTY(maxTexture2DGather[0], MAXIMUM_TEXTURE2D_GATHER_WIDTH);
  PROPERTY(maxTexture2DGather[1], MAXIMUM_TEXTURE2D_GATHER_HEIGHT);
  PROPERTY(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH);
  PROPERTY(maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT);
  PROPERTY(maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH);
  PROPERTY(maxTexture3DAlt[0], MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE);
  PROPERTY(maxTexture3DAlt[1], MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE);
  PROPERTY(maxTexture3DAlt[2], MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE);
  PROPERTY(maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH);
  PROPERTY(maxTexture1DLayered[0], MAXIMUM_TEXTURE1D_LAYERED_WIDTH);
  PROPERTY(maxTexture1DLayered[1], MAXIMUM_TEXTURE1D_LAYERED_LAYERS);
  PROPERTY(maxTexture2DLayered[0], MAXIMUM_TEXTURE2D_LAYERED_WIDTH);
  PROPERTY(maxTexture2DLayered[1], MAXIMUM_TEXTURE2D_LAYERED_HEIGHT);
  PROPERTY(maxTexture2DLayered[2], MAXIMUM_TEXTURE2D_LAYERED_LAYERS);
  PROPERTY(maxTextureCubemapLayered[0], MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH);
  PROPERTY(maxTextureCubemapLayered[1], MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS);
  PROPERTY(maxSurface1D, MAXIMUM_SURFACE1D_WIDTH);
  PROPERTY(maxSurface2D[0], MAXIMUM_SURFACE2D_WIDTH);
  PROPERTY(maxSurface2D[1], MAXIMUM_SURFACE2D_HEIGHT);
  PROPERTY(maxSurface3D[0], MAXIMUM_SURFACE3D_WIDTH);
  PROPERTY(maxSurface3D[1], MAXIMUM_SURFACE3D_HEIGHT);
  PROPERTY(maxSurface3D[2], MAXIMUM_SURFACE3D_DEPTH);
  PROPERTY(maxSurface1DLayered[0], MAXIMUM_SURFACE1D_LAYERED_WIDTH);
  PROPERTY(maxSurface1DLayered[1], MAXIMUM_SURFACE1D_LAYERED_LAYERS);
  PROPERTY(maxSurface2DLayered[0], MAXIMUM_SURFACE2D_LAYERED_WIDTH);
  PROPERTY(maxSurface2DLayered[1], MAXIMUM_SURFACE2D_LAYERED_HEIGHT);
  PROPERTY(maxSurface2DLayered[2], MAXIMUM_SURFACE2D_LAYERED_LAYERS);
  PROPERTY(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH);
  PROPERTY(maxSurfaceCubemapLayered[0], MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH);
  PROPERTY(maxSurfaceCubemapLayered[1], MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS);
  PROPERTY(surfaceAlignment, SURFACE_ALIGNMENT);
  PROPERTY(concurrentKernels, CONCURRENT_KERNELS);
  PROPERTY(ECCEnabled, ECC_ENABLED);
  PROPERTY(pciBusID, PCI_BUS_ID);
  PROPERTY(pciDeviceID, PCI_DEVICE_ID);
  PROPERTY(pciDomainID, PCI_DOMAIN_ID);
  PROPERTY(tccDriver, TCC_DRIVER);
  PROPERTY(asyncEngineCount, ASYNC_ENGINE_COUNT);
  PROPERTY(unifiedAddressing, UNIFIED_ADDRESSING);
  PROPERTY(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH);
  PROPERTY(l2CacheSize, L2_CACHE_SIZE);
  PROPERTY(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE);
  PROPERTY(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR);
  PROPERTY(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED);
  PROPERTY(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED);
  PROPERTY(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED);
  PROPERTY(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  PROPERTY(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR);
  PROPERTY(managedMemory, MANAGED_MEMORY);
  PROPERTY(isMultiGpuBoard, MULTI_GPU_BOARD);
  PROPERTY(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID);
  PROPERTY(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED);
  PROPERTY(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS);
  PROPERTY(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS);
  PROPERTY(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED);
  PROPERTY(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
  PROPERTY(cooperativeLaunch, COOPERATIVE_LAUNCH);
  PROPERTY(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  PROPERTY(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
  PROPERTY(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST);
  PROPERTY(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR);
  PROPERTY(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE);
  PROPERTY(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK);
  PROPERTY(hostRegisterSupported, HOST_REGISTER_SUPPORTED);
  PROPERTY(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED);
  PROPERTY(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED);
  PROPERTY(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED);
  PROPERTY(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED);
  PROPERTY(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED);
  PROPERTY(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
  PROPERTY(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING);
  PROPERTY(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES);
  PROPERTY(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED);
  PROPERTY(ipcEventSupported, IPC_EVENT_SUPPORTED);
  PROPERTY(clusterLaunch, CLUSTER_LAUNCH);
  PROPERTY(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS);
  PROPERTY(deviceNumaConfig, NUMA_CONFIG);
  PROPERTY(deviceNumaId, NUMA_ID);
  PROPERTY(mpsEnabled, MPS_ENABLED);
  PROPERTY(hostNumaId, HOST_NUMA_ID);
  PROPERTY(gpuPciDeviceID, GPU_PCI_DEVICE_ID);
  PROPERTY(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID);
  PROPERTY(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED);
#undef PROPERTY
  return cudaSuccess;
}

}  // namespace

CUDART_API cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  CUDART_ENTER_DRIVER();
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  return Note(FillProperties(device, out));
}
CUDART_API cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  CUDART_ENTER_DRIVER();
  // The two enumerations agree in their numbers.
  return Note(
      GetDriver().DeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), device));
}
CUDART_API cudaDeviceGetTexture1DLinearMaxWidth(size_t* out, const cudaChannelFormatDesc* format,
                                                int device) {
  CUDART_ENTER_DRIVER();
  if (out == nullptr || format == nullptr) return Note(cudaErrorInvalidValue);
  const int channels = (format->x != 0) + (format->y != 0) + (format->z != 0) + (format->w != 0);
  CUarray_format kind = CU_AD_FORMAT_FLOAT;
  switch (format->f) {
    case cudaChannelFormatKindSigned:
      kind = format->x == 8    ? CU_AD_FORMAT_SIGNED_INT8
             : format->x == 16 ? CU_AD_FORMAT_SIGNED_INT16
                               : CU_AD_FORMAT_SIGNED_INT32;
      break;
    case cudaChannelFormatKindUnsigned:
      kind = format->x == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
             : format->x == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
                               : CU_AD_FORMAT_UNSIGNED_INT32;
      break;
    case cudaChannelFormatKindFloat:
      kind = format->x == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
      break;
    default:
      return Note(cudaErrorInvalidChannelDescriptor);
  }
  return Note(GetDriver().DeviceGetTexture1DLinearMaxWidth(
      out, kind, static_cast<unsigned>(channels), device));
}

// The device that has what was asked for and most of what was not: fields left 0 ask nothing.
CUDART_API cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  CUDART_ENTER_DRIVER();
  if (device == nullptr || wanted == nullptr) return Note(cudaErrorInvalidValue);
  int best = 0, best_score = -1;
  for (int i = 0; i < GetDriver().device_count; ++i) {
    cudaDeviceProp p;
    if (cudaError_t e = FillProperties(i, &p); e != cudaSuccess) return Note(e);
    int score = 0;
    score += std::make_pair(p.major, p.minor) >= std::make_pair(wanted->major, wanted->minor);
    score += p.totalGlobalMem >= wanted->totalGlobalMem;
    score += p.multiProcessorCount >= wanted->multiProcessorCount;
    score += p.sharedMemPerBlock >= wanted->sharedMemPerBlock;
    score += p.regsPerBlock >= wanted->regsPerBlock;
    score += p.maxThreadsPerBlock >= wanted->maxThreadsPerBlock;
    score += p.totalConstMem >= wanted->totalConstMem;
    score += p.asyncEngineCount >= wanted->asyncEngineCount;
    score += p.concurrentKernels >= wanted->concurrentKernels;
    score += p.integrated == wanted->integrated;
    score += wanted->name[0] == '\0' || std::strcmp(p.name, wanted->name) == 0;
    if (score > best_score) {
      best = i;
      best_score = score;
    }
  }
  *device = best;
  return cudaSuccess;
}
