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
#include "runtime/residency/op_request.h"

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
  // Where the module variables lie that it reads and that the host can change.
  std::vector<Region> variables;
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
  // The host got the address of a module variable, whose content may change from now on. `watched`:
  // the engine is told of all that uses [address, address + bytes).
  void OnVariable(void* module, const char* name, CUdeviceptr address, uint64_t bytes,
                  bool watched);

  // The record of a handle that is about to be launched; never null.
  std::shared_ptr<const KernelRecord> Find(const DriverApi& api, CUfunction function);

 private:
  Registry();
  struct Impl;
  Impl* impl_;
};

}  // namespace tidepool
