// Events: record, wait, query, elapsed time.
#include "conformance.h"

namespace {

__global__ void Step(unsigned* x, unsigned add) { *x = *x * 3 + add; }

class Events : public Conformance {};

// Runtime API, cudaStreamWaitEvent: work after it waits for what was recorded.
TEST_F(Events, WaitOrdersStreams) {
  DeviceArray<unsigned> x(1);
  ASSERT_OK(cudaMemset(x.get(), 0, x.bytes()));
  ASSERT_OK(cudaDeviceSynchronize());
  Stream a(cudaStreamNonBlocking), b(cudaStreamNonBlocking);
  Event event(cudaEventDisableTiming);
  unsigned expected = 0;
  for (unsigned i = 0; i < 100; ++i) {
    Step<<<1, 1, 0, i % 2 ? a : b>>>(x.get(), i);
    ASSERT_OK(cudaEventRecord(event, i % 2 ? a : b));
    ASSERT_OK(cudaStreamWaitEvent(i % 2 ? b : a, event, 0));
    expected = expected * 3 + i;
  }
  ASSERT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(x.Read()[0], expected);
}

// Runtime API, cudaEventRecord: each record captures the work of its time; a wait uses the most
// recent record, and later ones do not change it.
TEST_F(Events, WaitUsesTheRecordOfItsTime) {
  Stream early(cudaStreamNonBlocking), late(cudaStreamNonBlocking), waiter(cudaStreamNonBlocking);
  Event event(cudaEventDisableTiming);
  Gate gate;
  ASSERT_OK(cudaEventRecord(event, early));
  ASSERT_OK(cudaStreamWaitEvent(waiter, event, 0));
  gate.Close(late);
  ASSERT_OK(cudaEventRecord(event, late));
  EXPECT_OK(
      cudaStreamSynchronize(waiter));  // would never return if it waited for the second record
  EXPECT_CUDA(cudaErrorNotReady, cudaEventQuery(event));
  gate.Open();
  EXPECT_OK(cudaEventSynchronize(event));
}

// Runtime API, cudaStreamWaitEvent, cudaEventQuery, cudaEventSynchronize: an event that was never
// recorded holds nothing up, and counts as complete.
TEST_F(Events, NeverRecordedCountsAsComplete) {
  Event event;
  Stream stream;
  EXPECT_OK(cudaEventQuery(event));
  EXPECT_OK(cudaEventSynchronize(event));
  EXPECT_OK(cudaStreamWaitEvent(stream, event, 0));
  EXPECT_OK(cudaStreamSynchronize(stream));
}

// Runtime API, cudaEventQuery.
TEST_F(Events, QuerySaysWhetherTheWorkIsDone) {
  Stream stream(cudaStreamNonBlocking);
  Event event;
  Gate gate;
  gate.Close(stream);
  ASSERT_OK(cudaEventRecord(event, stream));
  EXPECT_CUDA(cudaErrorNotReady, cudaEventQuery(event));
  EXPECT_OK(cudaGetLastError());
  gate.Open();
  EXPECT_OK(cudaEventSynchronize(event));
  EXPECT_OK(cudaEventQuery(event));
}

// Runtime API, cudaEventElapsedTime.
TEST_F(Events, ElapsedTimeGrowsAlongAStream) {
  DeviceArray<unsigned> x(1);
  Event first, second, third;
  Stream stream;
  ASSERT_OK(cudaEventRecord(first, stream));
  for (int i = 0; i < 10; ++i) Step<<<1, 1, 0, stream>>>(x.get(), 1);
  ASSERT_OK(cudaEventRecord(second, stream));
  for (int i = 0; i < 10; ++i) Step<<<1, 1, 0, stream>>>(x.get(), 1);
  ASSERT_OK(cudaEventRecord(third, stream));
  ASSERT_OK(cudaEventSynchronize(third));
  float to_second = -1, to_third = -1, nothing = -1;
  ASSERT_OK(cudaEventElapsedTime(&to_second, first, second));
  ASSERT_OK(cudaEventElapsedTime(&to_third, first, third));
  ASSERT_OK(cudaEventElapsedTime(&nothing, first, first));
  EXPECT_GT(to_second, 0);
  EXPECT_GT(to_third, to_second);
  EXPECT_EQ(nothing, 0);
}

// The same: an event not recorded, or without timing, is an invalid handle; one whose work is not
// done is not ready.
TEST_F(Events, ElapsedTimeNeedsTwoRecordedTimedEvents) {
  Event timed, never, untimed(cudaEventDisableTiming), pending;
  Stream stream(cudaStreamNonBlocking);
  Gate gate;
  float ms = 0;
  ASSERT_OK(cudaEventRecord(timed, stream));
  ASSERT_OK(cudaEventRecord(untimed, stream));
  ASSERT_OK(cudaStreamSynchronize(stream));
  EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, timed, never));
  EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, timed, untimed));
  EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaGetLastError());
  gate.Close(stream);
  ASSERT_OK(cudaEventRecord(pending, stream));
  EXPECT_CUDA(cudaErrorNotReady, cudaEventElapsedTime(&ms, timed, pending));
  EXPECT_OK(cudaGetLastError());
  gate.Open();
  EXPECT_OK(cudaEventSynchronize(pending));
}

