// Tables of pointers uploaded from the host, by several roads, and updated later.
#include "trap.h"
using namespace trap;

__global__ void SumThrough(float* out, float* const* table, int tables, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < tables; ++k) sum += table[k][i];
  out[i] = sum;
}
__global__ void WriteThrough(float* const* table, int which, int n, float add) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) table[which][i] += add;
}

int main() {
  Layers layers;
  constexpr int kTables = 2;
  float* first[kTables];
  float* second[kTables];
  for (int k = 0; k < kTables; ++k) {
    first[k] = Filled(k);
    second[k] = Filled(k + 10);
  }
  float** table = nullptr;
  OK(cudaMalloc(&table, kTables * sizeof(float*)));
  OK(cudaMemcpy(table, first, sizeof(first), cudaMemcpyHostToDevice));
  float* out = Alloc();
  layers.Forward();
  SumThrough<<<Blocks(kCount), 256>>>(out, table, kTables, kCount);
  Print("first", out);
  layers.Backward();

  // The table is updated: one entry, from pinned memory, on a stream.
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  float** pinned = nullptr;
  OK(cudaMallocHost(&pinned, sizeof(float*)));
  pinned[0] = second[1];
  layers.Forward(2);
  OK(cudaMemcpyAsync(table + 1, pinned, sizeof(float*), cudaMemcpyHostToDevice, stream));
  OK(cudaStreamSynchronize(stream));
  WriteThrough<<<Blocks(kCount), 256>>>(table, 1, kCount, 3.0f);
  layers.Backward();
  layers.Forward(3);
  SumThrough<<<Blocks(kCount), 256>>>(out, table, kTables, kCount);
  Print("updated", out);
  Print("written", second[1]);
  layers.Backward();
}
