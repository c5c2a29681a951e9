// What is known of kernels: handles of the driver to the access analysis of the code behind them,
// and the layout of their parameters. Thread-safe.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/access/annotation.h"
#include "runtime/access/footprint.h"
#include "runtime/access/kernel_access.h"
#include "runtime/driver/driver_api.h"

namespace tidepool {

struct KernelRecord {
  std::string name;  // for people
  bool has_layout = false;
  std::vector<ParamSlot> params;
  uint64_t param_bytes = 0;
  bool known = false;  // `access` says what the code that runs does, by its PTX or an annotation
  KernelAccess access;
  Annotated annotated;
  std::shared_ptr<const KernelFootprint> footprint;  // null: no store can be followed
  std::shared_ptr<const void> code;  // identifies the loaded code; null if it was not seen
  std::string no_replay;             // why it cannot be replayed; empty if it can
};

class Registry {
 public:
  static Registry& Get();

  // An image was loaded as this module or library (CUmodule or CUlibrary).
  void OnLoad(void* module, const void* image);
  void OnLoadFile(void* module, const char* path);
  // Two handles of the same code (cuLibraryGetModule).
  void OnAlias(void* made, void* of);
  void OnUnload(void* module);
  // The code behind a module or library, as KernelRecord names it; null if it was not seen.
  const void* CodeOf(void* module);
  // A kernel handle (CUfunction or CUkernel) was got from a module or library.
  void OnKernel(void* kernel, void* module, const char* name, bool is_kernel);
  void OnKernelAlias(void* function, void* kernel);
  // The host got the address of a module variable: its content may change unseen.
  void OnVariable(void* module, const char* name);

  // The record of a handle that is about to be launched; never null.
  std::shared_ptr<const KernelRecord> Find(const DriverApi& api, CUfunction function);

 private:
  Registry();
  struct Impl;
  Impl* impl_;
};

}  // namespace tidepool
