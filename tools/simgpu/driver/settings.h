// The SIMGPU_* variables. Read once; thread-safe afterwards.
#pragma once

#include <cstdint>
#include <string>

namespace simgpu {

struct Settings {
  uint64_t memory_bytes = uint64_t{16} << 30;  // SIMGPU_MEMORY
  uint64_t page_bytes = uint64_t{2} << 20;     // SIMGPU_PAGE: allocation granularity
  uint64_t seed = 0;                           // SIMGPU_SEED: adversarial order, 0 is off
  std::string stats_path;                      // SIMGPU_STATS
  std::string error;                           // what is wrong with them, if anything
};

const Settings& GetSettings();

// The virtual clock's device: the published figures of an H200, and what others measured of driver
// calls.
struct DeviceModel {
  double memory_bytes_per_ns = 4800;  // 4.8 TB/s
  double flops_per_ns = 67000;        // 67 TFLOP/s, fp32
  double lane_ops_per_ns = 33500;     // one instruction a lane and clock: 132 SMs x 128 x 1.98 GHz
  double link_bytes_per_ns = 55;      // PCIe 5 x16, each direction
  uint64_t launch_ns = 2500;          // device side, per kernel
  uint64_t copy_ns = 1500;            // device side, per copy
  uint64_t call_launch_ns = 2000;     // host side
  uint64_t call_small_ns = 500;       // event record, stream wait, queries
  uint64_t call_alloc_ns = 100000;    // cuMemAlloc, cuMemFree
  uint64_t call_create_ns = 193000;   // cuMemCreate
  uint64_t call_map_ns = 1500;
  uint64_t call_access_ns = 36000;  // cuMemSetAccess, per mapping
  uint64_t call_unmap_ns = 26000;   // per mapping
  uint64_t call_reserve_ns = 2000;
};
const DeviceModel& GetDeviceModel();

}  // namespace simgpu
