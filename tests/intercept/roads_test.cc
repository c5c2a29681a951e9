// Every road by which a program reaches the driver leads over the hooks, and only over those that
// are of the form that was asked for.
#include "tests/intercept/fixture.h"

#undef cuGetProcAddress
extern "C" CUresult cuGetProcAddress(const char*, void**, int, cuuint64_t);
extern "C" void* FindNext(const char* name);

namespace tidepool::testing {
namespace {

constexpr size_t kBytes = size_t{4} << 20;
constexpr CUresult kOk = CUDA_SUCCESS;
constexpr cuuint64_t kLegacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

using AllocFunction = CUresult (*)(CUdeviceptr*, size_t);
using FreeFunction = CUresult (*)(CUdeviceptr);
using UploadFunction = CUresult (*)(CUdeviceptr, const void*, size_t);
using LookupV1 = CUresult (*)(const char*, void**, int, cuuint64_t);
using LookupV2 = CUresult (*)(const char*, void**, int, cuuint64_t,
                              CUdriverProcAddressQueryResult*);

void* Handle() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW);
  return handle;
}

// Uses the functions: the memory has to be Tidepool's, not the driver's cuMemAlloc.
void ExpectHooks(void* alloc, void* free) {
  ASSERT_NE(alloc, nullptr);
  ASSERT_NE(free, nullptr);
  const Log log;
  CUdeviceptr at = 0;
  ASSERT_EQ(reinterpret_cast<AllocFunction>(alloc)(&at, kBytes), kOk);
  std::vector<char> in(kBytes, 'a'), out(kBytes);
  EXPECT_EQ(cuMemcpyHtoD(at, in.data(), kBytes), kOk);
  EXPECT_EQ(cuMemcpyDtoH(out.data(), at, kBytes), kOk);
  EXPECT_EQ(in, out);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  EXPECT_EQ(cuMemGetAddressRange(&base, &bytes, at + 100), kOk);
  EXPECT_EQ(base, at);
  EXPECT_EQ(bytes, kBytes);
  EXPECT_EQ(reinterpret_cast<FreeFunction>(free)(at), kOk);
  EXPECT_FALSE(log.Has("cuMemAlloc_v2"));
  EXPECT_FALSE(log.Has("cuMemFree_v2"));
  EXPECT_TRUE(log.Has("cuMemcpyHtoD_v2"));
}

class Roads : public DriverTest {};

TEST_F(Roads, DirectLinking) {
  const Log log;
  ExpectHooks(reinterpret_cast<void*>(cuMemAlloc), reinterpret_cast<void*>(cuMemFree));
  EXPECT_TRUE(log.Has("cuMemAddressReserve"));
  EXPECT_TRUE(log.Has("cuMemCreate"));
}

TEST_F(Roads, DlsymWithTheHandle) {
  ExpectHooks(dlsym(Handle(), "cuMemAlloc_v2"), dlsym(Handle(), "cuMemFree_v2"));
}
TEST_F(Roads, DlsymDefault) {
  ExpectHooks(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), dlsym(RTLD_DEFAULT, "cuMemFree_v2"));
}
TEST_F(Roads, DlsymOfTheProgram) {
  void* program = dlopen(nullptr, RTLD_NOW);
  ExpectHooks(dlsym(program, "cuMemAlloc_v2"), dlsym(program, "cuMemFree_v2"));
}
TEST_F(Roads, DlsymNextFromTheProgram) {
  ExpectHooks(dlsym(RTLD_NEXT, "cuMemAlloc_v2"), dlsym(RTLD_NEXT, "cuMemFree_v2"));
}
TEST_F(Roads, DlsymNextFromAnotherObject) {
  ExpectHooks(FindNext("cuMemAlloc_v2"), FindNext("cuMemFree_v2"));
}
TEST_F(Roads, Dlvsym) {
  for (void* handle : {Handle(), RTLD_DEFAULT, RTLD_NEXT}) {
    ExpectHooks(dlvsym(handle, "cuMemAlloc_v2", "LOGGING_DRIVER"),
                dlvsym(handle, "cuMemFree_v2", "LOGGING_DRIVER"));
    EXPECT_EQ(dlvsym(handle, "cuMemAlloc_v2", "ANOTHER_VERSION"), nullptr);
  }
}

TEST_F(Roads, DlsymFindsNoMoreThanTheDriverHas) {
  for (const char* name : {"cuMemAllocPitch_v2", "cuNoSuchFunction"}) {
    EXPECT_EQ(dlsym(Handle(), name), nullptr) << name;
    EXPECT_EQ(dlsym(RTLD_DEFAULT, name), nullptr) << name;
    EXPECT_EQ(FindNext(name), nullptr) << name;
  }
}

