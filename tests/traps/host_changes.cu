// Uploads from host memory that the program changes afterwards: what was uploaded counts, and what
// was made from it.
#include "trap.h"
using namespace trap;

int main() {
  Layers layers;
  std::vector<float> pageable(kCount);
  float* pinned = nullptr;
  OK(cudaMallocHost(&pinned, kBytes));
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  float* inputs[4];
  float* outputs[4];
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < kCount; ++i) pageable[i] = pinned[i] = static_cast<float>((i + k) % 97);
    inputs[k] = Alloc();
    outputs[k] = Alloc();
    if (k % 2 == 0) {
      OK(cudaMemcpyAsync(inputs[k], pageable.data(), kBytes, cudaMemcpyHostToDevice, stream));
    } else {
      OK(cudaMemcpyAsync(inputs[k], pinned, kBytes, cudaMemcpyHostToDevice, stream));
      OK(cudaStreamSynchronize(stream));
    }
    for (int i = 0; i < kCount; ++i) pageable[i] = pinned[i] = -1.0f;
    Step(outputs[k], inputs[k], 0.5f, kCount, stream);
    if (k == 1) OK(cudaFree(inputs[k]));
  }
  layers.Forward(1);
  layers.Backward();
  for (int k = 0; k < 4; ++k) {
    if (k != 1) Print("input", inputs[k]);
    Print("output", outputs[k]);
  }
}
