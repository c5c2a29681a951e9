// Registration: what nvcc's code calls before main, and images loaded when first needed.
#include <fatbinary_section.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/simgpu/cudart/images.h"

namespace cudart {
namespace {

struct Image {
  const __fatBinC_Wrapper_t* wrapper = nullptr;
  CUlibrary library = nullptr;
  // Only for a driver without libraries: a module for each context.
  std::map<CUcontext, CUmodule> modules;
};

struct Kernel {
  Image* image = nullptr;  // null: of a library that the program loaded
  std::string name;
  CUkernel handle = nullptr;
  CUlibrary library = nullptr;
  // The function in the context that asked last.
  CUcontext context = nullptr;
  uint64_t epoch = 0;
  CUfunction function = nullptr;
};

struct Variable {
  Image* image = nullptr;
  std::string name;
  void** managed = nullptr;  // where a managed variable's address is kept; null for others
};

struct Registry {
  std::shared_mutex mutex;
  std::vector<std::unique_ptr<Image>> images;
  std::unordered_map<const void*, std::unique_ptr<Kernel>> kernels;  // by stub, or by handle
  std::unordered_map<const void*, Kernel*> handles;                  // of registered kernels
  std::unordered_map<const void*, Variable> variables;               // by shadow
};
Registry& GetRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

// Separately compiled parts that no device code was linked from beforehand are linked here.
CUresult LinkAndLoad(const __fatBinC_Wrapper_t& wrapper, CUlibrary* out) {
  const Driver& driver = GetDriver();
  CUlinkState link = nullptr;
  if (CUresult r = driver.LinkCreate(0, nullptr, nullptr, &link); r != CUDA_SUCCESS) return r;
  CUresult result = CUDA_SUCCESS;
  for (auto parts = static_cast<void**>(wrapper.filename_or_fatbins);
       parts != nullptr && *parts != nullptr && result == CUDA_SUCCESS; ++parts) {
    constexpr size_t kHeader = 16;
    uint64_t bytes = 0;
    std::memcpy(&bytes, static_cast<const char*>(*parts) + kHeader - sizeof(bytes), sizeof(bytes));
    result = driver.LinkAddData(link, CU_JIT_INPUT_FATBINARY, *parts, kHeader + bytes, nullptr, 0,
                                nullptr, nullptr);
  }
  void* cubin = nullptr;
  size_t bytes = 0;
  if (result == CUDA_SUCCESS) result = driver.LinkComplete(link, &cubin, &bytes);
  if (result == CUDA_SUCCESS) {
    result = driver.LibraryLoadData(out, cubin, nullptr, nullptr, 0, nullptr, nullptr, 0);
  }
  driver.LinkDestroy(link);
  return result;
}

// Registry locked for writing. A failure is not remembered: memory, for one, may be there later.
CUresult LoadImage(Image& image) {
  if (image.library != nullptr) return CUDA_SUCCESS;
  const Driver& driver = GetDriver();
  if (driver.LibraryLoadData.exists()) {
    CUresult result = driver.LibraryLoadData(&image.library, image.wrapper, nullptr, nullptr, 0,
                                             nullptr, nullptr, 0);
    const bool parts = image.wrapper->version == FATBINC_LINK_VERSION;
    if (parts && (result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_INVALID_IMAGE)) {
      result = LinkAndLoad(*image.wrapper, &image.library);
    }
    return result;
  }
  CUcontext context = nullptr;
  if (CUresult r = driver.CtxGetCurrent(&context); r != CUDA_SUCCESS) return r;
  CUmodule& module = image.modules[context];
  if (module != nullptr) return CUDA_SUCCESS;
  return driver.ModuleLoadData(&module, image.wrapper);
}

CUmodule CurrentModule(const Image& image) {
  CUcontext context = nullptr;
  GetDriver().CtxGetCurrent(&context);
  auto it = image.modules.find(context);
  return it == image.modules.end() ? nullptr : it->second;
}

// Registry locked.
Kernel* Find(Registry& registry, const void* key) {
  if (auto it = registry.kernels.find(key); it != registry.kernels.end()) return it->second.get();
  auto it = registry.handles.find(key);
  return it == registry.handles.end() ? nullptr : it->second;
}

// Registry locked for writing.
cudaError_t LoadKernel(Registry& registry, Kernel& kernel) {
  if (kernel.image == nullptr) return cudaSuccess;
  if (CUresult r = LoadImage(*kernel.image); r != CUDA_SUCCESS) return FromDriver(r);
  if (kernel.handle != nullptr || kernel.image->library == nullptr) return cudaSuccess;
  CUresult r =
      GetDriver().LibraryGetKernel(&kernel.handle, kernel.image->library, kernel.name.c_str());
  if (r != CUDA_SUCCESS) {
    return r == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : FromDriver(r);
  }
  registry.handles[kernel.handle] = &kernel;
  return cudaSuccess;
}

// Registry locked for writing.
CUresult Locate(const Variable& variable, CUdeviceptr* address, size_t* bytes) {
  if (CUresult r = LoadImage(*variable.image); r != CUDA_SUCCESS) return r;
  const Driver& driver = GetDriver();
  const char* name = variable.name.c_str();
  if (variable.image->library == nullptr) {
    return driver.ModuleGetGlobal(address, bytes, CurrentModule(*variable.image), name);
  }
  if (variable.managed != nullptr &&
      driver.LibraryGetManaged(address, bytes, variable.image->library, name) == CUDA_SUCCESS) {
    return CUDA_SUCCESS;
  }
  return driver.LibraryGetGlobal(address, bytes, variable.image->library, name);
}

}  // namespace

cudaError_t FindFunction(const void* key, CUfunction* function) {
  const Driver& driver = GetDriver();
  CUcontext context = nullptr;
  if (CUresult r = driver.CtxGetCurrent(&context); r != CUDA_SUCCESS) return FromDriver(r);
  const uint64_t epoch = ContextEpoch();
  Registry& registry = GetRegistry();
  {
    std::shared_lock<std::shared_mutex> lock(registry.mutex);
    Kernel* kernel = Find(registry, key);
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    if (kernel->function != nullptr && kernel->context == context && kernel->epoch == epoch) {
      *function = kernel->function;
      return cudaSuccess;
    }
  }
  std::unique_lock<std::shared_mutex> lock(registry.mutex);
  Kernel* kernel = Find(registry, key);
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  if (cudaError_t e = LoadKernel(registry, *kernel); e != cudaSuccess) return e;
  CUfunction found = nullptr;
  CUresult r =
      kernel->handle != nullptr
          ? driver.KernelGetFunction(&found, kernel->handle)
          : driver.ModuleGetFunction(&found, CurrentModule(*kernel->image), kernel->name.c_str());
  if (r != CUDA_SUCCESS) {
    return r == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : FromDriver(r);
  }
  kernel->context = context;
  kernel->epoch = epoch;
  kernel->function = found;
  *function = found;
  return cudaSuccess;
}

cudaError_t FindKernel(const void* key, CUkernel* handle) {
  Registry& registry = GetRegistry();
  std::unique_lock<std::shared_mutex> lock(registry.mutex);
  Kernel* kernel = Find(registry, key);
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  if (cudaError_t e = LoadKernel(registry, *kernel); e != cudaSuccess) return e;
  if (kernel->handle == nullptr) return cudaErrorNotSupported;
  *handle = kernel->handle;
  return cudaSuccess;
}

cudaError_t FindSymbol(const void* symbol, CUdeviceptr* address, size_t* bytes) {
  Registry& registry = GetRegistry();
  std::unique_lock<std::shared_mutex> lock(registry.mutex);
  const Variable* variable = nullptr;
  if (auto it = registry.variables.find(symbol); it != registry.variables.end()) {
    variable = &it->second;
  } else {
    for (const auto& [shadow, candidate] : registry.variables) {
      if (candidate.managed != nullptr && symbol != nullptr && *candidate.managed == symbol) {
        variable = &candidate;
        break;
      }
    }
  }
  if (variable == nullptr) return cudaErrorInvalidSymbol;
  const CUresult r = Locate(*variable, address, bytes);
  return r == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : FromDriver(r);
}

const void* FindStub(CUfunction function, CUkernel handle) {
  Registry& registry = GetRegistry();
  std::shared_lock<std::shared_mutex> lock(registry.mutex);
  for (const auto& [key, kernel] : registry.kernels) {
    const bool same = function != nullptr ? kernel->function == function
                                          : handle != nullptr && kernel->handle == handle;
    if (same) return key;
  }
  return nullptr;
}

void AdoptKernel(CUkernel handle, CUlibrary library) {
  Registry& registry = GetRegistry();
  std::unique_lock<std::shared_mutex> lock(registry.mutex);
  if (Find(registry, handle) != nullptr) return;
  auto kernel = std::make_unique<Kernel>();
  kernel->handle = handle;
  kernel->library = library;
  registry.kernels[handle] = std::move(kernel);
}

void ForgetLibrary(CUlibrary library) {
  Registry& registry = GetRegistry();
  std::unique_lock<std::shared_mutex> lock(registry.mutex);
  std::erase_if(registry.kernels, [&](const auto& entry) {
    return entry.second->image == nullptr && entry.second->library == library;
  });
}

}  // namespace cudart

