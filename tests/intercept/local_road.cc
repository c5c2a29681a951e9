// A program that knows no driver opens a library (RTLD_LOCAL) that needs one: what that library
// finds by RTLD_NEXT is the driver of its own scope, and so the hooks.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace {

bool IsIn(const void* address, const char* file) {
  Dl_info info;
  return address != nullptr && dladdr(address, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, file) != nullptr;
}

}  // namespace

int main() {
  if (dlsym(RTLD_DEFAULT, "cuDriverGetVersion") != nullptr) {
    std::fprintf(stderr, "the program sees a driver before it has opened one\n");
    return 1;
  }
  void* library = dlopen("liblocal_road.so", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const auto find_next = reinterpret_cast<void* (*)(const char*)>(dlsym(library, "FindNext"));
  int failures = 0;
  for (const char* name : {"cuMemAlloc_v2", "cuLaunchKernel", "cuModuleUnload"}) {
    if (IsIn(find_next(name), "libtidepool.so")) continue;
    std::fprintf(stderr, "%s is not the hook\n", name);
    ++failures;
  }
  if (!IsIn(find_next("cuDriverGetVersion"), "libcuda.so")) {
    std::fprintf(stderr, "cuDriverGetVersion is not the driver's\n");
    ++failures;
  }
  for (const char* name : {"cuMemAllocPitch_v2", "cuNoSuchFunction"}) {
    if (find_next(name) == nullptr) continue;
    std::fprintf(stderr, "%s is found, which the driver does not have\n", name);
    ++failures;
  }
  return failures == 0 ? 0 : 1;
}
