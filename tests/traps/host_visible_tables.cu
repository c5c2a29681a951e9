// Tables of pointers in memory that the host writes without a call: managed, pinned and registered.
#include <cstdlib>

#include "trap.h"
using namespace trap;

__managed__ float* managed_variable;

__global__ void Through(float* out, float* const* table, int which, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = table[which][i] * 2.0f;
}
__global__ void ThroughVariable(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = managed_variable[i] + 5.0f;
}
__global__ void TwoSteps(float* out, float* const* const* table, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = table[0][0][i] - 1.0f;
}

void Use(const char* name, Layers& layers, float** table) {
  float* data[2] = {Filled(1), Filled(2)};
  float* out = Alloc();
  for (int k = 0; k < 2; ++k) {
    table[k] = data[k];
    layers.Forward(k);
    Through<<<Blocks(kCount), 256>>>(out, table, k, kCount);
    Print(name, out);
    layers.Backward();
  }
  for (float* p : {data[0], data[1], out}) OK(cudaFree(p));
}

int main() {
  Layers layers;
  float** managed = nullptr;
  float** pinned = nullptr;
  OK(cudaMallocHost(&pinned, 4096));
  {
    // The table of tables is uploaded; the table itself never is.
    float* data = Filled(4);
    float* out = Alloc();
    float*** outer = nullptr;
    OK(cudaMalloc(&outer, sizeof(float**)));
    OK(cudaMemcpy(outer, &pinned, sizeof(pinned), cudaMemcpyHostToDevice));
    pinned[0] = data;
    layers.Forward(7);
    TwoSteps<<<Blocks(kCount), 256>>>(out, outer, kCount);
    Print("two steps", out);
    layers.Backward();
    for (float* p : {data, out}) OK(cudaFree(p));
  }
  Use("pinned", layers, pinned);
  OK(cudaMallocManaged(&managed, 4096));
  Use("managed", layers, managed);
  void* page = std::aligned_alloc(4096, 4096);
  OK(cudaHostRegister(page, 4096, cudaHostRegisterMapped));
  Use("registered", layers, static_cast<float**>(page));
  float* data = Filled(3);
  float* out = Alloc();
  managed_variable = data;
  layers.Forward(9);
  ThroughVariable<<<Blocks(kCount), 256>>>(out, kCount);
  Print("variable", out);
  layers.Backward();
}
