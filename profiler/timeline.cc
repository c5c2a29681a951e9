#include "profiler/timeline.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "profiler/cupti_activity.h"

namespace tidepool {
namespace {

// About 100 MB of host memory at most; a trace of more is no use in a browser anyway.
constexpr size_t kMaxEvents = 1u << 20;
constexpr size_t kMaxSamples = 1u << 19;

class TimelineRecorder final : public Recorder {
 public:
  explicit TimelineRecorder(std::string path)
      : path_(std::move(path)), start_(std::chrono::steady_clock::now()) {
    activity_ = CuptiActivity::Start([this] { return Now(); }, &timeline_.note);
  }
  ~TimelineRecorder() override { TimelineRecorder::Finish(); }

  uint64_t Now() override {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now() - start_)
                                     .count());
  }

  void Record(const Event& event) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (timeline_.events.size() >= kMaxEvents) {
      ++timeline_.dropped_events;
      return;
    }
    auto [it, inserted] =
        names_.try_emplace(std::string(event.name), static_cast<uint32_t>(timeline_.names.size()));
    if (inserted) timeline_.names.emplace_back(event.name);
    timeline_.events.push_back({event.kind, event.start_ns, event.duration_ns, it->second,
                                static_cast<uint32_t>(event.stream), event.bytes, event.buffer});
  }

  void Memory(uint64_t physical, uint64_t resident, uint64_t live, uint64_t pinned) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!timeline_.memory.empty()) {
      const MemorySample& last = timeline_.memory.back();
      if (last.physical == physical && last.resident == resident && last.live == live &&
          last.pinned == pinned) {
        return;
      }
    }
    if (timeline_.memory.size() >= kMaxSamples) {
      ++timeline_.dropped_events;
      return;
    }
    timeline_.memory.push_back({Now(), physical, resident, live, pinned});
  }

  void Finish() override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (finished_) return;
    finished_ = true;
    if (activity_ != nullptr) timeline_.device = activity_->Stop();
    const std::string text = ChromeTrace(timeline_);
    const std::string temporary = absl::StrCat(path_, ".tmp.", getpid());
    std::FILE* file = std::fopen(temporary.c_str(), "w");
    bool ok = file != nullptr;
    if (ok) ok = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (file != nullptr) ok = std::fclose(file) == 0 && ok;
    if (ok) ok = std::rename(temporary.c_str(), path_.c_str()) == 0;
    if (!ok) {
      const std::string line = absl::StrCat("tidepool: cannot write the timeline to ", path_, ": ",
                                            std::strerror(errno), "\n");
      [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
      std::remove(temporary.c_str());
    }
  }

 private:
  const std::string path_;
  const std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;
  Timeline timeline_;
  absl::flat_hash_map<std::string, uint32_t> names_;
  std::unique_ptr<CuptiActivity> activity_;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<Recorder> MakeTimelineRecorder(const std::string& path, std::string* error) {
  const std::string temporary = absl::StrCat(path, ".tmp.", getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "w");
  if (file == nullptr) {
    *error = absl::StrCat("cannot write to ", path, ": ", std::strerror(errno));
    return nullptr;
  }
  std::fclose(file);
  std::remove(temporary.c_str());
  return std::make_unique<TimelineRecorder>(path);
}

}  // namespace tidepool
