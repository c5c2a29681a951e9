// Errors that kill the context. Each scenario runs in a process of its own.
#include <cassert>
#include <cstdio>

#include "conformance.h"

namespace {

__global__ void Store(int* out, int value) { *out = value; }
__global__ void Load(const int* in, int* out) { *out = *in; }
__global__ void StoreFar(int* out, long long index) { out[index] = 1; }
__global__ void Misaligned(char* out) { *reinterpret_cast<int*>(out + 1) = 1; }
__global__ void Assert(int value) { assert(value == 0); }
__global__ void Trap() { asm volatile("trap;"); }

class Faults : public Conformance {
  // Nothing touches the device in the parent process.
  void SetUp() override {}
  void TearDown() override {}
};

// Runtime API, cudaErrorIllegalAddress: "leaves the process in an inconsistent state and any
// further CUDA work will return the same error".
void ExpectDead(cudaError_t error) {
  int* p = nullptr;
  EXPECT_CUDA(error, cudaMalloc(&p, 4));
  EXPECT_CUDA(error, cudaGetLastError());
  EXPECT_CUDA(error, cudaDeviceSynchronize());
  int host = 0;
  EXPECT_CUDA(error, cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost));
  Store<<<1, 1>>>(p, 1);
  EXPECT_CUDA(error, cudaGetLastError());
  cudaStream_t stream = nullptr;
  EXPECT_CUDA(error, cudaStreamCreate(&stream));
  EXPECT_CUDA(error, cudaStreamSynchronize(nullptr));
}

TEST_F(Faults, StoreToAnUnmappedAddress) {
  EXPECT_IN_NEW_PROCESS({
    EXPECT_OK(cudaFree(nullptr));
    Store<<<1, 1>>>(reinterpret_cast<int*>(0x1000), 1);
    EXPECT_OK(cudaGetLastError());  // asynchronous: the launch itself was fine
    EXPECT_CUDA(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    EXPECT_CUDA(cudaErrorIllegalAddress, cudaGetLastError());
    ExpectDead(cudaErrorIllegalAddress);
  });
}

TEST_F(Faults, LoadFromNull) {
  EXPECT_IN_NEW_PROCESS({
    DeviceArray<int> out(1);
    Load<<<1, 1>>>(nullptr, out.get());
    EXPECT_CUDA(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    ExpectDead(cudaErrorIllegalAddress);
  });
}

TEST_F(Faults, UseAfterFree) {
  EXPECT_IN_NEW_PROCESS({
    {
      DeviceArray<int> warm(1);
      Store<<<1, 1>>>(warm.get(), 1);  // the module is loaded now, and takes no address later
      EXPECT_OK(cudaDeviceSynchronize());
    }
    int* p = nullptr;
    EXPECT_OK(cudaMalloc(&p, size_t{256} << 20));
    EXPECT_OK(cudaFree(p));
    Store<<<1, 1>>>(p, 1);
    EXPECT_CUDA(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  });
}

TEST_F(Faults, FarBehindAnAllocation) {
  EXPECT_IN_NEW_PROCESS({
    DeviceArray<int> x(1024);
    StoreFar<<<1, 1>>>(x.get(), 1ll << 40);
    EXPECT_CUDA(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  });
}

TEST_F(Faults, MisalignedStore) {
  EXPECT_IN_NEW_PROCESS({
    DeviceArray<char> x(64);
    Misaligned<<<1, 1>>>(x.get());
    EXPECT_CUDA(cudaErrorMisalignedAddress, cudaDeviceSynchronize());
    ExpectDead(cudaErrorMisalignedAddress);
  });
}

// Programming Guide, "Assertion".
TEST_F(Faults, FailedAssertion) {
  EXPECT_IN_NEW_PROCESS({
    Assert<<<1, 32>>>(0);
    EXPECT_OK(cudaDeviceSynchronize());
    Assert<<<1, 32>>>(1);
    EXPECT_CUDA(cudaErrorAssert, cudaDeviceSynchronize());
    ExpectDead(cudaErrorAssert);
  });
}

// Programming Guide, "Trap function".
TEST_F(Faults, TrapEndsTheKernel) {
  EXPECT_IN_NEW_PROCESS({
    Trap<<<1, 1>>>();
    const cudaError_t e = cudaDeviceSynchronize();
    EXPECT_NE(e, cudaSuccess);
    ExpectDead(e);
  });
}

// Work behind the fault is not done, in other streams neither once the error was seen.
TEST_F(Faults, NoWorkAfterTheFault) {
  EXPECT_IN_NEW_PROCESS({
    int* mapped = nullptr;
    EXPECT_OK(cudaHostAlloc(&mapped, sizeof(int), cudaHostAllocMapped));
    *mapped = 0;
    Store<<<1, 1>>>(reinterpret_cast<int*>(0x1000), 1);
    Store<<<1, 1>>>(mapped, 1);
    EXPECT_CUDA(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    EXPECT_EQ(*mapped, 0);
  });
}

// Runtime API, cudaEventQuery, cudaStreamQuery: may return errors of previous launches.
TEST_F(Faults, EventsAndStreamsReportIt) {
  EXPECT_IN_NEW_PROCESS({
    Stream stream;
    Event event;
    Store<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(0x1000), 1);
    // The fault may be known already, or only once the record has been reached.
    const cudaError_t recorded = cudaEventRecord(event, stream);
    EXPECT_TRUE(recorded == cudaSuccess || recorded == cudaErrorIllegalAddress);
    EXPECT_CUDA(cudaErrorIllegalAddress, cudaEventSynchronize(event));
    EXPECT_CUDA(cudaErrorIllegalAddress, cudaEventQuery(event));
    EXPECT_CUDA(cudaErrorIllegalAddress, cudaStreamQuery(stream));
  });
}

}  // namespace
