// A device for tests of the executor: an arena of memory in a reserved range of addresses, and
// launches with typed arguments.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/simgpu/exec/exec.h"

namespace simgpu::test {

class Device {
 public:
  explicit Device(int workers = 1);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // 256-byte aligned, filled with 0xa5. Never freed.
  uint64_t Alloc(uint64_t bytes);
  template <typename T>
  uint64_t Upload(const std::vector<T>& values) {
    const uint64_t address = Alloc(values.size() * sizeof(T));
    std::memcpy(reinterpret_cast<void*>(address), values.data(), values.size() * sizeof(T));
    return address;
  }
  template <typename T>
  std::vector<T> Download(uint64_t address, size_t count) const {
    std::vector<T> values(count);
    std::memcpy(values.data(), reinterpret_cast<const void*>(address), count * sizeof(T));
    return values;
  }
  // An address inside the window whose page nobody may touch.
  uint64_t unmapped() const { return base_ + kMapped + 4096; }

  // Loads PTX; a failure is a test failure and gives null.
  std::unique_ptr<Program> Load(std::string_view ptx);

  const MemoryMap& map() const { return map_; }
  MemoryMap& map() { return map_; }
  Workers& workers() { return workers_; }

 private:
  static constexpr uint64_t kMapped = uint64_t{256} << 20;
  static constexpr uint64_t kReserved = kMapped + (uint64_t{1} << 20);
  uint64_t base_ = 0;
  uint64_t top_ = 0;
  MemoryMap map_;
  Workers workers_;
};

// A kernel's parameter block, each argument at its natural alignment.
class Arguments {
 public:
  template <typename... T>
  explicit Arguments(const T&... values) {
    (Add(values), ...);
  }
  template <typename T>
  void Add(const T& value) {
    const size_t at = (bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

struct Shape {
  Dim3 grid;
  Dim3 block;
  uint32_t shared = 0;
  bool cooperative = false;
};

// Launches; `printed` (if not null) gets what printf wrote.
LaunchResult Launch(Device& device, const Program& program, std::string_view kernel,
                    const Shape& shape, const Arguments& arguments, std::string* printed = nullptr);

// The text of a file that the build made.
std::string ReadFile(const std::string& path);

}  // namespace simgpu::test
