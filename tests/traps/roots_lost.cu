// Values that nothing can compute again (uploads, results of kernels with side effects) are
// overwritten or freed while droppable values that were made from them are still wanted.
#include "trap.h"
using namespace trap;

int main() {
  Layers layers;
  std::vector<float> host(kCount);
  for (int how = 0; how < 5; ++how) {
    for (int i = 0; i < kCount; ++i) host[i] = static_cast<float>((i * 7 + how) % 101) * 0.5f;
    float* root = Alloc();
    OK(cudaMemcpy(root, host.data(), kBytes, cudaMemcpyHostToDevice));
    float* made[3];
    for (int k = 0; k < 3; ++k) {
      made[k] = Alloc();
      Step(made[k], k == 0 ? root : made[k - 1], 0.6f + 0.1f * k);
    }
    layers.Forward(how);
    switch (how) {
      case 0:
        OK(cudaMemcpy(root, host.data() + 1, kBytes - 4, cudaMemcpyHostToDevice));
        break;
      case 1:
        OK(cudaMemset(root, 0, kBytes));
        break;
      case 2:
        Step(root, made[2]);
        break;
      case 3:
        OK(cudaFree(root));
        root = Filled(4);
        break;
      default:
        OK(cudaMemcpy(root, made[1], kBytes, cudaMemcpyDeviceToDevice));
    }
    layers.Backward();
    for (float* p : made) {
      Print("made", p);
      OK(cudaFree(p));
    }
    Print("root", root);
    OK(cudaFree(root));
  }
}
