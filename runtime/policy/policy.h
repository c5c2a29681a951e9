// Eviction policies: which resident value to drop. Pure code: no device, no clock of its own; the
// same library serves the runtime, the simulator and the benchmarks. Not thread-safe.
//
// Times are any monotonic logical clock in nanoseconds (the runtime uses accumulated op cost);
// costs are nanoseconds, sizes bytes. Source: Kirisame et al., Dynamic Tensor Rematerialization,
// ICLR 2021, section 4 and appendix C (h_DTR^eq); see docs/policy.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tidepool::policy {

using ValueId = uint64_t;  // chosen by the caller, unique over the policy's life

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;

  // A value that can be dropped exists from Add to Remove. `cost_ns`: of the op that makes it.
  // `neighbors` (values that its op reads, and outputs of ops that read it) may be added later.
  virtual void Add(ValueId value, uint64_t bytes, uint64_t cost_ns, uint64_t now_ns) = 0;
  virtual void Remove(ValueId value) = 0;
  // `from` is read by the op that makes `to`. Either may be unknown (a root): then nothing happens.
  virtual void Link(ValueId from, ValueId to) = 0;

  // A better measurement of the cost.
  virtual void SetCost(ValueId value, uint64_t cost_ns) = 0;
  virtual void OnAccess(ValueId value, uint64_t now_ns) = 0;
  // Added values are resident. Dropped ones are no candidates until rebuilt.
  virtual void OnDrop(ValueId value) = 0;
  virtual void OnRebuild(ValueId value, uint64_t now_ns) = 0;

  // Locked values are not selected; locks nest.
  virtual void Lock(ValueId value) = 0;
  virtual void Unlock(ValueId value) = 0;

  // The value that is cheapest to give up now, or nothing if no candidate is resident and unlocked.
  // `bytes_wanted` is what the caller still lacks: a hint.
  virtual std::optional<ValueId> SelectVictim(uint64_t now_ns, uint64_t bytes_wanted) = 0;

  // Whether to give up `value`, a candidate, rather than `victim` (what SelectVictim chose), if
  // that spares `spared_ns` of other work. Policies that know no costs never say so.
  virtual bool Prefers(ValueId value, ValueId victim, uint64_t spared_ns, uint64_t now_ns) = 0;

  virtual uint64_t candidates() const = 0;  // resident and unlocked
};

// "dtr-eq", "dtr-local", "lru", "size", "msps", "random". Errors: InvalidArgument, with the
// accepted names.
absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, uint64_t seed = 1);
std::vector<std::string_view> PolicyNames();

}  // namespace tidepool::policy
