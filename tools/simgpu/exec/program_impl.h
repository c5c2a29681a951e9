// What a loaded program holds. Internal to exec/.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/simgpu/exec/code.h"

namespace simgpu {

class Program::Impl {
 public:
  std::vector<std::unique_ptr<Code>> codes;
  std::unordered_map<uint64_t, const Code*> by_token;
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
  std::vector<ProgramVariable> variables;
};

}  // namespace simgpu
