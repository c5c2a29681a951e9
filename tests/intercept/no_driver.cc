// A program on a machine without a driver that asks whether there is one. Exit status 77: there is.
#include <dlfcn.h>

#include <cstdio>
#include <initializer_list>

int main() {
  if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr) return 77;
  int wrong = 0;
  for (const char* name : {"cuInit", "cuGetProcAddress_v2", "cuMemAlloc_v2", "cuNoSuchFunction"}) {
    if (dlsym(RTLD_DEFAULT, name) != nullptr || dlsym(RTLD_NEXT, name) != nullptr) {
      std::fprintf(stderr, "%s was found\n", name);
      wrong = 1;
    }
  }
  return wrong;
}