// Runtime API, cudaEventDestroy: may be called before the event is complete; the wait still holds.
TEST_F(Events, DestroyBeforeCompletionKeepsTheOrder) {
  DeviceArray<unsigned> x(1);
  ASSERT_OK(cudaMemset(x.get(), 0, x.bytes()));
  ASSERT_OK(cudaDeviceSynchronize());
  Stream a(cudaStreamNonBlocking), b(cudaStreamNonBlocking);
  Gate gate;
  cudaEvent_t event = nullptr;
  ASSERT_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  gate.Close(a);
  Step<<<1, 1, 0, a>>>(x.get(), 1);
  ASSERT_OK(cudaEventRecord(event, a));
  ASSERT_OK(cudaStreamWaitEvent(b, event, 0));
  ASSERT_OK(cudaEventDestroy(event));
  Step<<<1, 1, 0, b>>>(x.get(), 2);
  EXPECT_CUDA(cudaErrorNotReady, cudaStreamQuery(b));
  gate.Open();
  ASSERT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(x.Read()[0], 5u);
}

// The legacy default stream waits for events too, and holds up blocking streams while it does.
TEST_F(Events, LegacyStreamWaits) {
  DeviceArray<unsigned> x(1);
  ASSERT_OK(cudaMemset(x.get(), 0, x.bytes()));
  ASSERT_OK(cudaDeviceSynchronize());
  Stream held(cudaStreamNonBlocking), blocking;
  Event event(cudaEventDisableTiming);
  Gate gate;
  gate.Close(held);
  Step<<<1, 1, 0, held>>>(x.get(), 1);
  ASSERT_OK(cudaEventRecord(event, held));
  ASSERT_OK(cudaStreamWaitEvent(nullptr, event, 0));
  Step<<<1, 1>>>(x.get(), 2);
  Step<<<1, 1, 0, blocking>>>(x.get(), 3);
  EXPECT_CUDA(cudaErrorNotReady, cudaStreamQuery(blocking));
  gate.Open();
  ASSERT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(x.Read()[0], (1u * 3 + 2) * 3 + 3);
}

TEST_F(Events, WrongFlagsAreRefused) {
  cudaEvent_t event = nullptr;
  EXPECT_CUDA(cudaErrorInvalidValue, cudaEventCreateWithFlags(&event, 0x100));
  // Runtime API, cudaIpcGetEventHandle: interprocess events must not be timed.
  EXPECT_CUDA(cudaErrorInvalidValue, cudaEventCreateWithFlags(&event, cudaEventInterprocess));
}

}  // namespace
