// Streams, their order, and the legacy default stream. Built for the legacy default stream.
#include <memory>

#include "conformance.h"

namespace {

// Two steps do not commute, so the result tells their order.
__global__ void Step(unsigned* x, unsigned add) { *x = *x * 3 + add; }
unsigned Steps(unsigned x, const std::vector<unsigned>& adds) {
  for (unsigned add : adds) x = x * 3 + add;
  return x;
}

class Streams : public Conformance {};

// CUDA C++ Programming Guide, "Streams": commands of a stream execute in order.
TEST_F(Streams, CommandsOfAStreamRunInOrder) {
  DeviceArray<unsigned> x(1);
  Stream stream(cudaStreamNonBlocking);
  ASSERT_OK(cudaMemsetAsync(x.get(), 0, x.bytes(), stream));
  std::vector<unsigned> adds;
  for (unsigned i = 0; i < 200; ++i) {
    Step<<<1, 1, 0, stream>>>(x.get(), i);
    adds.push_back(i);
  }
  unsigned result = 0;
  ASSERT_OK(cudaMemcpyAsync(&result, x.get(), sizeof(result), cudaMemcpyDeviceToHost, stream));
  ASSERT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(result, Steps(0, adds));
}

// Runtime API, "Stream synchronization behavior", "Legacy default stream": an action in it waits
// for all blocking streams, and they wait for it.
TEST_F(Streams, LegacyStreamOrdersBlockingStreams) {
  DeviceArray<unsigned> x(1);
  Stream a, b;
  ASSERT_OK(cudaMemset(x.get(), 0, x.bytes()));
  std::vector<unsigned> adds;
  for (unsigned i = 0; i < 50; ++i) {
    Step<<<1, 1, 0, a>>>(x.get(), 4 * i);
    Step<<<1, 1>>>(x.get(), 4 * i + 1);
    Step<<<1, 1, 0, b>>>(x.get(), 4 * i + 2);
    Step<<<1, 1, 0, cudaStreamLegacy>>>(x.get(), 4 * i + 3);
    for (unsigned j = 0; j < 4; ++j) adds.push_back(4 * i + j);
  }
  EXPECT_EQ(x.Read()[0], Steps(0, adds));
}

// The same section: streams made with cudaStreamNonBlocking do not synchronise with it.
TEST_F(Streams, NonBlockingStreamsDoNotHoldUpTheLegacyStream) {
  DeviceArray<unsigned> x(1);
  Stream held(cudaStreamNonBlocking);
  Gate gate;
  gate.Close(held);
  ASSERT_OK(cudaMemset(x.get(), 0, x.bytes()));
  Step<<<1, 1>>>(x.get(), 7);
  EXPECT_EQ(x.Read()[0], 7u);  // waits for the legacy stream only
  EXPECT_CUDA(cudaErrorNotReady, cudaStreamQuery(held));
  gate.Open();
  EXPECT_OK(cudaStreamSynchronize(held));
}

// Programming Guide, "Streams": other streams go on while one is held up.
TEST_F(Streams, BlockingStreamsDoNotHoldUpEachOther) {
  DeviceArray<unsigned> x(1);
  ASSERT_OK(cudaMemset(x.get(), 0, x.bytes()));
  Stream held, other;
  Gate gate;
  gate.Close(held);
  Step<<<1, 1, 0, other>>>(x.get(), 9);
  unsigned result = 0;
  ASSERT_OK(cudaMemcpyAsync(&result, x.get(), sizeof(result), cudaMemcpyDeviceToHost, other));
  ASSERT_OK(cudaStreamSynchronize(other));
  EXPECT_EQ(result, 9u);
  EXPECT_CUDA(cudaErrorNotReady, cudaStreamQuery(held));
  gate.Open();
}

// Runtime API, cudaStreamQuery, and Programming Guide, "Error Checking": cudaErrorNotReady is no
// error and is not kept as one.
TEST_F(Streams, NotReadyIsNotAnError) {
  Stream stream(cudaStreamNonBlocking);
  Gate gate;
  gate.Close(stream);
  EXPECT_CUDA(cudaErrorNotReady, cudaStreamQuery(stream));
  EXPECT_OK(cudaPeekAtLastError());
  EXPECT_OK(cudaGetLastError());
  gate.Open();
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaStreamQuery(stream));
}

// Runtime API, cudaDeviceSynchronize: blocks until all preceding tasks, in all streams, are done.
TEST_F(Streams, DeviceSynchronizeWaitsForEveryStream) {
  constexpr int kStreams = 8;
  int* seen = nullptr;
  ASSERT_OK(cudaHostAlloc(&seen, kStreams * sizeof(int), cudaHostAllocDefault));
  DeviceArray<int> source(kStreams);
  ASSERT_OK(cudaMemset(source.get(), 1, source.bytes()));
  ASSERT_OK(cudaDeviceSynchronize());
  {
    std::vector<std::unique_ptr<Stream>> streams;
    for (int i = 0; i < kStreams; ++i) {
      streams.push_back(std::make_unique<Stream>(cudaStreamNonBlocking));
    }
    for (int i = 0; i < kStreams; ++i) {
      seen[i] = 0;
      ASSERT_OK(cudaMemcpyAsync(&seen[i], source.get() + i, sizeof(int), cudaMemcpyDeviceToHost,
                                *streams[i]));
    }
    ASSERT_OK(cudaDeviceSynchronize());
    for (int i = 0; i < kStreams; ++i) EXPECT_EQ(seen[i], 0x01010101) << i;
  }
  EXPECT_OK(cudaFreeHost(seen));
}

