// Fat binaries inside an executable or shared library. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "ptx/fatbin.h"

namespace tidepool {

// Every entry of every fat binary in the sections .nv_fatbin and __nv_relfatbin of the ELF file
// `bytes` (64-bit, little-endian). `bytes` must outlive the entries. Errors: InvalidArgument if it
// is no such file or damaged.
absl::StatusOr<std::vector<ptx::FatbinEntry>> ReadElfFatbins(std::span<const uint8_t> bytes);

}  // namespace tidepool
