#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "profiler/timeline.h"

namespace tidepool {
namespace {

using nlohmann::json;

Timeline Sample() {
  Timeline timeline;
  timeline.names = {"add(float*, \"odd\\name\"\n)", ""};
  timeline.events.push_back({EventKind::kOp, 1500, 4000, 0, 2, 0, 0});
  timeline.events.push_back({EventKind::kRebuild, 2000, 1000, 0, 2, 0, 0});
  timeline.events.push_back({EventKind::kDrop, 1999, 0, 1, 0, 4096, 7});
  timeline.memory.push_back({1000, 10, 8, 30, 1});
  DeviceActivity kernel;
  kernel.name = "add";
  kernel.start_ns = 3001;
  kernel.end_ns = 5002;
  kernel.stream = 7;
  timeline.device.push_back(kernel);
  return timeline;
}

TEST(ChromeTrace, IsValidJsonWithEveryEvent) {
  const json trace = json::parse(ChromeTrace(Sample()));
  int ops = 0, rebuilds = 0, drops = 0, counters = 0, kernels = 0;
  for (const json& event : trace.at("traceEvents")) {
    const std::string ph = event.at("ph");
    const std::string cat = event.value("cat", "");
    if (cat == "op") {
      ++ops;
      EXPECT_EQ(event.at("name"), "add(float*, \"odd\\name\"\n)");
      EXPECT_DOUBLE_EQ(event.at("ts").get<double>(), 1.5);
      EXPECT_DOUBLE_EQ(event.at("dur").get<double>(), 4.0);
      EXPECT_EQ(event.at("tid"), 2);
    } else if (cat == "rebuild") {
      ++rebuilds;
    } else if (cat == "drop") {
      ++drops;
      EXPECT_EQ(ph, "i");
      EXPECT_EQ(event.at("args").at("bytes"), 4096);
    } else if (cat == "kernel") {
      ++kernels;
      EXPECT_DOUBLE_EQ(event.at("dur").get<double>(), 2.001);
    } else if (ph == "C") {
      ++counters;
      EXPECT_EQ(event.at("args").at("live"), 30);
    }
  }
  EXPECT_EQ(ops, 1);
  EXPECT_EQ(rebuilds, 1);
  EXPECT_EQ(drops, 1);
  EXPECT_EQ(counters, 1);
  EXPECT_EQ(kernels, 1);
}

TEST(ChromeTrace, EveryTrackHasAName) {
  const json trace = json::parse(ChromeTrace(Sample()));
  std::set<std::pair<int, int>> named, used;
  for (const json& event : trace.at("traceEvents")) {
    const std::string ph = event.at("ph");
    if (ph == "M" && event.at("name") == "thread_name") {
      named.emplace(event.at("pid").get<int>(), event.at("tid").get<int>());
    } else if (ph == "X" || ph == "i") {
      used.emplace(event.at("pid").get<int>(), event.at("tid").get<int>());
    }
  }
  for (const auto& track : used) EXPECT_TRUE(named.contains(track)) << track.second;
}

TEST(TimelineRecorder, WritesTheFileWhenFinished) {
  const std::string path = ::testing::TempDir() + "/timeline_test.json";
  std::remove(path.c_str());
  std::string error;
  std::unique_ptr<Recorder> recorder = MakeTimelineRecorder(path, &error);
  ASSERT_NE(recorder, nullptr) << error;
  const uint64_t start = recorder->Now();
  recorder->Record({EventKind::kOp, start, 10, "kernel", 0, 0, 0});
  recorder->Memory(1, 2, 3, 4);
  recorder->Memory(1, 2, 3, 4);  // unchanged: no second sample
  recorder->Finish();
  std::ifstream file(path);
  const json trace = json::parse(file);
  int counters = 0;
  for (const json& event : trace.at("traceEvents")) counters += event.at("ph") == "C" ? 1 : 0;
  EXPECT_EQ(counters, 1);
}

TEST(TimelineRecorder, SaysWhyAPathIsNoGood) {
  std::string error;
  EXPECT_EQ(MakeTimelineRecorder("/nonexistent-folder/trace.json", &error), nullptr);
  EXPECT_NE(error.find("/nonexistent-folder/trace.json"), std::string::npos);
}

}  // namespace
}  // namespace tidepool
