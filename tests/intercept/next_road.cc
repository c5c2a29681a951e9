// A second shared object: what it finds by RTLD_NEXT, and a function of a driver's name for itself.
#include <dlfcn.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void* FindNext(const char* name) { return dlsym(RTLD_NEXT, name); }
EXPORT int cuModuleUnload(void*) { return 4711; }
EXPORT int NextRoadOwn() { return 1; }