// Runtime API, cudaStreamDestroy: with work left it returns at once, and the work is done all the
// same.
TEST_F(Streams, DestroyedStreamFinishesItsWork) {
  DeviceArray<unsigned> x(1);
  ASSERT_OK(cudaMemset(x.get(), 0, x.bytes()));
  ASSERT_OK(cudaDeviceSynchronize());
  Gate gate;
  cudaStream_t stream = nullptr;
  ASSERT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  gate.Close(stream);
  Step<<<1, 1, 0, stream>>>(x.get(), 5);
  ASSERT_OK(cudaStreamDestroy(stream));
  gate.Open();
  ASSERT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(x.Read()[0], 5u);
}

// Destroyed or not, a blocking stream's work comes before what the legacy stream gets later.
TEST_F(Streams, LegacyStreamWaitsForDestroyedStreams) {
  DeviceArray<unsigned> x(1);
  ASSERT_OK(cudaMemset(x.get(), 0, x.bytes()));
  Gate gate;
  cudaStream_t stream = nullptr;
  ASSERT_OK(cudaStreamCreate(&stream));
  gate.Close(stream);
  Step<<<1, 1, 0, stream>>>(x.get(), 5);
  ASSERT_OK(cudaStreamDestroy(stream));
  Step<<<1, 1>>>(x.get(), 1);
  EXPECT_CUDA(cudaErrorNotReady, cudaStreamQuery(nullptr));
  gate.Open();
  EXPECT_EQ(x.Read()[0], 16u);
}

// Runtime API, cudaStreamGetFlags, cudaStreamGetPriority, cudaDeviceGetStreamPriorityRange: lower
// numbers are higher priorities, and what lies outside the range is clamped to it.
TEST_F(Streams, FlagsAndPriorities) {
  int least = 0, greatest = 0;
  ASSERT_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_LE(greatest, least);
  cudaStream_t stream = nullptr;
  ASSERT_OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  unsigned flags = ~0u;
  int priority = -100;
  EXPECT_OK(cudaStreamGetFlags(stream, &flags));
  EXPECT_OK(cudaStreamGetPriority(stream, &priority));
  EXPECT_EQ(flags, unsigned{cudaStreamNonBlocking});
  EXPECT_EQ(priority, greatest);
  EXPECT_OK(cudaStreamDestroy(stream));
  ASSERT_OK(cudaStreamCreateWithPriority(&stream, cudaStreamDefault, greatest - 100));
  EXPECT_OK(cudaStreamGetPriority(stream, &priority));
  EXPECT_EQ(priority, greatest);
  EXPECT_OK(cudaStreamDestroy(stream));
  ASSERT_OK(cudaStreamCreateWithPriority(&stream, cudaStreamDefault, least + 100));
  EXPECT_OK(cudaStreamGetPriority(stream, &priority));
  EXPECT_EQ(priority, least);
  EXPECT_OK(cudaStreamDestroy(stream));
}

// Runtime API, cudaStreamGetId: unique for the life of the program.
TEST_F(Streams, IdsAreUnique) {
  Stream a, b;
  unsigned long long first = 0, second = 0, again = 0;
  ASSERT_OK(cudaStreamGetId(a, &first));
  ASSERT_OK(cudaStreamGetId(b, &second));
  ASSERT_OK(cudaStreamGetId(a, &again));
  EXPECT_NE(first, second);
  EXPECT_EQ(first, again);
}

TEST_F(Streams, WrongFlagsAreRefused) {
  cudaStream_t stream = nullptr;
  EXPECT_CUDA(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&stream, 0x80));
  EXPECT_CUDA(cudaErrorInvalidValue, cudaStreamCreateWithFlags(nullptr, cudaStreamDefault));
}

// --- Host functions ---

// Runtime API, cudaLaunchHostFunc: called after the enqueued work before it, and work after it
// waits.
TEST_F(Streams, HostFunctionsRunInOrder) {
  unsigned* mapped = nullptr;
  ASSERT_OK(cudaHostAlloc(&mapped, sizeof(unsigned), cudaHostAllocMapped));
  unsigned* device = nullptr;
  ASSERT_OK(cudaHostGetDevicePointer(&device, mapped, 0));
  *mapped = 1;
  Stream stream(cudaStreamNonBlocking);
  std::vector<unsigned> adds;
  for (unsigned i = 0; i < 30; ++i) {
    Step<<<1, 1, 0, stream>>>(device, 2 * i);
    ASSERT_OK(cudaLaunchHostFunc(
        stream, [](void* p) { *static_cast<unsigned*>(p) = *static_cast<unsigned*>(p) * 3 + 1; },
        mapped));
    adds.push_back(2 * i);
    adds.push_back(1);
  }
  ASSERT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(*mapped, Steps(1, adds));
  EXPECT_OK(cudaFreeHost(mapped));
}

// Runtime API, cudaStreamAddCallback: the callback gets the stream and the state of the device.
TEST_F(Streams, CallbacksGetTheStatus) {
  struct Seen {
    cudaStream_t stream = nullptr;
    cudaError_t status = cudaErrorUnknown;
    bool called = false;
  } seen;
  Stream stream;
  ASSERT_OK(cudaStreamAddCallback(
      stream,
      [](cudaStream_t s, cudaError_t status, void* data) {
        auto* out = static_cast<Seen*>(data);
        out->stream = s;
        out->status = status;
        out->called = true;
      },
      &seen, 0));
  ASSERT_OK(cudaStreamSynchronize(stream));
  EXPECT_TRUE(seen.called);
  EXPECT_EQ(seen.stream, static_cast<cudaStream_t>(stream));
  EXPECT_OK(seen.status);
}

}  // namespace
