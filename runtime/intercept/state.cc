#include "runtime/intercept/state.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "profiler/timeline.h"
#include "runtime/intercept/annotations.h"
#include "runtime/intercept/real.h"
#include "runtime/residency/capture_mode.h"
#include "runtime/residency/engine_impl.h"

namespace tidepool {
namespace {

struct State {
  std::mutex mutex;
  Environment environment = ReadEnvironment();
  std::atomic<Engine*> engine{nullptr};
  std::unique_ptr<Recorder> recorder;
  CUcontext context = nullptr;
  CUdevice device = 0;
  std::atomic<pid_t> owner{0};  // who initialised the driver
  bool refused = false;         // the engine could not be made: pass through, said once
  bool stopped = false;
  std::atomic<bool> reported{false};
};

// Never destroyed: the program may call the driver until its very end.
State& GetState() {
  static State* state = new State;
  return *state;
}

void AppendMap(std::string* out, const char* key, const std::map<std::string, uint64_t>& map) {
  absl::StrAppend(out, ",\n  \"", key, "\": {");
  bool first = true;
  for (const auto& [name, value] : map) {
    std::string escaped;
    for (const char c : name) {
      if (c == '"' || c == '\\') escaped += '\\';
      escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    absl::StrAppend(out, first ? "" : ", ", "\"", escaped, "\": ", value);
    first = false;
  }
  *out += "}";
}

void AppendList(std::string* out, const char* key, const std::vector<std::string>& list) {
  absl::StrAppend(out, ",\n  \"", key, "\": [");
  for (const std::string& item : list) {
    std::string escaped;
    for (const char c : item) {
      if (c == '"' || c == '\\') escaped += '\\';
      const auto byte = static_cast<unsigned char>(c);
      escaped += byte < 0x20 || byte > 0x7e ? '?' : c;
    }
    absl::StrAppend(out, &item == list.data() ? "" : ", ", "\"", escaped, "\"");
  }
  *out += "]";
}

std::string ReportText(const Statistics& s) {
  std::string out = "{";
  bool first = true;
  auto add = [&](const char* key, uint64_t value) {
    absl::StrAppend(&out, first ? "\n" : ",\n", "  \"", key, "\": ", value);
    first = false;
  };
  add("budget_bytes", s.budget_bytes);
  add("chunk_bytes", s.chunk_bytes);
  add("peak_physical_bytes", s.peak_physical_bytes);
  add("physical_bytes", s.physical_bytes);
  add("peak_live_bytes", s.peak_live_bytes);
  add("live_bytes", s.live_bytes);
  add("resident_bytes", s.resident_bytes);
  add("ops", s.ops);
  add("allocations", s.allocations);
  add("frees", s.frees);
  add("drops", s.drops);
  add("dropped_bytes", s.dropped_bytes);
  add("swaps_out", s.swaps_out);
  add("swaps_in", s.swaps_in);
  add("host_budget_bytes", s.host_budget_bytes);
  add("peak_host_bytes", s.peak_host_bytes);
  add("rebuilds", s.rebuilds);
  add("rebuilt_ops", s.rebuilt_ops);
  add("rebuild_time_ns", s.rebuild_time_ns);
  add("stall_time_ns", s.stall_time_ns);
  add("rescues", s.rescues);
  add("pinned_bytes", s.pinned_bytes);
  add("hot_driver_calls", s.hot_driver_calls);
  add("out_of_memory", s.out_of_memory);
  add("lineage_ops", s.lineage_ops);
  add("lineage_bytes", s.lineage_bytes);
  AppendMap(&out, "peak_bytes_by_tag", s.peak_bytes_by_tag);
  AppendMap(&out, "pinned_bytes_by_reason", s.pinned_bytes_by_reason);
  AppendMap(&out, "not_replayable_by_reason", s.not_replayable_by_reason);
  const Annotations& annotations = Annotations::Get();
  AppendList(&out, "annotated_kernels", annotations.Used());
  AppendList(&out, "unused_annotations", annotations.Unused());
  AppendList(&out, "refused_annotations", annotations.Refused());
  out += "\n}\n";
  return out;
}

// Bytes that the host can give without swapping itself; 0 if it does not say.
uint64_t AvailableHostMemory() {
  std::FILE* file = std::fopen("/proc/meminfo", "re");
  if (file == nullptr) return 0;
  char line[256];
  unsigned long long kib = 0;
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::sscanf(line, "MemAvailable: %llu kB", &kib) == 1) break;
  }
  std::fclose(file);
  return kib * 1024;
}

DriverApi LoadDriverApi() {
  DriverApi api;
#define TIDEPOOL_LOAD(member, symbol, signature) api.member = Real<decltype(api.member)>(#symbol);
  TIDEPOOL_DRIVER_FUNCTIONS(TIDEPOOL_LOAD)
#undef TIDEPOOL_LOAD
  return api;
}

}  // namespace

const Environment& GetEnvironment() { return GetState().environment; }

const DriverApi& GetDriverApi() {
  static const DriverApi* api = new DriverApi(LoadDriverApi());
  return *api;
}

void Debug(std::string_view text) {
  if (GetEnvironment().debug) Complain(text);
}

