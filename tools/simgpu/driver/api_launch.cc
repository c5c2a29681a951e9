// Modules, kernels and launches.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "tools/simgpu/driver/api.h"
#include "tools/simgpu/driver/capture.h"
#include "tools/simgpu/driver/entry_points.h"

using namespace simgpu;

// --- Modules and libraries ---

static CUresult LoadModule(const void* image, void** out) {
  SIMGPU_ENTER_UNSAFE(GetDeviceModel().call_alloc_ns);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module = nullptr;
  CUresult result = Modules::Get().Load(image, &module);
  if (result == CUDA_SUCCESS) *out = module;
  return result;
}
SIMGPU_API cuModuleLoadData(CUmodule* module, const void* image) {
  return LoadModule(image, reinterpret_cast<void**>(module));
}
SIMGPU_API cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int, CUjit_option*,
                              void**) {
  return LoadModule(image, reinterpret_cast<void**>(module));
}
SIMGPU_API cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return LoadModule(image, reinterpret_cast<void**>(module));
}
SIMGPU_API cuModuleLoad(CUmodule* module, const char* path) {
  SIMGPU_ENTER_UNSAFE(GetDeviceModel().call_alloc_ns);
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* made = nullptr;
  CUresult result = Modules::Get().LoadFile(path, &made);
  if (result == CUDA_SUCCESS) *module = reinterpret_cast<CUmodule>(made);
  return result;
}
SIMGPU_API cuModuleUnload(CUmodule module) {
  SIMGPU_ENTER_UNSAFE();
  Scheduler::Get().WaitAll();
  return Modules::Get().Unload(module);
}
SIMGPU_API cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}
SIMGPU_API cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**,
                             unsigned int, CUlibraryOption*, void**, unsigned int) {
  if (CUresult r = EnterDriver(); r != CUDA_SUCCESS) return r;
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module = nullptr;
  CUresult result = Modules::Get().Load(code, &module);
  if (result == CUDA_SUCCESS) *library = reinterpret_cast<CUlibrary>(module);
  return result;
}
SIMGPU_API cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**,
                                 unsigned int, CUlibraryOption*, void**, unsigned int) {
  if (CUresult r = EnterDriver(); r != CUDA_SUCCESS) return r;
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module = nullptr;
  CUresult result = Modules::Get().LoadFile(path, &module);
  if (result == CUDA_SUCCESS) *library = reinterpret_cast<CUlibrary>(module);
  return result;
}
SIMGPU_API cuLibraryUnload(CUlibrary library) {
  if (CUresult r = EnterDriver(); r != CUDA_SUCCESS) return r;
  return Modules::Get().Unload(library);
}

static CUresult FindKernel(void* handle, const char* name, void** out) {
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module = Modules::Get().FindModule(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto it = module->functions.find(name);
  if (it == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *out = it->second.get();
  return CUDA_SUCCESS;
}
SIMGPU_API cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  SIMGPU_ENTER();
  return FindKernel(module, name, reinterpret_cast<void**>(function));
}
SIMGPU_API cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  if (CUresult r = EnterDriver(); r != CUDA_SUCCESS) return r;
  return FindKernel(library, name, reinterpret_cast<void**>(kernel));
}
SIMGPU_API cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (Modules::Get().FindModule(library) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *module = reinterpret_cast<CUmodule>(library);
  return CUDA_SUCCESS;
}
SIMGPU_API cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (Modules::Get().FindFunction(kernel) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}
SIMGPU_API cuFuncGetModule(CUmodule* module, CUfunction function) {
  Function* f = Modules::Get().FindFunction(function);
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (f == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *module = reinterpret_cast<CUmodule>(f->module);
  return CUDA_SUCCESS;
}
SIMGPU_API cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return cuFuncGetModule(reinterpret_cast<CUmodule*>(library),
                         reinterpret_cast<CUfunction>(kernel));
}

