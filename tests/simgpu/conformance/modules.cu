// Modules and libraries: CUDA Driver API, "Module Management", "Library Management" and "Execution
// Control". CONFORMANCE_MODULES is the folder of module_kernels in its several forms.
#include <fstream>
#include <iterator>
#include <string>

#include "conformance.h"
#include "driver_api.h"

namespace {

std::string Path(const std::string& name) { return std::string(CONFORMANCE_MODULES) + "/" + name; }
std::vector<char> ReadFile(const std::string& name) {
  std::ifstream file(Path(name), std::ios::binary);
  EXPECT_TRUE(file.good()) << Path(name);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  bytes.push_back('\0');
  return bytes;
}

// Layout's struct, as the host sees it.
struct Mixed {
  char tag;
  double weight;
  short pair[3];
};

class Modules : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    ASSERT_OK(cudaFree(nullptr));
  }
};

void ExpectScaled(CUfunction function) {
  std::vector<float> values(300);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  DeviceArray<float> in(values), out(values.size());
  float *to = out.get(), *from = in.get();
  int n = 300;
  void* args[] = {&to, &from, &n};
  ASSERT_DRIVER_OK(Driver().LaunchKernel(function, 3, 1, 1, 128, 1, 1, 0, nullptr, args, nullptr));
  const std::vector<float> result = out.Read();
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(result[i], 2.5f * values[i]) << i;
}

class ModuleForms : public Modules, public ::testing::WithParamInterface<const char*> {};

