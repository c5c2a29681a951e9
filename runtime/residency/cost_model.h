// What an op costs in device time: measured by events around the first few ops of each key (kernel
// and shape) and one in many later, estimated from bytes until then. Not thread-safe (the engine's
// lock).
#pragma once

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/driver/driver_api.h"

namespace tidepool {

class CostModel {
 public:
  explicit CostModel(const DriverApi* api) : api_(api) {}
  ~CostModel();
  CostModel(const CostModel&) = delete;
  CostModel& operator=(const CostModel&) = delete;

  // Nanoseconds. `bytes`: of the operands, for the estimate.
  uint64_t Cost(uint64_t key, uint64_t bytes);
  // The same of a copy between host and device.
  uint64_t TransferCost(uint64_t key, uint64_t bytes);

  // Around the driver call of an op, on its stream. Begin says whether this op is measured.
  bool Begin(uint64_t key, CUstream stream);
  void End(CUstream stream);
  void Cancel();  // instead of End, if the op was not issued
  // Reads the measurements that are complete; never waits.
  void Poll();
  void Abandon();  // the context is gone with its events

 private:
  struct Entry {
    uint64_t seen = 0;
    uint64_t measured = 0;
    double mean_ns = 0;
  };
  struct Pending {
    uint64_t key = 0;
    CUevent begin = nullptr;
    CUevent end = nullptr;
  };
  CUevent TakeEvent();
  uint64_t MeasuredOr(uint64_t key, double estimate_ns) const;

  const DriverApi* api_;
  absl::flat_hash_map<uint64_t, Entry> entries_;
  std::deque<Pending> pending_;
  Pending open_;
  std::vector<CUevent> spare_;
};

}  // namespace tidepool
