// Allocation, copies, fills, and what is known of an address.
#include <cstring>
#include <numeric>

#include "conformance.h"

namespace {

__device__ int device_table[64];
__constant__ int constant_table[64];
__managed__ int managed_value = 11;
__device__ double initialised[3] = {1.5, 2.5, 3.5};

__global__ void AddInto(int* out, const int* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += in[i];
}
__global__ void FromConstant(int* out) { out[threadIdx.x] = constant_table[threadIdx.x]; }
__global__ void BumpDeviceTable() { device_table[threadIdx.x] += 100; }
__global__ void BumpManaged() { managed_value += 1; }
__global__ void ReadInitialised(double* out) { out[threadIdx.x] = initialised[threadIdx.x]; }

std::vector<int> Counting(size_t n, int first = 0) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}

class Memory : public Conformance {};

// Runtime API, cudaMalloc: "suitably aligned for any kind of variable"; Programming Guide, "Device
// Memory Accesses": at least 256 bytes.
TEST_F(Memory, AllocationsAreAlignedAndApart) {
  std::vector<std::pair<char*, size_t>> all;
  for (size_t bytes : {1ul, 3ul, 255ul, 256ul, 257ul, 4096ul, 1048577ul}) {
    char* p = nullptr;
    ASSERT_OK(cudaMalloc(&p, bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 256, 0u) << bytes;
    for (const auto& [other, size] : all) EXPECT_TRUE(p + bytes <= other || other + size <= p);
    all.emplace_back(p, bytes);
  }
  for (const auto& [p, size] : all) EXPECT_OK(cudaFree(p));
}

TEST_F(Memory, CopiesInEveryDirection) {
  const std::vector<int> values = Counting(1 << 16, 5);
  DeviceArray<int> a(values.size()), b(values.size());
  std::vector<int> host(values.size()), other(values.size());
  ASSERT_OK(cudaMemcpy(a.get(), values.data(), a.bytes(), cudaMemcpyHostToDevice));
  ASSERT_OK(cudaMemcpy(b.get(), a.get(), a.bytes(), cudaMemcpyDeviceToDevice));
  ASSERT_OK(cudaMemcpy(host.data(), b.get(), a.bytes(), cudaMemcpyDeviceToHost));
  ASSERT_OK(cudaMemcpy(other.data(), host.data(), a.bytes(), cudaMemcpyHostToHost));
  EXPECT_EQ(other, values);
}

// Runtime API, cudaMemcpyKind: with unified addressing cudaMemcpyDefault infers the direction.
TEST_F(Memory, DefaultKindInfersTheDirection) {
  cudaDeviceProp p;
  ASSERT_OK(cudaGetDeviceProperties(&p, 0));
  if (!p.unifiedAddressing) GTEST_SKIP() << "no unified addressing";
  const std::vector<int> values = Counting(1000);
  DeviceArray<int> a(values.size()), b(values.size());
  std::vector<int> host(values.size()), other(values.size());
  ASSERT_OK(cudaMemcpy(a.get(), values.data(), a.bytes(), cudaMemcpyDefault));
  ASSERT_OK(cudaMemcpy(b.get(), a.get(), a.bytes(), cudaMemcpyDefault));
  ASSERT_OK(cudaMemcpy(host.data(), b.get(), a.bytes(), cudaMemcpyDefault));
  ASSERT_OK(cudaMemcpy(other.data(), host.data(), a.bytes(), cudaMemcpyDefault));
  EXPECT_EQ(other, values);
}

TEST_F(Memory, NothingIsCopiedForNoBytes) {
  EXPECT_OK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
  DeviceArray<int> a(std::vector<int>{7});
  EXPECT_OK(cudaMemset(a.get(), 0, 0));
  EXPECT_EQ(a.Read()[0], 7);
}

// Runtime API, "API synchronization behavior": from pageable memory the copy returns once the
// buffer has been taken, so the program may change it at once.
TEST_F(Memory, PageableSourceMayChangeAtOnce) {
  DeviceArray<int> a(1 << 18);
  Stream stream;
  std::vector<int> host = Counting(a.count());
  const std::vector<int> wanted = host;
  ASSERT_OK(cudaMemcpyAsync(a.get(), host.data(), a.bytes(), cudaMemcpyHostToDevice, stream));
  std::fill(host.begin(), host.end(), -1);
  ASSERT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(a.Read(), wanted);
  ASSERT_OK(cudaMemcpy(a.get(), wanted.data(), 4096, cudaMemcpyHostToDevice));
}

// The same section: to pageable memory the asynchronous copy returns only when it is complete.
TEST_F(Memory, PageableDestinationIsCompleteOnReturn) {
  const std::vector<int> wanted = Counting(1 << 18);
  DeviceArray<int> a(wanted);
  Stream stream;
  std::vector<int> host(a.count(), -1);
  ASSERT_OK(cudaMemcpyAsync(host.data(), a.get(), a.bytes(), cudaMemcpyDeviceToHost, stream));
  EXPECT_EQ(host, wanted);
}

// The same section: a synchronous copy to the host is complete on return, pinned memory too.
TEST_F(Memory, CopiesToTheHostWaitForTheKernels) {
  constexpr int kCount = 5000;
  DeviceArray<int> sum(kCount), one(std::vector<int>(kCount, 1));
  int* pinned = nullptr;
  ASSERT_OK(cudaMallocHost(&pinned, sum.bytes()));
  ASSERT_OK(cudaMemset(sum.get(), 0, sum.bytes()));
  for (int i = 0; i < 20; ++i) AddInto<<<20, 256>>>(sum.get(), one.get(), kCount);
  ASSERT_OK(cudaMemcpy(pinned, sum.get(), sum.bytes(), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(pinned[i], 20) << i;
  EXPECT_OK(cudaFreeHost(pinned));
}

TEST_F(Memory, PinnedCopiesAreInStreamOrder) {
  constexpr int kCount = 4096;
  int* pinned = nullptr;
  ASSERT_OK(cudaHostAlloc(&pinned, 2 * kCount * sizeof(int), cudaHostAllocDefault));
  for (int i = 0; i < kCount; ++i) pinned[i] = i;
  DeviceArray<int> a(kCount), b(kCount);
  Stream stream(cudaStreamNonBlocking);
  ASSERT_OK(cudaMemsetAsync(b.get(), 0, b.bytes(), stream));
  ASSERT_OK(cudaMemcpyAsync(a.get(), pinned, a.bytes(), cudaMemcpyHostToDevice, stream));
  for (int i = 0; i < 3; ++i) AddInto<<<16, 256, 0, stream>>>(b.get(), a.get(), kCount);
  ASSERT_OK(cudaMemcpyAsync(pinned + kCount, b.get(), b.bytes(), cudaMemcpyDeviceToHost, stream));
  ASSERT_OK(cudaStreamSynchronize(stream));
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(pinned[kCount + i], 3 * i) << i;
  EXPECT_OK(cudaFreeHost(pinned));
}

// Runtime API, cudaMemset: sets bytes.
TEST_F(Memory, FillsSetBytes) {
  DeviceArray<unsigned char> a(1000);
  ASSERT_OK(cudaMemset(a.get(), 0, a.bytes()));
  ASSERT_OK(cudaMemset(a.get() + 3, 0x1ff, 500));  // the value is taken as an unsigned char
  const std::vector<unsigned char> values = a.Read();
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], i >= 3 && i < 503 ? 0xff : 0) << i;
  }
}