// cuModuleLoadData: the image may be a cubin, PTX as text that ends in a NUL, or a fat binary.
TEST_P(ModuleForms, LoadsAndRuns) {
  const std::vector<char> image = ReadFile(GetParam());
  CUmodule module = nullptr;
  ASSERT_DRIVER_OK(Driver().ModuleLoadData(&module, image.data()));
  CUfunction function = nullptr;
  ASSERT_DRIVER_OK(Driver().ModuleGetFunction(&function, module, "Scale"));
  ExpectScaled(function);
  EXPECT_DRIVER(CUDA_ERROR_NOT_FOUND, Driver().ModuleGetFunction(&function, module, "NotThere"));
  EXPECT_DRIVER_OK(Driver().ModuleUnload(module));
}
TEST_P(ModuleForms, LoadsFromAFile) {
  CUmodule module = nullptr;
  ASSERT_DRIVER_OK(Driver().ModuleLoad(&module, Path(GetParam()).c_str()));
  CUfunction function = nullptr;
  ASSERT_DRIVER_OK(Driver().ModuleGetFunction(&function, module, "Scale"));
  ExpectScaled(function);
  EXPECT_DRIVER_OK(Driver().ModuleUnload(module));
}
// cuLibraryLoadData, cuKernelGetFunction.
TEST_P(ModuleForms, LoadsAsALibrary) {
  const std::vector<char> image = ReadFile(GetParam());
  CUlibrary library = nullptr;
  ASSERT_DRIVER_OK(
      Driver().LibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned count = 0;
  EXPECT_DRIVER_OK(Driver().LibraryGetKernelCount(&count, library));
  EXPECT_EQ(count, 3u);
  CUkernel kernel = nullptr;
  ASSERT_DRIVER_OK(Driver().LibraryGetKernel(&kernel, library, "Scale"));
  const char* name = nullptr;
  ASSERT_DRIVER_OK(Driver().KernelGetName(&name, kernel));
  EXPECT_STREQ(name, "Scale");
  CUfunction function = nullptr;
  ASSERT_DRIVER_OK(Driver().KernelGetFunction(&function, kernel));
  ExpectScaled(function);
  // cuLaunchKernel: the function may be a kernel, cast.
  ExpectScaled(reinterpret_cast<CUfunction>(kernel));
  EXPECT_DRIVER_OK(Driver().LibraryUnload(library));
}
INSTANTIATE_TEST_SUITE_P(Forms, ModuleForms,
                         ::testing::Values("kernels.ptx", "kernels.fatbin", "kernels_plain.fatbin",
                                           "kernels_speed.fatbin", "kernels_size.fatbin"));

struct Loaded {
  CUmodule module = nullptr;
  Loaded() {
    const std::vector<char> image = ReadFile("kernels.ptx");
    EXPECT_DRIVER_OK(Driver().ModuleLoadData(&module, image.data()));
  }
  ~Loaded() { Driver().ModuleUnload(module); }
  CUfunction Function(const char* name) const {
    CUfunction function = nullptr;
    EXPECT_DRIVER_OK(Driver().ModuleGetFunction(&function, module, name));
    return function;
  }
};

// cuModuleGetGlobal; each loading has its own variables, with the values of their initialisers.
TEST_F(Modules, GlobalsBelongToTheModule) {
  Loaded first, second;
  CUdeviceptr at = 0, other = 0;
  size_t bytes = 0;
  ASSERT_DRIVER_OK(Driver().ModuleGetGlobal(&at, &bytes, first.module, "counter"));
  EXPECT_EQ(bytes, sizeof(int));
  ASSERT_DRIVER_OK(Driver().ModuleGetGlobal(&other, nullptr, second.module, "counter"));
  EXPECT_NE(at, other);
  ASSERT_DRIVER_OK(Driver().LaunchKernel(first.Function("Count"), 2, 1, 1, 32, 1, 1, 0, nullptr,
                                         nullptr, nullptr));
  int value = 0, untouched = 0;
  ASSERT_DRIVER_OK(Driver().MemcpyDtoH(&value, at, sizeof(value)));
  ASSERT_DRIVER_OK(Driver().MemcpyDtoH(&untouched, other, sizeof(untouched)));
  EXPECT_EQ(value, 41 + 64);
  EXPECT_EQ(untouched, 41);
  EXPECT_DRIVER(CUDA_ERROR_NOT_FOUND,
                Driver().ModuleGetGlobal(&at, &bytes, first.module, "nothing"));
}

// cuFuncGetParamInfo: offset and size of each parameter; an index behind the last is an invalid
// value.
TEST_F(Modules, ParameterLayout) {
  Loaded loaded;
  const CUfunction layout = loaded.Function("Layout");
  const size_t offsets[] = {0, 8, 10, 16, 40, 48};
  const size_t sizes[] = {8, 1, 2, sizeof(Mixed), 4, 8};
  for (size_t i = 0; i < 6; ++i) {
    size_t offset = 99, size = 99;
    ASSERT_DRIVER_OK(Driver().FuncGetParamInfo(layout, i, &offset, &size)) << i;
    EXPECT_EQ(offset, offsets[i]) << i;
    EXPECT_EQ(size, sizes[i]) << i;
    EXPECT_DRIVER_OK(Driver().FuncGetParamInfo(layout, i, &offset, nullptr));
  }
  size_t offset = 0, size = 0;
  EXPECT_DRIVER(CUDA_ERROR_INVALID_VALUE, Driver().FuncGetParamInfo(layout, 6, &offset, &size));
  EXPECT_DRIVER(CUDA_ERROR_INVALID_VALUE,
                Driver().FuncGetParamInfo(loaded.Function("Count"), 0, &offset, &size));
  const char* name = nullptr;
  ASSERT_DRIVER_OK(Driver().FuncGetName(&name, layout));
  EXPECT_STREQ(name, "Layout");
}

void ExpectLaidOut(const DeviceArray<double>& out) {
  EXPECT_EQ(out.Read(), (std::vector<double>{'a', -7, 't', 0.125, 33, 123456, -9e15}));
}
constexpr Mixed kMixed = {'t', 0.125, {31, 32, 33}};

// cuLaunchKernel: parameters one by one through kernelParams, or packed in a buffer through extra.
TEST_F(Modules, KernelParams) {
  Loaded loaded;
  DeviceArray<double> out(7);
  double* to = out.get();
  char a = 'a';
  short b = -7;
  Mixed m = kMixed;
  int c = 123456;
  long long d = -9000000000000000ll;
  void* args[] = {&to, &a, &b, &m, &c, &d};
  ASSERT_DRIVER_OK(Driver().LaunchKernel(loaded.Function("Layout"), 1, 1, 1, 1, 1, 1, 0, nullptr,
                                         args, nullptr));
  // The values are taken by the call.
  a = 0;
  b = 0;
  m = {};
  c = 0;
  d = 0;
  ExpectLaidOut(out);
}
TEST_F(Modules, ExtraBuffer) {
  Loaded loaded;
  DeviceArray<double> out(7);
  struct alignas(8) Block {
    double* to;
    char a;
    short b;
    Mixed m;
    int c;
    long long d;
  } block = {out.get(), 'a', -7, kMixed, 123456, -9000000000000000ll};
  size_t bytes = sizeof(block);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  const CUfunction layout = loaded.Function("Layout");
  ASSERT_DRIVER_OK(Driver().LaunchKernel(layout, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  ExpectLaidOut(out);
  // Both ways at once are an invalid value.
  void* args[] = {&block.to, &block.a, &block.b, &block.m, &block.c, &block.d};
  EXPECT_DRIVER(CUDA_ERROR_INVALID_VALUE,
                Driver().LaunchKernel(layout, 1, 1, 1, 1, 1, 1, 0, nullptr, args, extra));
}

// cuLaunchKernelEx without attributes is cuLaunchKernel.
TEST_F(Modules, LaunchEx) {
  Loaded loaded;
  CUlaunchConfig config = {};
  config.gridDimX = 2;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 16;
  config.blockDimY = config.blockDimZ = 1;
  ASSERT_DRIVER_OK(Driver().LaunchKernelEx(&config, loaded.Function("Count"), nullptr, nullptr));
  CUdeviceptr at = 0;
  int value = 0;
  ASSERT_DRIVER_OK(Driver().ModuleGetGlobal(&at, nullptr, loaded.module, "counter"));
  ASSERT_DRIVER_OK(Driver().MemcpyDtoH(&value, at, sizeof(value)));
  EXPECT_EQ(value, 41 + 32);
}

TEST_F(Modules, BadImages) {
  CUmodule module = nullptr;
  EXPECT_NE(Driver().ModuleLoadData(&module, "this is no module"), CUDA_SUCCESS);
  EXPECT_DRIVER(CUDA_ERROR_INVALID_PTX,
                Driver().ModuleLoadData(&module,
                                        ".version 8.0\n.target sm_80\n.address_size 64\n"
                                        ".visible .entry f() { this is no instruction; }\n"));
  EXPECT_DRIVER(CUDA_ERROR_FILE_NOT_FOUND, Driver().ModuleLoad(&module, Path("not there").c_str()));
}

// cuFuncGetAttribute.
TEST_F(Modules, Attributes) {
  Loaded loaded;
  int value = -1;
  EXPECT_DRIVER_OK(Driver().FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                             loaded.Function("Scale")));
  EXPECT_GE(value, 32);
  EXPECT_LE(value, 1024);
  // The PTX was made for compute capability 8.0 and compiled for the device.
  EXPECT_DRIVER_OK(
      Driver().FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, loaded.Function("Scale")));
  EXPECT_EQ(value, 80);
  cudaDeviceProp p;
  ASSERT_OK(cudaGetDeviceProperties(&p, 0));
  EXPECT_DRIVER_OK(Driver().FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION,
                                             loaded.Function("Scale")));
  EXPECT_EQ(value, 10 * p.major + p.minor);
  EXPECT_DRIVER_OK(Driver().FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                                             loaded.Function("Scale")));
  EXPECT_EQ(value, 0);
}

