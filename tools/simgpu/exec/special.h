// Special registers. FindSpecial is what the compiler asks; the handler reads them.
#pragma once

#include <cstdint>
#include <string>

namespace simgpu {

enum class Special : uint16_t {
  kTidX,
  kTidY,
  kTidZ,
  kLaneId,
  kLanemaskEq,
  kLanemaskLt,
  kLanemaskLe,
  kLanemaskGt,
  kLanemaskGe,
  // From here on the same for all lanes.
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kWarpId,
  kNwarpId,
  kSmId,
  kNsmId,
  kGridId,
  kClock,
  kClockHi,
  kGlobalTimer,
  kGlobalTimerHi,
  kDynamicSharedBytes,
  kTotalSharedBytes,
  kEnvregGridLow,   // %envreg2
  kEnvregGridHigh,  // %envreg1
  kZero,
  kOne,
  kNone,
};

Special FindSpecial(const std::string& name);  // kNone if it is not known

}  // namespace simgpu
