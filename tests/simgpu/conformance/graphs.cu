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

// "Prohibited and Unhandled Operations": of a stream that the legacy stream waits for.
TEST_F(Graphs, LegacyStreamIsRefused) {
  DeviceArray<unsigned> x(1);
  Stream stream;
  ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  EXPECT_CUDA(cudaErrorStreamCaptureImplicit, cudaMemsetAsync(x.get(), 0, x.bytes(), nullptr));
  cudaGraph_t graph = nullptr;
  EXPECT_CUDA(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
}

// cudaStreamWaitEvent: a capture cannot depend on work outside of it, nor be joined to another.
TEST_F(Graphs, CapturesStayApart) {
  Stream a(cudaStreamNonBlocking), b(cudaStreamNonBlocking);
  Event outside(cudaEventDisableTiming), inside(cudaEventDisableTiming);
  cudaGraph_t graph = nullptr;
  ASSERT_OK(cudaEventRecord(outside, b));
  ASSERT_OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  EXPECT_CUDA(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(a, outside, 0));
  EXPECT_CUDA(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(a, &graph));
  ASSERT_OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  ASSERT_OK(cudaStreamBeginCapture(b, cudaStreamCaptureModeRelaxed));
  ASSERT_OK(cudaEventRecord(inside, a));
  EXPECT_CUDA(cudaErrorStreamCaptureMerge, cudaStreamWaitEvent(b, inside, 0));
  EXPECT_CUDA(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(a, &graph));
  EXPECT_CUDA(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(b, &graph));
}

TEST_F(Graphs, ForksHaveToBeJoined) {
  DeviceArray<unsigned> x(1);
  Stream a(cudaStreamNonBlocking), b(cudaStreamNonBlocking);
  Event fork(cudaEventDisableTiming);
  ASSERT_OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  ASSERT_OK(cudaEventRecord(fork, a));
  ASSERT_OK(cudaStreamWaitEvent(b, fork, 0));
  ASSERT_OK(cudaMemsetAsync(x.get(), 0, x.bytes(), b));
  EXPECT_CUDA(cudaErrorCapturedEvent, cudaEventQuery(fork));
  cudaGraph_t graph = nullptr;
  EXPECT_CUDA(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(b, &graph));
  EXPECT_CUDA(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(a, &graph));
  ASSERT_OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  ASSERT_OK(cudaEventRecord(fork, a));
  ASSERT_OK(cudaStreamWaitEvent(b, fork, 0));
  ASSERT_OK(cudaMemsetAsync(x.get(), 0, x.bytes(), b));
  EXPECT_CUDA(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(a, &graph));
  EXPECT_EQ(graph, nullptr);
}

// cudaThreadExchangeStreamCaptureMode: potentially unsafe calls, such as cudaMalloc.
TEST_F(Graphs, ModesAllowUnsafeCalls) {
  Stream stream(cudaStreamNonBlocking);
  cudaGraph_t graph = nullptr;
  void* p = nullptr;
  ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ASSERT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  EXPECT_OK(cudaMalloc(&p, 256));
  ASSERT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaFree(p));
  ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_CUDA(cudaErrorStreamCaptureUnsupported, cudaMalloc(&p, 256));
  EXPECT_CUDA(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
}

// cudaGraphExecKernelNodeSetParams, cudaGraphExecUpdate, cudaGraphClone, edges.
TEST_F(Graphs, ChangedAfterInstantiation) {
  DeviceArray<unsigned> x(1);
  ASSERT_OK(cudaMemset(x.get(), 0, x.bytes()));
  ASSERT_OK(cudaDeviceSynchronize());
  cudaGraph_t graph = nullptr, clone = nullptr;
  ASSERT_OK(cudaGraphCreate(&graph, 0));
  unsigned* at = x.get();
  unsigned add = 2;
  void* args[] = {&at, &add};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(&Step);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(1);
  kernel.kernelParams = args;
  cudaGraphNode_t first = nullptr, second = nullptr;
  ASSERT_OK(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &kernel));
  ASSERT_OK(cudaGraphAddKernelNode(&second, graph, &first, 1, &kernel));
  size_t edges = 0, nodes = 0;
  EXPECT_OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(edges, 1u);
  EXPECT_OK(cudaGraphClone(&clone, graph));
  EXPECT_OK(cudaGraphGetNodes(clone, nullptr, &nodes));
  EXPECT_EQ(nodes, 2u);
  cudaGraphExec_t exec = nullptr;
  ASSERT_OK(cudaGraphInstantiate(&exec, graph, 0));
  add = 5;
  EXPECT_OK(cudaGraphExecKernelNodeSetParams(exec, second, &kernel));
  EXPECT_OK(cudaGraphLaunch(exec, nullptr));
  EXPECT_EQ(x.Read()[0], 11u);
  cudaGraphExecUpdateResultInfo info;
  EXPECT_OK(cudaGraphExecUpdate(exec, clone, &info));
  EXPECT_OK(cudaGraphLaunch(exec, nullptr));
  EXPECT_EQ(x.Read()[0], (11u * 3 + 2) * 3 + 2);
  cudaGraphNode_t third = nullptr;
  ASSERT_OK(cudaGraphAddEmptyNode(&third, clone, nullptr, 0));
  EXPECT_CUDA(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, clone, &info));
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
  cudaGetLastError();
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaGraphDestroy(clone));
}

}  // namespace
