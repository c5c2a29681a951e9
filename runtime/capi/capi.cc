#include <algorithm>
#include <cstring>

#include "runtime/include/tidepool/tidepool.h"
#include "runtime/intercept/annotations.h"
#include "runtime/intercept/state.h"

#define TIDEPOOL_API extern "C" __attribute__((visibility("default")))

using tidepool::ActiveEngine;
using tidepool::Engine;

TIDEPOOL_API tidepool_result tidepool_start(const char* budget) {
  if (budget == nullptr || !tidepool::ParseBudget(budget).ok()) return TIDEPOOL_ERROR_INVALID_VALUE;
  return tidepool::StartWithBudget(budget) ? TIDEPOOL_OK : TIDEPOOL_ERROR_TOO_LATE;
}

TIDEPOOL_API void tidepool_stop(void) { tidepool::StopManaging(); }

TIDEPOOL_API tidepool_result tidepool_tag(const void* address, const char* tag) {
  if (tag == nullptr || *tag == '\0') return TIDEPOOL_ERROR_INVALID_VALUE;
  Engine* engine = ActiveEngine();
  if (engine == nullptr || !engine->Tag(reinterpret_cast<CUdeviceptr>(address), tag)) {
    return TIDEPOOL_ERROR_NOT_MANAGED;
  }
  return TIDEPOOL_OK;
}

TIDEPOOL_API tidepool_result tidepool_pin(const void* address) {
  Engine* engine = ActiveEngine();
  tidepool::BufferInfo info;
  if (engine == nullptr || !engine->Find(reinterpret_cast<CUdeviceptr>(address), &info)) {
    return TIDEPOOL_ERROR_NOT_MANAGED;
  }
  return engine->Pin(info.address, tidepool::PinReason::kUser) == CUDA_SUCCESS
             ? TIDEPOOL_OK
             : TIDEPOOL_ERROR_OUT_OF_MEMORY;
}

TIDEPOOL_API tidepool_result tidepool_annotate(const char* line, char* error, size_t error_bytes) {
  absl::StatusOr<tidepool::Annotation> annotation =
      tidepool::ParseAnnotation(line != nullptr ? line : "", "tidepool_annotate");
  const bool tell = error != nullptr && error_bytes > 0;
  if (tell) *error = '\0';
  if (!annotation.ok()) {
    if (tell) {
      const absl::string_view text = annotation.status().message();
      const size_t length = std::min(text.size(), error_bytes - 1);
      std::memcpy(error, text.data(), length);
      error[length] = '\0';
    }
    return TIDEPOOL_ERROR_INVALID_VALUE;
  }
  tidepool::Annotations::Get().Add(*std::move(annotation));
  return TIDEPOOL_OK;
}

TIDEPOOL_API tidepool_result tidepool_get_statistics(tidepool_statistics* out) {
  if (out == nullptr || out->size < sizeof(size_t)) return TIDEPOOL_ERROR_INVALID_VALUE;
  Engine* engine = ActiveEngine();
  if (engine == nullptr) return TIDEPOOL_ERROR_NOT_MANAGED;
  const tidepool::Statistics s = engine->GetStatistics();
  tidepool_statistics all = {};
  all.size = out->size;
  all.budget_bytes = s.budget_bytes;
  all.physical_bytes = s.physical_bytes;
  all.peak_physical_bytes = s.peak_physical_bytes;
  all.live_bytes = s.live_bytes;
  all.peak_live_bytes = s.peak_live_bytes;
  all.drops = s.drops;
  all.rebuilds = s.rebuilds;
  all.rebuilt_ops = s.rebuilt_ops;
  all.pinned_bytes = s.pinned_bytes;
  // A program built against an older header has a shorter structure.
  std::memcpy(out, &all, std::min(out->size, sizeof(all)));
  return TIDEPOOL_OK;
}

TIDEPOOL_API const char* tidepool_version(void) { return "0.1.0"; }