static CUresult FindVariable(void* handle, const char* name, CUdeviceptr* address, size_t* bytes) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module = Modules::Get().FindModule(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto it = module->variables.find(name);
  if (it == module->variables.end()) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = it->second.address;
  if (bytes != nullptr) *bytes = it->second.bytes;
  return CUDA_SUCCESS;
}
SIMGPU_API cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module,
                                const char* name) {
  SIMGPU_ENTER();
  return FindVariable(module, name, address, bytes);
}
SIMGPU_API cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                              const char* name) {
  if (CUresult r = EnterDriver(); r != CUDA_SUCCESS) return r;
  return FindVariable(library, name, address, bytes);
}
SIMGPU_API cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                               const char* name) {
  // Host and device share their addresses, so a managed variable is as any other.
  return cuLibraryGetGlobal(address, bytes, library, name);
}
SIMGPU_API cuLibraryGetKernelCount(unsigned int* count, CUlibrary library) {
  Module* module = Modules::Get().FindModule(library);
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>(module->functions.size());
  return CUDA_SUCCESS;
}
SIMGPU_API cuModuleGetFunctionCount(unsigned int* count, CUmodule module) {
  return cuLibraryGetKernelCount(count, reinterpret_cast<CUlibrary>(module));
}
SIMGPU_API cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int count, CUlibrary library) {
  Module* module = Modules::Get().FindModule(library);
  if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  unsigned i = 0;
  for (auto& [name, function] : module->functions) {
    if (i < count) kernels[i++] = reinterpret_cast<CUkernel>(function.get());
  }
  return CUDA_SUCCESS;
}
SIMGPU_API cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count, CUmodule module) {
  return cuLibraryEnumerateKernels(reinterpret_cast<CUkernel*>(functions), count,
                                   reinterpret_cast<CUlibrary>(module));
}

// --- Questions about kernels ---

SIMGPU_API cuFuncGetName(const char** name, CUfunction function) {
  Function* f = Modules::Get().FindFunction(function);
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (f == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *name = f->name.c_str();
  return CUDA_SUCCESS;
}
SIMGPU_API cuKernelGetName(const char** name, CUkernel kernel) {
  return cuFuncGetName(name, reinterpret_cast<CUfunction>(kernel));
}
SIMGPU_API cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  Function* f = Modules::Get().FindFunction(function);
  if (f == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const KernelInfo& info = Info(*f->kernel);
  if (offset == nullptr || index >= info.params.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = info.params[index].offset;
  if (size != nullptr) *size = info.params[index].size;
  return CUDA_SUCCESS;
}
SIMGPU_API cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  return cuFuncGetParamInfo(reinterpret_cast<CUfunction>(kernel), index, offset, size);
}
SIMGPU_API cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  Function* f = Modules::Get().FindFunction(function);
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (f == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const KernelInfo& info = Info(*f->kernel);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(info.max_threads);
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(info.static_shared_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(info.local_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = static_cast<int>(info.registers);
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = static_cast<int>(f->module->sm);
      break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 90;  // compiled for the device when it was loaded
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = static_cast<int>(f->max_dynamic_shared);
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = f->carveout;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}
SIMGPU_API cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                                CUdevice) {
  return cuFuncGetAttribute(value, attribute, reinterpret_cast<CUfunction>(kernel));
}
SIMGPU_API cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  Function* f = Modules::Get().FindFunction(function);
  if (f == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      const int most = 232448 - static_cast<int>(Info(*f->kernel).static_shared_bytes);
      if (value < 0 || value > most) return CUDA_ERROR_INVALID_VALUE;
      f->max_dynamic_shared = static_cast<uint32_t>(value);
      return CUDA_SUCCESS;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      f->carveout = value;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}
SIMGPU_API cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                CUdevice) {
  return cuFuncSetAttribute(reinterpret_cast<CUfunction>(kernel), attribute, value);
}
SIMGPU_API cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
SIMGPU_API cuKernelSetCacheConfig(CUkernel, CUfunc_cache, CUdevice) { return CUDA_SUCCESS; }

static int BlocksPerMultiprocessor(const Function& f, int threads, size_t dynamic) {
  const KernelInfo& info = Info(*f.kernel);
  if (threads <= 0 || threads > static_cast<int>(info.max_threads)) return 0;
  const int warps = (threads + 31) / 32;
  int blocks = std::min(32, 64 / warps);
  const size_t shared = info.static_shared_bytes + dynamic + 1024;
  blocks = std::min<int>(blocks, static_cast<int>(233472 / shared));
  return std::min<int>(blocks, 65536 / static_cast<int>(info.registers * 32 * warps));
}
SIMGPU_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                       int threads, size_t dynamic) {
  Function* f = Modules::Get().FindFunction(function);
  if (blocks == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (f == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *blocks = BlocksPerMultiprocessor(*f, threads, dynamic);
  return CUDA_SUCCESS;
}
SIMGPU_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                                int threads, size_t dynamic,
                                                                unsigned int) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, dynamic);
}

// --- Launches ---

