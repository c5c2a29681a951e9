// Values that are wanted again after their buffer was overwritten: the layers were made from
// versions of a buffer that are gone, two buffers feed each other in turns, and inputs are freed.
#include "trap.h"
using namespace trap;

int main() {
  constexpr int kLayers = 16;
  float* ping = Filled(1);
  float* pong = Filled(2);
  std::vector<float*> kept;
  for (int k = 0; k < kLayers; ++k) {
    Step(pong, ping, 0.5f + 0.03f * k);
    kept.push_back(Alloc());
    Step(kept.back(), pong, 0.9f);
    Step(ping, pong, 0.4f);
    if (k % 3 == 0) OK(cudaMemcpy(ping, kept[0], kBytes / 2, cudaMemcpyDeviceToDevice));
  }
  float* gradient = Filled(3);
  for (int k = kLayers - 1; k >= 0; --k) {
    BackKernel<<<Blocks(kCount), 256>>>(ping, gradient, kept[k], kCount);
    Step(gradient, ping, 0.9f);
    if (k % 2 == 0) OK(cudaFree(kept[k]));
  }
  Print("gradient", gradient);
  Print("ping", ping);
  Print("pong", pong);
  for (int k = 1; k < kLayers; k += 2) Print("kept", kept[k]);
}
