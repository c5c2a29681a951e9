// One scratch buffer that every layer overwrites, and results that were made through it.
#include "trap.h"
using namespace trap;

int main() {
  constexpr int kLayers = 16;
  float* scratch = Alloc();
  for (int step = 0; step < 2; ++step) {
    std::vector<float*> values = {Filled(step)};
    for (int k = 0; k < kLayers; ++k) {
      Step(scratch, values.back(), 0.4f + 0.01f * k);
      values.push_back(Alloc());
      Step(values.back(), scratch, 0.9f);
    }
    float* gradient = Filled(50);
    for (int k = kLayers; k >= 0; --k) {
      BackKernel<<<Blocks(kCount), 256>>>(scratch, gradient, values[k], kCount);
      Step(gradient, scratch, 0.8f);
      OK(cudaFree(values[k]));
    }
    Print("gradient", gradient);
    OK(cudaFree(gradient));
  }
  Print("scratch", scratch);
}
