// Pointers in module variables and constant memory, put there by every road to a symbol.
#include "trap.h"
using namespace trap;

struct Model {
  const float* weights;
  float* out;
};
__device__ const float* device_pointer;
__device__ Model device_model;
__constant__ Model constant_model;
__device__ float* written_by_kernel;
__device__ float table[1024];

__global__ void UseVariable(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = device_pointer[i] + 1.0f;
}
__global__ void UseModel(int n, float k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) device_model.out[i] += device_model.weights[i] * k;
}
__global__ void UseConstant(int n, float k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) constant_model.out[i] += constant_model.weights[i] * k;
}
__global__ void Remember(float* p) { written_by_kernel = p; }
__global__ void UseRemembered(int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) written_by_kernel[i] *= 0.5f;
}
__global__ void AddTable(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += table[i % 1024];
}

int main() {
  Layers layers(40);
  float* out = Filled(9);
  const float* weights = Filled(1);
  OK(cudaMemcpyToSymbol(device_pointer, &weights, sizeof(weights)));
  layers.Forward(1);
  UseVariable<<<Blocks(kCount), 256>>>(out, kCount);
  Print("variable", out);
  layers.Backward();

  Model model = {Filled(2), Filled(3)};
  OK(cudaMemcpyToSymbolAsync(device_model, &model, sizeof(model), 0, cudaMemcpyHostToDevice));
  layers.Forward(2);
  UseModel<<<Blocks(kCount), 256>>>(kCount, 2.0f);
  layers.Backward();
  Print("model", model.out);

  Model constant = {Filled(4), Filled(5)};
  OK(cudaMemcpyToSymbol(constant_model, &constant, sizeof(constant)));
  layers.Forward(3);
  UseConstant<<<Blocks(kCount), 256>>>(kCount, 3.0f);
  layers.Backward();
  Print("constant", constant.out);

  // By the symbol's address, and only a part of it.
  void* address = nullptr;
  OK(cudaGetSymbolAddress(&address, device_model));
  const float* other = Filled(6);
  OK(cudaMemcpy(address, &other, sizeof(other), cudaMemcpyHostToDevice));
  layers.Forward(4);
  UseModel<<<Blocks(kCount), 256>>>(kCount, 4.0f);
  layers.Backward();
  Print("address", model.out);

  float* remembered = Filled(7);
  Remember<<<1, 1>>>(remembered);
  layers.Forward(5);
  UseRemembered<<<Blocks(kCount), 256>>>(kCount);
  layers.Backward();
  Print("remembered", remembered);

  // Data, between buffers and symbols: the kernel that reads it cannot be replayed when it changed.
  float* data = Filled(8);
  float* sums[3];
  for (int k = 0; k < 3; ++k) {
    float* next = Alloc();
    Step(next, data);
    OK(cudaFree(data));
    data = next;
    OK(cudaMemcpyToSymbol(table, data, sizeof(table), 0, cudaMemcpyDeviceToDevice));
    sums[k] = Filled(20 + k);
    AddTable<<<Blocks(kCount), 256>>>(sums[k], kCount);
  }
  layers.Forward(6);
  float* back = Filled(30);
  OK(cudaMemcpyFromSymbol(back, table, sizeof(table), 0, cudaMemcpyDeviceToDevice));
  layers.Backward();
  for (float* p : sums) Print("sum", p);
  Print("back", back);
}
