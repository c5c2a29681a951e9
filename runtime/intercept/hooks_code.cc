// Hooks of initialisation, modules, kernels, launches, streams, contexts, graphs.
#include <mutex>

#include "runtime/intercept/graph.h"
#include "runtime/intercept/hook.h"
#include "runtime/intercept/host_memory.h"

using namespace tidepool;

TIDEPOOL_HOOK(cuInit, (unsigned int flags), if (!OnFirstCall()) return CUDA_ERROR_INVALID_VALUE;
              return real(flags);)

// --- Code ---
#define TIDEPOOL_LOADED(call, handle, image)                                                   \
  CUresult result = call;                                                                      \
  if (result == CUDA_SUCCESS && (handle) != nullptr) Registry::Get().OnLoad(*(handle), image); \
  return result;
TIDEPOOL_HOOK(cuModuleLoadData, (CUmodule * m, const void* image),
              TIDEPOOL_LOADED(real(m, image), m, image))
TIDEPOOL_HOOK(cuModuleLoadDataEx,
              (CUmodule * m, const void* image, unsigned int n, CUjit_option* o, void** v),
              TIDEPOOL_LOADED(real(m, image, n, o, v), m, image))
TIDEPOOL_HOOK(cuModuleLoadFatBinary, (CUmodule * m, const void* image),
              TIDEPOOL_LOADED(real(m, image), m, image))
TIDEPOOL_HOOK(cuModuleLoad, (CUmodule * m, const char* path), CUresult result = real(m, path);
              if (result == CUDA_SUCCESS) Registry::Get().OnLoadFile(*m, path); return result;)
TIDEPOOL_HOOK(cuLibraryLoadData,
              (CUlibrary * l, const void* image, CUjit_option* o, void** v, unsigned int n,
               CUlibraryOption* lo, void** lv, unsigned int ln),
              TIDEPOOL_LOADED(real(l, image, o, v, n, lo, lv, ln), l, image))
TIDEPOOL_HOOK(cuLibraryLoadFromFile,
              (CUlibrary * l, const char* path, CUjit_option* o, void** v, unsigned int n,
               CUlibraryOption* lo, void** lv, unsigned int ln),
              CUresult result = real(l, path, o, v, n, lo, lv, ln);
              if (result == CUDA_SUCCESS) Registry::Get().OnLoadFile(*l, path); return result;)
// Values that only this code can rebuild are rebuilt first; where they do not fit, the code stays.
#define TIDEPOOL_KEEP_IF_NEEDED(handle)                                                     \
  if (Engine* engine = ActiveEngine()) {                                                    \
    const void* code = Registry::Get().CodeOf(handle);                                      \
    if (code != nullptr && engine->OnCodeUnload(code) != CUDA_SUCCESS) return CUDA_SUCCESS; \
  }
TIDEPOOL_HOOK(cuModuleUnload, (CUmodule m), TIDEPOOL_KEEP_IF_NEEDED(m) CUresult result = real(m);
              if (result == CUDA_SUCCESS) Registry::Get().OnUnload(m); return result;)
TIDEPOOL_HOOK(cuLibraryUnload, (CUlibrary l), TIDEPOOL_KEEP_IF_NEEDED(l) CUresult result = real(l);
              if (result == CUDA_SUCCESS) Registry::Get().OnUnload(l); return result;)
TIDEPOOL_HOOK(cuLibraryGetModule, (CUmodule * m, CUlibrary l), CUresult result = real(m, l);
              if (result == CUDA_SUCCESS) Registry::Get().OnAlias(*m, l); return result;)
TIDEPOOL_HOOK(cuModuleGetFunction, (CUfunction * f, CUmodule m, const char* name),
              CUresult result = real(f, m, name);
              if (result == CUDA_SUCCESS) Registry::Get().OnKernel(*f, m, name, false);
              return result;)
TIDEPOOL_HOOK(cuLibraryGetKernel, (CUkernel * k, CUlibrary l, const char* name),
              CUresult result = real(k, l, name);
              if (result == CUDA_SUCCESS) Registry::Get().OnKernel(*k, l, name, true);
              return result;)
TIDEPOOL_HOOK(cuKernelGetFunction, (CUfunction * f, CUkernel k), CUresult result = real(f, k);
              if (result == CUDA_SUCCESS) Registry::Get().OnKernelAlias(*f, k); return result;)