namespace {

// The parameter block, from either way of passing it.
CUresult Parameters(const KernelInfo& info, void** params, void** extra,
                    std::vector<uint8_t>* block) {
  if (params != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  block->assign(info.param_bytes, 0);
  if (extra != nullptr) {
    const void* buffer = nullptr;
    size_t size = 0;
    for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
      if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
        buffer = extra[i + 1];
      } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
        size = *static_cast<size_t*>(extra[i + 1]);
      } else {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
    if (buffer == nullptr && info.param_bytes > 0) return CUDA_ERROR_INVALID_VALUE;
    if (size < info.param_bytes) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(block->data(), buffer, info.param_bytes);
    return CUDA_SUCCESS;
  }
  if (!info.params.empty() && params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < info.params.size(); ++i) {
    if (params[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(block->data() + info.params[i].offset, params[i], info.params[i].size);
  }
  return CUDA_SUCCESS;
}

OpOutcome RunKernel(const KernelLaunch& k, uint64_t grid_id) {
  LaunchConfig launch;
  launch.grid = k.grid;
  launch.block = k.block;
  launch.dynamic_shared_bytes = k.shared;
  launch.params = k.parameters;
  launch.cooperative = k.cooperative;
  launch.grid_id = grid_id;
  launch.print = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); };
  const LaunchResult result =
      Execute(*k.function->kernel, launch, DeviceMemory::Get().map(), GetWorkers());
  OpOutcome outcome;
  outcome.message = result.message;
  switch (result.fault) {
    case Fault::kNone:
      outcome.message.clear();
      break;
    case Fault::kIllegalAddress:
      outcome.error = CUDA_ERROR_ILLEGAL_ADDRESS;
      break;
    case Fault::kMisalignedAddress:
      outcome.error = CUDA_ERROR_MISALIGNED_ADDRESS;
      break;
    case Fault::kAssert:
      outcome.error = CUDA_ERROR_ASSERT;
      break;
    case Fault::kTimeout:
      outcome.error = CUDA_ERROR_LAUNCH_TIMEOUT;
      break;
    case Fault::kTrap:
    case Fault::kInvalidLaunch:
      outcome.error = CUDA_ERROR_LAUNCH_FAILED;
      break;
  }
  const DeviceModel& model = GetDeviceModel();
  const ExecStats& s = result.stats;
  const double bytes = static_cast<double>(s.global_read_bytes + s.global_written_bytes);
  const double busy = std::max({bytes / model.memory_bytes_per_ns,
                                static_cast<double>(s.flops) / model.flops_per_ns,
                                static_cast<double>(s.lane_instructions) / model.lane_ops_per_ns});
  outcome.duration_ns = model.launch_ns + static_cast<uint64_t>(busy);
  CountLaunch(outcome.duration_ns);
  return outcome;
}

// Gives the launch to the stream, or to the graph that the stream is captured to.
CUresult Launch(CUfunction function, Dim3 grid, Dim3 block, uint32_t shared, CUstream handle,
                bool cooperative, bool per_thread, void** params, void** extra) {
  SIMGPU_ENTER(GetDeviceModel().call_launch_ns);
  KernelLaunch launch{nullptr, grid, block, shared, cooperative, {}};
  if (CUresult r = CompleteLaunch(function, params, extra, &launch); r != CUDA_SUCCESS) return r;
  SIMGPU_STREAM(stream, handle, per_thread);
  CUresult captured;
  if (AddToCapture(
          stream,
          [&](GraphNode& node) {
            node.type = CU_GRAPH_NODE_TYPE_KERNEL;
            node.kernel = launch;
          },
          &captured)) {
    return captured;
  }
  Work work = WorkOf(launch);
  Scheduler::Get().Enqueue(stream, work.engine, std::move(work.run));
  return CUDA_SUCCESS;
}

}  // namespace

