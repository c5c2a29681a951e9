// Error codes, the last error, and what does not harm the context.
#include <cuda_profiler_api.h>

#include <cstring>
#include <thread>

#include "conformance.h"

namespace {

__global__ void Nothing() {}
__global__ void Store(int* out, int value) { *out = value; }
__global__ void __launch_bounds__(64) AtMost64(int* out) { out[threadIdx.x] = 1; }
__global__ void Dynamic(int* out) {
  extern __shared__ int shared[];
  shared[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

class Errors : public Conformance {};

// Programming Guide, "Error Checking": each failure overwrites the thread's error, success leaves
// it, cudaPeekAtLastError keeps it and cudaGetLastError resets it.
TEST_F(Errors, LastErrorStaysUntilTaken) {
  EXPECT_CUDA(cudaErrorInvalidDevice, cudaSetDevice(-1));
  int device = -1;
  EXPECT_OK(cudaGetDevice(&device));
  EXPECT_CUDA(cudaErrorInvalidDevice, cudaPeekAtLastError());
  EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy(nullptr, &device, 4, cudaMemcpyHostToDevice));
  EXPECT_CUDA(cudaErrorInvalidValue, cudaPeekAtLastError());
  EXPECT_CUDA(cudaErrorInvalidValue, cudaGetLastError());
  EXPECT_OK(cudaGetLastError());
}

TEST_F(Errors, LastErrorBelongsToTheThread) {
  EXPECT_CUDA(cudaErrorInvalidDevice, cudaSetDevice(1 << 20));
  std::thread([] { EXPECT_OK(cudaPeekAtLastError()); }).join();
  EXPECT_CUDA(cudaErrorInvalidDevice, cudaGetLastError());
}

// Programming Guide, "Error Checking": launches return nothing, their errors are the last error.
TEST_F(Errors, LaunchErrorsAreTheLastError) {
  Nothing<<<1, 0>>>();
  EXPECT_CUDA(cudaErrorInvalidConfiguration, cudaGetLastError());
  Nothing<<<0, 1>>>();
  EXPECT_CUDA(cudaErrorInvalidConfiguration, cudaGetLastError());
  Nothing<<<dim3(1, 0, 1), 1>>>();
  EXPECT_CUDA(cudaErrorInvalidConfiguration, cudaGetLastError());
}

// Programming Guide, "Technical Specifications per Compute Capability", through the device's own
// attributes.
TEST_F(Errors, BlocksAndGridsBeyondTheLimits) {
  cudaDeviceProp p;
  ASSERT_OK(cudaGetDeviceProperties(&p, 0));
  Nothing<<<1, p.maxThreadsPerBlock>>>();
  EXPECT_OK(cudaGetLastError());
  Nothing<<<1, p.maxThreadsPerBlock + 1>>>();
  EXPECT_CUDA(cudaErrorInvalidConfiguration, cudaGetLastError());
  Nothing<<<1, dim3(1, 1, static_cast<unsigned>(p.maxThreadsDim[2]) + 1)>>>();
  EXPECT_CUDA(cudaErrorInvalidConfiguration, cudaGetLastError());
  Nothing<<<dim3(1, static_cast<unsigned>(p.maxGridSize[1]) + 1), 1>>>();
  EXPECT_CUDA(cudaErrorInvalidConfiguration, cudaGetLastError());
  Nothing<<<dim3(1, 1, static_cast<unsigned>(p.maxGridSize[2]) + 1), 1>>>();
  EXPECT_CUDA(cudaErrorInvalidConfiguration, cudaGetLastError());
  EXPECT_OK(cudaDeviceSynchronize());
}

// Programming Guide, "Launch Bounds": more threads than the bound fail to launch.
TEST_F(Errors, LaunchBoundsHold) {
  DeviceArray<int> out(128);
  AtMost64<<<1, 64>>>(out.get());
  EXPECT_OK(cudaGetLastError());
  AtMost64<<<1, 128>>>(out.get());
  EXPECT_NE(cudaGetLastError(), cudaSuccess);
  EXPECT_OK(cudaDeviceSynchronize());
}

// Programming Guide, "Shared Memory" of compute capability 7.x and later: above 48 KiB the kernel
// must opt in.
TEST_F(Errors, DynamicSharedMemoryAbove48KiBNeedsOptIn) {
  cudaDeviceProp p;
  ASSERT_OK(cudaGetDeviceProperties(&p, 0));
  if (p.sharedMemPerBlockOptin <= p.sharedMemPerBlock) {
    GTEST_SKIP() << "the device offers no more than the default";
  }
  DeviceArray<int> out(32);
  const size_t much = p.sharedMemPerBlockOptin;
  Dynamic<<<1, 32, much>>>(out.get());
  EXPECT_CUDA(cudaErrorInvalidValue, cudaGetLastError());
  ASSERT_OK(cudaFuncSetAttribute(Dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(much)));
  Dynamic<<<1, 32, much>>>(out.get());
  EXPECT_OK(cudaGetLastError());
  EXPECT_EQ(out.Read()[0], 31);
  EXPECT_CUDA(cudaErrorInvalidValue,
              cudaFuncSetAttribute(Dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(much) + 1));
  cudaFuncAttributes attributes;
  ASSERT_OK(cudaFuncGetAttributes(&attributes, Dynamic));
  EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, static_cast<int>(much));
}

// Runtime API, cudaMalloc: cudaErrorMemoryAllocation, and the context lives on.
TEST_F(Errors, OutOfMemoryIsHarmless) {
  size_t free_bytes = 0, total = 0;
  ASSERT_OK(cudaMemGetInfo(&free_bytes, &total));
  EXPECT_LE(free_bytes, total);
  void* p = &p;
  EXPECT_CUDA(cudaErrorMemoryAllocation, cudaMalloc(&p, total + (size_t{1} << 30)));
  EXPECT_CUDA(cudaErrorMemoryAllocation, cudaGetLastError());
  EXPECT_CUDA(cudaErrorMemoryAllocation, cudaMalloc(&p, ~size_t{0} / 2));
  cudaGetLastError();
  DeviceArray<int> out(1);
  Store<<<1, 1>>>(out.get(), 5);
  EXPECT_EQ(out.Read()[0], 5);
}

// Memory that was taken until no more was left is there again once it is freed.
TEST_F(Errors, MemoryRunsOutAndComesBack) {
  size_t before = 0, total = 0;
  ASSERT_OK(cudaMemGetInfo(&before, &total));
  const size_t piece = total / 16;
  std::vector<void*> pieces;
  cudaError_t e = cudaSuccess;
  while (e == cudaSuccess && pieces.size() < 32) {
    void* p = nullptr;
    e = cudaMalloc(&p, piece);
    if (e == cudaSuccess) pieces.push_back(p);
  }
  EXPECT_CUDA(cudaErrorMemoryAllocation, e);
  cudaGetLastError();
  EXPECT_LE(pieces.size(), 16u);
  for (void* p : pieces) EXPECT_OK(cudaFree(p));
  void* p = nullptr;
  EXPECT_OK(cudaMalloc(&p, piece));
  EXPECT_OK(cudaFree(p));
}

// Runtime API, cudaFree: a pointer freed before, or never allocated, is an error; null is not.
TEST_F(Errors, DoubleFree) {
  void* p = nullptr;
  ASSERT_OK(cudaMalloc(&p, 1 << 20));
  EXPECT_OK(cudaFree(p));
  EXPECT_CUDA(cudaErrorInvalidValue, cudaFree(p));
  EXPECT_CUDA(cudaErrorInvalidValue, cudaGetLastError());
  int local = 0;
  EXPECT_CUDA(cudaErrorInvalidValue, cudaFree(&local));
  EXPECT_OK(cudaFree(nullptr));
  EXPECT_OK(cudaFreeHost(nullptr));
  EXPECT_CUDA(cudaErrorInvalidValue, cudaFreeHost(&local));
}

TEST_F(Errors, FreeNeedsTheStartOfTheAllocation) {
  char* p = nullptr;
  ASSERT_OK(cudaMalloc(&p, 1 << 20));
  EXPECT_CUDA(cudaErrorInvalidValue, cudaFree(p + 4096));
  EXPECT_OK(cudaFree(p));
}

// Runtime API, cudaMalloc of 0 bytes succeeds and gives a null pointer.
TEST_F(Errors, EmptyAllocation) {
  void* p = &p;
  EXPECT_OK(cudaMalloc(&p, 0));
  EXPECT_EQ(p, nullptr);
  EXPECT_CUDA(cudaErrorInvalidValue, cudaMalloc(nullptr, 16));
  // Runtime API, cudaMallocManaged: a size of 0 is an invalid value.
  EXPECT_CUDA(cudaErrorInvalidValue, cudaMallocManaged(&p, 0));
}

TEST_F(Errors, WrongArguments) {
  DeviceArray<int> x(4);
  int host = 0;
  EXPECT_CUDA(cudaErrorInvalidMemcpyDirection,
              cudaMemcpy(x.get(), &host, 4, static_cast<cudaMemcpyKind>(17)));
  EXPECT_CUDA(cudaErrorInvalidPitchValue,
              cudaMemcpy2D(x.get(), 2, &host, 4, 4, 1, cudaMemcpyHostToDevice));
  EXPECT_CUDA(cudaErrorInvalidValue, cudaMemset(&host, 0, sizeof(host)));
  EXPECT_CUDA(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(&host, &host, sizeof(host)));
  EXPECT_CUDA(cudaErrorInvalidDeviceFunction,
              cudaLaunchKernel(&host, dim3(1), dim3(1), nullptr, 0, nullptr));
  EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventRecord(nullptr, nullptr));
  cudaDeviceProp p;
  EXPECT_CUDA(cudaErrorInvalidDevice, cudaGetDeviceProperties(&p, 1 << 20));
  int value = 0;
  EXPECT_CUDA(cudaErrorInvalidDevice, cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1 << 20));
  EXPECT_CUDA(cudaErrorInvalidValue,
              cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(100000), 0));
}

