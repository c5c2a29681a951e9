// Structures by value with pointers inside: at several depths, in arrays indexed by a variable, and
// beside 64-bit numbers that look like addresses.
#include "trap.h"
using namespace trap;

struct Inner {
  short tag;
  const float* in;
};
struct Tensors {
  int count;
  float* out[3];
  Inner inner[3];
  unsigned long long number;
};

__global__ void Combine(Tensors t, int n, int which) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < t.count; ++k) sum += t.inner[k].in[i] * t.inner[k].tag;
  t.out[which][i] = sum + static_cast<float>(t.number & 255);
}

int main() {
  Layers layers;
  float* in[3];
  Tensors t = {};
  t.count = 3;
  for (int k = 0; k < 3; ++k) {
    in[k] = Alloc();
    float* source = Filled(k);
    Step(in[k], source);
    OK(cudaFree(source));
    t.inner[k] = {static_cast<short>(k + 1), in[k]};
    t.out[k] = Alloc();
  }
  for (int round = 0; round < 3; ++round) {
    layers.Forward(round);
    t.number = reinterpret_cast<unsigned long long>(in[round]) & ~255ull;  // only a number
    Combine<<<Blocks(kCount), 256>>>(t, kCount, round);
    layers.Backward();
  }
  for (int k = 0; k < 3; ++k) Print("out", t.out[k]);
}