TEST_F(Roads, DlsymLeavesFormsThatAreNotHookedToTheDriver) {
  for (const char* name : {"cuMemAlloc", "cuMemFree", "cuDriverGetVersion", "cuGetExportTable"}) {
    void* found = dlsym(Handle(), name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(FileOf(found), "libcuda.so.1") << name;
  }
}

TEST_F(Roads, OtherLibrariesKeepTheirOwnFunctionsOfSuchNames) {
  void* other = dlopen("libnext_road.so", RTLD_NOW);
  ASSERT_NE(other, nullptr) << dlerror();
  EXPECT_EQ(FileOf(dlsym(other, "cuModuleUnload")), "libnext_road.so");
  // Behind that library is the driver, and not the library again.
  EXPECT_EQ(FileOf(FindNext("cuModuleUnload")), "libtidepool.so");
}

TEST_F(Roads, NamesThatAreNotTheDriversAreLeftToLibc) {
  void* once = FindNext("open");
  EXPECT_NE(once, nullptr);
  EXPECT_EQ(FindNext("open"), once) << "asked again";
  EXPECT_EQ(FindNext("NextRoadOwn"), nullptr) << "next is after the one that asks";
  EXPECT_NE(dlsym(RTLD_DEFAULT, "NextRoadOwn"), nullptr);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "cublasSgemm_v2"), nullptr);
  EXPECT_NE(dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.14"), nullptr);
  EXPECT_EQ(dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_0.0"), nullptr);
}

TEST_F(Roads, TheDriverGetsItsOwnFunctions) {
  const Log log;
  ASSERT_EQ(cuInit(0), kOk);
  EXPECT_TRUE(log.Has("cuInit"));
  EXPECT_FALSE(log.Has("the driver was given a hook"));
}

// --- cuGetProcAddress, both versions ---

// One way to look up: through the old function or the new one, found by linking or by lookup.
struct Way {
  const char* name;
  CUresult (*find)(const char*, void**, int, cuuint64_t);
};
CUresult Old(const char* name, void** f, int version, cuuint64_t flags) {
  return cuGetProcAddress(name, f, version, flags);
}
CUresult New(const char* name, void** f, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(name, f, version, flags, nullptr);
}
CUresult OldByLookup(const char* name, void** f, int version, cuuint64_t flags) {
  void* lookup = nullptr;
  EXPECT_EQ(New("cuGetProcAddress", &lookup, 11030, 0), kOk);
  return reinterpret_cast<LookupV1>(lookup)(name, f, version, flags);
}
CUresult NewByLookup(const char* name, void** f, int version, cuuint64_t flags) {
  void* lookup = nullptr;
  EXPECT_EQ(New("cuGetProcAddress", &lookup, 12000, 0), kOk);
  return reinterpret_cast<LookupV2>(lookup)(name, f, version, flags, nullptr);
}
// As the CUDA runtime does.
CUresult NewByDlsym(const char* name, void** f, int version, cuuint64_t flags) {
  auto lookup = reinterpret_cast<LookupV2>(dlsym(Handle(), "cuGetProcAddress_v2"));
  return lookup(name, f, version, flags, nullptr);
}

class Lookup : public DriverTest, public ::testing::WithParamInterface<Way> {
 protected:
  void* Find(const char* name, int version, cuuint64_t flags = 0) {
    void* found = &found;
    EXPECT_EQ(GetParam().find(name, &found, version, flags), kOk) << name;
    return found;
  }
};

TEST_P(Lookup, GivesHooks) {
  ExpectHooks(Find("cuMemAlloc", 3020), Find("cuMemFree", 3020));
  ExpectHooks(Find("cuMemAlloc", CUDA_VERSION), Find("cuMemFree", CUDA_VERSION));
  ExpectHooks(Find("cuMemAlloc", 12000, kLegacy), Find("cuMemFree", 12000, kPerThread));
}

TEST_P(Lookup, LeavesTheFormOf32Bits) {
  for (const int version : {2000, 3010}) {
    void* alloc = Find("cuMemAlloc", version);
    EXPECT_EQ(FileOf(alloc), "libcuda.so.1") << version;
    const Log log;
    unsigned int out[2] = {0, 0xabcd};
    EXPECT_EQ(reinterpret_cast<CUresult (*)(unsigned*, unsigned)>(alloc)(out, 64), kOk);
    EXPECT_EQ(out[1], 0xabcdu) << "wrote more than 32 bits";
    EXPECT_TRUE(log.Has("cuMemAlloc"));
    EXPECT_EQ(FileOf(Find("cuMemFree", version)), "libcuda.so.1") << version;
  }
}

TEST_P(Lookup, TellsLegacyFromPerThread) {
  char byte = 0;
  CUdeviceptr at = 0;
  ASSERT_EQ(cuMemAlloc(&at, kBytes), kOk);
  struct Case {
    int version;
    cuuint64_t flags;
    const char* reached;
  };
  for (const Case& c :
       {Case{3020, 0, "cuMemcpyHtoD_v2"}, Case{7000, 0, "cuMemcpyHtoD_v2"},
        Case{7000, kLegacy, "cuMemcpyHtoD_v2"}, Case{7000, kPerThread, "cuMemcpyHtoD_v2_ptds"},
        Case{13000, kPerThread, "cuMemcpyHtoD_v2_ptds"}}) {
    void* upload = Find("cuMemcpyHtoD", c.version, c.flags);
    EXPECT_EQ(FileOf(upload), "libtidepool.so");
    const Log log;
    EXPECT_EQ(reinterpret_cast<UploadFunction>(upload)(at, &byte, 1), kOk);
    EXPECT_TRUE(log.Has(c.reached)) << c.reached << " at " << c.version;
  }
  EXPECT_EQ(cuMemFree(at), kOk);
  for (const char* name : {"cuLaunchKernel", "cuMemAllocAsync", "cuMemcpyHtoDAsync"}) {
    void *legacy = Find(name, 12000, 0), *per_thread = Find(name, 12000, kPerThread);
    EXPECT_EQ(FileOf(legacy), "libtidepool.so") << name;
    EXPECT_EQ(FileOf(per_thread), "libtidepool.so") << name;
    EXPECT_NE(legacy, per_thread) << name;
  }
}

TEST_P(Lookup, GivesEachFormOfItself) {
  EXPECT_EQ(Find("cuGetProcAddress", 11030), reinterpret_cast<void*>(cuGetProcAddress));
  EXPECT_EQ(Find("cuGetProcAddress", 12000), reinterpret_cast<void*>(cuGetProcAddress_v2));
}

TEST_P(Lookup, LeavesFormsThatAreNewerThanTheHooks) {
  ExpectHooks(Find("cuMemAlloc", 97000), Find("cuMemFree", 98000));
  void* alloc = Find("cuMemAlloc", 98000);
  EXPECT_EQ(FileOf(alloc), "libcuda.so.1");
  CUdeviceptr at = 0;
  int third = 0;
  EXPECT_EQ(reinterpret_cast<CUresult (*)(CUdeviceptr*, size_t, int*)>(alloc)(&at, 64, &third),
            kOk);
  EXPECT_EQ(third, 3);
  EXPECT_EQ(cuMemFree(at), kOk);
}

TEST_P(Lookup, ChangesNothingOfWhatTheDriverLacks) {
  EXPECT_EQ(Find("cuNoSuchFunction", 12000), nullptr);
  EXPECT_EQ(Find("", 0), nullptr);
  EXPECT_EQ(Find("cuMemAllocPitch", 12000), nullptr) << "hooked, but not there";
  EXPECT_EQ(Find("cuMemAllocAsync", 11010), nullptr) << "not yet there";
}

TEST_P(Lookup, LeavesWhatIsNotHooked) {
  EXPECT_EQ(FileOf(Find("cuDriverGetVersion", 12000)), "libcuda.so.1");
  EXPECT_EQ(FileOf(Find("cuGetExportTable", 3000)), "libcuda.so.1");
}

TEST_P(Lookup, ReturnsTheDriversErrors) {
  void* found = nullptr;
  EXPECT_EQ(GetParam().find("cuMemAlloc", &found, 100000, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(GetParam().find("cuMemAlloc", nullptr, 12000, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(GetParam().find(nullptr, &found, 12000, 0), CUDA_ERROR_INVALID_VALUE);
}

INSTANTIATE_TEST_SUITE_P(Ways, Lookup,
                         ::testing::Values(Way{"old", Old}, Way{"new", New},
                                           Way{"old_by_lookup", OldByLookup},
                                           Way{"new_by_lookup", NewByLookup},
                                           Way{"new_by_dlsym", NewByDlsym}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(Roads, TheStatusIsTheDrivers) {
  struct Case {
    const char* name;
    int version;
    CUdriverProcAddressQueryResult status;
  };
  for (const Case& c :
       {Case{"cuMemAlloc", 12000, CU_GET_PROC_ADDRESS_SUCCESS},
        Case{"cuNoSuchFunction", 12000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
        Case{"cuMemAllocPitch", 12000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
        Case{"cuMemAllocAsync", 11010, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT}}) {
    auto status = static_cast<CUdriverProcAddressQueryResult>(99);
    void* found = nullptr;
    EXPECT_EQ(cuGetProcAddress_v2(c.name, &found, c.version, 0, &status), kOk);
    EXPECT_EQ(status, c.status) << c.name;
  }
}

TEST_F(Roads, ExportTablesPassThrough) {
  const Log log;
  const void* table = &table;
  CUuuid uuid = {};
  EXPECT_EQ(cuGetExportTable(&table, &uuid), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(table, nullptr);
  EXPECT_TRUE(log.Has("cuGetExportTable"));
}

}  // namespace
}  // namespace tidepool::testing
