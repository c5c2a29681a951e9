// What calls return where no device can be used: EXPECTED_ERROR says why it cannot.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace {

__global__ void Nothing() {}

const char* Expected() {
  const char* name = std::getenv("EXPECTED_ERROR");
  return name == nullptr ? "" : name;
}

// Programming Guide, "Error Checking"; Runtime API, cudaErrorInsufficientDriver, cudaErrorNoDevice.
TEST(NoDevice, EveryCallSaysWhy) {
  int count = -1;
  EXPECT_STREQ(cudaGetErrorName(cudaGetDeviceCount(&count)), Expected());
  EXPECT_EQ(count, 0);
  void* memory = nullptr;
  EXPECT_STREQ(cudaGetErrorName(cudaMalloc(&memory, 16)), Expected());
  EXPECT_STREQ(cudaGetErrorName(cudaSetDevice(0)), Expected());
  EXPECT_STREQ(cudaGetErrorName(cudaDeviceSynchronize()), Expected());
  cudaStream_t stream = nullptr;
  EXPECT_STREQ(cudaGetErrorName(cudaStreamCreate(&stream)), Expected());
  EXPECT_STREQ(cudaGetErrorName(cudaGetLastError()), Expected());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(NoDevice, LaunchesLeaveTheError) {
  for (int i = 0; i < 2; ++i) {
    Nothing<<<1, 1>>>();
    EXPECT_STREQ(cudaGetErrorName(cudaGetLastError()), Expected());
  }
}

// Runtime API, cudaDriverGetVersion, cudaRuntimeGetVersion: these need no device.
TEST(NoDevice, VersionsAreKnown) {
  int version = -1;
  EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version / 1000, CUDART_VERSION / 1000);
  EXPECT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
  EXPECT_GE(version, 0);
}

}  // namespace