// Runtime API, cudaGetDriverEntryPoint: a name that is not there is told by the status.
TEST_F(Modules, EntryPoints) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
  EXPECT_OK(cudaGetDriverEntryPointByVersion("cuNotAFunction", &address, CUDART_VERSION,
                                             cudaEnableDefault, &found));
  EXPECT_EQ(found, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(address, nullptr);
  EXPECT_OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &address, CUDART_VERSION,
                                             cudaEnableDefault, &found));
  EXPECT_EQ(found, cudaDriverEntryPointSuccess);
  EXPECT_NE(address, nullptr);
}

// cuMemsetD32, cuMemsetD16: elements, not bytes.
TEST_F(Modules, WideFills) {
  DeviceArray<unsigned> x(64);
  const auto at = reinterpret_cast<CUdeviceptr>(x.get());
  ASSERT_DRIVER_OK(Driver().MemsetD32(at, 0xdeadbeef, 64));
  ASSERT_DRIVER_OK(Driver().MemsetD16(at + 4, 0x1234, 2));
  const std::vector<unsigned> values = x.Read();
  EXPECT_EQ(values[0], 0xdeadbeefu);
  EXPECT_EQ(values[1], 0x12341234u);
  EXPECT_EQ(values[63], 0xdeadbeefu);
  EXPECT_DRIVER(CUDA_ERROR_INVALID_VALUE, Driver().MemsetD32(at + 2, 0, 1));
}

// cuMemGetAddressRange.
TEST_F(Modules, AddressRange) {
  DeviceArray<char> x(100000);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  ASSERT_DRIVER_OK(
      Driver().MemGetAddressRange(&base, &bytes, reinterpret_cast<CUdeviceptr>(x.get()) + 5000));
  EXPECT_EQ(base, reinterpret_cast<CUdeviceptr>(x.get()));
  EXPECT_EQ(bytes, 100000u);
  int local = 0;
  EXPECT_NE(Driver().MemGetAddressRange(&base, &bytes, reinterpret_cast<CUdeviceptr>(&local)),
            CUDA_SUCCESS);
}

}  // namespace
