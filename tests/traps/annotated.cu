// A kernel that calls through a pointer: its PTX does not show what it does with its parameters.
// The annotations in annotated.conf say it; without them its buffers would be pinned.
#include "trap.h"
using namespace trap;

using Function = float (*)(const float* in, int i, int n);
__device__ float Smooth(const float* in, int i, int n) {
  return in[i] * 0.5f + in[(i + 1) % n] * 0.25f;
}
__device__ float Sharpen(const float* in, int i, int n) {
  return in[i] * 1.25f - in[(i + 3) % n] * 0.125f;
}
__device__ Function smooth = Smooth;
__device__ Function sharpen = Sharpen;

struct Arguments {
  int n;
  float scale;
  float* out;
  const float* in;
};

__global__ void Apply(float* out, const float* in, int n, Function function) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = function(in, i, n);
}
__global__ void ApplyStruct(Arguments arguments, Function function) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < arguments.n) {
    arguments.out[i] = arguments.scale * function(arguments.in, i, arguments.n);
  }
}
// Two buffers, of which the annotation states one.
__global__ void Accumulate(float* sum, const float* in, int n, Function function) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] += function(in, i, n);
}
// The annotation says that it only reads: the PTX shows better.
__global__ void Lied(float* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = data[i] * 0.5f + 1.0f;
}

int main() {
  Function device[2];
  OK(cudaMemcpyFromSymbol(&device[0], smooth, sizeof(Function)));
  OK(cudaMemcpyFromSymbol(&device[1], sharpen, sizeof(Function)));
  constexpr int kSteps = 12;
  std::vector<float*> values = {Filled(1)};
  float* sum = Filled(2);
  for (int i = 0; i < kSteps; ++i) {
    values.push_back(Alloc());
    if (i % 2 == 0) {
      Apply<<<Blocks(kCount), 256>>>(values[i + 1], values[i], kCount, device[i % 4 / 2]);
    } else {
      ApplyStruct<<<Blocks(kCount), 256>>>({kCount, 0.75f, values[i + 1], values[i]}, device[1]);
    }
    OK(cudaGetLastError());
  }
  float* read = Filled(3);
  Lied<<<Blocks(kCount), 256>>>(read, kCount);
  Layers layers;
  layers.Forward(7);
  Accumulate<<<Blocks(kCount), 256>>>(sum, values[kSteps], kCount, device[0]);
  layers.Backward();
  for (int i = kSteps; i >= 0; --i) {
    Print("value", values[i]);
    OK(cudaFree(values[i]));
  }
  Print("sum", sum);
  Print("read", read);
}
