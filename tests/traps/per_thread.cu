// Per-thread default streams: each thread's work is its own, and orders with nobody's.
#include <thread>

#include "trap.h"
using namespace trap;

void Work(int id, float* result) {
  float* values[8];
  for (int round = 0; round < 2; ++round) {
    values[0] = Filled(id * 10 + round);
    for (int k = 1; k < 8; ++k) {
      values[k] = Alloc();
      Step(values[k], values[k - 1]);
    }
    for (int k = 7; k >= 0; --k) {
      BackKernel<<<Blocks(kCount), 256>>>(result, result, values[k], kCount);
      OK(cudaFree(values[k]));
    }
  }
  OK(cudaStreamSynchronize(nullptr));
}

int main() {
  constexpr int kThreads = 3;
  float* results[kThreads];
  for (int t = 0; t < kThreads; ++t) {
    results[t] = Filled(t);
  }
  OK(cudaDeviceSynchronize());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(Work, t, results[t]);
  for (std::thread& t : threads) t.join();
  for (float* r : results) Print("result", r);
}
