#include <cstring>

#include "runtime/intercept/launch.h"

namespace tidepool {

bool PackParameters(const KernelRecord& record, void** params, void** extra,
                    std::vector<uint8_t>* block) {
  if (!record.has_layout || (params != nullptr && extra != nullptr)) return false;
  block->assign(record.param_bytes, 0);
  if (record.params.empty()) return true;
  if (extra != nullptr) {
    const void* buffer = nullptr;
    size_t bytes = 0;
    for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
      if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
        buffer = extra[i + 1];
      } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1] != nullptr) {
        bytes = *static_cast<const size_t*>(extra[i + 1]);
      } else {
        return false;
      }
    }
    if (buffer == nullptr || bytes < record.param_bytes) return false;
    std::memcpy(block->data(), buffer, record.param_bytes);
    return true;
  }
  if (params == nullptr) return false;
  for (size_t i = 0; i < record.params.size(); ++i) {
    if (params[i] == nullptr) return false;
    std::memcpy(block->data() + record.params[i].offset, params[i], record.params[i].bytes);
  }
  return true;
}

}  // namespace tidepool
