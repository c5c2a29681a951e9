// Stream-ordered allocation: freed while the work that uses the memory is still enqueued, by
// another stream behind an event, and while it is reached through a table only.
#include "trap.h"
using namespace trap;

__global__ void Slow(float* out, float* const* table, int n, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < rounds; ++k) sum = sum * 0.5f + table[0][(i + k) % n];
  out[i] = sum;
}
float* AllocAsync(cudaStream_t stream) {
  float* p = nullptr;
  NeedsSupport(cudaMallocAsync(&p, kBytes, stream));
  return p;
}
void Fill(float* p, unsigned seed, cudaStream_t stream) {
  FillKernel<<<Blocks(kCount), 256, 0, stream>>>(p, kCount, seed);
}

int main() {
  cudaStream_t s, t;
  OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
  Layers layers(20, s);
  float* results[4];
  for (float*& r : results) r = Alloc();
  float** table = nullptr;
  OK(cudaMalloc(&table, sizeof(float*)));
  float** pinned = nullptr;
  OK(cudaMallocHost(&pinned, 4 * sizeof(float*)));
  for (int round = 0; round < 4; ++round) {
    float* x = AllocAsync(s);
    Fill(x, round, s);
    pinned[round] = x;
    OK(cudaMemcpyAsync(table, pinned + round, sizeof(float*), cudaMemcpyHostToDevice, s));
    Slow<<<Blocks(kCount), 256, 0, s>>>(results[round], table, kCount, 20);
    OK(cudaFreeAsync(x, s));
    // Others want the memory at once.
    float* y[3];
    for (float*& p : y) {
      p = AllocAsync(t);
      Fill(p, 50 + round, t);
    }
    for (float* p : y) OK(cudaFreeAsync(p, t));
  }
  layers.Forward(1);
  // Made on one stream, freed on another behind an event.
  cudaEvent_t event;
  OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  float* z = AllocAsync(s);
  float* w = Alloc();
  Fill(z, 77, s);
  Step(w, z, 0.5f, kCount, s);
  OK(cudaEventRecord(event, s));
  OK(cudaStreamWaitEvent(t, event, 0));
  OK(cudaFreeAsync(z, t));
  layers.Backward();
  OK(cudaDeviceSynchronize());
  for (float* r : results) Print("result", r);
  Print("behind an event", w);
  // The two ways of allocating and of freeing mix.
  float* plain = Filled(5);
  OK(cudaFreeAsync(plain, nullptr));
  float* ordered = AllocAsync(nullptr);
  Fill(ordered, 6, nullptr);
  Print("ordered", ordered);
  OK(cudaFree(ordered));
  std::printf("%s\n", cudaGetErrorName(cudaFreeAsync(ordered, s)));
  std::printf("%s\n", cudaGetErrorName(cudaFreeAsync(table + 1, s)));
}
