// A graph made node by node, with parameters that change.
#include "trap.h"
using namespace trap;

int main() {
  Layers layers;
  float* a = Filled(1);
  float* b = Alloc();
  float* c = Filled(2);
  cudaGraph_t graph;
  NeedsSupport(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t fill, step, copy;
  cudaMemsetParams memset = {};
  memset.dst = b;
  memset.elementSize = 4;
  memset.value = 0x3f000000;
  memset.width = kCount;
  memset.height = 1;
  OK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &memset));
  int n = kCount;
  float k = 0.5f;
  void* arguments[] = {&b, &a, &n, &k};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(StepKernel);
  kernel.gridDim = dim3(Blocks(kCount));
  kernel.blockDim = dim3(256);
  kernel.kernelParams = arguments;
  OK(cudaGraphAddKernelNode(&step, graph, &fill, 1, &kernel));
  OK(cudaGraphAddMemcpyNode1D(&copy, graph, &step, 1, a, b, kBytes, cudaMemcpyDeviceToDevice));
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  layers.Forward(1);
  OK(cudaGraphLaunch(exec, nullptr));
  layers.Backward();
  Print("a", a);
  layers.Forward(2);
  arguments[1] = &c;
  OK(cudaGraphExecKernelNodeSetParams(exec, step, &kernel));
  layers.Backward();
  layers.Forward(3);
  OK(cudaGraphLaunch(exec, nullptr));
  layers.Backward();
  Print("a", a);
  Print("b", b);
}
