// dlsym and dlvsym. Names that are not the driver's go to libc by a jump, with the caller's
// registers and return address as they were: what RTLD_NEXT means depends on who calls.
#include <dlfcn.h>

#include <cstring>

#include "runtime/intercept/real.h"
#include "runtime/intercept/state.h"

namespace {

// The driver's functions are "cu" and a capital; cublas, cudnn and curl are not.
bool IsDriverName(const char* name) {
  return name != nullptr && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

void* Answer(void* found, const char* name) {
  if (found == nullptr) return nullptr;
  void* hook = tidepool::HookOf(name);
  if (hook == nullptr) return found;
  // Only what is the driver's: a library may have functions of such names for itself.
  Dl_info info;
  if (found != hook && dladdr(found, &info) != 0 && info.dli_fname != nullptr &&
      std::strstr(info.dli_fname, "libcuda") == nullptr) {
    return found;
  }
  if (found == hook && tidepool::DriverLibrary() == nullptr)
    return nullptr;  // RTLD_DEFAULT finds us
  return hook;
}

}  // namespace

// What the assembly below asks: the address to jump to, or null if `*answer` is the result.
extern "C" __attribute__((visibility("hidden"))) void* tidepool_dlsym_target(void* handle,
                                                                             const char* name,
                                                                             void** answer) {
  static void* const real = tidepool::LibcSymbol("dlsym");
  if (!IsDriverName(name)) return real;
  *answer = Answer(tidepool::RealDlsym(handle, name), name);
  return nullptr;
}
extern "C" __attribute__((visibility("hidden"))) void* tidepool_dlvsym_target(void* handle,
                                                                              const char* name,
                                                                              const char* version,
                                                                              void** answer) {
  static void* const real = tidepool::LibcSymbol("dlvsym");
  if (!IsDriverName(name)) return real;
  *answer = Answer(tidepool::RealDlvsym(handle, name, version), name);
  return nullptr;
}

#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".globl dlsym\n.type dlsym, @function\n"
    "dlsym:\n"
    "  pushq %rdi\n  pushq %rsi\n  pushq $0\n"
    "  movq %rsp, %rdx\n"
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
  if (tidepool_dlsym_target(handle, name, &answer) == nullptr) return answer;
  return tidepool::RealDlsym(handle, name);
}
extern "C" __attribute__((visibility("default"))) void* dlvsym(void* handle, const char* name,
                                                               const char* version) noexcept {
  void* answer = nullptr;
  if (tidepool_dlvsym_target(handle, name, version, &answer) == nullptr) return answer;
  return tidepool::RealDlvsym(handle, name, version);
}
#endif
