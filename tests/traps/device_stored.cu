// Pointers that kernels store: a linked list of buffers, walked later.
#include "trap.h"
using namespace trap;

struct Node {
  const float* data;
  Node* next;
};
__global__ void Link(Node* node, const float* data, Node* next) {
  node->data = data;
  node->next = next;
}
__global__ void Walk(float* out, const Node* head, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (const Node* node = head; node != nullptr; node = node->next)
    sum = sum * 0.5f + node->data[i];
  out[i] = sum;
}

int main() {
  Layers layers;
  constexpr int kNodes = 3;
  Node* nodes = nullptr;
  OK(cudaMalloc(&nodes, kNodes * sizeof(Node)));
  float* data[kNodes];
  for (int k = 0; k < kNodes; ++k) {
    float* source = Filled(k);
    data[k] = Alloc();
    Step(data[k], source);
    OK(cudaFree(source));
    Link<<<1, 1>>>(nodes + k, data[k], k + 1 < kNodes ? nodes + k + 1 : nullptr);
  }
  float* out = Alloc();
  for (int round = 0; round < 2; ++round) {
    layers.Forward(round);
    Walk<<<Blocks(kCount), 256>>>(out, nodes, kCount);
    Print("walk", out);
    layers.Backward();
    Step(data[1], data[0], 0.1f);
    Link<<<1, 1>>>(nodes, data[2], nodes + 1);
  }
}