// Runtime API, cudaMallocPitch, cudaMemcpy2D, cudaMemset2D.
TEST_F(Memory, Pitched) {
  constexpr size_t kWidth = 100, kHeight = 37;
  char* p = nullptr;
  size_t pitch = 0;
  ASSERT_OK(cudaMallocPitch(&p, &pitch, kWidth, kHeight));
  ASSERT_GE(pitch, kWidth);
  std::vector<char> source(kWidth * kHeight), back(kWidth * kHeight);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i % 113);
  ASSERT_OK(cudaMemcpy2D(p, pitch, source.data(), kWidth, kWidth, kHeight, cudaMemcpyHostToDevice));
  ASSERT_OK(cudaMemset2D(p + 10, pitch, 7, 20, kHeight));
  ASSERT_OK(cudaMemcpy2D(back.data(), kWidth, p, pitch, kWidth, kHeight, cudaMemcpyDeviceToHost));
  for (size_t y = 0; y < kHeight; ++y) {
    for (size_t x = 0; x < kWidth; ++x) {
      const char wanted = x >= 10 && x < 30 ? 7 : source[y * kWidth + x];
      ASSERT_EQ(back[y * kWidth + x], wanted) << x << " " << y;
    }
  }
  EXPECT_OK(cudaFree(p));
}

