// A captured graph: launched again when others have had the memory of what it names.
#include "trap.h"
using namespace trap;

int main() {
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Layers layers(20, stream);
  float* a = Filled(1, kCount, stream);
  float* b = Alloc();
  float* c = Alloc();
  float* host = nullptr;
  OK(cudaMallocHost(&host, kBytes));
  for (int i = 0; i < kCount; ++i) host[i] = static_cast<float>(i % 13);
  OK(cudaStreamSynchronize(stream));
  NeedsSupport(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cudaMemcpyAsync(b, host, kBytes, cudaMemcpyHostToDevice, stream));
  Step(c, b, 0.5f, kCount, stream);
  Step(a, c, 0.25f, kCount, stream);
  OK(cudaMemsetAsync(b, 0, 1000, stream));
  Step(c, a, 0.75f, kCount, stream);
  cudaGraph_t graph;
  OK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < 3; ++round) {
    layers.Forward(round);
    host[7] = static_cast<float>(round);
    OK(cudaGraphLaunch(exec, stream));
    layers.Backward();
    Print("a", a);
    Print("c", c);
  }
  // What depends on the graph's results, and what the graph's operands were made from.
  float* d = Alloc();
  Step(d, c, 0.5f, kCount, stream);
  OK(cudaGraphLaunch(exec, stream));
  layers.Forward(9);
  OK(cudaGraphLaunch(exec, stream));
  layers.Backward();
  Print("d", d);
  Print("c", c);
}
