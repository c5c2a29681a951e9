// Calls that the driver refuses: the program gets the driver's own codes, and goes on.
#include "driver.h"
using namespace trap;

void Say(const char* what, cudaError_t error) {
  std::printf("%s: %s\n", what, cudaGetErrorName(error));
  cudaGetLastError();
}

int main() {
  const auto free = Driver<PFN_cuMemFree_v3020>("cuMemFree", 3020);
  const auto alloc = Driver<PFN_cuMemAlloc_v3020>("cuMemAlloc", 3020);
  const auto pitch_alloc = Driver<PFN_cuMemAllocPitch_v3020>("cuMemAllocPitch", 3020);
  Layers layers;
  float* a = Filled(1);
  float* b = Filled(2);
  float* small = Filled(3, 64);
  layers.Forward(1);
  Say("interior free", cudaFree(a + 64));
  int local = 0;
  Say("foreign free", cudaFree(&local));
  Say("null free", cudaFree(nullptr));
  Say("host free of device memory", cudaFreeHost(a));
  Say("too long upload",
      cudaMemcpy(a, std::vector<char>(2 * kBytes).data(), 2 * kBytes, cudaMemcpyHostToDevice));
  Say("too long download",
      cudaMemcpy(std::vector<char>(2 * kBytes).data(), a, 2 * kBytes, cudaMemcpyDeviceToHost));
  Say("too long copy", cudaMemcpy(a, b, 2 * kBytes, cudaMemcpyDeviceToDevice));
  Say("too long fill", cudaMemset(a, 0, 2 * kBytes));
  Say("huge fill", cudaMemset(a, 0, ~size_t{0} / 2));
  Say("huge copy", cudaMemcpy(a, b, ~size_t{0} / 2, cudaMemcpyDeviceToDevice));
  Say("rows beyond", cudaMemset2D(a, 4096, 0, 4096, 2 * kBytes / 4096));
  Say("pitch below width", cudaMemcpy2D(a, 100, b, 400, 400, 10, cudaMemcpyDeviceToDevice));
  Say("wrong direction", cudaMemcpy(a, b, kBytes, cudaMemcpyKind(17)));
  layers.Backward();
  Print("a", a);
  Print("b", b);
  Print("small", small, 256);
  Say("free", cudaFree(a));
  Say("double free", cudaFree(a));
  Say("fill of freed memory", cudaMemset(a, 0, 16));
  Say("copy to freed memory", cudaMemcpy(a, b, 16, cudaMemcpyDeviceToDevice));
  Say("copy from freed memory", cudaMemcpy(b, a, 16, cudaMemcpyDeviceToDevice));
  Say("upload to freed memory", cudaMemcpy(a, &local, 4, cudaMemcpyHostToDevice));
  Say("download of freed memory", cudaMemcpy(&local, a, 4, cudaMemcpyDeviceToHost));
  CUdeviceptr p = 0;
  size_t pitch = 0;
  std::printf("%s\n", Name(alloc(&p, 0)));
  std::printf("%s\n", Name(alloc(nullptr, 16)));
  std::printf("%s\n", Name(alloc(&p, size_t{1} << 60)));
  std::printf("%s\n", Name(pitch_alloc(&p, &pitch, 100, 10, 3)));
  std::printf("%s\n", Name(pitch_alloc(&p, nullptr, 100, 10, 4)));
  std::printf("%s\n", Name(pitch_alloc(nullptr, &pitch, 100, 10, 4)));
  std::printf("%s\n", Name(pitch_alloc(&p, &pitch, 100, ~size_t{0} / 256, 4)));
  std::printf("%s\n", Name(free(0)));
  Print("b", b);
}