// Runtime API, cudaMalloc3D, cudaMemcpy3D, cudaMemset3D.
TEST_F(Memory, Boxes) {
  constexpr size_t kX = 24, kY = 6, kZ = 5;
  cudaPitchedPtr box;
  ASSERT_OK(cudaMalloc3D(&box, make_cudaExtent(kX, kY, kZ)));
  EXPECT_EQ(box.xsize, kX);
  EXPECT_EQ(box.ysize, kY);
  ASSERT_OK(cudaMemset3D(box, 1, make_cudaExtent(kX, kY, kZ)));
  std::vector<unsigned char> part(4 * 3 * 2);
  for (size_t i = 0; i < part.size(); ++i) part[i] = static_cast<unsigned char>(100 + i);
  cudaMemcpy3DParms in = {};
  in.srcPtr = make_cudaPitchedPtr(part.data(), 4, 4, 3);
  in.dstPtr = box;
  in.dstPos = make_cudaPos(2, 1, 3);
  in.extent = make_cudaExtent(4, 3, 2);
  in.kind = cudaMemcpyHostToDevice;
  ASSERT_OK(cudaMemcpy3D(&in));
  std::vector<unsigned char> all(kX * kY * kZ);
  cudaMemcpy3DParms out = {};
  out.srcPtr = box;
  out.dstPtr = make_cudaPitchedPtr(all.data(), kX, kX, kY);
  out.extent = make_cudaExtent(kX, kY, kZ);
  out.kind = cudaMemcpyDeviceToHost;
  ASSERT_OK(cudaMemcpy3D(&out));
  for (size_t z = 0; z < kZ; ++z) {
    for (size_t y = 0; y < kY; ++y) {
      for (size_t x = 0; x < kX; ++x) {
        const bool inside = x >= 2 && x < 6 && y >= 1 && y < 4 && z >= 3;
        const unsigned wanted = inside ? 100 + (x - 2) + 4 * ((y - 1) + 3 * (z - 3)) : 1;
        ASSERT_EQ(all[(z * kY + y) * kX + x], wanted) << x << " " << y << " " << z;
      }
    }
  }
  EXPECT_OK(cudaFree(box.ptr));
}

// --- Symbols: Runtime API, "Memory Management" ---

TEST_F(Memory, DeviceSymbols) {
  const std::vector<int> values = Counting(64, 1);
  ASSERT_OK(cudaMemcpyToSymbol(device_table, values.data(), sizeof(device_table)));
  BumpDeviceTable<<<1, 64>>>();
  std::vector<int> part(10);
  ASSERT_OK(cudaMemcpyFromSymbol(part.data(), device_table, 10 * sizeof(int), 20 * sizeof(int)));
  EXPECT_EQ(part, Counting(10, 121));
  void* address = nullptr;
  size_t bytes = 0;
  ASSERT_OK(cudaGetSymbolAddress(&address, device_table));
  ASSERT_OK(cudaGetSymbolSize(&bytes, device_table));
  EXPECT_EQ(bytes, sizeof(device_table));
  ASSERT_OK(cudaMemset(address, 0, bytes));
  ASSERT_OK(cudaMemcpyFromSymbol(part.data(), device_table, 10 * sizeof(int)));
  EXPECT_EQ(part, std::vector<int>(10, 0));
  EXPECT_CUDA(cudaErrorInvalidValue,
              cudaMemcpyToSymbol(device_table, values.data(), sizeof(device_table), 4));
  EXPECT_CUDA(cudaErrorInvalidMemcpyDirection,
              cudaMemcpyToSymbol(device_table, values.data(), 4, 0, cudaMemcpyDeviceToHost));
}