// Runtime API, cudaMemset: an access outside of the allocation is refused.
TEST_F(Errors, FillsAndCopiesStayInsideTheAllocation) {
  // The rest of the address range is not this program's, whatever the granularity.
  const size_t bytes = size_t{64} << 20;
  char* p = nullptr;
  ASSERT_OK(cudaMalloc(&p, bytes));
  std::vector<char> host(2 << 20);
  EXPECT_CUDA(cudaErrorInvalidValue,
              cudaMemcpy(p + bytes - (1 << 20), host.data(), host.size(), cudaMemcpyHostToDevice));
  EXPECT_CUDA(cudaErrorInvalidValue, cudaMemset(p + bytes - (1 << 20), 0, 2 << 20));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaFree(p));
}

// Runtime API, cudaGetErrorName, cudaGetErrorString.
TEST_F(Errors, NamesAndTexts) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(-1)), "unrecognized error code");
  EXPECT_STREQ(cudaGetErrorString(static_cast<cudaError_t>(123456)), "unrecognized error code");
}

// --- Devices ---

// The properties agree with the attributes.
TEST_F(Errors, PropertiesAgreeWithAttributes) {
  int device = -1, value = 0;
  ASSERT_OK(cudaGetDevice(&device));
  cudaDeviceProp p;
  ASSERT_OK(cudaGetDeviceProperties(&p, device));
  EXPECT_GT(std::strlen(p.name), 0u);
  const std::pair<cudaDeviceAttr, int> pairs[] = {
      {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
      {cudaDevAttrMaxBlockDimX, p.maxThreadsDim[0]},
      {cudaDevAttrMaxGridDimX, p.maxGridSize[0]},
      {cudaDevAttrMaxSharedMemoryPerBlock, static_cast<int>(p.sharedMemPerBlock)},
      {cudaDevAttrTotalConstantMemory, static_cast<int>(p.totalConstMem)},
      {cudaDevAttrWarpSize, p.warpSize},
      {cudaDevAttrMultiProcessorCount, p.multiProcessorCount},
      {cudaDevAttrComputeCapabilityMajor, p.major},
      {cudaDevAttrComputeCapabilityMinor, p.minor},
      {cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor},
      {cudaDevAttrL2CacheSize, p.l2CacheSize},
      {cudaDevAttrGlobalMemoryBusWidth, p.memoryBusWidth},
      {cudaDevAttrAsyncEngineCount, p.asyncEngineCount},
      {cudaDevAttrUnifiedAddressing, p.unifiedAddressing},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, static_cast<int>(p.sharedMemPerBlockOptin)},
      {cudaDevAttrMemoryPoolsSupported, p.memoryPoolsSupported},
      {cudaDevAttrPciBusId, p.pciBusID},
  };
  for (const auto& [attribute, wanted] : pairs) {
    EXPECT_OK(cudaDeviceGetAttribute(&value, attribute, device));
    EXPECT_EQ(value, wanted) << "attribute " << attribute;
  }
  EXPECT_EQ(p.warpSize, 32);
  size_t free_bytes = 0, total = 0;
  ASSERT_OK(cudaMemGetInfo(&free_bytes, &total));
  EXPECT_EQ(p.totalGlobalMem, total);
}

