// What the program can ask about its memory.
#include "driver.h"
using namespace trap;

int main() {
  const auto range = Driver<PFN_cuMemGetAddressRange_v3020>("cuMemGetAddressRange", 3020);
  const auto attribute = Driver<PFN_cuPointerGetAttribute_v4000>("cuPointerGetAttribute", 4000);
  Layers layers;
  float* untouched = Alloc();
  float* a = Filled(1);
  float* small = Filled(2, 100);
  layers.Forward(1);
  for (float* p : {untouched, a, small}) {
    CUdeviceptr base = 0;
    size_t bytes = 0;
    OK(range(&base, &bytes, Ptr(p + 50)));
    // The driver may answer with more than was asked for.
    std::printf("range %d %d\n", base == Ptr(p), bytes >= (p == small ? 400 : kBytes));
    OK(range(nullptr, &bytes, Ptr(p)));
    OK(range(&base, nullptr, Ptr(p)));
    cudaPointerAttributes attributes;
    OK(cudaPointerGetAttributes(&attributes, p + 50));
    std::printf("attributes %d %d %d %d\n", attributes.type, attributes.device,
                attributes.devicePointer == p + 50, attributes.hostPointer == nullptr);
    unsigned type = 0, managed = 7;
    int ordinal = 7;
    CUdeviceptr device = 0;
    CUcontext context = nullptr;
    unsigned long long id = 0, other = 0;
    OK(attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, Ptr(p)));
    OK(attribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, Ptr(p)));
    OK(attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, Ptr(p)));
    OK(attribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, Ptr(p + 3)));
    OK(attribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, Ptr(p)));
    OK(attribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, Ptr(p)));
    OK(attribute(&other, CU_POINTER_ATTRIBUTE_BUFFER_ID, Ptr(p + 1)));
    void* host = nullptr;
    std::printf("one by one %u %u %d %d %d %d %s\n", type, managed, ordinal, device == Ptr(p + 3),
                context != nullptr, id == other,
                Name(attribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, Ptr(p))));
  }
  layers.Backward();
  Print("a", a);
  int local = 0;
  cudaPointerAttributes attributes;
  OK(cudaPointerGetAttributes(&attributes, &local));
  std::printf("host %d\n", attributes.type);
  // Free memory shrinks and grows.
  size_t before = 0, during = 0, after = 0, total = 0;
  OK(cudaMemGetInfo(&before, &total));
  float* b = Alloc();
  OK(cudaMemGetInfo(&during, &total));
  OK(cudaFree(b));
  OK(cudaMemGetInfo(&after, &total));
  std::printf("free %d %d %d\n", before >= during + kBytes, after >= during + kBytes,
              total >= before);
  OK(cudaFree(a));
  CUdeviceptr base = 0;
  size_t bytes = 0;
  std::printf("freed: %s\n", Name(range(&base, &bytes, Ptr(a))));
}