using cudart::FindFunction;
using cudart::FindKernel;
using cudart::FindSymbol;
using cudart::GetRegistry;
using cudart::Image;
using cudart::Kernel;
using cudart::Note;
using cudart::Registry;
using cudart::Variable;

// nvcc's registration code makes these calls; their prototypes are in crt/host_runtime.h, which
// only nvcc's own translation units can include.
CUDART_EXPORT void** __cudaRegisterFatBinary(void* wrapper) {
  auto image = std::make_unique<Image>();
  image->wrapper = static_cast<const __fatBinC_Wrapper_t*>(wrapper);
  Image* handle = image.get();
  Registry& registry = GetRegistry();
  std::unique_lock<std::shared_mutex> lock(registry.mutex);
  registry.images.push_back(std::move(image));
  return reinterpret_cast<void**>(handle);
}

CUDART_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}

CUDART_EXPORT void __cudaUnregisterFatBinary(void** handle) {
  auto* image = reinterpret_cast<Image*>(handle);
  Registry& registry = GetRegistry();
  std::unique_lock<std::shared_mutex> lock(registry.mutex);
  std::erase_if(registry.handles, [&](const auto& entry) { return entry.second->image == image; });
  std::erase_if(registry.kernels, [&](const auto& entry) { return entry.second->image == image; });
  std::erase_if(registry.variables, [&](const auto& entry) { return entry.second.image == image; });
  // A plug-in that is unloaded gives its memory back; at the end of the process the driver may have
  // gone before.
  if (image->library != nullptr && !cudart::Exiting()) {
    cudart::GetDriver().LibraryUnload(image->library);
  }
  std::erase_if(registry.images, [&](const auto& entry) { return entry.get() == image; });
}

