// What is known of kernels: handles of the driver to the access analysis of the code behind them,
// and the layout of their parameters. Thread-safe.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <optional>
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
  // The module variables that the host knows and the engine watches, as far as the kernel may use
  // them.
  std::vector<Region> variables;
  bool variables_complete = false;  // `access` names all of the module's that it may use
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
  // the engine is told of all that uses [address, address + bytes). Returns why it has to be pinned
  // all the same, if it has: something that is not seen may use it.
  std::optional<PinReason> OnVariable(void* module, const char* name, CUdeviceptr address,
                                      uint64_t bytes, bool watched);
  // The kernel became part of a graph: variables that it uses are used unseen.
  void OnGraphUses(const KernelRecord& record);

  // The record of a handle that is about to be launched; never null.
  std::shared_ptr<const KernelRecord> Find(const DriverApi& api, CUfunction function);

 private:
  Registry();
  struct Impl;
  Impl* impl_;
};

}  // namespace tidepool
