// Initialisation, devices, contexts, errors and the lookup of entry points.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tools/simgpu/driver/api.h"
#include "tools/simgpu/driver/capture.h"
#include "tools/simgpu/driver/entry_points.h"

// The forms without suffix are entry points of their own here.
#undef cuDeviceGetUuid
#undef cuGetProcAddress

struct CUctx_st {
  int references = 0;
  unsigned flags = 0;
  bool alive = true;
  std::map<int, size_t> limits;
};

namespace simgpu {
namespace {

std::atomic<bool> initialised{false};
pid_t owner = 0;
CUctx_st primary;
thread_local std::vector<CUcontext> stack;

std::atomic<uint64_t> launches{0}, kernel_ns{0};

CUcontext Current() { return stack.empty() ? nullptr : stack.back(); }

}  // namespace

CUresult EnterDriver() {
  if (!initialised || owner != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  return CUDA_SUCCESS;
}

CUresult Enter(uint64_t ns) {
  if (CUresult result = EnterDriver(); result != CUDA_SUCCESS) return result;
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!Current()->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  Scheduler::HostSpend(ns);
  return Scheduler::Get().error();
}

Workers& GetWorkers() {
  static Workers* workers = new Workers(0);
  return *workers;
}

void CountLaunch(uint64_t duration_ns) {
  ++launches;
  kernel_ns += duration_ns;
}

void WriteStats() {
  const std::string& path = GetSettings().stats_path;
  if (path.empty() || owner != getpid()) return;
  const MemoryStats m = DeviceMemory::Get().stats();
  const std::string temporary = path + ".tmp";
  std::FILE* file = std::fopen(temporary.c_str(), "w");
  if (file == nullptr) {
    std::fprintf(stderr, "simgpu: cannot write SIMGPU_STATS to %s\n", path.c_str());
    return;
  }
  auto u = [](uint64_t x) { return static_cast<unsigned long long>(x); };
  std::fprintf(
      file,
      "{\"peak_physical_bytes\": %llu, \"physical_bytes\": %llu, \"kernel_launches\": %llu, "
      "\"virtual_time_ns\": %llu, \"kernel_time_ns\": %llu, \"map_calls\": %llu, "
      "\"unmap_calls\": %llu, \"create_calls\": %llu, \"set_access_calls\": %llu, "
      "\"alloc_calls\": %llu, \"free_calls\": %llu}\n",
      u(m.peak_physical), u(m.physical), u(launches), u(Scheduler::Get().virtual_time()),
      u(kernel_ns), u(m.map), u(m.unmap), u(m.create), u(m.set_access), u(m.alloc), u(m.free));
  std::fclose(file);
  std::rename(temporary.c_str(), path.c_str());
}

}  // namespace simgpu

using namespace simgpu;

SIMGPU_API cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!GetSettings().error.empty()) return CUDA_ERROR_INVALID_VALUE;
  if (initialised) return owner == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
  if (DeviceMemory::Get().window_bytes() == 0) return CUDA_ERROR_SYSTEM_NOT_READY;
  owner = getpid();
  initialised = true;
  std::atexit(WriteStats);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = 13000;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetCount(int* count) {
  if (CUresult r = EnterDriver(); r != CUDA_SUCCESS) return r;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = 1;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGet(CUdevice* device, int ordinal) {
  if (CUresult r = EnterDriver(); r != CUDA_SUCCESS) return r;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (ordinal != 0) return CUDA_ERROR_INVALID_DEVICE;
  *device = 0;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetName(char* name, int length, CUdevice device) {
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<size_t>(length), "simgpu (as an NVIDIA H200)");
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = DeviceMemory::Get().capacity();
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  std::memcpy(uuid->bytes, "simgpu-device-0", 16);
  return CUDA_SUCCESS;
}
SIMGPU_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return cuDeviceGetUuid(uuid, device);
}

