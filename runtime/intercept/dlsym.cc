// dlsym and dlvsym. Names that are not the driver's go to libc by a jump, with the caller's
// registers and return address as they were: what RTLD_NEXT means depends on who calls.
#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "runtime/intercept/real.h"
#include "runtime/intercept/state.h"

namespace {

// The driver's functions are "cu" and a capital; cublas, cudnn and curl are not.
bool IsDriverName(const char* name) {
  return name != nullptr && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

// Whether the address lies in a library file of this name, or of one that begins so.
bool InLibrary(const void* address, const char* prefix) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return false;
  const char* slash = std::strrchr(info.dli_fname, '/');
  return std::strncmp(slash != nullptr ? slash + 1 : info.dli_fname, prefix, std::strlen(prefix)) ==
         0;
}

// Whether the object of `address` was loaded after that of `caller`.
bool ComesAfter(const void* address, const void* caller) {
  Dl_info info;
  void *found = nullptr, *from = nullptr;
  if (dladdr1(address, &info, &found, RTLD_DL_LINKMAP) == 0 ||
      dladdr1(caller, &info, &from, RTLD_DL_LINKMAP) == 0) {
    return true;
  }
  const auto* map = static_cast<const link_map*>(from);
  while (map != nullptr && (map = map->l_next) != nullptr) {
    if (map == found) return true;
  }
  return false;
}

// A name that we hook is left to libc when the driver itself asks: it has to get its own function.
bool Ours(const char* name, const void* caller) {
  return IsDriverName(name) && tidepool::HookOf(name) != nullptr &&
         !InLibrary(caller, "libcuda.so");
}

// Whether the caller's own scope has the driver: a library opened with RTLD_LOCAL sees what it
// needs itself, which libc does not show to us.
bool NeedsDriver(const void* caller) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  void* self = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (self == nullptr) return false;
  // A name that nobody defines for himself.
  const void* found = tidepool::RealDlsym(self, "cuDriverGetVersion");
  dlclose(self);
  return found != nullptr && InLibrary(found, "libcuda");
}

// What the program gets for a name that we hook, for which libc found `found` when we asked.
void* Answer(void* handle, void* found, const char* name, const void* caller) {
  if (found == nullptr) {
    const bool by_scope = handle == RTLD_NEXT || handle == RTLD_DEFAULT;
    if (!by_scope || !NeedsDriver(caller) || tidepool::RealSymbol(name) == nullptr) return nullptr;
    return tidepool::HookOf(name);
  }
  void* hook = tidepool::HookOf(name);
  // Asked in the order of loading, libc finds us, who hook more than the driver has. And what comes
  // next for us may be what comes before the caller, or the caller's own.
  if (found == hook || (handle == RTLD_NEXT && !ComesAfter(found, caller))) {
    return tidepool::RealSymbol(name) != nullptr ? hook : nullptr;
  }
  // Only what is the driver's: a library may have functions of such names for itself.
  return InLibrary(found, "libcuda") ? hook : found;
}

}  // namespace

// What the assembly below asks: the address to jump to, or null if `*answer` is the result.
extern "C" __attribute__((visibility("hidden"))) void* tidepool_dlsym_target(void* handle,
                                                                             const char* name,
                                                                             void** answer,
                                                                             const void* caller) {
  static void* const real = tidepool::LibcSymbol("dlsym");
  if (!Ours(name, caller)) return real;
  *answer = Answer(handle, tidepool::RealDlsym(handle, name), name, caller);
  return nullptr;
}
extern "C" __attribute__((visibility("hidden"))) void* tidepool_dlvsym_target(
    void* handle, const char* name, const char* version, void** answer, const void* caller) {
  static void* const real = tidepool::LibcSymbol("dlvsym");
  if (!Ours(name, caller)) return real;
  *answer = Answer(handle, tidepool::RealDlvsym(handle, name, version), name, caller);
  return nullptr;
}

#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".globl dlsym\n.type dlsym, @function\n"
    "dlsym:\n"
    "  pushq %rdi\n  pushq %rsi\n  pushq $0\n"
    "  movq %rsp, %rdx\n"
    "  movq 24(%rsp), %rcx\n"
    "  call tidepool_dlsym_target\n"
    "  popq %rdx\n  popq %rsi\n  popq %rdi\n"
    "  testq %rax, %rax\n  je 1f\n"
    "  jmp *%rax\n"
    "1: movq %rdx, %rax\n  ret\n"
    ".size dlsym, .-dlsym\n"
    ".globl dlvsym\n.type dlvsym, @function\n"
    "dlvsym:\n"
    "  pushq %rdi\n  pushq %rsi\n  pushq %rdx\n  pushq $0\n  pushq %rax\n"
    "  leaq 8(%rsp), %rcx\n"
    "  movq 40(%rsp), %r8\n"
    "  call tidepool_dlvsym_target\n"
    "  popq %rcx\n  popq %rcx\n  popq %rdx\n  popq %rsi\n  popq %rdi\n"
    "  testq %rax, %rax\n  je 2f\n"
    "  jmp *%rax\n"
    "2: movq %rcx, %rax\n  ret\n"
    ".size dlvsym, .-dlvsym\n");
#else
extern "C" __attribute__((visibility("default"))) void* dlsym(void* handle,
                                                              const char* name) noexcept {
  void* answer = nullptr;
  if (tidepool_dlsym_target(handle, name, &answer, __builtin_return_address(0)) == nullptr)
    return answer;
  return tidepool::RealDlsym(handle, name);
}
extern "C" __attribute__((visibility("default"))) void* dlvsym(void* handle, const char* name,
                                                               const char* version) noexcept {
  void* answer = nullptr;
  if (tidepool_dlvsym_target(handle, name, version, &answer, __builtin_return_address(0)) ==
      nullptr)
    return answer;
  return tidepool::RealDlvsym(handle, name, version);
}
#endif
