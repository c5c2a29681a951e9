// Several copies in one call.
#include "trap.h"
using namespace trap;

int main() {
  Layers layers;
  float* to[3];
  const void* sources[3];
  void* targets[3];
  size_t sizes[3];
  for (int k = 0; k < 3; ++k) {
    sources[k] = Filled(k);
    targets[k] = to[k] = Alloc();
    sizes[k] = kBytes - k * 1000;
  }
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  cudaMemcpyAttributes attributes = {};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t index = 0;
  layers.Forward(1);
  NeedsSupport(cudaMemcpyBatchAsync(targets, sources, sizes, 3, &attributes, &index, 1, stream));
  OK(cudaStreamSynchronize(stream));
  layers.Backward();
  for (float* p : to) Print("to", p, kBytes - 2000);
}
