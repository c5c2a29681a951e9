// cudaMemcpy of every direction, whole and in part, blocking and on streams, and between devices.
#include "trap.h"
using namespace trap;

int main() {
  Layers layers;
  std::vector<float> host(kCount), other(kCount);
  for (int i = 0; i < kCount; ++i) host[i] = static_cast<float>(i % 777) * 0.125f;
  float* uploaded = Alloc();
  OK(cudaMemcpy(uploaded, host.data(), kBytes, cudaMemcpyHostToDevice));
  float* made = Alloc();
  Step(made, uploaded);
  float* copy = Alloc();
  OK(cudaMemcpy(copy, made, kBytes, cudaMemcpyDeviceToDevice));
  layers.Forward(1);
  Print("copy", copy);
  // Parts: into the middle of a value that can be rebuilt, from the middle of another.
  OK(cudaMemcpy(copy + 1000, made + 5000, 20001, cudaMemcpyDeviceToDevice));
  OK(cudaMemcpy(made + 17, host.data() + 3, 999, cudaMemcpyHostToDevice));
  layers.Backward();
  layers.Forward(2);
  Print("copy in part", copy);
  Print("made in part", made);
  layers.Backward();
  // Default direction, to and from the host, pinned and pageable, and within a buffer.
  float* pinned = nullptr;
  OK(cudaMallocHost(&pinned, kBytes));
  layers.Forward(3);
  OK(cudaMemcpy(pinned, copy, kBytes, cudaMemcpyDefault));
  PrintHost("pinned", pinned, kBytes);
  OK(cudaMemcpy(made + kCount / 2, made, kBytes / 2, cudaMemcpyDefault));
  OK(cudaMemcpy(other.data(), pinned, kBytes, cudaMemcpyDefault));
  OK(cudaMemcpy(uploaded, other.data(), kBytes, cudaMemcpyDefault));
  layers.Backward();
  Print("made", made);
  // On a stream, both ways.
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  for (int i = 0; i < kCount; ++i) pinned[i] = static_cast<float>(i);
  layers.Forward(4);
  float* target = Alloc();
  OK(cudaMemcpyAsync(target, pinned, kBytes, cudaMemcpyHostToDevice, stream));
  Step(copy, target, 0.3f, kCount, stream);
  OK(cudaMemcpyAsync(made, copy, kBytes, cudaMemcpyDeviceToDevice, stream));
  OK(cudaMemcpyAsync(pinned, made, kBytes, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  PrintHost("round trip", pinned, kBytes);
  layers.Backward();
}
