// Capture and graphs: Programming Guide, "CUDA Graphs".
#include "conformance.h"

namespace {

__global__ void Step(unsigned* x, unsigned add) { *x = *x * 3 + add; }

class Graphs : public Conformance {};

// "Creating a Graph Using Stream Capture": captured work is not run.
TEST_F(Graphs, CaptureRecordsAndLaunchRuns) {
  DeviceArray<unsigned> x(1);
  ASSERT_OK(cudaMemset(x.get(), 0, x.bytes()));
  ASSERT_OK(cudaDeviceSynchronize());
  Stream stream(cudaStreamNonBlocking);
  ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  EXPECT_OK(cudaStreamIsCapturing(stream, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  for (unsigned i = 1; i <= 4; ++i) Step<<<1, 1, 0, stream>>>(x.get(), i);
  cudaGraph_t graph = nullptr;
  ASSERT_OK(cudaStreamEndCapture(stream, &graph));
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(x.Read()[0], 0u);
  size_t nodes = 0;
  EXPECT_OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 4u);
  cudaGraphExec_t exec = nullptr;
  ASSERT_OK(cudaGraphInstantiate(&exec, graph, 0));
  unsigned expected = 0;
  for (int round = 0; round < 5; ++round) {
    ASSERT_OK(cudaGraphLaunch(exec, stream));
    for (unsigned i = 1; i <= 4; ++i) expected = expected * 3 + i;
  }
  ASSERT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(x.Read()[0], expected);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
}

// "Cross-stream Dependencies and Events": a stream that waits for a captured event joins the
// capture.
TEST_F(Graphs, CaptureForksAndJoins) {
  DeviceArray<unsigned> x(1), y(1);
  Stream a(cudaStreamNonBlocking), b(cudaStreamNonBlocking);
  Event fork(cudaEventDisableTiming), join(cudaEventDisableTiming);
  ASSERT_OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
  ASSERT_OK(cudaMemsetAsync(x.get(), 0, x.bytes(), a));
  ASSERT_OK(cudaMemsetAsync(y.get(), 0, y.bytes(), a));
  ASSERT_OK(cudaEventRecord(fork, a));
  ASSERT_OK(cudaStreamWaitEvent(b, fork, 0));
  Step<<<1, 1, 0, a>>>(x.get(), 5);
  Step<<<1, 1, 0, b>>>(y.get(), 6);
  ASSERT_OK(cudaEventRecord(join, b));
  ASSERT_OK(cudaStreamWaitEvent(a, join, 0));
  ASSERT_OK(cudaMemcpyAsync(x.get(), y.get(), y.bytes(), cudaMemcpyDeviceToDevice, a));
  cudaGraph_t graph = nullptr;
  ASSERT_OK(cudaStreamEndCapture(a, &graph));
  cudaGraphExec_t exec = nullptr;
  ASSERT_OK(cudaGraphInstantiate(&exec, graph, 0));
  ASSERT_OK(cudaGraphLaunch(exec, a));
  ASSERT_OK(cudaStreamSynchronize(a));
  EXPECT_EQ(x.Read()[0], 6u);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
}

// "Prohibited and Unhandled Operations": synchronising a capturing stream is an error and
// invalidates the capture.
TEST_F(Graphs, SynchronisingInvalidatesTheCapture) {
  Stream stream(cudaStreamNonBlocking);
  ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_CUDA(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
  cudaGraph_t graph = nullptr;
  EXPECT_CUDA(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
  EXPECT_EQ(graph, nullptr);
}

// Arguments are captured by value at the time of the call.
TEST_F(Graphs, ArgumentsAreThoseOfTheCapture) {
  DeviceArray<unsigned> x(1);
  ASSERT_OK(cudaMemset(x.get(), 0, x.bytes()));
  Stream stream(cudaStreamNonBlocking);
  ASSERT_OK(cudaDeviceSynchronize());
  unsigned add = 7;
  ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  Step<<<1, 1, 0, stream>>>(x.get(), add);
  cudaGraph_t graph = nullptr;
  ASSERT_OK(cudaStreamEndCapture(stream, &graph));
  add = 100;
  cudaGraphExec_t exec = nullptr;
  ASSERT_OK(cudaGraphInstantiate(&exec, graph, 0));
  ASSERT_OK(cudaGraphLaunch(exec, stream));
  ASSERT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(x.Read()[0], 7u);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
}

// "Creating a Graph Using Graph APIs".
TEST_F(Graphs, BuiltByHand) {
  DeviceArray<unsigned> x(1);
  unsigned* out = nullptr;
  ASSERT_OK(cudaMallocHost(&out, sizeof(*out)));
  *out = 0;
  cudaGraph_t graph = nullptr;
  ASSERT_OK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams fill = {};
  fill.dst = x.get();
  fill.value = 4;
  fill.elementSize = 4;
  fill.width = 1;
  fill.height = 1;
  cudaGraphNode_t first = nullptr, second = nullptr, third = nullptr;
  ASSERT_OK(cudaGraphAddMemsetNode(&first, graph, nullptr, 0, &fill));
  unsigned* at = x.get();
  unsigned add = 2;
  void* args[] = {&at, &add};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(&Step);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(1);
  kernel.kernelParams = args;
  ASSERT_OK(cudaGraphAddKernelNode(&second, graph, &first, 1, &kernel));
  ASSERT_OK(cudaGraphAddMemcpyNode1D(&third, graph, &second, 1, out, x.get(), sizeof(*out),
                                     cudaMemcpyDeviceToHost));
  cudaGraphNodeType type;
  EXPECT_OK(cudaGraphNodeGetType(second, &type));
  EXPECT_EQ(type, cudaGraphNodeTypeKernel);
  cudaGraphExec_t exec = nullptr;
  ASSERT_OK(cudaGraphInstantiate(&exec, graph, 0));
  ASSERT_OK(cudaGraphLaunch(exec, nullptr));
  ASSERT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(*out, 14u);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaFreeHost(out));
}

}  // namespace
