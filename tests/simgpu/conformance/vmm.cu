// Virtual memory management: CUDA Driver API, "Virtual Memory Management", and the chapter of that
// name in the Programming Guide.
#include "conformance.h"
#include "driver_api.h"

namespace {

__global__ void Fill(int* out, int n, int first) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = first + i;
}
__global__ void Sum(const int* in, int n, int* out) {
  int sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += in[i];
  atomicAdd(out, sum);
}

CUmemAllocationProp Property() {
  CUmemAllocationProp p = {};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.location.id = 0;
  return p;
}
CUmemAccessDesc Access(CUmemAccess_flags flags) {
  CUmemAccessDesc d = {};
  d.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  d.location.id = 0;
  d.flags = flags;
  return d;
}
CUresult SetAccess(CUdeviceptr at, size_t bytes,
                   CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
  const CUmemAccessDesc d = Access(flags);
  return Driver().MemSetAccess(at, bytes, &d, 1);
}
int* Ints(CUdeviceptr at) { return reinterpret_cast<int*>(at); }

bool Supported() {
  int value = 0;
  EXPECT_OK(cudaDeviceGetAttribute(
      &value, static_cast<cudaDeviceAttr>(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED),
      0));
  return value != 0;
}

size_t Granularity() {
  size_t bytes = 0;
  const CUmemAllocationProp p = Property();
  EXPECT_DRIVER_OK(
      Driver().MemGetAllocationGranularity(&bytes, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  return bytes;
}

// A range with one handle of a granule, mapped and accessible.
struct Mapping {
  size_t bytes = Granularity();
  CUdeviceptr at = 0;
  CUmemGenericAllocationHandle handle = 0;
  explicit Mapping(bool accessible = true) {
    const CUmemAllocationProp p = Property();
    EXPECT_DRIVER_OK(Driver().MemAddressReserve(&at, bytes, 0, 0, 0));
    EXPECT_DRIVER_OK(Driver().MemCreate(&handle, bytes, &p, 0));
    EXPECT_DRIVER_OK(Driver().MemMap(at, bytes, 0, handle, 0));
    if (accessible) EXPECT_DRIVER_OK(SetAccess(at, bytes));
  }
  ~Mapping() {
    cudaDeviceSynchronize();
    Driver().MemUnmap(at, bytes);
    Driver().MemRelease(handle);
    Driver().MemAddressFree(at, bytes);
  }
};

int SumOf(CUdeviceptr at, int n) {
  DeviceArray<int> sum(std::vector<int>{0});
  Sum<<<1, 128>>>(Ints(at), n, sum.get());
  return sum.Read()[0];
}

class Vmm : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    ASSERT_OK(cudaFree(nullptr));
    if (!Supported()) GTEST_SKIP() << "no virtual memory management";
  }
};