CUDART_EXPORT void __cudaRegisterFunction(void** handle, const char* stub, char*, const char* name,
                                          int, uint3*, uint3*, dim3*, dim3*, int*) {
  auto kernel = std::make_unique<Kernel>();
  kernel->image = reinterpret_cast<Image*>(handle);
  kernel->name = name;
  Registry& registry = GetRegistry();
  std::unique_lock<std::shared_mutex> lock(registry.mutex);
  registry.kernels[stub] = std::move(kernel);
}

CUDART_EXPORT void __cudaRegisterVar(void** handle, char* shadow, char*, const char* name, int,
                                     size_t, int, int) {
  Registry& registry = GetRegistry();
  std::unique_lock<std::shared_mutex> lock(registry.mutex);
  registry.variables[shadow] = Variable{reinterpret_cast<Image*>(handle), name, nullptr};
}

CUDART_EXPORT void __cudaRegisterManagedVar(void** handle, void** pointer, char*, const char* name,
                                            int, size_t, int, int) {
  Registry& registry = GetRegistry();
  std::unique_lock<std::shared_mutex> lock(registry.mutex);
  registry.variables[pointer] = Variable{reinterpret_cast<Image*>(handle), name, pointer};
}

// Called before the host first touches a managed variable of the image.
CUDART_EXPORT char __cudaInitModule(void** handle) {
  if (Note(cudart::Enter()) != cudaSuccess) return 0;
  Registry& registry = GetRegistry();
  std::unique_lock<std::shared_mutex> lock(registry.mutex);
  for (auto& [shadow, variable] : registry.variables) {
    if (variable.managed == nullptr || variable.image != reinterpret_cast<Image*>(handle)) continue;
    CUdeviceptr address = 0;
    size_t bytes = 0;
    if (CUresult r = cudart::Locate(variable, &address, &bytes); r != CUDA_SUCCESS) {
      Note(r);
      return 0;
    }
    *variable.managed = cudart::ToPointer(address);
  }
  return 1;
}

// A stub asks once and keeps the answer. Where the kernel cannot be loaded yet, the stub's address
// serves as its handle, so that each launch tries again and reports why not.
CUDART_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  if (kernel == nullptr) return Note(cudaErrorInvalidValue);
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(stub));
  CUDART_ENTER();
  CUkernel handle = nullptr;
  cudaError_t found = FindKernel(stub, &handle);
  if (found == cudaSuccess) *kernel = handle;
  return found == cudaErrorNotSupported ? cudaSuccess : Note(found);
}

CUDART_API cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  CUDART_ENTER();
  if (kernel == nullptr) return Note(cudaErrorInvalidValue);
  return Note(FindKernel(stub, kernel));
}
CUDART_API cudaGetFuncBySymbol(cudaFunction_t* function, const void* stub) {
  CUDART_ENTER();
  if (function == nullptr) return Note(cudaErrorInvalidValue);
  return Note(FindFunction(stub, function));
}
CUDART_API cudaGetSymbolAddress(void** out, const void* symbol) {
  CUDART_ENTER();
  CUdeviceptr address = 0;
  size_t bytes = 0;
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  if (cudaError_t e = FindSymbol(symbol, &address, &bytes); e != cudaSuccess) return Note(e);
  *out = cudart::ToPointer(address);
  return cudaSuccess;
}
CUDART_API cudaGetSymbolSize(size_t* out, const void* symbol) {
  CUDART_ENTER();
  CUdeviceptr address = 0;
  if (out == nullptr) return Note(cudaErrorInvalidValue);
  return Note(FindSymbol(symbol, &address, out));
}
