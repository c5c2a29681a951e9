// Executes PTX kernels on the CPU: 32 lanes of a warp at a time, blocks spread over worker threads.
// Results do not depend on the number of workers. A Program is immutable once loaded and may be
// launched from several threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ptx/ast.h"

namespace simgpu {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

// The device memory that kernels may touch. Device addresses are host addresses. An access that
// lies in [window_base, window_base + window_size) is made directly; if its page is not accessible,
// the access traps and the launch fails. For anything else `other` is asked (registered host
// memory); false fails the launch too. Generic addresses of shared and local memory are the
// executor's own windows.
struct MemoryMap {
  uint64_t window_base = 0;
  uint64_t window_size = 0;
  std::function<bool(uint64_t address, uint64_t bytes, bool write)> other;
};

// Gives a module variable its device address (bytes of the wanted size and alignment, already
// mapped).
using VariableAllocator =
    std::function<absl::StatusOr<uint64_t>(const tidepool::ptx::Variable& variable)>;

struct KernelInfo {
  std::string name;
  std::vector<tidepool::ptx::Param> params;  // offsets in the parameter block
  uint64_t param_bytes = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t local_bytes = 0;     // per thread
  uint32_t registers = 0;       // per thread, an estimate
  uint32_t max_threads = 1024;  // from .maxntid, or 1024
  bool uses_grid_sync = false;
};

struct ProgramVariable {
  std::string name;
  uint64_t address = 0;
  uint64_t bytes = 0;
  bool constant = false;
};

// Counts of one launch, the same on every machine: input of the virtual clock.
struct ExecStats {
  uint64_t warp_instructions = 0;
  uint64_t lane_instructions = 0;
  uint64_t flops = 0;              // float operations; an fma counts 2
  uint64_t global_read_bytes = 0;  // by lanes, before caching
  uint64_t global_written_bytes = 0;
  uint64_t atomics = 0;
};

enum class Fault : uint8_t {
  kNone,
  kIllegalAddress,     // CUDA_ERROR_ILLEGAL_ADDRESS
  kMisalignedAddress,  // CUDA_ERROR_MISALIGNED_ADDRESS
  kAssert,             // CUDA_ERROR_ASSERT
  kTrap,               // CUDA_ERROR_LAUNCH_FAILED / ILLEGAL_INSTRUCTION
  kInvalidLaunch,      // too much shared memory and the like, found late
  kTimeout,            // every warp waits for one that never comes
};

struct LaunchResult {
  Fault fault = Fault::kNone;
  std::string message;  // kernel, block, thread, address and PTX line of the fault
  ExecStats stats;
};

struct LaunchConfig {
  Dim3 grid;
  Dim3 block;
  uint32_t dynamic_shared_bytes = 0;
  std::span<const uint8_t> params;  // the parameter block, device layout
  bool cooperative = false;
  uint64_t grid_id = 0;
  uint64_t clock_base_ns = 0;  // %globaltimer, %clock64 start here (virtual time)
  // Text that printf writes, in block order; may be null.
  std::function<void(std::string_view)> print;
};

class Kernel;

class Program {
 public:
  // Compiles every function of `module` (a copy is kept). Errors: Unimplemented, naming the opcode
  // in full and its line, for anything that cannot be executed exactly; InvalidArgument for
  // malformed code.
  static absl::StatusOr<std::unique_ptr<Program>> Load(tidepool::ptx::Module module,
                                                       const VariableAllocator& allocate);
  ~Program();

  const Kernel* FindKernel(std::string_view name) const;  // null if there is none
  std::vector<std::string> KernelNames() const;
  const std::vector<ProgramVariable>& variables() const;

  class Impl;

 private:
  explicit Program(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

const KernelInfo& Info(const Kernel& kernel);

// A pool of threads that run blocks. One per process; launches share it.
class Workers {
 public:
  explicit Workers(int threads);  // 0: one per core
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  int size() const;
  class Impl;
  Impl* impl() const { return impl_.get(); }

 private:
  std::unique_ptr<Impl> impl_;
};

// Runs the whole grid and returns when the last block is done. Blocking; thread-safe. Kernels with
// order-dependent atomics (floating point, exchange, compare-and-swap, or any whose result is used)
// run their blocks in block order, so that results repeat.
LaunchResult Execute(const Kernel& kernel, const LaunchConfig& config, const MemoryMap& memory,
                     Workers& workers);

// Copies and fills device memory with the same protection against unmapped pages as kernels have.
// False: an address was not accessible (a prefix may have been written).
bool SafeCopy(void* to, const void* from, uint64_t bytes);
bool SafeFill(void* to, uint64_t pattern, uint32_t pattern_bytes, uint64_t count);

}  // namespace simgpu
