// A driver that does little and says what it was asked: the name of every entry point that is
// reached is appended to the file named by FAKE_DRIVER_LOG, and every lookup as
// "lookup NAME VERSION FLAGS CALLER". Device memory is host memory, operations end before they
// return, kernels do nothing. It has no context of its own making but one per device.
//
// The forms of one function are told apart as NVIDIA's driver does it: by exported symbol, and in
// cuGetProcAddress by name, version and flags. Thread-safe.
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#define EXPORT __attribute__((visibility("default")))

namespace {

// Newer than any header: tests ask for ABIs that no library of today knows.
constexpr int kVersion = 99000;
constexpr size_t kPage = size_t{2} << 20, kTotal = size_t{1} << 30;

void Log(const char* line) {
  static const int fd = [] {
    const char* path = std::getenv("FAKE_DRIVER_LOG");
    return path != nullptr ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
  }();
  char text[200];
  const int bytes = std::snprintf(text, sizeof(text), "%s\n", line);
  [[maybe_unused]] const ssize_t written = write(fd, text, static_cast<size_t>(bytes));
}

struct Entry {
  const char* name;
  int version;
  bool per_thread;
  const void* function;
  const Entry* next;
};
const Entry* entries = nullptr;

struct Registrar {
  Entry entry;
  Registrar(const char* name, int version, bool per_thread, const void* function)
      : entry{name, version, per_thread, function, entries} {
    entries = &entry;
  }
};

const void* Lookup(const char* name, int version, bool per_thread) {
  const Entry* best = nullptr;
  for (const Entry* e = entries; e != nullptr; e = e->next) {
    if (e->version > version || (e->per_thread && !per_thread) || std::strcmp(e->name, name) != 0) {
      continue;
    }
    if (best == nullptr || e->per_thread > best->per_thread ||
        (e->per_thread == best->per_thread && e->version > best->version)) {
      best = e;
    }
  }
  return best != nullptr ? best->function : nullptr;
}

CUresult GetProcAddress(const char* name, void** function, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult* status, const void* caller) {
  Dl_info info;
  const char* object =
      dladdr(caller, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "?";
  if (const char* slash = std::strrchr(object, '/')) object = slash + 1;
  char line[200];
  std::snprintf(line, sizeof(line), "lookup %s %d %d %s", name != nullptr ? name : "(null)",
                version, static_cast<int>(flags), object);
  Log(line);
  if (name == nullptr || function == nullptr || version > kVersion) return CUDA_ERROR_INVALID_VALUE;
  const void* found =
      Lookup(name, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  *function = const_cast<void*>(found);
  if (status != nullptr) {
    *status = found != nullptr                          ? CU_GET_PROC_ADDRESS_SUCCESS
              : Lookup(name, kVersion, true) != nullptr ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                                        : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return CUDA_SUCCESS;
}

// Sizes of what was given out. Chunks are files, so that one can be mapped at several addresses.
std::mutex mutex;
std::map<CUdeviceptr, size_t> allocations;
std::map<CUdeviceptr, size_t> reservations;
thread_local CUcontext current = nullptr;
char context_storage, stream_storage, event_storage, module_storage, function_storage;
int device_count = 1;

void* Host(CUdeviceptr at) { return reinterpret_cast<void*>(at); }
template <typename T>
T Handle(char* of) {
  return reinterpret_cast<T>(of);
}

CUresult Alloc(CUdeviceptr* out, size_t bytes) {
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  void* at = std::calloc(1, bytes);
  if (at == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::lock_guard<std::mutex> lock(mutex);
  *out = reinterpret_cast<CUdeviceptr>(at);
  allocations[*out] = bytes;
  return CUDA_SUCCESS;
}
CUresult Free(CUdeviceptr at) {
  std::lock_guard<std::mutex> lock(mutex);
  if (at != 0 && allocations.erase(at) == 0) return CUDA_ERROR_INVALID_VALUE;
  std::free(Host(at));
  return CUDA_SUCCESS;
}
CUresult Move(void* to, const void* from, size_t bytes) {
  std::memmove(to, from, bytes);
  return CUDA_SUCCESS;
}
CUresult Fill(CUdeviceptr at, unsigned char value, size_t bytes) {
  std::memset(Host(at), value, bytes);
  return CUDA_SUCCESS;
}
// A kernel of every name takes an address and a 4-byte number.
CUresult ParamInfo(size_t index, size_t* offset, size_t* bytes) {
  if (index > 1) return CUDA_ERROR_INVALID_VALUE;
  *offset = index * 8;
  if (bytes != nullptr) *bytes = index == 0 ? 8 : 4;
  return CUDA_SUCCESS;
}

}  // namespace

// ENTRY(exported symbol, name and version for lookups, per-thread form, parameters, body). The
// function has another name in C++, since cuda.h redefines many of these.
#define ENTRY(symbol, name, version, per_thread, params, ...)                 \
  extern "C" EXPORT CUresult fake_##symbol params __asm__(#symbol);           \
  namespace {                                                                 \
  const Registrar registrar_##symbol(name, version, per_thread,               \
                                     reinterpret_cast<void*>(fake_##symbol)); \
  }                                                                           \
  extern "C" CUresult fake_##symbol params {                                  \
    Log(#symbol);                                                             \
    __VA_ARGS__                                                               \
  }
#define OK return CUDA_SUCCESS;

ENTRY(cuGetProcAddress, "cuGetProcAddress", 11030, false,
      (const char* name, void** function, int version, cuuint64_t flags),
      return GetProcAddress(name, function, version, flags, nullptr, __builtin_return_address(0));)
ENTRY(cuGetProcAddress_v2, "cuGetProcAddress", 12000, false,
      (const char* name, void** function, int version, cuuint64_t flags,
       CUdriverProcAddressQueryResult* status),
      return GetProcAddress(name, function, version, flags, status, __builtin_return_address(0));)

// The driver looks its own functions up too, and has to get its own.
ENTRY(
    cuInit, "cuInit", 2000, false, (unsigned int),
    if (void* self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
      if (dlsym(self, "cuMemAlloc_v2") != Lookup("cuMemAlloc", 12000, false)) {
        Log("the driver was given a hook");
      }
      dlclose(self);
    } OK)
ENTRY(cuDriverGetVersion, "cuDriverGetVersion", 2020, false, (int* version), *version = kVersion;
      OK)
ENTRY(cuGetExportTable, "cuGetExportTable", 3000, false, (const void** table, const CUuuid*),
      *table = nullptr;
      return CUDA_ERROR_NOT_SUPPORTED;)
ENTRY(cuGetErrorName, "cuGetErrorName", 6000, false, (CUresult, const char** name),
      *name = "CUDA_ERROR_OF_SOME_KIND";
      OK)

// --- Devices and contexts ---
ENTRY(cuDeviceGet, "cuDeviceGet", 2000, false, (CUdevice * d, int), *d = 0; OK)
ENTRY(cuDeviceGetCount, "cuDeviceGetCount", 2000, false, (int* n), *n = device_count; OK)
ENTRY(cuDeviceGetName, "cuDeviceGetName", 2000, false, (char* name, int n, CUdevice),
      std::snprintf(name, static_cast<size_t>(n), "fake");
      OK)
ENTRY(cuDeviceTotalMem_v2, "cuDeviceTotalMem", 3020, false, (size_t * n, CUdevice), *n = kTotal; OK)
ENTRY(cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000, false,
      (int* value, CUdevice_attribute attribute, CUdevice),
      *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
               : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
                                                                           : 1;
      OK)
ENTRY(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, false, (CUcontext * c, CUdevice),
      *c = Handle<CUcontext>(&context_storage);
      OK)
ENTRY(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, false, (CUdevice), OK)
ENTRY(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", 7000, false,
      (CUdevice, unsigned int* flags, int* active), *flags = 0;
      *active = 1; OK)
ENTRY(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, false, (CUcontext c), current = c; OK)
ENTRY(cuCtxGetCurrent, "cuCtxGetCurrent", 4000, false, (CUcontext * c), *c = current; OK)
ENTRY(cuCtxGetDevice, "cuCtxGetDevice", 2000, false, (CUdevice * d), *d = 0; OK)
ENTRY(cuCtxSynchronize, "cuCtxSynchronize", 2000, false, (), OK)

// --- Memory. The forms of CUDA 2 have 32-bit addresses. ---
ENTRY(cuMemAlloc, "cuMemAlloc", 2000, false, (unsigned int* out, unsigned int), *out = 0x1000; OK)
ENTRY(cuMemAlloc_v2, "cuMemAlloc", 3020, false, (CUdeviceptr * out, size_t n),
      return Alloc(out, n);)
// A form that nobody has heard of: the third argument tells.
ENTRY(cuMemAlloc_v3, "cuMemAlloc", 98000, false, (CUdeviceptr * out, size_t n, int* third),
      *third = 3;
      return Alloc(out, n);)
ENTRY(cuMemFree, "cuMemFree", 2000, false, (unsigned int), OK)
ENTRY(cuMemFree_v2, "cuMemFree", 3020, false, (CUdeviceptr at), return Free(at);)
ENTRY(cuMemAllocAsync, "cuMemAllocAsync", 11020, false, (CUdeviceptr * out, size_t n, CUstream),
      return Alloc(out, n);)
ENTRY(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, true, (CUdeviceptr * out, size_t n, CUstream),
      return Alloc(out, n);)
ENTRY(cuMemFreeAsync, "cuMemFreeAsync", 11020, false, (CUdeviceptr at, CUstream), return Free(at);)
ENTRY(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, true, (CUdeviceptr at, CUstream),
      return Free(at);)
ENTRY(cuMemGetInfo_v2, "cuMemGetInfo", 3020, false, (size_t * available, size_t* total),
      if (available != nullptr) * available = kTotal;
      if (total != nullptr) * total = kTotal; OK)
ENTRY(cuMemGetAddressRange_v2, "cuMemGetAddressRange", 3020, false,
      (CUdeviceptr*, size_t*, CUdeviceptr), return CUDA_ERROR_NOT_FOUND;)
ENTRY(cuMemHostAlloc, "cuMemHostAlloc", 2020, false, (void** out, size_t n, unsigned int),
      *out = std::calloc(1, n);
      return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;)
ENTRY(cuMemFreeHost, "cuMemFreeHost", 2000, false, (void* at), std::free(at); OK)
ENTRY(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity", 10020, false,
      (size_t * n, const CUmemAllocationProp*, CUmemAllocationGranularity_flags), *n = kPage;
      OK)
ENTRY(cuMemAddressReserve, "cuMemAddressReserve", 10020, false,
      (CUdeviceptr * out, size_t n, size_t, CUdeviceptr, unsigned long long),
      // Aligned as the driver's are: what is too much at either end stays reserved.
      void* at = mmap(nullptr, n + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                      -1, 0);
      if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
      *out = (reinterpret_cast<CUdeviceptr>(at) + kPage - 1) & ~(kPage - 1);
      std::lock_guard<std::mutex> lock(mutex); reservations[*out] = n; OK)
ENTRY(cuMemAddressFree, "cuMemAddressFree", 10020, false, (CUdeviceptr at, size_t n),
      std::lock_guard<std::mutex> lock(mutex);
      auto it = reservations.find(at);
      if (it == reservations.end() || it->second != n) return CUDA_ERROR_INVALID_VALUE;
      reservations.erase(it); munmap(Host(at), n); OK)
ENTRY(cuMemCreate, "cuMemCreate", 10020, false,
      (CUmemGenericAllocationHandle * out, size_t n, const CUmemAllocationProp*,
       unsigned long long),
      const int fd = memfd_create("chunk", MFD_CLOEXEC);
      if (fd < 0 || ftruncate(fd, static_cast<off_t>(n)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
      *out = static_cast<CUmemGenericAllocationHandle>(fd); OK)
ENTRY(cuMemRelease, "cuMemRelease", 10020, false, (CUmemGenericAllocationHandle handle),
      return close(static_cast<int>(handle)) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;)
ENTRY(cuMemMap, "cuMemMap", 10020, false,
      (CUdeviceptr at, size_t n, size_t, CUmemGenericAllocationHandle handle, unsigned long long),
      return mmap(Host(at), n, PROT_NONE, MAP_SHARED | MAP_FIXED, static_cast<int>(handle), 0) !=
                     MAP_FAILED
                 ? CUDA_SUCCESS
                 : CUDA_ERROR_INVALID_VALUE;)
ENTRY(cuMemSetAccess, "cuMemSetAccess", 10020, false,
      (CUdeviceptr at, size_t n, const CUmemAccessDesc*, size_t),
      return mprotect(Host(at), n, PROT_READ | PROT_WRITE) == 0 ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;)
ENTRY(cuMemUnmap, "cuMemUnmap", 10020, false, (CUdeviceptr at, size_t n),
      return mmap(Host(at), n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
                  -1, 0) != MAP_FAILED
                 ? CUDA_SUCCESS
                 : CUDA_ERROR_INVALID_VALUE;)

// --- Copies and memsets ---
ENTRY(cuMemcpyHtoD_v2, "cuMemcpyHtoD", 3020, false, (CUdeviceptr d, const void* h, size_t n),
      return Move(Host(d), h, n);)
ENTRY(cuMemcpyHtoD_v2_ptds, "cuMemcpyHtoD", 7000, true, (CUdeviceptr d, const void* h, size_t n),
      return Move(Host(d), h, n);)
ENTRY(cuMemcpyDtoH_v2, "cuMemcpyDtoH", 3020, false, (void* h, CUdeviceptr d, size_t n),
      return Move(h, Host(d), n);)
ENTRY(cuMemcpyDtoH_v2_ptds, "cuMemcpyDtoH", 7000, true, (void* h, CUdeviceptr d, size_t n),
      return Move(h, Host(d), n);)
ENTRY(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", 3020, false,
      (CUdeviceptr d, const void* h, size_t n, CUstream), return Move(Host(d), h, n);)
ENTRY(cuMemcpyHtoDAsync_v2_ptsz, "cuMemcpyHtoDAsync", 7000, true,
      (CUdeviceptr d, const void* h, size_t n, CUstream), return Move(Host(d), h, n);)
ENTRY(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", 3020, false,
      (void* h, CUdeviceptr d, size_t n, CUstream), return Move(h, Host(d), n);)
ENTRY(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", 3020, false,
      (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream), return Move(Host(d), Host(f), n);)
ENTRY(cuMemcpy, "cuMemcpy", 4000, false, (CUdeviceptr d, CUdeviceptr f, size_t n),
      return Move(Host(d), Host(f), n);)
ENTRY(cuMemcpyAsync, "cuMemcpyAsync", 4000, false,
      (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream), return Move(Host(d), Host(f), n);)
ENTRY(cuMemsetD8_v2, "cuMemsetD8", 3020, false, (CUdeviceptr d, unsigned char v, size_t n),
      return Fill(d, v, n);)
ENTRY(cuMemsetD8Async, "cuMemsetD8Async", 3020, false,
      (CUdeviceptr d, unsigned char v, size_t n, CUstream), return Fill(d, v, n);)

// --- Code ---
ENTRY(cuModuleLoadData, "cuModuleLoadData", 2000, false, (CUmodule * m, const void*),
      *m = Handle<CUmodule>(&module_storage);
      OK)
ENTRY(cuModuleUnload, "cuModuleUnload", 2000, false, (CUmodule), OK)
ENTRY(cuModuleGetFunction, "cuModuleGetFunction", 2000, false,
      (CUfunction * f, CUmodule, const char*), *f = Handle<CUfunction>(&function_storage);
      OK)
ENTRY(cuLibraryLoadData, "cuLibraryLoadData", 12000, false,
      (CUlibrary * l, const void*, CUjit_option*, void**, unsigned int, CUlibraryOption*, void**,
       unsigned int),
      *l = Handle<CUlibrary>(&module_storage);
      OK)
ENTRY(cuLibraryUnload, "cuLibraryUnload", 12000, false, (CUlibrary), OK)
ENTRY(cuLibraryGetKernel, "cuLibraryGetKernel", 12000, false,
      (CUkernel * k, CUlibrary, const char*), *k = Handle<CUkernel>(&function_storage);
      OK)
ENTRY(cuKernelGetFunction, "cuKernelGetFunction", 12000, false, (CUfunction * f, CUkernel),
      *f = Handle<CUfunction>(&function_storage);
      OK)
ENTRY(cuFuncGetParamInfo, "cuFuncGetParamInfo", 12040, false,
      (CUfunction, size_t i, size_t* offset, size_t* n), return ParamInfo(i, offset, n);)
ENTRY(cuKernelGetParamInfo, "cuKernelGetParamInfo", 12040, false,
      (CUkernel, size_t i, size_t* offset, size_t* n), return ParamInfo(i, offset, n);)
#define LAUNCH_PARAMS                                                                              \
  (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, \
   unsigned int, CUstream, void**, void**)
ENTRY(cuLaunchKernel, "cuLaunchKernel", 4000, false, LAUNCH_PARAMS, OK)
ENTRY(cuLaunchKernel_ptsz, "cuLaunchKernel", 7000, true, LAUNCH_PARAMS, OK)
ENTRY(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, false,
      (const CUlaunchConfig*, CUfunction, void**, void**), OK)

// --- Streams and events ---
ENTRY(cuStreamCreate, "cuStreamCreate", 2000, false, (CUstream * s, unsigned int),
      *s = Handle<CUstream>(&stream_storage);
      OK)
ENTRY(cuStreamDestroy_v2, "cuStreamDestroy", 4000, false, (CUstream), OK)
ENTRY(cuStreamSynchronize, "cuStreamSynchronize", 2000, false, (CUstream), OK)
ENTRY(cuStreamWaitEvent, "cuStreamWaitEvent", 3020, false, (CUstream, CUevent, unsigned int), OK)
ENTRY(cuStreamIsCapturing, "cuStreamIsCapturing", 10000, false,
      (CUstream, CUstreamCaptureStatus* status), *status = CU_STREAM_CAPTURE_STATUS_NONE;
      OK)
ENTRY(cuEventCreate, "cuEventCreate", 2000, false, (CUevent * e, unsigned int),
      *e = Handle<CUevent>(&event_storage);
      OK)
ENTRY(cuEventDestroy_v2, "cuEventDestroy", 4000, false, (CUevent), OK)
ENTRY(cuEventRecord, "cuEventRecord", 2000, false, (CUevent, CUstream), OK)
ENTRY(cuEventQuery, "cuEventQuery", 2000, false, (CUevent), OK)
ENTRY(cuEventSynchronize, "cuEventSynchronize", 2000, false, (CUevent), OK)
ENTRY(cuEventElapsedTime_v2, "cuEventElapsedTime", 12080, false, (float* ms, CUevent, CUevent),
      *ms = 0.0f;
      OK)
