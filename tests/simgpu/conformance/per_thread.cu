// The per-thread default stream. Built with --default-stream per-thread.
#include <thread>

#include "conformance.h"

namespace {

__global__ void Step(unsigned* x, unsigned add) { *x = *x * 3 + add; }

class PerThread : public Conformance {};

// Runtime API, "Stream synchronization behavior", "Per-thread default stream": local to the thread,
// and does not synchronise with other streams, just like explicitly created streams.
TEST_F(PerThread, ThreadsDoNotHoldUpEachOther) {
  DeviceArray<unsigned> x(1), y(1);
  ASSERT_OK(cudaMemset(x.get(), 0, x.bytes()));
  ASSERT_OK(cudaMemset(y.get(), 0, y.bytes()));
  ASSERT_OK(cudaDeviceSynchronize());
  Gate gate;
  gate.Close(nullptr);  // this thread's default stream
  Step<<<1, 1>>>(x.get(), 3);
  unsigned from_thread = 0;
  std::thread thread([&] {
    Step<<<1, 1>>>(y.get(), 4);
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaMemcpy(&from_thread, y.get(), sizeof(from_thread), cudaMemcpyDeviceToHost));
    EXPECT_OK(cudaStreamSynchronize(nullptr));
  });
  thread.join();
  EXPECT_EQ(from_thread, 4u);
  EXPECT_CUDA(cudaErrorNotReady, cudaStreamQuery(nullptr));
  gate.Open();
  ASSERT_OK(cudaStreamSynchronize(nullptr));
  EXPECT_EQ(x.Read()[0], 3u);
}

// The same: the handle cudaStreamPerThread names the same stream.
TEST_F(PerThread, HandleNamesTheDefaultStream) {
  DeviceArray<unsigned> x(1);
  ASSERT_OK(cudaMemset(x.get(), 0, x.bytes()));
  unsigned expected = 0;
  for (unsigned i = 0; i < 60; ++i) {
    Step<<<1, 1, 0, i % 2 ? cudaStreamPerThread : cudaStream_t{nullptr}>>>(x.get(), i);
    expected = expected * 3 + i;
  }
  EXPECT_EQ(x.Read()[0], expected);
}

// The same: it is not a non-blocking stream and synchronises with the legacy default stream.
TEST_F(PerThread, SynchronisesWithTheLegacyStream) {
  DeviceArray<unsigned> x(1);
  ASSERT_OK(cudaMemset(x.get(), 0, x.bytes()));
  unsigned expected = 0;
  for (unsigned i = 0; i < 60; ++i) {
    Step<<<1, 1, 0, i % 2 ? cudaStreamLegacy : cudaStream_t{nullptr}>>>(x.get(), i);
    expected = expected * 3 + i;
  }
  ASSERT_OK(cudaStreamSynchronize(cudaStreamLegacy));
  EXPECT_EQ(x.Read()[0], expected);
}

// The same: an explicitly created stream does not wait for it.
TEST_F(PerThread, CreatedStreamsGoOn) {
  DeviceArray<unsigned> x(1);
  ASSERT_OK(cudaMemset(x.get(), 0, x.bytes()));
  ASSERT_OK(cudaDeviceSynchronize());
  Stream stream;
  Gate gate;
  gate.Close(nullptr);
  Step<<<1, 1, 0, stream>>>(x.get(), 8);
  ASSERT_OK(cudaStreamSynchronize(stream));
  EXPECT_CUDA(cudaErrorNotReady, cudaStreamQuery(nullptr));
  gate.Open();
  EXPECT_EQ(x.Read()[0], 8u);
}

// Copies and fills without a stream argument belong to the thread's stream too.
TEST_F(PerThread, CopiesAndFillsAreInOrder) {
  DeviceArray<unsigned> x(4), y(4);
  std::thread thread([&] {
    for (int round = 0; round < 30; ++round) {
      ASSERT_OK(cudaMemset(x.get(), round, x.bytes()));
      Step<<<1, 1>>>(x.get(), 1);
      ASSERT_OK(cudaMemcpy(y.get(), x.get(), x.bytes(), cudaMemcpyDeviceToDevice));
      const unsigned word = 0x01010101u * static_cast<unsigned>(round);
      const std::vector<unsigned> values = y.Read();
      ASSERT_EQ(values[0], word * 3 + 1);
      ASSERT_EQ(values[3], word);
    }
  });
  thread.join();
}

}  // namespace