TEST_F(Errors, ChosenDeviceIsPerThread) {
  int count = 0, device = -1;
  ASSERT_OK(cudaGetDeviceCount(&count));
  ASSERT_OK(cudaSetDevice(count - 1));
  std::thread([] {
    int other = -1;
    EXPECT_OK(cudaGetDevice(&other));
    EXPECT_EQ(other, 0);
  }).join();
  EXPECT_OK(cudaGetDevice(&device));
  EXPECT_EQ(device, count - 1);
  EXPECT_OK(cudaSetDevice(0));
  cudaDeviceProp wanted = {};
  EXPECT_OK(cudaChooseDevice(&device, &wanted));
  EXPECT_GE(device, 0);
  EXPECT_LT(device, count);
}

TEST_F(Errors, Versions) {
  int driver = 0, runtime = 0;
  EXPECT_OK(cudaDriverGetVersion(&driver));
  EXPECT_OK(cudaRuntimeGetVersion(&runtime));
  EXPECT_EQ(runtime / 1000, CUDART_VERSION / 1000);
  EXPECT_GE(driver / 1000, runtime / 1000);
}

// Runtime API, "Profiler Control".
TEST_F(Errors, ProfilerSwitches) {
  EXPECT_OK(cudaProfilerStart());
  EXPECT_OK(cudaProfilerStop());
}

