// Separate compilation: functions, variables and kernels of several files. NVCC documentation,
// "Using Separate Compilation in CUDA".
#include "conformance.h"
#include "relocatable.h"

void LaunchPart(int* out);

namespace {

__global__ void Kernel(int* out) { out[threadIdx.x] = Combine(threadIdx.x, 1); }

class Relocatable : public Conformance {};

TEST_F(Relocatable, FunctionsAndVariablesOfAnotherFile) {
  DeviceArray<int> out(32);
  int counter = -1;
  ASSERT_OK(cudaMemcpyFromSymbol(&counter, shared_counter, sizeof(counter)));
  EXPECT_EQ(counter, 5);
  Kernel<<<1, 32>>>(out.get());
  std::vector<int> values = out.Read();
  for (int i = 0; i < 32; ++i) EXPECT_EQ(values[i], 3 * i + 1);
  const int factor = 7;
  ASSERT_OK(cudaMemcpyToSymbol(shared_factor, &factor, sizeof(factor)));
  LaunchPart(out.get());
  values = out.Read();
  for (int i = 0; i < 32; ++i) EXPECT_EQ(values[i], 7 * i + 100);
  ASSERT_OK(cudaMemcpyFromSymbol(&counter, shared_counter, sizeof(counter)));
  EXPECT_EQ(counter, 5 + 64);
}

}  // namespace
