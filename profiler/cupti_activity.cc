#include "profiler/cupti_activity.h"

#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "absl/strings/str_cat.h"

namespace tidepool {
namespace {

// CUPTI advises 1 to 10 MiB a buffer; its alignment is 8.
constexpr size_t kBufferBytes = size_t{4} << 20;
constexpr size_t kMaxActivities = size_t{1} << 20;

struct Functions {
  decltype(&cuptiGetVersion) get_version = nullptr;
  decltype(&cuptiGetTimestamp) get_timestamp = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
};

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

std::string Demangle(const char* name) {
  if (name == nullptr) return "?";
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string out = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return out;
}

class CuptiActivityImpl final : public CuptiActivity {
 public:
  bool Init(const std::function<uint64_t()>& now, std::string* reason);
  std::vector<DeviceActivity> Stop() override;

 private:
  static void CUPTIAPI Requested(uint8_t** buffer, size_t* bytes, size_t* max_records);
  static void CUPTIAPI Completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t bytes,
                                 size_t valid);
  void Parse(uint8_t* buffer, size_t valid);
  uint64_t Time(uint64_t cupti_ns) const {
    return cupti_ns > base_cupti_ ? base_now_ + (cupti_ns - base_cupti_) : base_now_;
  }

  Functions cupti_;
  uint64_t base_cupti_ = 0, base_now_ = 0;
  std::mutex mutex_;
  std::vector<DeviceActivity> activities_;
};

// CUPTI's callbacks take no context. Buffers may complete after Stop, on CUPTI's own thread.
std::mutex live_mutex;
CuptiActivityImpl* live = nullptr;

bool CuptiActivityImpl::Init(const std::function<uint64_t()>& now, std::string* reason) {
  void* library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *reason = "no device activity: libcupti.so.13 was not found";
    return false;
  }
  auto load = [&](auto* function, const char* name) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    if (*function == nullptr) *reason = absl::StrCat("no device activity: CUPTI lacks ", name);
    return *function != nullptr;
  };
  if (!load(&cupti_.get_version, "cuptiGetVersion") ||
      !load(&cupti_.get_timestamp, "cuptiGetTimestamp") ||
      !load(&cupti_.register_callbacks, "cuptiActivityRegisterCallbacks") ||
      !load(&cupti_.enable, "cuptiActivityEnable") ||
      !load(&cupti_.disable, "cuptiActivityDisable") ||
      !load(&cupti_.flush_all, "cuptiActivityFlushAll") ||
      !load(&cupti_.next_record, "cuptiActivityGetNextRecord")) {
    return false;
  }
  // The layout of the records goes with the version.
  uint32_t version = 0;
  if (cupti_.get_version(&version) != CUPTI_SUCCESS || version != CUPTI_API_VERSION) {
    *reason = absl::StrCat("no device activity: CUPTI's version is ", version, ", not ",
                           CUPTI_API_VERSION);
    return false;
  }
  {
    std::lock_guard<std::mutex> lock(live_mutex);
    live = this;
  }
  CUptiResult result = cupti_.register_callbacks(Requested, Completed);
  if (result == CUPTI_SUCCESS) result = cupti_.get_timestamp(&base_cupti_);
  base_now_ = now();
  for (CUpti_ActivityKind kind : kKinds) {
    if (result == CUPTI_SUCCESS) result = cupti_.enable(kind);
  }
  if (result != CUPTI_SUCCESS) {
    std::lock_guard<std::mutex> lock(live_mutex);
    live = nullptr;
    *reason = absl::StrCat("no device activity: CUPTI refused, error ", static_cast<int>(result));
    return false;
  }
  return true;
}

std::vector<DeviceActivity> CuptiActivityImpl::Stop() {
  // No lock of ours is held over the flush: CUPTI calls back from other threads meanwhile.
  cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  for (CUpti_ActivityKind kind : kKinds) cupti_.disable(kind);
  {
    std::lock_guard<std::mutex> lock(live_mutex);
    live = nullptr;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  return std::move(activities_);
}

void CUPTIAPI CuptiActivityImpl::Requested(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *bytes = *buffer != nullptr ? kBufferBytes : 0;
  *max_records = 0;
}

void CUPTIAPI CuptiActivityImpl::Completed(CUcontext, uint32_t, uint8_t* buffer, size_t,
                                           size_t valid) {
  {
    std::lock_guard<std::mutex> lock(live_mutex);
    if (live != nullptr) live->Parse(buffer, valid);
  }
  std::free(buffer);
}

void CuptiActivityImpl::Parse(uint8_t* buffer, size_t valid) {
  std::lock_guard<std::mutex> lock(mutex_);
  CUpti_Activity* record = nullptr;
  while (cupti_.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (activities_.size() >= kMaxActivities) return;
    DeviceActivity activity;
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      activity.kind = DeviceActivity::Kind::kKernel;
      activity.start_ns = Time(kernel->start);
      activity.end_ns = Time(kernel->end);
      activity.stream = kernel->streamId;
      activity.device = kernel->deviceId;
      activity.correlation = kernel->correlationId;
      activity.name = Demangle(kernel->name);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      activity.kind = DeviceActivity::Kind::kMemcpy;
      activity.start_ns = Time(copy->start);
      activity.end_ns = Time(copy->end);
      activity.stream = copy->streamId;
      activity.device = copy->deviceId;
      activity.correlation = copy->correlationId;
      activity.bytes = copy->bytes;
      switch (copy->copyKind) {
        case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
          activity.name = "Memcpy HtoD";
          break;
        case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
          activity.name = "Memcpy DtoH";
          break;
        case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
          activity.name = "Memcpy DtoD";
          break;
        default:
          activity.name = "Memcpy";
      }
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
      const auto* fill = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
      activity.kind = DeviceActivity::Kind::kMemset;
      activity.start_ns = Time(fill->start);
      activity.end_ns = Time(fill->end);
      activity.stream = fill->streamId;
      activity.device = fill->deviceId;
      activity.correlation = fill->correlationId;
      activity.bytes = fill->bytes;
      activity.name = "Memset";
    } else {
      continue;
    }
    activities_.push_back(std::move(activity));
  }
}

}  // namespace

std::unique_ptr<CuptiActivity> CuptiActivity::Start(const std::function<uint64_t()>& now,
                                                    std::string* reason) {
  auto activity = std::make_unique<CuptiActivityImpl>();
  if (!activity->Init(now, reason)) return nullptr;
  return activity;
}

}  // namespace tidepool
