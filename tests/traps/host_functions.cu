// Host functions between device work: they fill a staging buffer with data, and one with pointers,
// after the upload that takes it has been enqueued.
#include "trap.h"
using namespace trap;

struct Batch {
  float* staging;
  int round;
};
void CUDART_CB FillStaging(void* argument) {
  auto* batch = static_cast<Batch*>(argument);
  for (int i = 0; i < kCount; ++i) {
    batch->staging[i] = static_cast<float>((i * 31 + batch->round * 17) % 1009) * 0.01f;
  }
}
struct Pointers {
  float** staging;
  float* value;
};
void CUDART_CB FillPointers(void* argument) {
  auto* p = static_cast<Pointers*>(argument);
  p->staging[0] = p->value;
}
__global__ void Through(float* out, float* const* table, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = table[0][i] * 2.0f;
}

int main() {
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Layers layers(20, stream);
  Batch batches[3];
  float* inputs[3];
  for (int k = 0; k < 3; ++k) {
    batches[k].round = k;
    OK(cudaMallocHost(&batches[k].staging, kBytes));
    inputs[k] = Alloc();
    OK(cudaLaunchHostFunc(stream, FillStaging, &batches[k]));
    OK(cudaMemcpyAsync(inputs[k], batches[k].staging, kBytes, cudaMemcpyHostToDevice, stream));
  }
  float* activations[3];
  for (int k = 0; k < 3; ++k) {
    activations[k] = Alloc();
    Step(activations[k], inputs[k], 0.7f, kCount, stream);
  }
  layers.Forward(1);
  layers.Backward();
  OK(cudaStreamSynchronize(stream));
  for (int k = 0; k < 3; ++k) Print("activation", activations[k]);
  for (float* p : inputs) OK(cudaFree(p));

  Pointers pointers;
  pointers.value = Filled(3, kCount, stream);
  OK(cudaMallocHost(&pointers.staging, sizeof(float*)));
  float** table = nullptr;
  OK(cudaMalloc(&table, sizeof(float*)));
  float* out = Alloc();
  OK(cudaLaunchHostFunc(stream, FillPointers, &pointers));
  OK(cudaMemcpyAsync(table, pointers.staging, sizeof(float*), cudaMemcpyHostToDevice, stream));
  layers.Forward(2);
  Through<<<Blocks(kCount), 256, 0, stream>>>(out, table, kCount);
  OK(cudaStreamSynchronize(stream));
  Print("through", out);
  layers.Backward();
}
