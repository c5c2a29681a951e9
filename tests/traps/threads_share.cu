// Two host threads and one set of buffers: one thread uploads and downloads with blocking calls,
// the other computes, and what it reads has to be rebuilt through the buffers that are being
// copied.
#include <atomic>
#include <thread>

#include "trap.h"
using namespace trap;

__global__ void Bump(float* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = data[i] * 0.75f + 1.0f;
}

int main() {
  // Versions of x, each with something that was made from it.
  float* x = Filled(1);
  std::vector<float*> made;
  for (int k = 0; k < 6; ++k) {
    Bump<<<Blocks(kCount), 256>>>(x, kCount);
    made.push_back(Alloc());
    Step(made.back(), x, 0.5f);
  }
  Layers layers;
  layers.Forward(1);
  OK(cudaDeviceSynchronize());
  std::vector<float> now(kCount), reference(kCount);
  OK(cudaMemcpy(reference.data(), x, kBytes, cudaMemcpyDeviceToHost));
  std::atomic<bool> same{true}, done{false};
  std::thread reader([&] {
    while (!done) {
      OK(cudaMemcpy(now.data(), x, kBytes, cudaMemcpyDeviceToHost));
      if (now != reference) same = false;
    }
  });
  layers.Backward();
  for (float* p : made) Print("made", p);
  done = true;
  reader.join();
  std::printf("downloads %s\n", same ? "same" : "differ");
  // Uploads over x while what its versions made is read.
  layers.Forward(2);
  std::thread writer([&] {
    for (int k = 0; k < 20; ++k) {
      OK(cudaMemcpy(x, reference.data(), kBytes, cudaMemcpyHostToDevice));
    }
  });
  for (float* p : made) Print("made", p);
  layers.Backward();
  writer.join();
  Print("x", x);
}