// The host gets the address of a module variable, to change its content or to pass it on. The
// answer is asked for in full, whatever the program wants of it.
namespace {
CUresult GetVariable(void* module, const char* name, CUdeviceptr* p, size_t* n,
                     absl::FunctionRef<CUresult(CUdeviceptr*, size_t*)> ask) {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  const CUresult result = ask(&address, &bytes);
  if (result != CUDA_SUCCESS) return result;
  const void* code = Registry::Get().CodeOf(module);
  Engine* engine = EngineForAllocation();
  // In this order: until the engine watches it, what is launched to read it is not recorded.
  const std::optional<PinReason> pin =
      Registry::Get().OnVariable(module, name, address, bytes, engine != nullptr);
  if (engine != nullptr && code != nullptr) {
    engine->WatchVariable(name, address, bytes, code);
    if (pin.has_value()) {
      if (CUresult pinned = engine->Pin(address, *pin); pinned != CUDA_SUCCESS) return pinned;
    }
  }
  if (p != nullptr) *p = address;
  if (n != nullptr) *n = bytes;
  return result;
}
}  // namespace
TIDEPOOL_HOOK(cuModuleGetGlobal_v2, (CUdeviceptr * p, size_t* n, CUmodule m, const char* name),
              if ((p == nullptr && n == nullptr) || name == nullptr) return real(p, n, m, name);
              return GetVariable(m, name, p, n,
                                 [&](auto* at, auto* bytes) { return real(at, bytes, m, name); });)
TIDEPOOL_HOOK(cuLibraryGetGlobal, (CUdeviceptr * p, size_t* n, CUlibrary l, const char* name),
              if ((p == nullptr && n == nullptr) || name == nullptr) return real(p, n, l, name);
              return GetVariable(l, name, p, n,
                                 [&](auto* at, auto* bytes) { return real(at, bytes, l, name); });)
TIDEPOOL_HOOK(cuLibraryGetManaged, (CUdeviceptr * p, size_t* n, CUlibrary l, const char* name),
              CUresult result = real(p, n, l, name);
              if (result == CUDA_SUCCESS) Registry::Get().OnVariable(l, name, 0, 0, false);
              // The host may put an address there without a call.
              HostMemory::Get().OnUnseenPointers(); return result;)

// --- Kernels that change ---
// Values made by launches that would not be possible any more (less dynamic shared memory, say) are
// rebuilt first; where they do not fit, the kernel keeps what it has.
namespace {
bool KeepKernelAsItWas(CUfunction function, int now, int before) {
  Engine* engine = ActiveEngine();
  if (engine == nullptr || now >= before) return false;
  const auto record = Registry::Get().Find(GetDriverApi(), function);
  return record->code != nullptr &&
         engine->OnKernelChange(record->code.get(), record->name) != CUDA_SUCCESS;
}
}  // namespace
TIDEPOOL_HOOK(cuFuncSetAttribute, (CUfunction f, CUfunction_attribute a, int value),
              using Get = CUresult(CUDAAPI*)(int*, CUfunction_attribute, CUfunction);
              static const auto get = Real<Get>("cuFuncGetAttribute"); int before = 0;
              if (get != nullptr && get(&before, a, f) == CUDA_SUCCESS &&
                  KeepKernelAsItWas(f, value, before)) return CUDA_SUCCESS;
              return real(f, a, value);)
TIDEPOOL_HOOK(cuKernelSetAttribute, (CUfunction_attribute a, int value, CUkernel k, CUdevice d),
              using Get = CUresult(CUDAAPI*)(int*, CUfunction_attribute, CUkernel, CUdevice);
              static const auto get = Real<Get>("cuKernelGetAttribute"); int before = 0;
              if (get != nullptr && get(&before, a, k, d) == CUDA_SUCCESS &&
                  KeepKernelAsItWas(reinterpret_cast<CUfunction>(k), value,
                                    before)) return CUDA_SUCCESS;
              return real(a, value, k, d);)

// --- Launches ---
#define TIDEPOOL_LAUNCH_PARAMS                                                       \
  (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, \
   unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void** params, void** extra)
TIDEPOOL_HOOKS(
    cuLaunchKernel, _ptsz, TIDEPOOL_LAUNCH_PARAMS, Engine* engine = ActiveEngine();
    auto issue = [&] { return real(f, gx, gy, gz, bx, by, bz, shared, s, params, extra); };
    if (engine == nullptr) return issue(); LaunchCall call;
    call.config = {gx, gy, gz, bx, by, bz, shared, s, nullptr, 0}; call.function = f;
    call.params = params; call.extra = extra; call.per_thread = kPerThread;
    return RunLaunch(engine, GetDriverApi(), call, issue);)