// Runtime API, cudaDeviceReset: what the process had on the device is gone, and a new call makes
// the context again.
TEST_F(Errors, DeviceResetBeginsAnew) {
  EXPECT_IN_NEW_PROCESS({
    void* p = nullptr;
    EXPECT_OK(cudaMalloc(&p, 1 << 20));
    EXPECT_OK(cudaDeviceReset());
    EXPECT_NE(cudaFree(p), cudaSuccess);
    cudaGetLastError();
    DeviceArray<int> out(1);
    Store<<<1, 1>>>(out.get(), 6);
    EXPECT_EQ(out.Read()[0], 6);
  });
}

// Runtime API, cudaOccupancyMaxActiveBlocksPerMultiprocessor.
TEST_F(Errors, OccupancyIsWithinTheDevice) {
  cudaDeviceProp p;
  ASSERT_OK(cudaGetDeviceProperties(&p, 0));
  int blocks = 0, more = 0;
  ASSERT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Nothing, 256, 0));
  EXPECT_GE(blocks, 1);
  EXPECT_LE(blocks * 256, p.maxThreadsPerMultiProcessor);
  ASSERT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&more, Nothing, 256, 40 << 10));
  EXPECT_LE(more, blocks);
  EXPECT_GE(more, 1);
  int grid = 0, block = 0;
  ASSERT_OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, AtMost64, 0, 0));
  EXPECT_GT(grid, 0);
  EXPECT_GT(block, 0);
  EXPECT_LE(block, 64);
}

}  // namespace
