// Fills of every width, whole, in part and by rows, as parts of what is computed.
#include "driver.h"
using namespace trap;

int main() {
  const auto d16 = Driver<PFN_cuMemsetD16_v3020>("cuMemsetD16", 3020);
  const auto d32 = Driver<PFN_cuMemsetD32_v3020>("cuMemsetD32", 3020);
  const auto d32_async = Driver<PFN_cuMemsetD32Async_v3020>("cuMemsetD32Async", 3020);
  const auto d2d16 = Driver<PFN_cuMemsetD2D16_v3020>("cuMemsetD2D16", 3020);
  const auto d2d32 = Driver<PFN_cuMemsetD2D32Async_v3020>("cuMemsetD2D32Async", 3020);
  Layers layers;
  float* a = Alloc();
  float* b = Alloc();
  float* c = Filled(1);
  float* d = Alloc();
  OK(cudaMemset(a, 0x3f, kBytes));
  OK(d32(Ptr(b), 0x3f800000, kCount));
  OK(d16(Ptr(c + 100), 0x4049, 3001));
  OK(d32_async(Ptr(d), 0x40000000, kCount, nullptr));
  layers.Forward(1);
  Step(d, b);
  OK(d2d16(Ptr(a), 1024, 0x4000, 100, 50));
  OK(d2d32(Ptr(b) + 512, 2048, 0x40400000, 128, 100, nullptr));
  OK(cudaMemset(c + 10, 0, 77));
  layers.Backward();
  Print("a", a);
  Print("b", b);
  Print("c", c);
  Print("d", d);
  std::printf("%s\n", Name(d32(Ptr(a) + 2, 0, 4)));  // not aligned
  layers.Forward(2);
  OK(d32(Ptr(a), 7, kCount));  // covers: what was there does not matter
  Step(d, a);
  layers.Backward();
  Print("a", a);
  Print("d", d);
}