TIDEPOOL_HOOKS(
    cuLaunchKernelEx, _ptsz, (const CUlaunchConfig* c, CUfunction f, void** params, void** extra),
    Engine* engine = ActiveEngine();
    if (engine == nullptr || c == nullptr) {
      return real(c, f, params, extra);
    } std::vector<CUlaunchAttribute>
        attributes;
    LaunchCall call; call.config = WithoutOverlap(*c, &attributes); call.function = f;
    call.params = params; call.extra = extra; call.per_thread = kPerThread;
    return RunLaunch(engine, GetDriverApi(), call,
                     [&] { return real(&call.config, f, params, extra); });)
#define TIDEPOOL_COOPERATIVE_PARAMS                                                  \
  (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, \
   unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void** params)
TIDEPOOL_HOOKS(
    cuLaunchCooperativeKernel, _ptsz, TIDEPOOL_COOPERATIVE_PARAMS, Engine* engine = ActiveEngine();
    auto issue = [&] { return real(f, gx, gy, gz, bx, by, bz, shared, s, params); };
    if (engine == nullptr) return issue(); LaunchCall call;
    call.config = {gx, gy, gz, bx, by, bz, shared, s, nullptr, 0}; call.function = f;
    call.params = params; call.per_thread = kPerThread; call.cooperative = true;
    return RunLaunch(engine, GetDriverApi(), call, issue);)

// --- Streams, contexts ---
TIDEPOOL_HOOK(cuStreamDestroy_v2, (CUstream s),
              if (Engine* engine = ActiveEngine()) engine->OnStreamDestroy(s);
              CUresult result = real(s);
              if (result == CUDA_SUCCESS && AnyCapture()) OnCaptureEnded(s); return result;)
TIDEPOOL_HOOK(cuCtxDestroy_v2, (CUcontext c), CUresult result = real(c);
              if (result == CUDA_SUCCESS && ActiveEngine() != nullptr) OnContextGone(c);
              return result;)
TIDEPOOL_HOOK(
    cuDevicePrimaryCtxRelease_v2, (CUdevice d), CUresult result = real(d);
    if (result == CUDA_SUCCESS && ActiveEngine() != nullptr) {
      // With the last reference the context goes.
      using F = CUresult(CUDAAPI*)(CUdevice, unsigned int*, int*);
      static const auto state = Real<F>("cuDevicePrimaryCtxGetState");
      unsigned int flags = 0;
      int active = 1;
      if (d == ManagedDevice() && state != nullptr && state(d, &flags, &active) == CUDA_SUCCESS &&
          active == 0) {
        OnContextGone(nullptr);
      }
    } return result;)
TIDEPOOL_HOOK(cuDevicePrimaryCtxReset_v2, (CUdevice d), CUresult result = real(d);
              if (result == CUDA_SUCCESS && ActiveEngine() != nullptr) OnContextGone(nullptr);
              return result;)

// --- Lookup ---
namespace {

// The driver's answer, replaced by our hook of the same exported symbol where there is one.
// `resolve` asks the driver again, for another version.
void Substitute(const char* name, void** function, int version, cuuint64_t flags,
                absl::FunctionRef<CUresult(void**, int)> resolve) {
  if (function == nullptr || *function == nullptr) return;
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const char* symbol = SymbolFor(name, version, per_thread);
  void* hook = symbol != nullptr ? HookOf(symbol) : nullptr;
  if (hook == nullptr) return;
  // Of versions after the one that this was built for only the driver knows whether they have
  // another form: then its answer is another too.
  void* known = nullptr;
  if (version > CUDA_VERSION &&
      (resolve(&known, CUDA_VERSION) != CUDA_SUCCESS || known != *function)) {
    return;
  }
  *function = hook;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI
cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult* status) {
  using F =
      CUresult(CUDAAPI*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  static const auto real = Real<F>("cuGetProcAddress_v2");
  if (real == nullptr) return CUDA_ERROR_NOT_FOUND;
  CUresult result = real(name, function, version, flags, status);
  if (result == CUDA_SUCCESS && name != nullptr) {
    Substitute(name, function, version, flags,
               [&](void** other, int at) { return real(name, other, at, flags, nullptr); });
  }
  return result;
}
#undef cuGetProcAddress
extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI
cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
  using F = CUresult(CUDAAPI*)(const char*, void**, int, cuuint64_t);
  static const auto real = Real<F>("cuGetProcAddress");
  if (real == nullptr) return CUDA_ERROR_NOT_FOUND;
  CUresult result = real(name, function, version, flags);
  if (result == CUDA_SUCCESS && name != nullptr) {
    Substitute(name, function, version, flags,
               [&](void** other, int at) { return real(name, other, at, flags); });
  }
  return result;
}