TEST_F(Vmm, GranularityIsAPowerOfTwo) {
  const size_t minimum = Granularity();
  size_t recommended = 0;
  const CUmemAllocationProp p = Property();
  EXPECT_DRIVER_OK(
      Driver().MemGetAllocationGranularity(&recommended, &p, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  EXPECT_GT(minimum, 0u);
  EXPECT_EQ(minimum & (minimum - 1), 0u);
  EXPECT_GE(recommended, minimum);
}

TEST_F(Vmm, MappedMemoryWorks) {
  Mapping m;
  Fill<<<1, 128>>>(Ints(m.at), 1000, 0);
  EXPECT_EQ(SumOf(m.at, 1000), 999 * 1000 / 2);
  EXPECT_EQ(cudaMemset(Ints(m.at), 0, m.bytes), cudaSuccess);
  EXPECT_EQ(SumOf(m.at, 1000), 0);
}

// cuMemCreate: the size must be a multiple of the granularity.
TEST_F(Vmm, CreateNeedsWholeGranules) {
  const CUmemAllocationProp p = Property();
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_DRIVER(CUDA_ERROR_INVALID_VALUE, Driver().MemCreate(&handle, Granularity() / 2, &p, 0));
  EXPECT_DRIVER(CUDA_ERROR_INVALID_VALUE, Driver().MemCreate(&handle, 0, &p, 0));
  size_t free_bytes = 0, total = 0;
  ASSERT_OK(cudaMemGetInfo(&free_bytes, &total));
  const size_t granule = Granularity();
  EXPECT_DRIVER(CUDA_ERROR_OUT_OF_MEMORY,
                Driver().MemCreate(&handle, (total / granule + 64) * granule, &p, 0));
}

// Programming Guide, "Virtual Aliasing Support": one handle at several addresses.
TEST_F(Vmm, AliasesSeeTheSameMemory) {
  Mapping m;
  CUdeviceptr alias = 0;
  ASSERT_DRIVER_OK(Driver().MemAddressReserve(&alias, m.bytes, 0, 0, 0));
  ASSERT_DRIVER_OK(Driver().MemMap(alias, m.bytes, 0, m.handle, 0));
  ASSERT_DRIVER_OK(SetAccess(alias, m.bytes));
  for (int round = 0; round < 5; ++round) {
    Fill<<<1, 128>>>(Ints(m.at), 256, round);
    EXPECT_EQ(SumOf(alias, 256), 255 * 256 / 2 + 256 * round);
    Fill<<<1, 128>>>(Ints(alias), 256, 1000 + round);
    EXPECT_EQ(SumOf(m.at, 256), 255 * 256 / 2 + 256 * (1000 + round));
  }
  EXPECT_DRIVER_OK(Driver().MemUnmap(alias, m.bytes));
  EXPECT_EQ(SumOf(m.at, 1), 1004);
  EXPECT_DRIVER_OK(Driver().MemAddressFree(alias, m.bytes));
}

// The content belongs to the handle: unmapped and mapped elsewhere it is still there.
TEST_F(Vmm, ContentOutlivesAMapping) {
  const size_t bytes = Granularity();
  const CUmemAllocationProp p = Property();
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr first = 0, second = 0;
  ASSERT_DRIVER_OK(Driver().MemCreate(&handle, bytes, &p, 0));
  ASSERT_DRIVER_OK(Driver().MemAddressReserve(&first, bytes, 0, 0, 0));
  ASSERT_DRIVER_OK(Driver().MemAddressReserve(&second, bytes, 0, 0, 0));
  ASSERT_DRIVER_OK(Driver().MemMap(first, bytes, 0, handle, 0));
  ASSERT_DRIVER_OK(SetAccess(first, bytes));
  Fill<<<1, 128>>>(Ints(first), 500, 3);
  ASSERT_OK(cudaDeviceSynchronize());
  ASSERT_DRIVER_OK(Driver().MemUnmap(first, bytes));
  ASSERT_DRIVER_OK(Driver().MemMap(second, bytes, 0, handle, 0));
  ASSERT_DRIVER_OK(SetAccess(second, bytes));
  EXPECT_EQ(SumOf(second, 500), 499 * 500 / 2 + 1500);
  // cuMemRelease: memory lives until the last mapping is gone too.
  ASSERT_DRIVER_OK(Driver().MemRelease(handle));
  EXPECT_EQ(SumOf(second, 500), 499 * 500 / 2 + 1500);
  EXPECT_DRIVER_OK(Driver().MemUnmap(second, bytes));
  EXPECT_DRIVER_OK(Driver().MemAddressFree(first, bytes));
  EXPECT_DRIVER_OK(Driver().MemAddressFree(second, bytes));
}

// cuMemRelease: what nothing refers to any more is free again.
TEST_F(Vmm, MemoryComesBackAfterTheLastReference) {
  size_t before = 0, during = 0, after = 0, total = 0;
  const size_t bytes = (size_t{256} << 20) / Granularity() * Granularity();
  const CUmemAllocationProp p = Property();
  ASSERT_OK(cudaMemGetInfo(&before, &total));
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  ASSERT_DRIVER_OK(Driver().MemCreate(&handle, bytes, &p, 0));
  ASSERT_DRIVER_OK(Driver().MemAddressReserve(&at, bytes, 0, 0, 0));
  ASSERT_DRIVER_OK(Driver().MemMap(at, bytes, 0, handle, 0));
  ASSERT_DRIVER_OK(Driver().MemRelease(handle));
  ASSERT_OK(cudaMemGetInfo(&during, &total));
  EXPECT_GE(before - during, bytes);
  ASSERT_DRIVER_OK(Driver().MemUnmap(at, bytes));
  ASSERT_OK(cudaMemGetInfo(&after, &total));
  EXPECT_GE(after - during, bytes);
  EXPECT_DRIVER_OK(Driver().MemAddressFree(at, bytes));
}

TEST_F(Vmm, ManyHandlesInOneRangeAreOneBuffer) {
  constexpr int kHandles = 4;
  const size_t bytes = Granularity();
  const CUmemAllocationProp p = Property();
  CUdeviceptr at = 0;
  ASSERT_DRIVER_OK(Driver().MemAddressReserve(&at, kHandles * bytes, 0, 0, 0));
  for (int i = 0; i < kHandles; ++i) {
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_DRIVER_OK(Driver().MemCreate(&handle, bytes, &p, 0));
    ASSERT_DRIVER_OK(Driver().MemMap(at + i * bytes, bytes, 0, handle, 0));
    ASSERT_DRIVER_OK(Driver().MemRelease(handle));
  }
  // cuMemSetAccess: the range may cover many whole allocations.
  ASSERT_DRIVER_OK(SetAccess(at, kHandles * bytes));
  const int per_handle = static_cast<int>(bytes / sizeof(int));
  const CUdeviceptr border = at + bytes - 500 * sizeof(int);
  Fill<<<1, 128>>>(Ints(border), 1000, 0);
  EXPECT_EQ(SumOf(border, 1000), 999 * 1000 / 2);
  // Copies and fills go over the border of two handles.
  std::vector<int> host(2 * per_handle, -1);
  ASSERT_OK(cudaMemcpy(host.data(), Ints(at), host.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(host[per_handle - 500 + i], i);
  ASSERT_OK(cudaMemset(Ints(border), 0, 1000 * sizeof(int)));
  EXPECT_EQ(SumOf(border, 1000), 0);
  for (int i = 0; i < kHandles; ++i) EXPECT_DRIVER_OK(Driver().MemUnmap(at + i * bytes, bytes));
  EXPECT_DRIVER_OK(Driver().MemAddressFree(at, kHandles * bytes));
}

// --- Rules ---

// cuMemMap: only into reserved addresses that are not mapped, at offset 0, whole granules.
TEST_F(Vmm, MapRules) {
  Mapping m;
  const CUmemAllocationProp p = Property();
  CUmemGenericAllocationHandle other = 0;
  ASSERT_DRIVER_OK(Driver().MemCreate(&other, m.bytes, &p, 0));
  EXPECT_NE(Driver().MemMap(m.at, m.bytes, 0, other, 0), CUDA_SUCCESS);
  CUdeviceptr at = 0;
  ASSERT_DRIVER_OK(Driver().MemAddressReserve(&at, 2 * m.bytes, 0, 0, 0));
  EXPECT_DRIVER(CUDA_ERROR_INVALID_VALUE, Driver().MemMap(at, m.bytes, m.bytes / 2, other, 0));
  EXPECT_DRIVER(CUDA_ERROR_INVALID_VALUE, Driver().MemMap(at, m.bytes / 2, 0, other, 0));
  EXPECT_DRIVER(CUDA_ERROR_INVALID_VALUE, Driver().MemMap(at, m.bytes, 0, other, 1));
  EXPECT_DRIVER_OK(Driver().MemMap(at + m.bytes, m.bytes, 0, other, 0));
  EXPECT_DRIVER_OK(Driver().MemUnmap(at + m.bytes, m.bytes));
  EXPECT_DRIVER_OK(Driver().MemRelease(other));
  EXPECT_NE(Driver().MemMap(at, m.bytes, 0, other, 0), CUDA_SUCCESS);  // released
  EXPECT_DRIVER_OK(Driver().MemAddressFree(at, 2 * m.bytes));
}

// cuMemUnmap: whole mappings only; unmapped twice is an error.
TEST_F(Vmm, UnmapRules) {
  const size_t bytes = 2 * Granularity();
  const CUmemAllocationProp p = Property();
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  ASSERT_DRIVER_OK(Driver().MemCreate(&handle, bytes, &p, 0));
  ASSERT_DRIVER_OK(Driver().MemAddressReserve(&at, bytes, 0, 0, 0));
  ASSERT_DRIVER_OK(Driver().MemMap(at, bytes, 0, handle, 0));
  EXPECT_DRIVER(CUDA_ERROR_INVALID_VALUE, Driver().MemUnmap(at, bytes / 2));
  EXPECT_DRIVER(CUDA_ERROR_INVALID_VALUE, Driver().MemUnmap(at + bytes / 2, bytes / 2));
  EXPECT_DRIVER_OK(Driver().MemUnmap(at, bytes));
  EXPECT_NE(Driver().MemUnmap(at, bytes), CUDA_SUCCESS);
  EXPECT_DRIVER_OK(Driver().MemRelease(handle));
  EXPECT_DRIVER_OK(Driver().MemAddressFree(at, bytes));
}

// cuMemSetAccess: the whole range must be mapped.
TEST_F(Vmm, AccessNeedsAMapping) {
  const size_t bytes = Granularity();
  CUdeviceptr at = 0;
  ASSERT_DRIVER_OK(Driver().MemAddressReserve(&at, 2 * bytes, 0, 0, 0));
  EXPECT_NE(SetAccess(at, bytes), CUDA_SUCCESS);
  const CUmemAllocationProp p = Property();
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_DRIVER_OK(Driver().MemCreate(&handle, bytes, &p, 0));
  ASSERT_DRIVER_OK(Driver().MemMap(at, bytes, 0, handle, 0));
  EXPECT_NE(SetAccess(at, 2 * bytes), CUDA_SUCCESS);
  EXPECT_DRIVER_OK(SetAccess(at, bytes));
  EXPECT_DRIVER_OK(Driver().MemUnmap(at, bytes));
  EXPECT_DRIVER_OK(Driver().MemRelease(handle));
  EXPECT_DRIVER_OK(Driver().MemAddressFree(at, 2 * bytes));
}

// cuMemGetAccess.
TEST_F(Vmm, AccessCanBeRead) {
  Mapping m(false);
  CUmemLocation here = {};
  here.type = CU_MEM_LOCATION_TYPE_DEVICE;
  here.id = 0;
  unsigned long long flags = 99;
  ASSERT_DRIVER_OK(Driver().MemGetAccess(&flags, &here, m.at));
  EXPECT_EQ(flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_NONE));
  ASSERT_DRIVER_OK(SetAccess(m.at, m.bytes));
  ASSERT_DRIVER_OK(Driver().MemGetAccess(&flags, &here, m.at));
  EXPECT_EQ(flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
}

// cuMemRetainAllocationHandle: any address inside the mapping gives the handle back, and one more
// release is due.
TEST_F(Vmm, RetainFindsTheHandle) {
  Mapping m;
  CUmemGenericAllocationHandle found = 0;
  ASSERT_DRIVER_OK(
      Driver().MemRetainAllocationHandle(&found, reinterpret_cast<void*>(m.at + m.bytes / 2)));
  EXPECT_EQ(found, m.handle);
  EXPECT_DRIVER_OK(Driver().MemRelease(found));
  Fill<<<1, 128>>>(Ints(m.at), 10, 0);
  EXPECT_EQ(SumOf(m.at, 10), 45);
  CUmemAllocationProp p = {};
  ASSERT_DRIVER_OK(Driver().MemGetAllocationPropertiesFromHandle(&p, m.handle));
  EXPECT_EQ(p.type, CU_MEM_ALLOCATION_TYPE_PINNED);
  EXPECT_EQ(p.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(p.location.id, 0);
}

// cuMemAddressReserve: the size is a whole number of pages.
TEST_F(Vmm, ReserveRules) {
  CUdeviceptr at = 0;
  EXPECT_DRIVER(CUDA_ERROR_INVALID_VALUE, Driver().MemAddressReserve(&at, 0, 0, 0, 0));
  const size_t bytes = Granularity();
  const size_t align = 8 * bytes;
  ASSERT_DRIVER_OK(Driver().MemAddressReserve(&at, bytes, align, 0, 0));
  EXPECT_EQ(at % align, 0u);
  CUdeviceptr other = 0;
  ASSERT_DRIVER_OK(Driver().MemAddressReserve(&other, bytes, 0, 0, 0));
  EXPECT_TRUE(other + bytes <= at || at + bytes <= other);
  EXPECT_DRIVER_OK(Driver().MemAddressFree(at, bytes));
  EXPECT_DRIVER_OK(Driver().MemAddressFree(other, bytes));
  EXPECT_NE(Driver().MemAddressFree(other, bytes), CUDA_SUCCESS);
}

// --- Accesses without a mapping or without access ---

class VmmFaults : public ::testing::Test {};

TEST_F(VmmFaults, NoAccessBeforeSetAccess) {
  EXPECT_IN_NEW_PROCESS({
    EXPECT_OK(cudaFree(nullptr));
    Mapping m(false);
    Fill<<<1, 1>>>(Ints(m.at), 1, 0);
    EXPECT_CUDA(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  });
}

TEST_F(VmmFaults, NoAccessAfterUnmap) {
  EXPECT_IN_NEW_PROCESS({
    EXPECT_OK(cudaFree(nullptr));
    Mapping m;
    Fill<<<1, 1>>>(Ints(m.at), 1, 0);
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_DRIVER_OK(Driver().MemUnmap(m.at, m.bytes));
    Fill<<<1, 1>>>(Ints(m.at), 1, 0);
    EXPECT_CUDA(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  });
}

// cuMemUnmap: access is lost; a new mapping must set it again.
TEST_F(VmmFaults, RemappingDoesNotBringAccessBack) {
  EXPECT_IN_NEW_PROCESS({
    EXPECT_OK(cudaFree(nullptr));
    Mapping m;
    EXPECT_DRIVER_OK(Driver().MemUnmap(m.at, m.bytes));
    EXPECT_DRIVER_OK(Driver().MemMap(m.at, m.bytes, 0, m.handle, 0));
    Fill<<<1, 1>>>(Ints(m.at), 1, 0);
    EXPECT_CUDA(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  });
}

TEST_F(VmmFaults, ReservedAloneIsNoMemory) {
  EXPECT_IN_NEW_PROCESS({
    EXPECT_OK(cudaFree(nullptr));
    CUdeviceptr at = 0;
    const size_t bytes = Granularity();
    EXPECT_DRIVER_OK(Driver().MemAddressReserve(&at, bytes, 0, 0, 0));
    Fill<<<1, 1>>>(Ints(at), 1, 0);
    EXPECT_CUDA(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  });
}

}  // namespace
