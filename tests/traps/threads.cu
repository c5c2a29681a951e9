// Many host threads that allocate, launch, copy and free at once, each on a stream of its own.
#include <thread>

#include "trap.h"
using namespace trap;

void Work(int id, std::vector<float>* result) {
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<float*> values;
  for (int round = 0; round < 2; ++round) {
    values.push_back(Filled(id * 7 + round, kCount, stream));
    for (int k = 0; k < 5; ++k) {
      values.push_back(Alloc());
      if (k == 2) {
        OK(cudaMemcpyAsync(values.back(), values[values.size() - 2], kBytes,
                           cudaMemcpyDeviceToDevice, stream));
      } else {
        Step(values.back(), values[values.size() - 2], 0.8f, kCount, stream);
      }
    }
    float* gradient = Filled(id, kCount, stream);
    while (!values.empty()) {
      BackKernel<<<Blocks(kCount), 256, 0, stream>>>(gradient, gradient, values.back(), kCount);
      OK(cudaFree(values.back()));
      values.pop_back();
    }
    result->resize(kCount);
    OK(cudaMemcpyAsync(result->data(), gradient, kBytes, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaFree(gradient));
  }
  OK(cudaStreamDestroy(stream));
}

int main() {
  constexpr int kThreads = 4;
  Layers layers;
  layers.Forward(1);
  OK(cudaDeviceSynchronize());
  std::vector<std::vector<float>> results(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(Work, t, &results[t]);
  for (std::thread& t : threads) t.join();
  for (const auto& r : results) PrintHost("result", r.data(), kBytes);
  layers.Backward();
}
