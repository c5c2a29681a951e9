// The real functions behind the hooks: libc's dlsym and dlopen, found without going through our
// own, and the driver's entry points. Thread-safe.
#pragma once

#include <cuda.h>

namespace tidepool {

// libc's own, by walking the loaded objects' symbol tables.
void* LibcSymbol(const char* name);
void* RealDlsym(void* handle, const char* name);
void* RealDlvsym(void* handle, const char* name, const char* version);

// The driver library; null if there is none on this machine.
void* DriverLibrary();
// The driver's exported function of exactly this name; null if it has none. Never one of our hooks.
void* RealSymbol(const char* symbol);

template <typename F>
F Real(const char* symbol) {
  return reinterpret_cast<F>(RealSymbol(symbol));
}

// What the hook of this exported name is; null if there is none.
void* HookOf(const char* symbol);
// The exported name that cuGetProcAddress means by these; null if unknown.
const char* SymbolFor(const char* name, int version, bool per_thread);

}  // namespace tidepool
