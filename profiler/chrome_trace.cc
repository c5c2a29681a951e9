// Format: the Trace Event Format, as Perfetto's JSON importer takes it. "X" events of one track
// must nest, "C" events make one counter per key.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "profiler/timeline.h"

namespace tidepool {
namespace {

constexpr int kTidepoolPid = 1;
constexpr int kGpuPid = 1000;  // + device
constexpr uint64_t kMemoryTrack = 1000000;

std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppendFormat(&out, "\\u%04x", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string Microseconds(uint64_t ns) { return absl::StrFormat("%d.%03d", ns / 1000, ns % 1000); }

class Writer {
 public:
  void Add(const std::string& event) {
    if (!first_) out_ += ",\n";
    first_ = false;
    out_ += event;
  }
  void Name(const char* what, int pid, uint64_t tid, std::string_view name, bool thread) {
    std::string event = absl::StrCat("{\"ph\":\"M\",\"name\":\"", what, "\",\"pid\":", pid);
    if (thread) absl::StrAppend(&event, ",\"tid\":", tid);
    absl::StrAppend(&event, ",\"args\":{\"name\":", Quote(name), "}}");
    Add(event);
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
  bool first_ = true;
};

const char* Category(DeviceActivity::Kind kind) {
  switch (kind) {
    case DeviceActivity::Kind::kKernel:
      return "kernel";
    case DeviceActivity::Kind::kMemcpy:
      return "gpu_memcpy";
    case DeviceActivity::Kind::kMemset:
      return "gpu_memset";
  }
  return "?";
}

bool OnStreamTrack(EventKind kind) { return kind == EventKind::kOp || kind == EventKind::kRebuild; }

void AddEvent(const Timeline& timeline, const TimelineEvent& event, Writer* writer) {
  const std::string& given = timeline.names[event.name];
  const std::string_view kind = EventKindName(event.kind);
  const bool on_stream = OnStreamTrack(event.kind);
  std::string name = given;
  if (event.kind == EventKind::kRebuild || !on_stream) {
    name = given.empty() ? std::string(kind) : absl::StrCat(std::string(kind), " ", given);
  }
  std::string text =
      absl::StrCat("{\"name\":", Quote(name), ",\"cat\":", Quote(kind), ",\"pid\":", kTidepoolPid,
                   ",\"tid\":", on_stream ? event.stream : kMemoryTrack,
                   ",\"ts\":", Microseconds(event.start_ns));
  if (event.duration_ns > 0 || on_stream) {
    absl::StrAppend(&text, ",\"ph\":\"X\",\"dur\":", Microseconds(event.duration_ns));
  } else {
    absl::StrAppend(&text, ",\"ph\":\"i\",\"s\":\"t\"");
  }
  absl::StrAppend(&text, ",\"args\":{\"bytes\":", event.bytes, ",\"buffer\":", event.buffer, "}}");
  writer->Add(text);
}

}  // namespace

std::string_view EventKindName(EventKind kind) {
  switch (kind) {
    case EventKind::kOp:
      return "op";
    case EventKind::kRebuild:
      return "rebuild";
    case EventKind::kBind:
      return "bind";
    case EventKind::kDrop:
      return "drop";
    case EventKind::kSwapOut:
      return "swap out";
    case EventKind::kSwapIn:
      return "swap in";
    case EventKind::kPin:
      return "pin";
    case EventKind::kRescue:
      return "rescue";
    case EventKind::kStall:
      return "stall";
    case EventKind::kOutOfMemory:
      return "out of memory";
  }
  return "?";
}

std::string ChromeTrace(const Timeline& timeline) {
  Writer writer;
  writer.Name("process_name", kTidepoolPid, 0, "Tidepool", false);
  std::set<uint32_t> streams;
  for (const TimelineEvent& event : timeline.events) {
    if (OnStreamTrack(event.kind)) streams.insert(event.stream);
  }
  for (uint32_t stream : streams) {
    writer.Name("thread_name", kTidepoolPid, stream, absl::StrCat("stream ", stream, " (issued)"),
                true);
  }
  writer.Name("thread_name", kTidepoolPid, kMemoryTrack, "memory", true);
  std::set<std::pair<uint32_t, uint32_t>> device_streams;
  for (const DeviceActivity& activity : timeline.device) {
    device_streams.insert({activity.device, activity.stream});
  }
  uint32_t last_device = ~0u;
  for (const auto& [device, stream] : device_streams) {
    const int pid = kGpuPid + static_cast<int>(device);
    if (device != last_device) {
      writer.Name("process_name", pid, 0, absl::StrCat("GPU ", device), false);
    }
    last_device = device;
    writer.Name("thread_name", pid, stream, absl::StrCat("stream ", stream), true);
  }
  for (const TimelineEvent& event : timeline.events) AddEvent(timeline, event, &writer);
  for (const MemorySample& sample : timeline.memory) {
    writer.Add(absl::StrCat("{\"name\":\"memory\",\"ph\":\"C\",\"pid\":", kTidepoolPid,
                            ",\"ts\":", Microseconds(sample.time_ns), ",\"args\":{\"physical\":",
                            sample.physical, ",\"resident\":", sample.resident,
                            ",\"live\":", sample.live, ",\"pinned\":", sample.pinned, "}}"));
  }
  for (const DeviceActivity& activity : timeline.device) {
    writer.Add(absl::StrCat(
        "{\"name\":", Quote(activity.name), ",\"cat\":\"", Category(activity.kind),
        "\",\"ph\":\"X\",\"pid\":", kGpuPid + static_cast<int>(activity.device),
        ",\"tid\":", activity.stream, ",\"ts\":", Microseconds(activity.start_ns),
        ",\"dur\":", Microseconds(activity.end_ns - std::min(activity.start_ns, activity.end_ns)),
        ",\"args\":{\"correlation\":", activity.correlation, ",\"bytes\":", activity.bytes, "}}"));
  }
  return absl::StrCat("{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"otherData\":{",
                      "\"dropped_events\":", timeline.dropped_events,
                      ",\"note\":", Quote(timeline.note), "},\"traceEvents\":[\n", writer.Take(),
                      "\n]}\n");
}

}  // namespace tidepool
