// tidepool report FILE: the JSON report, for people.
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "runtime/intercept/size.h"
#include "tools/tidepool/commands.h"

namespace tidepool {
namespace {

using nlohmann::json;

struct Row {
  const char* key;
  const char* text;
  enum Unit { kBytes, kCount, kTime } unit;
};

constexpr Row kRows[] = {
    {"budget_bytes", "budget", Row::kBytes},
    {"peak_physical_bytes", "peak of physical memory", Row::kBytes},
    {"peak_live_bytes", "peak of what the program held", Row::kBytes},
    {"pinned_bytes", "pinned at the end", Row::kBytes},
    {"ops", "operations", Row::kCount},
    {"drops", "values dropped", Row::kCount},
    {"rebuilds", "values rebuilt", Row::kCount},
    {"rebuilt_ops", "operations replayed", Row::kCount},
    {"rebuild_time_ns", "device time of replays", Row::kTime},
    {"swaps_out", "values swapped to host", Row::kCount},
    {"swaps_in", "values swapped back", Row::kCount},
    {"peak_host_bytes", "peak of host memory for swapping", Row::kBytes},
    {"rescues", "rescues", Row::kCount},
    {"stall_time_ns", "host time waiting to unmap", Row::kTime},
    {"hot_driver_calls", "memory calls while an operation waited", Row::kCount},
    {"out_of_memory", "operations refused", Row::kCount},
};

std::string Format(const Row& row, uint64_t value) {
  switch (row.unit) {
    case Row::kBytes:
      return FormatSize(value);
    case Row::kTime:
      return absl::StrCat(static_cast<double>(value) / 1e6, " ms");
    case Row::kCount:
      break;
  }
  return absl::StrCat(value);
}

void PrintMap(const json& report, const char* key, const char* title, bool bytes) {
  auto it = report.find(key);
  if (it == report.end() || !it->is_object() || it->empty()) return;
  std::printf("%s\n", title);
  for (const auto& [name, value] : it->items()) {
    if (!value.is_number_unsigned()) continue;
    const auto number = value.get<uint64_t>();
    std::printf("  %-38s %s\n", name.c_str(),
                (bytes ? FormatSize(number) : absl::StrCat(number)).c_str());
  }
}

void PrintList(const json& report, const char* key, const char* title) {
  auto it = report.find(key);
  if (it == report.end() || !it->is_array() || it->empty()) return;
  std::printf("%s\n", title);
  for (const json& item : *it) {
    if (item.is_string()) std::printf("  %s\n", item.get_ref<const std::string&>().c_str());
  }
}

}  // namespace

int ReportCommand(const std::vector<std::string>& arguments) {
  if (arguments.size() != 1) {
    PrintError("usage: tidepool report FILE");
    return kExitUsage;
  }
  std::ifstream file(arguments[0]);
  if (!file) {
    PrintError(absl::StrCat("cannot read ", arguments[0]));
    return 1;
  }
  const json report = json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object() || !report.contains("budget_bytes")) {
    PrintError(
        absl::StrCat(arguments[0], " is not a report of Tidepool (tidepool run --report FILE)"));
    return 1;
  }
  for (const Row& row : kRows) {
    auto it = report.find(row.key);
    if (it == report.end() || !it->is_number_unsigned()) continue;
    std::printf("%-40s %s\n", row.text, Format(row, it->get<uint64_t>()).c_str());
  }
  PrintMap(report, "peak_bytes_by_tag", "live bytes at the peak, by tag", true);
  PrintMap(report, "pinned_bytes_by_reason", "pinned, by reason", true);
  PrintMap(report, "not_replayable_by_reason", "operations that cannot be replayed, by reason",
           false);
  PrintList(report, "annotated_kernels", "kernels known by annotation");
  PrintList(report, "unused_annotations", "annotations that matched no kernel");
  PrintList(report, "refused_annotations", "annotations that were refused");
  return 0;
}

}  // namespace tidepool
