// Several streams whose order is made by events: producers and consumers, fan-out and fan-in.
#include "trap.h"
using namespace trap;

__global__ void Add(float* out, const float* a, const float* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

int main() {
  constexpr int kStreams = 3, kRounds = 4;
  cudaStream_t streams[kStreams];
  cudaEvent_t events[kStreams], start;
  for (int s = 0; s < kStreams; ++s) {
    OK(cudaStreamCreateWithFlags(&streams[s], s == 0 ? cudaStreamDefault : cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&events[s], cudaEventDisableTiming));
  }
  OK(cudaEventCreateWithFlags(&start, cudaEventDisableTiming));
  float* x = Filled(1, kCount, streams[0]);
  std::vector<float*> kept;
  for (int round = 0; round < kRounds; ++round) {
    OK(cudaEventRecord(start, streams[0]));
    float* parts[kStreams];
    for (int s = 0; s < kStreams; ++s) {
      OK(cudaStreamWaitEvent(streams[s], start, 0));
      float* middle = Alloc();
      parts[s] = Alloc();
      Step(middle, x, 0.3f + 0.1f * s, kCount, streams[s]);
      Step(parts[s], middle, 0.5f, kCount, streams[s]);
      kept.push_back(middle);
      OK(cudaEventRecord(events[s], streams[s]));
    }
    // All have read x before it changes.
    for (int s = 1; s < kStreams; ++s) OK(cudaStreamWaitEvent(streams[0], events[s], 0));
    for (int s = 1; s < kStreams; ++s) {
      Add<<<Blocks(kCount), 256, 0, streams[0]>>>(x, s == 1 ? parts[0] : x, parts[s], kCount);
    }
    OK(cudaStreamSynchronize(streams[0]));
    for (float* p : parts) OK(cudaFree(p));
  }
  float* gradient = Filled(5, kCount, streams[1]);
  while (!kept.empty()) {
    BackKernel<<<Blocks(kCount), 256, 0, streams[1]>>>(gradient, gradient, kept.back(), kCount);
    OK(cudaFree(kept.back()));
    kept.pop_back();
  }
  OK(cudaStreamSynchronize(streams[1]));
  Print("gradient", gradient);
  Print("x", x);
}