SIMGPU_API cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  if (text == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(text, static_cast<size_t>(length), "0000:01:00.0");
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  if (device == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (std::strcmp(text, "0000:01:00.0") != 0) return CUDA_ERROR_INVALID_DEVICE;
  *device = 0;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *can = 0;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (CUresult r = EnterDriver(); r != CUDA_SUCCESS) return r;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      *value = 64;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      *value = 2147483647;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      *value = 65535;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = 49152;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = 232448;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      *value = 233472;
      break;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      *value = 65536;
      break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      *value = 2147483647;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      *value = 65536;
      break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      *value = 1980000;
      break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      *value = 3201000;
      break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      *value = 6144;
      break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      *value = 62914560;
      break;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
      *value = 512;
      break;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
      *value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
      *value = 512;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      *value = 2048;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      *value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      *value = 3;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 0;
      break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      *value = 1;
      break;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
      *value = 2;
      break;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      *value = 1;
      break;
    default:
      if (attribute < CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK ||
          attribute >= CU_DEVICE_ATTRIBUTE_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      *value = 0;
      break;
  }
  return CUDA_SUCCESS;
}

SIMGPU_API cuGetErrorName(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = ErrorName(error);
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
SIMGPU_API cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (error) {
    case CUDA_SUCCESS:
      *text = "no error";
      break;
    case CUDA_ERROR_INVALID_VALUE:
      *text = "invalid argument";
      break;
    case CUDA_ERROR_OUT_OF_MEMORY:
      *text = "out of memory";
      break;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      *text = "an illegal memory access was encountered";
      break;
    case CUDA_ERROR_NOT_SUPPORTED:
      *text = "operation not supported";
      break;
    default:
      *text = ErrorName(error);
      break;
  }
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// --- Contexts ---

SIMGPU_API cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (CUresult r = EnterDriver(); r != CUDA_SUCCESS) return r;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  ++primary.references;
  primary.alive = true;
  *context = &primary;
  return CUDA_SUCCESS;
}
SIMGPU_API cuDevicePrimaryCtxRelease_v2(CUdevice) {
  if (primary.references > 0) --primary.references;
  return CUDA_SUCCESS;
}
SIMGPU_API cuDevicePrimaryCtxReset_v2(CUdevice) {
  if (CUresult r = EnterDriver(); r != CUDA_SUCCESS) return r;
  Scheduler::Get().WaitAll();
  Scheduler::Get().Reset();
  Scheduler::Get().ClearError();
  DeviceMemory::Get().Reset();
  return CUDA_SUCCESS;
}
SIMGPU_API cuDevicePrimaryCtxSetFlags_v2(CUdevice, unsigned int flags) {
  primary.flags = flags;
  return CUDA_SUCCESS;
}
SIMGPU_API cuDevicePrimaryCtxGetState(CUdevice, unsigned int* flags, int* active) {
  if (flags != nullptr) *flags = primary.flags;
  if (active != nullptr) *active = primary.references > 0;
  return CUDA_SUCCESS;
}

static CUresult NewContext(CUcontext* context, unsigned flags, CUdevice device) {
  if (CUresult r = EnterDriver(); r != CUDA_SUCCESS) return r;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  auto* made = new CUctx_st;
  made->flags = flags;
  stack.push_back(made);
  *context = made;
  return CUDA_SUCCESS;
}
SIMGPU_API cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return NewContext(context, flags, device);
}
SIMGPU_API cuCtxCreate_v4(CUcontext* context, CUctxCreateParams*, unsigned int flags,
                          CUdevice device) {
  return NewContext(context, flags, device);
}
SIMGPU_API cuCtxDestroy_v2(CUcontext context) {
  if (context == nullptr || context == &primary) return CUDA_ERROR_INVALID_CONTEXT;
  Scheduler::Get().WaitAll();
  context->alive = false;  // handles of dead contexts may be asked about
  if (Current() == context) stack.pop_back();
  return CUDA_SUCCESS;
}
SIMGPU_API cuCtxGetCurrent(CUcontext* context) {
  if (CUresult r = EnterDriver(); r != CUDA_SUCCESS) return r;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = Current();
  return CUDA_SUCCESS;
}
SIMGPU_API cuCtxSetCurrent(CUcontext context) {
  if (CUresult r = EnterDriver(); r != CUDA_SUCCESS) return r;
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
  return CUDA_SUCCESS;
}
SIMGPU_API cuCtxPushCurrent_v2(CUcontext context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  stack.push_back(context);
  return CUDA_SUCCESS;
}
SIMGPU_API cuCtxPopCurrent_v2(CUcontext* context) {
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}
SIMGPU_API cuCtxGetDevice(CUdevice* device) {
  if (CUresult r = EnterDriver(); r != CUDA_SUCCESS) return r;
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = 0;
  return CUDA_SUCCESS;
}
SIMGPU_API cuCtxGetDevice_v2(CUdevice* device, CUcontext) { return cuCtxGetDevice(device); }
SIMGPU_API cuCtxGetFlags(unsigned int* flags) {
  SIMGPU_ENTER();
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = Current()->flags;
  return CUDA_SUCCESS;
}
SIMGPU_API cuCtxGetApiVersion(CUcontext, unsigned int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = 3020;
  return CUDA_SUCCESS;
}
SIMGPU_API cuCtxSynchronize() {
  SIMGPU_ENTER(1000);
  if (CUresult r = Forbidden(nullptr); r != CUDA_SUCCESS) return r;
  Scheduler::Get().WaitAll();
  return Scheduler::Get().error();
}
SIMGPU_API cuCtxSynchronize_v2(CUcontext) { return cuCtxSynchronize(); }
SIMGPU_API cuCtxGetLimit(size_t* value, CUlimit limit) {
  SIMGPU_ENTER();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto it = Current()->limits.find(limit);
  *value = it != Current()->limits.end()        ? it->second
           : limit == CU_LIMIT_STACK_SIZE       ? 1024
           : limit == CU_LIMIT_MALLOC_HEAP_SIZE ? 8u << 20
           : limit == CU_LIMIT_PRINTF_FIFO_SIZE ? 1u << 20
                                                : 0;
  return CUDA_SUCCESS;
}
SIMGPU_API cuCtxSetLimit(CUlimit limit, size_t value) {
  SIMGPU_ENTER();
  Current()->limits[limit] = value;
  return CUDA_SUCCESS;
}
SIMGPU_API cuCtxGetCacheConfig(CUfunc_cache* config) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_FUNC_CACHE_PREFER_NONE;
  return CUDA_SUCCESS;
}
SIMGPU_API cuCtxSetCacheConfig(CUfunc_cache) { return CUDA_SUCCESS; }
SIMGPU_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return CUDA_SUCCESS;
}
SIMGPU_API cuProfilerStart() { return CUDA_SUCCESS; }
SIMGPU_API cuProfilerStop() { return CUDA_SUCCESS; }

// --- Lookup ---

SIMGPU_API cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                               CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr || flags > 2) return CUDA_ERROR_INVALID_VALUE;
  if (version > 13000) return CUDA_ERROR_INVALID_VALUE;
  *function = nullptr;
  bool known = false;
  const EntryPoint* best = nullptr;
  const bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  for (const EntryPoint& entry : EntryPoints()) {
    if (std::strcmp(entry.name, symbol) != 0) continue;
    known = true;
    if (entry.version > version) continue;
    if (entry.per_thread && !per_thread) continue;
    const bool better = best == nullptr || (entry.per_thread && !best->per_thread) ||
                        (entry.per_thread == best->per_thread && entry.version > best->version);
    if (better) best = &entry;
  }
  if (best != nullptr) *function = best->address;
  if (status != nullptr) {
    *status = best != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : known         ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                              : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return CUDA_SUCCESS;
}
SIMGPU_API cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}
SIMGPU_API cuGetExportTable(const void**, const CUuuid*) { return CUDA_ERROR_NOT_SUPPORTED; }