bool OnFirstCall() {
  static const bool fine = [] {
    State& state = GetState();
    if (const char* text = std::getenv("TIDEPOOL_SEEN_FD")) {
      // `tidepool run` wants to know whether the program uses the driver at all.
      char* end = nullptr;
      const long fd = std::strtol(text, &end, 10);
      if (end != text && *end == '\0') {
        [[maybe_unused]] ssize_t written = write(static_cast<int>(fd), "x", 1);
      }
    }
    if (!state.environment.error.empty()) {
      Complain(state.environment.error);
      return false;
    }
    std::atexit(WriteReport);
    state.owner = getpid();
    return true;
  }();
  return fine;
}

Engine* ActiveEngine() {
  State& state = GetState();
  Engine* engine = state.engine.load(std::memory_order_acquire);
  // A forked child has no device: it only passes through.
  return engine != nullptr && state.owner.load(std::memory_order_relaxed) == getpid() ? engine
                                                                                      : nullptr;
}

Engine* EngineForAllocation() {
  State& state = GetState();
  // In a forked child the lock may be held by a thread that is not there.
  if (const pid_t owner = state.owner.load(); owner != 0 && owner != getpid()) return nullptr;
  const DriverApi& api = GetDriverApi();
  CUcontext context = nullptr;
  if (api.CtxGetCurrent == nullptr || api.CtxGetCurrent(&context) != CUDA_SUCCESS ||
      context == nullptr) {
    return nullptr;
  }
  std::lock_guard<std::mutex> lock(state.mutex);
  if (state.stopped || state.refused || !state.environment.error.empty() ||
      !state.environment.budget.has_value()) {
    return nullptr;
  }
  if (Engine* engine = state.engine.load()) {
    // One context is managed; memory of others is the driver's.
    return state.context == context && state.owner.load() == getpid() ? engine : nullptr;
  }
  CUdevice device = 0;
  size_t total = 0;
  if (api.CtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  if (api.DeviceTotalMem(&total, device) != CUDA_SUCCESS) return nullptr;
  EngineOptions options;
  options.budget_bytes = state.environment.budget->Of(total);
  options.high_watermark = state.environment.high_watermark;
  options.low_watermark = state.environment.low_watermark;
  options.strict = state.environment.strict;
  options.policy = state.environment.policy;
  options.host_budget_bytes = state.environment.host_budget.value_or(AvailableHostMemory() / 2);
  if (!state.environment.timeline.empty()) {
    std::string error;
    state.recorder = MakeTimelineRecorder(state.environment.timeline, &error);
    if (state.recorder == nullptr) Complain(absl::StrCat("TIDEPOOL_TIMELINE: ", error));
  }
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Create(api, device, options, state.recorder.get());
  if (!engine.ok()) {
    state.refused = true;
    Complain(absl::StrCat("not managing memory: ", engine.status().message()));
    return nullptr;
  }
  state.context = context;
  state.device = device;
  state.owner = getpid();
  state.engine = engine->release();  // kept until the process ends, whoever still calls
  Debug(absl::StrCat("managing memory with a budget of ", FormatBytes(options.budget_bytes)));
  return state.engine.load();
}

CUcontext ManagedContext() {
  State& state = GetState();
  std::lock_guard<std::mutex> lock(state.mutex);
  return state.context;
}

CUdevice ManagedDevice() {
  State& state = GetState();
  std::lock_guard<std::mutex> lock(state.mutex);
  return state.device;
}

bool Capturing(CUstream stream, bool per_thread) {
  if (!captures_seen.load(std::memory_order_relaxed)) return false;
  if (stream == CU_STREAM_LEGACY || (stream == nullptr && !per_thread)) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const DriverApi& api = GetDriverApi();
  return api.StreamIsCapturing != nullptr &&
         api.StreamIsCapturing(stream == nullptr ? CU_STREAM_PER_THREAD : stream, &status) ==
             CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void OnContextGone(CUcontext context) {
  State& state = GetState();
  std::lock_guard<std::mutex> lock(state.mutex);
  Engine* engine = state.engine.load();
  if (engine == nullptr || (context != nullptr && context != state.context)) return;
  if (state.owner.load() == getpid()) engine->Reset();
  state.context = nullptr;
  CUcontext current = nullptr;
  if (GetDriverApi().CtxGetCurrent(&current) == CUDA_SUCCESS) state.context = current;
}

void WriteReport() {
  State& state = GetState();
  Engine* engine = ActiveEngine();
  if (engine == nullptr || state.reported.exchange(true)) return;
  if (state.recorder != nullptr) state.recorder->Finish();
  const std::string& path = state.environment.report;
  if (path.empty()) return;
  const std::string text = ReportText(engine->GetStatistics());
  const std::string temporary = absl::StrCat(path, ".tmp.", getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "w");
  bool ok = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) ok = std::fclose(file) == 0 && ok;
  if (!ok || std::rename(temporary.c_str(), path.c_str()) != 0) {
    Complain(absl::StrCat("TIDEPOOL_REPORT: cannot write ", path));
    std::remove(temporary.c_str());
  }
}

bool StartWithBudget(const char* budget) {
  State& state = GetState();
  std::lock_guard<std::mutex> lock(state.mutex);
  absl::StatusOr<Budget> parsed = ParseBudget(budget);
  if (!parsed.ok() || state.engine.load() != nullptr) return false;
  state.environment.budget = *parsed;
  state.stopped = false;
  return true;
}

void StopManaging() {
  State& state = GetState();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.stopped = true;
}

}  // namespace tidepool
