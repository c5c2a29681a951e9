#include "tests/simgpu/exec/harness.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <fstream>
#include <sstream>

#include "ptx/parser.h"

#if defined(__SANITIZE_THREAD__)
// Simulated kernels may race with each other, as real ones do; their loads and stores become calls
// of memcpy, which ThreadSanitizer sees although the file is not instrumented.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:memory_handlers.cc\n";
}
#endif

namespace simgpu::test {

Device::Device(int workers) : workers_(workers) {
  void* range =
      mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_NE(range, MAP_FAILED);
  EXPECT_EQ(mprotect(range, kMapped, PROT_READ | PROT_WRITE), 0);
  base_ = reinterpret_cast<uint64_t>(range);
  map_.window_base = base_;
  map_.window_size = kReserved;
}

Device::~Device() { munmap(reinterpret_cast<void*>(base_), kReserved); }

uint64_t Device::Alloc(uint64_t bytes) {
  const uint64_t address = base_ + top_;
  top_ += (bytes + 255) / 256 * 256;
  EXPECT_LE(top_, kMapped);
  std::memset(reinterpret_cast<void*>(address), 0xa5, bytes);
  return address;
}

std::unique_ptr<Program> Device::Load(std::string_view ptx) {
  absl::StatusOr<tidepool::ptx::Module> module = tidepool::ptx::Parse(ptx);
  if (!module.ok()) {
    ADD_FAILURE() << module.status();
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<Program>> program =
      Program::Load(*std::move(module), [this](const tidepool::ptx::Variable& variable) {
        return absl::StatusOr<uint64_t>(Alloc(variable.size));
      });
  if (!program.ok()) {
    ADD_FAILURE() << program.status();
    return nullptr;
  }
  return *std::move(program);
}

LaunchResult Launch(Device& device, const Program& program, std::string_view name,
                    const Shape& shape, const Arguments& arguments, std::string* printed) {
  const Kernel* kernel = program.FindKernel(name);
  if (kernel == nullptr) {
    ADD_FAILURE() << "no kernel " << name;
    return {};
  }
  LaunchConfig config;
  config.grid = shape.grid;
  config.block = shape.block;
  config.dynamic_shared_bytes = shape.shared;
  config.cooperative = shape.cooperative;
  config.params = arguments.bytes();
  if (printed != nullptr) config.print = [printed](std::string_view text) { *printed += text; };
  return Execute(*kernel, config, device.map(), device.workers());
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace simgpu::test
