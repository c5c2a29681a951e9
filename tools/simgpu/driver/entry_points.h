// The table behind cuGetProcAddress, generated from cudaTypedefs.h (gen_entry_points.py).
#pragma once

#include <cuda.h>

#include <span>

namespace simgpu {

struct EntryPoint {
  const char* name;  // as it is asked for: without version suffix
  int version;       // the first CUDA version that has this form
  bool per_thread;
  void* address;
};
std::span<const EntryPoint> EntryPoints();
const char* ErrorName(CUresult error);  // null if unknown

// For entry points that simgpu does not have: says the name once on stderr.
CUresult NotSupported(const char* symbol);

}  // namespace simgpu