namespace simgpu {

CUresult CompleteLaunch(CUfunction function, void** params, void** extra, KernelLaunch* launch) {
  Function* f = Modules::Get().FindFunction(function);
  if (f == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const KernelInfo& info = Info(*f->kernel);
  const Dim3& g = launch->grid;
  const Dim3& b = launch->block;
  if (g.x == 0 || g.y == 0 || g.z == 0 || b.x == 0 || b.y == 0 || b.z == 0 || g.x > 2147483647u ||
      g.y > 65535 || g.z > 65535 || b.x > 1024 || b.y > 1024 || b.z > 64 || b.count() > 1024) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (b.count() > info.max_threads) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const uint32_t allowed = std::max<uint32_t>(
      f->max_dynamic_shared,
      info.static_shared_bytes < (48u << 10) ? (48u << 10) - info.static_shared_bytes : 0);
  if (launch->shared >
      std::min<uint32_t>(allowed, 232448 - std::min(232448u, info.static_shared_bytes))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  launch->function = f;
  return Parameters(info, params, extra, &launch->parameters);
}

Work WorkOf(const KernelLaunch& launch) {
  static std::atomic<uint64_t> next_grid{1};
  auto shared = std::make_shared<const KernelLaunch>(launch);
  return {Engine::kCompute, [shared] { return RunKernel(*shared, next_grid.fetch_add(1)); }, false};
}

}  // namespace simgpu

#define LAUNCH_PARAMS                                                                \
  (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, \
   unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void** params, void** extra)
template <bool kPt>
static CUresult Impl_cuLaunchKernel LAUNCH_PARAMS {
  return Launch(f, {gx, gy, gz}, {bx, by, bz}, shared, s, false, kPt, params, extra);
}
SIMGPU_TWO_FORMS(cuLaunchKernel, _ptsz, LAUNCH_PARAMS,
                 (f, gx, gy, gz, bx, by, bz, shared, s, params, extra))

#define COOPERATIVE_PARAMS                                                           \
  (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, \
   unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void** params)
template <bool kPt>
static CUresult Impl_cuLaunchCooperativeKernel COOPERATIVE_PARAMS {
  return Launch(f, {gx, gy, gz}, {bx, by, bz}, shared, s, true, kPt, params, nullptr);
}
SIMGPU_TWO_FORMS(cuLaunchCooperativeKernel, _ptsz, COOPERATIVE_PARAMS,
                 (f, gx, gy, gz, bx, by, bz, shared, s, params))

template <bool kPt>
static CUresult Impl_cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** params,
                                      void** extra) {
  if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool cooperative = false;
  for (unsigned i = 0; i < c->numAttrs; ++i) {
    switch (c->attrs[i].id) {
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        break;  // hints, or a permission to overlap that is not made use of
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        cooperative = c->attrs[i].value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (c->attrs[i].value.clusterDim.x * c->attrs[i].value.clusterDim.y *
                c->attrs[i].value.clusterDim.z >
            1) {
          return NotSupported("cluster launch");
        }
        break;
      default:
        return NotSupported("launch attribute");
    }
  }
  return Launch(f, {c->gridDimX, c->gridDimY, c->gridDimZ},
                {c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes, c->hStream,
                cooperative, kPt, params, extra);
}
SIMGPU_TWO_FORMS(cuLaunchKernelEx, _ptsz,
                 (const CUlaunchConfig* c, CUfunction f, void** params, void** extra),
                 (c, f, params, extra))

template <bool kPt>
static CUresult Impl_cuLaunchHostFunc(CUstream handle, CUhostFn fn, void* data) {
  SIMGPU_ENTER(GetDeviceModel().call_launch_ns);
  if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_STREAM(stream, handle, kPt);
  const CUDA_HOST_NODE_PARAMS host = {fn, data};
  CUresult captured;
  if (AddToCapture(
          stream,
          [&](GraphNode& node) {
            node.type = CU_GRAPH_NODE_TYPE_HOST;
            node.host = host;
          },
          &captured)) {
    return captured;
  }
  Work work = WorkOf(host);
  Scheduler::Get().Enqueue(stream, work.engine, std::move(work.run), true);
  return CUDA_SUCCESS;
}
SIMGPU_TWO_FORMS(cuLaunchHostFunc, _ptsz, (CUstream s, CUhostFn fn, void* data), (s, fn, data))

template <bool kPt>
static CUresult Impl_cuStreamAddCallback(CUstream handle, CUstreamCallback fn, void* data,
                                         unsigned int) {
  SIMGPU_ENTER(GetDeviceModel().call_launch_ns);
  if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_STREAM(stream, handle, kPt);
  // Not among what can be captured.
  if (CUresult r = Forbidden(stream); r != CUDA_SUCCESS) return r;
  Scheduler::Get().Enqueue(
      stream, Engine::kNone,
      [fn, data, handle] {
        fn(handle, Scheduler::Get().error(), data);
        return OpOutcome();
      },
      true);
  return CUDA_SUCCESS;
}
SIMGPU_TWO_FORMS(cuStreamAddCallback, _ptsz,
                 (CUstream s, CUstreamCallback fn, void* data, unsigned int flags),
                 (s, fn, data, flags))