TEST_F(Memory, ConstantSymbols) {
  DeviceArray<int> out(64);
  for (int round = 0; round < 3; ++round) {
    const std::vector<int> values = Counting(64, 1000 * round);
    ASSERT_OK(cudaMemcpyToSymbol(constant_table, values.data(), sizeof(constant_table)));
    FromConstant<<<1, 64>>>(out.get());
    EXPECT_EQ(out.Read(), values);
  }
}

TEST_F(Memory, InitialisersOfSymbols) {
  DeviceArray<double> out(3);
  ReadInitialised<<<1, 3>>>(out.get());
  EXPECT_EQ(out.Read(), (std::vector<double>{1.5, 2.5, 3.5}));
}

// Programming Guide, "Unified Memory": the host sees what the device wrote once it has waited.
TEST_F(Memory, ManagedVariables) {
  EXPECT_EQ(managed_value, 11);
  managed_value = 20;
  BumpManaged<<<1, 1>>>();
  ASSERT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(managed_value, 21);
  void* address = nullptr;
  ASSERT_OK(cudaGetSymbolAddress(&address, managed_value));
  EXPECT_EQ(address, &managed_value);
  managed_value = 11;
}

TEST_F(Memory, ManagedAllocations) {
  int* p = nullptr;
  ASSERT_OK(cudaMallocManaged(&p, 1000 * sizeof(int)));
  DeviceArray<int> one(std::vector<int>(1000, 1));
  for (int i = 0; i < 1000; ++i) p[i] = i;
  AddInto<<<4, 256>>>(p, one.get(), 1000);
  ASSERT_OK(cudaDeviceSynchronize());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(p[i], i + 1);
  cudaPointerAttributes attributes;
  ASSERT_OK(cudaPointerGetAttributes(&attributes, p));
  EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
  EXPECT_OK(cudaFree(p));
}

// --- Host memory: Programming Guide, "Page-Locked Host Memory" ---

TEST_F(Memory, MappedHostMemory) {
  int* host = nullptr;
  ASSERT_OK(cudaHostAlloc(&host, 256 * sizeof(int), cudaHostAllocMapped | cudaHostAllocPortable));
  int* device = nullptr;
  ASSERT_OK(cudaHostGetDevicePointer(&device, host, 0));
  DeviceArray<int> one(std::vector<int>(256, 1));
  for (int i = 0; i < 256; ++i) host[i] = i;
  AddInto<<<1, 256>>>(device, one.get(), 256);
  ASSERT_OK(cudaDeviceSynchronize());
  for (int i = 0; i < 256; ++i) ASSERT_EQ(host[i], i + 1);
  unsigned flags = 0;
  ASSERT_OK(cudaHostGetFlags(&flags, host));
  EXPECT_TRUE(flags & cudaHostAllocPortable);
  EXPECT_OK(cudaFreeHost(host));
}

TEST_F(Memory, RegisteredHostMemory) {
  std::vector<int> host(1 << 16, 3);
  ASSERT_OK(cudaHostRegister(host.data(), host.size() * sizeof(int), cudaHostRegisterMapped));
  EXPECT_CUDA(cudaErrorHostMemoryAlreadyRegistered,
              cudaHostRegister(host.data(), host.size() * sizeof(int), cudaHostRegisterDefault));
  int* device = nullptr;
  ASSERT_OK(cudaHostGetDevicePointer(&device, host.data(), 0));
  DeviceArray<int> one(std::vector<int>(256, 1));
  AddInto<<<1, 256>>>(device + 4096, one.get(), 256);
  ASSERT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(host[4096], 4);
  EXPECT_EQ(host[4096 + 255], 4);
  EXPECT_EQ(host[4096 + 256], 3);
  EXPECT_OK(cudaHostUnregister(host.data()));
  EXPECT_CUDA(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(host.data()));
}

