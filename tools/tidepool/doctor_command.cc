// tidepool doctor: what is there, what is missing, and what to do about it.
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/intercept/size.h"
#include "tools/tidepool/commands.h"

namespace tidepool {
namespace {

class Checklist {
 public:
  void Ok(const std::string& what) { Print("ok      ", what); }
  void Note(const std::string& what) { Print("note    ", what); }
  void Problem(const std::string& what) {
    Print("problem ", what);
    problems_ = true;
  }
  bool problems() const { return problems_; }

 private:
  static void Print(const char* mark, const std::string& what) {
    std::printf("%s %s\n", mark, what.c_str());
  }
  bool problems_ = false;
};

template <typename Function>
Function* Load(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

void CheckDevice(void* library, Checklist* list) {
  auto* init = Load<CUresult(unsigned)>(library, "cuInit");
  auto* version = Load<CUresult(int*)>(library, "cuDriverGetVersion");
  auto* count = Load<CUresult(int*)>(library, "cuDeviceGetCount");
  auto* get = Load<CUresult(CUdevice*, int)>(library, "cuDeviceGet");
  auto* name = Load<CUresult(char*, int, CUdevice)>(library, "cuDeviceGetName");
  auto* total = Load<CUresult(size_t*, CUdevice)>(library, "cuDeviceTotalMem_v2");
  auto* attribute =
      Load<CUresult(int*, CUdevice_attribute, CUdevice)>(library, "cuDeviceGetAttribute");
  auto* granularity =
      Load<CUresult(size_t*, const CUmemAllocationProp*, CUmemAllocationGranularity_flags)>(
          library, "cuMemGetAllocationGranularity");
  if (init == nullptr || version == nullptr || count == nullptr || get == nullptr ||
      name == nullptr || total == nullptr || attribute == nullptr) {
    list->Problem("the driver library lacks basic functions: it is too old or broken");
    return;
  }
  int number = 0;
  if (version(&number) == CUDA_SUCCESS) {
    const std::string text =
        absl::StrFormat("driver for CUDA %d.%d", number / 1000, number % 1000 / 10);
    if (number >= 12040) {
      list->Ok(text);
    } else {
      list->Problem(text + ": 12.4 or newer is needed to see the parameters of kernels");
    }
  }
  const CUresult result = init(0);
  int devices = 0;
  if (result != CUDA_SUCCESS || count(&devices) != CUDA_SUCCESS || devices == 0) {
    list->Problem(absl::StrCat("no usable device: cuInit returned ", static_cast<int>(result)));
    return;
  }
  for (int i = 0; i < devices; ++i) {
    CUdevice device = 0;
    char text[256] = "?";
    size_t bytes = 0;
    int vmm = 0;
    if (get(&device, i) != CUDA_SUCCESS) continue;
    name(text, sizeof(text), device);
    total(&bytes, device);
    attribute(&vmm, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device);
    size_t page = 0;
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    if (granularity != nullptr) {
      granularity(&page, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    }
    const std::string line = absl::StrFormat("device %d: %s, %s, pages of %s", i, text,
                                             FormatSize(bytes), FormatSize(page));
    if (vmm != 0 && page != 0) {
      list->Ok(line);
    } else {
      list->Problem(line + ": no virtual memory management, which Tidepool needs");
    }
  }
}

void CheckEnvironment(Checklist* list) {
  const char* budget = getenv("TIDEPOOL_BUDGET");
  if (budget == nullptr) {
    list->Note("TIDEPOOL_BUDGET is not set: give --budget to `tidepool run`");
    return;
  }
  absl::StatusOr<Budget> parsed = ParseBudget(budget);
  if (parsed.ok()) {
    list->Ok(absl::StrCat("TIDEPOOL_BUDGET=", budget));
  } else {
    list->Problem(absl::StrCat("TIDEPOOL_BUDGET: ", parsed.status().message()));
  }
}

}  // namespace

int DoctorCommand(const std::vector<std::string>& arguments) {
  bool sim = false;
  for (const std::string& argument : arguments) {
    if (argument != "--sim") {
      PrintError(
          absl::StrCat("doctor: unknown argument ", argument, "; usage: tidepool doctor [--sim]"));
      return kExitUsage;
    }
    sim = true;
  }
  Checklist list;
  const std::string library = LibraryPath();
  if (access(library.c_str(), R_OK) != 0) {
    list.Problem(absl::StrCat("the runtime is not at ", library));
  } else if (void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL); handle != nullptr) {
    list.Ok(absl::StrCat("runtime ", library));
  } else {
    list.Problem(absl::StrCat("the runtime does not load: ", dlerror()));
  }
  const std::string simulator = SimulatorDirectory() + "/libcuda.so.1";
  if (access(simulator.c_str(), R_OK) == 0) {
    list.Ok(absl::StrCat("simulated device ", simulator));
  } else {
    list.Note(absl::StrCat("no simulated device at ", simulator, ": --sim will not work"));
  }
  const std::string driver = sim ? simulator : "libcuda.so.1";
  if (void* handle = dlopen(driver.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
    CheckDevice(handle, &list);
  } else if (sim) {
    list.Problem(absl::StrCat("the simulated device does not load: ", dlerror()));
  } else {
    list.Problem("no CUDA driver (libcuda.so.1): install NVIDIA's driver, or use --sim");
  }
  if (dlopen("libcupti.so.13", RTLD_LAZY | RTLD_LOCAL) != nullptr) {
    list.Ok("CUPTI 13: timelines show device activity");
  } else {
    list.Note("no CUPTI 13 (libcupti.so.13): timelines show Tidepool's own events only");
  }
  CheckEnvironment(&list);
  std::fflush(stdout);
  return list.problems() ? 1 : 0;
}

}  // namespace tidepool
