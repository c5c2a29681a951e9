// A device that keeps the driver's rules to the letter and remembers every breach: reservations,
// whole-chunk mappings on reserved, unmapped addresses, access only where all is mapped, unmaps of
// whole mappings, limited physical memory and address space. Calls can be made to fail.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "allocator/memory_device.h"

namespace tidepool::testing {

enum class Call { kCreate, kRelease, kReserve, kUnreserve, kMap, kSetAccess, kUnmap };

class FakeDevice final : public MemoryDevice {
 public:
  explicit FakeDevice(uint64_t granularity, uint64_t capacity = ~uint64_t{0})
      : granularity_(granularity),
        capacity_(capacity),
        next_low_((uint64_t{1} << 40) / granularity * granularity),
        next_high_((uint64_t{1} << 46) / granularity * granularity) {}

  uint64_t Granularity() const override { return granularity_; }
  absl::StatusOr<uint64_t> CreateChunk(uint64_t bytes) override;
  absl::Status ReleaseChunk(uint64_t handle) override;
  absl::StatusOr<uint64_t> Reserve(uint64_t bytes) override;
  absl::Status Unreserve(uint64_t address, uint64_t bytes) override;
  absl::Status Map(uint64_t address, uint64_t bytes, uint64_t handle) override;
  absl::Status SetAccess(uint64_t address, uint64_t bytes) override;
  absl::Status Unmap(uint64_t address, uint64_t bytes) override;

  struct Mapping {
    uint64_t bytes = 0;
    uint64_t handle = 0;
    bool access = false;
  };
  // What the address shows (the start of a mapping), or null.
  const Mapping* At(uint64_t address) const;
  uint64_t mapping_count() const { return mappings_.size(); }
  uint64_t reservation_count() const { return reservations_.size(); }
  uint64_t physical_bytes() const { return physical_; }
  uint64_t peak_physical_bytes() const { return peak_; }
  const std::vector<std::string>& violations() const { return violations_; }

  // The largest single reservation, and all together, in bytes.
  void LimitAddresses(uint64_t one, uint64_t all) {
    max_reservation_ = one;
    max_reserved_ = all;
  }
  void SetCapacity(uint64_t bytes) { capacity_ = bytes; }
  // The n-th call from now fails once (0: none will), whichever it is; it has no effect then.
  void FailCall(uint64_t n) { fail_in_ = n; }
  // The next `times` calls of this kind fail.
  void FailNext(Call call, int times) { fail_next_[call] = times; }
  uint64_t calls() const { return calls_; }

 private:
  struct Chunk {
    uint64_t bytes = 0;
    uint64_t mappings = 0;
    bool released = false;
  };
  absl::Status Enter(Call call);
  absl::Status Breach(const std::string& what);
  void Reclaim(uint64_t handle);
  bool Reserved(uint64_t address, uint64_t bytes) const;

  const uint64_t granularity_;
  uint64_t capacity_;
  uint64_t next_low_, next_high_;
  uint64_t physical_ = 0, peak_ = 0, reserved_ = 0;
  uint64_t max_reservation_ = ~uint64_t{0}, max_reserved_ = ~uint64_t{0};
  uint64_t next_handle_ = 1000;
  uint64_t calls_ = 0, fail_in_ = 0;
  std::map<Call, int> fail_next_;
  std::map<uint64_t, Chunk> chunks_;
  std::map<uint64_t, uint64_t> reservations_;
  std::map<uint64_t, Mapping> mappings_;
  std::vector<std::string> violations_;
};

}  // namespace tidepool::testing
