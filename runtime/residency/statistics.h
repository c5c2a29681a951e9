// What the report says, as plain numbers. Bytes and nanoseconds throughout.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tidepool {

struct Statistics {
  uint64_t budget_bytes = 0;
  uint64_t chunk_bytes = 0;
  uint64_t physical_bytes = 0;  // held now
  uint64_t peak_physical_bytes = 0;
  uint64_t live_bytes = 0;  // buffers of the program, evicted or not
  uint64_t peak_live_bytes = 0;
  uint64_t resident_bytes = 0;  // bound to values now
  uint64_t ops = 0;             // of the program
  uint64_t allocations = 0;
  uint64_t frees = 0;
  uint64_t drops = 0;  // evictions of values that the program may still read
  uint64_t dropped_bytes = 0;
  uint64_t swaps_out = 0;  // copies to the host
  uint64_t swaps_in = 0;
  uint64_t host_budget_bytes = 0;
  uint64_t peak_host_bytes = 0;  // pinned host memory held for swapping
  uint64_t rebuilds = 0;         // values made resident again
  uint64_t rebuilt_ops = 0;      // ops replayed for that
  uint64_t rebuild_time_ns = 0;  // their measured (or estimated) device time
  uint64_t stall_time_ns = 0;    // host time spent waiting for the device before an unmap
  uint64_t rescues = 0;
  uint64_t pinned_bytes = 0;
  uint64_t hot_driver_calls =
      0;  // create, map, unmap, set-access, reserve calls made while an op waited
  uint64_t out_of_memory = 0;  // ops and allocations refused
  uint64_t lineage_ops = 0;    // recorded now
  uint64_t lineage_bytes = 0;  // host memory of lineage, about
  std::map<std::string, uint64_t> pinned_bytes_by_reason;
  std::map<std::string, uint64_t> peak_bytes_by_tag;         // live bytes at the peak of live bytes
  std::map<std::string, uint64_t> not_replayable_by_reason;  // ops
};

}  // namespace tidepool
