// Modules: images read, PTX chosen as the driver would, programs loaded. Thread-safe after loading.
#pragma once

#include <cuda.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/simgpu/exec/exec.h"

namespace simgpu {

struct Module;

// CUfunction and CUkernel are both pointers to this.
struct Function {
  const Kernel* kernel = nullptr;
  Module* module = nullptr;
  std::string name;
  uint32_t max_dynamic_shared = 48 << 10;
  int carveout = -1;
};

// CUmodule and CUlibrary are both pointers to this.
struct Module {
  std::vector<std::unique_ptr<Program>> programs;  // one per PTX text
  std::map<std::string, std::unique_ptr<Function>> functions;
  std::map<std::string, ProgramVariable> variables;
  uint32_t sm = 0;  // the architecture that the PTX was made for
};

class Modules {
 public:
  static Modules& Get();
  CUresult Load(const void* image, Module** out);
  CUresult LoadFile(const char* path, Module** out);
  CUresult Unload(void* module);
  Module* FindModule(void* handle);
  Function* FindFunction(void* handle);

 private:
  CUresult LoadTexts(const std::vector<std::string>& texts, Module** out);
  std::mutex mutex_;
  std::map<void*, std::unique_ptr<Module>> modules_;
  std::map<void*, Function*> functions_;
};

}  // namespace simgpu
