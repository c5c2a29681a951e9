// Kernels that read module variables which the host changes between the layers: each value is to be
// rebuilt with the content that its kernel saw, by whatever road that came there.
#include "trap.h"
using namespace trap;

__constant__ float constants[16] = {1.0f, 0.5f, -0.25f, 2.0f};
__device__ float scale = 3.0f;
__device__ float table[1024];
__device__ float listed[1024];
__device__ float history[1024];
__constant__ float never_told[4] = {0.125f, 8.0f, -1.0f, 0.75f};

__global__ void UseConstants(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * constants[i % 16] + constants[(i + 3) % 16];
}
__global__ void UseScale(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * scale + never_told[i % 4];
}
__global__ void UseTable(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] + table[i % 1024];
}
__global__ void UseListed(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] - listed[i % 1024];
}
// Cannot be replayed, and runs beside the others.
__global__ void Watch(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const long long begin = clock64();
  if (i < n) out[i] += table[i % 1024] + (clock64() < begin ? 1.0f : 0.0f);
}
__global__ void WriteHistory(const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) history[i] = in[i] + history[i];
}
// A variable by its address.
__global__ void Bump(float* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = p[i] * 0.5f + 1.0f;
}
__global__ void BumpListed(float* const* list, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) list[0][i] += 2.0f;
}

constexpr int kSteps = 6;

int main() {
  float* input = Filled(1);
  float* values[9 * kSteps];
  int count = 0;
  float* table_address = nullptr;
  float* watched = Filled(2);
  float* histories[kSteps];
  cudaStream_t beside;
  cudaEvent_t changed;
  OK(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking));
  OK(cudaEventCreate(&changed));
  auto run = [&](auto kernel) {
    float* out = Alloc();
    kernel<<<Blocks(kCount), 256>>>(out, count == 0 ? input : values[count - 1], kCount);
    values[count++] = out;
  };
  for (int step = 0; step < kSteps; ++step) {
    // The first step sees what the module was loaded with, before the host asked for any address.
    run(UseConstants);
    run(UseScale);
    run(UseTable);
    float next[16];
    for (int i = 0; i < 16; ++i) next[i] = static_cast<float>(i - step) * 0.125f;
    if (step % 2 == 0) {
      OK(cudaMemcpyToSymbol(constants, next, sizeof(next)));
    } else {
      OK(cudaMemcpyToSymbolAsync(constants, next, 8 * sizeof(float), 4 * sizeof(float),
                                 cudaMemcpyHostToDevice));
    }
    void* at = nullptr;
    OK(cudaGetSymbolAddress(&at, scale));
    if (step == 1) OK(cudaMemset(at, 0x3f, 4));
    if (step == 3) OK(cudaMemcpy(at, values[0], 4, cudaMemcpyDeviceToDevice));
    run(UseScale);
    OK(cudaGetSymbolAddress(&at, table));
    table_address = static_cast<float*>(at);
    OK(cudaMemcpyAsync(table_address + 100 * step, values[0] + 7 * step, 400,
                       cudaMemcpyDeviceToDevice));
    run(UseTable);
    OK(cudaEventRecord(changed));
    OK(cudaStreamWaitEvent(beside, changed));
    Watch<<<Blocks(kCount), 256, 0, beside>>>(watched, kCount);
    OK(cudaEventRecord(changed, beside));
    // Written by a kernel, read by a copy.
    WriteHistory<<<4, 256>>>(values[0] + step, 1024);
    histories[step] = Alloc();
    OK(cudaMemset(histories[step], 0, kBytes));
    OK(cudaMemcpyFromSymbol(histories[step], history, sizeof(history), 0,
                            cudaMemcpyDeviceToDevice));
    run(UseConstants);
    OK(cudaStreamWaitEvent(nullptr, changed));
    if (step == 2 || step == 4) Bump<<<4, 256>>>(table_address, 1024);
    run(UseTable);
    run(UseConstants);
    if (step == 4) {
      float** list = nullptr;
      OK(cudaMalloc(&list, sizeof(float*)));
      run(UseListed);
      OK(cudaGetSymbolAddress(&at, listed));
      OK(cudaMemcpy(list, &at, sizeof(at), cudaMemcpyHostToDevice));
      BumpListed<<<4, 256>>>(list, 1024);
      run(UseListed);
      OK(cudaFree(list));
    } else {
      run(UseScale);
    }
  }
  Layers layers(20);
  layers.Forward(1);
  layers.Backward();
  // Backward: the latest first, as a gradient would.
  for (int i = count - 1; i >= 0; --i) Print("value", values[i]);
  for (float* p : histories) Print("history", p);
  Print("watched", watched);
  float back[16];
  OK(cudaMemcpyFromSymbol(back, constants, sizeof(back)));
  for (float x : back) std::printf("%g\n", static_cast<double>(x));
}
