// What the hooks tell the engine about one device operation of the program.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/access/kernel_access.h"
#include "runtime/lineage/replay.h"

namespace tidepool {

// A stream as the program named it. `per_thread`: the call was a _ptsz/_ptds form, for which handle
// 0 means the calling thread's default stream instead of the legacy one.
struct StreamRef {
  CUstream handle = nullptr;
  bool per_thread = false;
};

// One use of device memory by an op.
struct Region {
  CUdeviceptr address = 0;
  uint64_t bytes = 0;  // 0: anywhere in the buffer that contains `address`
  AccessMode mode = AccessMode::kNone;
  // Every byte of [address, address + bytes) is written, whatever it held before, and `mode` is
  // kWrite.
  bool covers = false;
};

enum class OpKind : uint8_t { kLaunch, kCopy, kMemset, kUpload, kDownload, kOther };

struct OpRequest {
  OpKind kind = OpKind::kOther;
  std::string_view name;  // for messages and timelines: the kernel's name, "cuMemcpyDtoDAsync"
  StreamRef stream;
  std::vector<Region> regions;  // those that lie in Tidepool's buffers; others are left out
  std::shared_ptr<const Replay> replay;  // null: not replayable; what it writes becomes a root
  uint64_t cost_key =
      0;  // ops with the same key are expected to take the same time (kernel and shape)
  bool blocking = false;  // the program's call may wait for the device
  // Engine::watched_variables() before it was decided which variables the op uses.
  uint64_t watched_variables = 0;
  // Why `replay` is null, for the report: a string with static lifetime or one owned by a registry.
  std::string_view no_replay_reason;
};

// Why a buffer is pinned. Order is the report's; names in PinReasonName.
enum class PinReason : uint8_t {
  kOpaqueKernel,     // handed to a kernel whose code could not be followed
  kEscapes,          // a kernel stored its address to memory
  kPointerInMemory,  // its address was uploaded from the host
  kGraph,            // used in a captured or explicitly built graph
  kShared,           // exported, IPC, peer-mapped, registered with another library
  kTexture,          // bound to a texture or surface object
  kUnknownCall,      // named in a driver call that Tidepool does not follow
  kUser,             // tidepool_pin
  kCount,
};
std::string_view PinReasonName(PinReason reason);

}  // namespace tidepool
