// Captures, in every mode, of streams that the legacy stream waits for, with a fork: what they name
// has lost its memory before, so that it has to be rebuilt while the capture goes on.
#include "trap.h"
using namespace trap;

int main() {
  cudaStream_t stream, fork, side;
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamCreateWithFlags(&fork, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  cudaEvent_t forked, joined;
  OK(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
  OK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
  const cudaStreamCaptureMode modes[] = {
      cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed};
  for (int round = 0; round < 3; ++round) {
    Layers layers(20, stream), more(20, stream);
    float* a = Filled(round + 1, kCount, stream);
    float* b = Alloc();
    Step(b, a, 0.5f, kCount, stream);
    float* c = Filled(round + 5, kCount, fork);
    float* d = Alloc();
    float* e = Alloc();
    float* f = Filled(round + 9, kCount, side);
    float* g = Alloc();
    float* old = Filled(round + 11, kCount, fork);
    layers.Forward(round);
    cudaStreamCaptureMode mode = modes[round];
    NeedsSupport(cudaStreamBeginCapture(stream, mode));
    Step(d, b, 0.25f, kCount, stream);
    OK(cudaEventRecord(forked, stream));
    OK(cudaStreamWaitEvent(fork, forked, 0));
    Step(e, c, 0.75f, kCount, fork);
    OK(cudaMemsetAsync(c, 0, 4096, fork));
    // Work that is no part of it goes on.
    Step(g, f, 0.5f, kCount, side);
    if (mode == cudaStreamCaptureModeRelaxed) {
      OK(cudaFree(old));
      old = Alloc();
    }
    OK(cudaEventRecord(joined, fork));
    OK(cudaStreamWaitEvent(stream, joined, 0));
    Step(a, e, 0.125f, kCount, stream);
    cudaGraph_t graph;
    OK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec;
    OK(cudaGraphInstantiate(&exec, graph, 0));
    layers.Backward();
    more.Forward(round + 7);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphLaunch(exec, stream));
    more.Backward();
    Print("a", a);
    Print("c", c);
    Print("d", d);
    Print("e", e);
    OK(cudaStreamSynchronize(side));
    Print("g", g);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    for (float* p : {a, b, c, d, e, f, g, old}) OK(cudaFree(p));
  }
}