// Runtime API, cudaPointerGetAttributes.
TEST_F(Memory, AttributesOfPointers) {
  DeviceArray<int> a(1 << 20);
  int* pinned = nullptr;
  ASSERT_OK(cudaMallocHost(&pinned, 4096));
  int local = 0;
  cudaPointerAttributes attributes;
  ASSERT_OK(cudaPointerGetAttributes(&attributes, a.get() + 1000));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  EXPECT_EQ(attributes.devicePointer, a.get() + 1000);
  EXPECT_EQ(attributes.hostPointer, nullptr);
  ASSERT_OK(cudaPointerGetAttributes(&attributes, pinned + 10));
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.hostPointer, pinned + 10);
  EXPECT_NE(attributes.devicePointer, nullptr);
  ASSERT_OK(cudaPointerGetAttributes(&attributes, &local));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_OK(cudaFreeHost(pinned));
}

// Runtime API, cudaMemGetInfo: what is allocated is not free.
TEST_F(Memory, FreeMemoryShrinks) {
  size_t before = 0, during = 0, after = 0, total = 0;
  ASSERT_OK(cudaMemGetInfo(&before, &total));
  const size_t bytes = size_t{256} << 20;
  void* p = nullptr;
  ASSERT_OK(cudaMalloc(&p, bytes));
  ASSERT_OK(cudaMemGetInfo(&during, &total));
  EXPECT_GE(before - during, bytes);
  EXPECT_OK(cudaFree(p));
  ASSERT_OK(cudaMemGetInfo(&after, &total));
  EXPECT_GE(after, during + bytes);
}

// --- Stream Ordered Memory Allocator: Programming Guide ---

TEST_F(Memory, StreamOrderedAllocations) {
  cudaDeviceProp p;
  ASSERT_OK(cudaGetDeviceProperties(&p, 0));
  if (!p.memoryPoolsSupported) GTEST_SKIP() << "no memory pools";
  constexpr int kCount = 10000;
  Stream stream(cudaStreamNonBlocking);
  DeviceArray<int> one(std::vector<int>(kCount, 1));
  ASSERT_OK(cudaDeviceSynchronize());
  for (int round = 0; round < 10; ++round) {
    int *a = nullptr, *b = nullptr;
    ASSERT_OK(cudaMallocAsync(&a, kCount * sizeof(int), stream));
    ASSERT_OK(cudaMallocAsync(&b, kCount * sizeof(int), stream));
    ASSERT_OK(cudaMemsetAsync(a, 0, kCount * sizeof(int), stream));
    ASSERT_OK(cudaMemsetAsync(b, 0, kCount * sizeof(int), stream));
    for (int i = 0; i <= round; ++i) AddInto<<<40, 256, 0, stream>>>(a, one.get(), kCount);
    AddInto<<<40, 256, 0, stream>>>(b, a, kCount);
    ASSERT_OK(cudaFreeAsync(a, stream));
    std::vector<int> host(kCount);
    ASSERT_OK(
        cudaMemcpyAsync(host.data(), b, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream));
    ASSERT_OK(cudaFreeAsync(b, stream));
    ASSERT_OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(host, std::vector<int>(kCount, round + 1));
  }
}

// The same: cudaFree takes stream-ordered allocations, and cudaFreeAsync takes plain ones.
TEST_F(Memory, StreamOrderedAndPlainFreesMix) {
  cudaDeviceProp p;
  ASSERT_OK(cudaGetDeviceProperties(&p, 0));
  if (!p.memoryPoolsSupported) GTEST_SKIP() << "no memory pools";
  Stream stream;
  int *a = nullptr, *b = nullptr;
  ASSERT_OK(cudaMallocAsync(&a, 4096, stream));
  ASSERT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaFree(a));
  ASSERT_OK(cudaMalloc(&b, 4096));
  EXPECT_OK(cudaFreeAsync(b, stream));
  ASSERT_OK(cudaStreamSynchronize(stream));
  EXPECT_CUDA(cudaErrorInvalidValue, cudaFree(b));
}

}  // namespace
