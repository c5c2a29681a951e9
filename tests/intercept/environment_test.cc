// The TIDEPOOL_* variables: what each accepts, and that what does not parse is an error that names
// the variable, the value and the accepted form.
#include "runtime/intercept/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kVariables[] = {
    "TIDEPOOL_BUDGET",        "TIDEPOOL_HOST_BUDGET", "TIDEPOOL_HIGH_WATERMARK",
    "TIDEPOOL_LOW_WATERMARK", "TIDEPOOL_STRICT",      "TIDEPOOL_POLICY",
    "TIDEPOOL_REPORT",        "TIDEPOOL_TIMELINE",    "TIDEPOOL_TRACE",
    "TIDEPOOL_CONFIG",        "TIDEPOOL_LOG"};

class EnvironmentTest : public ::testing::Test {
 protected:
  void SetUp() override { Clear(); }
  void TearDown() override { Clear(); }
  static void Clear() {
    for (const char* name : kVariables) unsetenv(name);
  }
  static Environment With(const char* name, const char* value) {
    setenv(name, value, 1);
    return ReadEnvironment();
  }
  // Expects an error for this value that names it and the variable.
  static void Refused(const char* name, const char* value, const char* accepted) {
    Clear();
    EXPECT_THAT(With(name, value).error,
                AllOf(StartsWith(std::string(name) + ": "), HasSubstr(value), HasSubstr(accepted)));
  }
};

TEST_F(EnvironmentTest, NothingSetPassesThrough) {
  const Environment env = ReadEnvironment();
  EXPECT_EQ(env.error, "");
  EXPECT_FALSE(env.budget.has_value());
  EXPECT_FALSE(env.host_budget.has_value());
  EXPECT_FALSE(env.strict);
  EXPECT_FALSE(env.debug);
  EXPECT_EQ(env.high_watermark, 1.0);
  EXPECT_EQ(env.low_watermark, 1.0);
  EXPECT_EQ(env.policy, "dtr-eq");
  EXPECT_EQ(env.report, "");
  EXPECT_EQ(env.timeline, "");
}

TEST_F(EnvironmentTest, Budget) {
  const Environment bytes = With("TIDEPOOL_BUDGET", "8GiB");
  EXPECT_EQ(bytes.error, "");
  ASSERT_TRUE(bytes.budget.has_value());
  EXPECT_EQ(bytes.budget->Of(1), uint64_t{8} << 30);
  const Environment share = With("TIDEPOOL_BUDGET", "50%");
  EXPECT_EQ(share.error, "");
  ASSERT_TRUE(share.budget.has_value());
  EXPECT_EQ(share.budget->Of(1000), 500u);
  for (const char* value : {"8GB", "lots", "-1", "0", "0%", "101%", " "}) {
    Refused("TIDEPOOL_BUDGET", value, "");
  }
  Refused("TIDEPOOL_BUDGET", "8GB", "accepted: 8GiB, 512MiB, 64KiB or plain bytes, or N%");
  Clear();
  EXPECT_FALSE(With("TIDEPOOL_BUDGET", "8GB").budget.has_value()) << "no budget is guessed";
  EXPECT_NE(With("TIDEPOOL_BUDGET", "").error, "");
}

TEST_F(EnvironmentTest, HostBudget) {
  EXPECT_EQ(With("TIDEPOOL_HOST_BUDGET", "1GiB").host_budget, uint64_t{1} << 30);
  EXPECT_EQ(With("TIDEPOOL_HOST_BUDGET", "0").host_budget, 0u);
  Refused("TIDEPOOL_HOST_BUDGET", "50%", "accepted: 8GiB");
  Refused("TIDEPOOL_HOST_BUDGET", "1G", "accepted: 8GiB");
}

TEST_F(EnvironmentTest, Watermarks) {
  setenv("TIDEPOOL_LOW_WATERMARK", "70%", 1);
  const Environment env = With("TIDEPOOL_HIGH_WATERMARK", "90%");
  EXPECT_EQ(env.error, "");
  EXPECT_DOUBLE_EQ(env.high_watermark, 0.9);
  EXPECT_DOUBLE_EQ(env.low_watermark, 0.7);
  for (const char* name : {"TIDEPOOL_HIGH_WATERMARK", "TIDEPOOL_LOW_WATERMARK"}) {
    for (const char* value : {"90", "0%", "101%", "8GiB", "ninety"}) {
      Refused(name, value, "accepted: a percentage");
    }
  }
}

TEST_F(EnvironmentTest, TheLowWatermarkIsNotAboveTheHighOne) {
  const Environment alone = With("TIDEPOOL_HIGH_WATERMARK", "80%");
  EXPECT_EQ(alone.error, "");
  EXPECT_DOUBLE_EQ(alone.low_watermark, 0.8) << "the default follows";
  const Environment env = With("TIDEPOOL_LOW_WATERMARK", "85%");
  EXPECT_THAT(env.error, StartsWith("TIDEPOOL_LOW_WATERMARK: "));
  EXPECT_THAT(env.error, AllOf(HasSubstr("85%"), HasSubstr("80%")));
}

TEST_F(EnvironmentTest, Strict) {
  EXPECT_TRUE(With("TIDEPOOL_STRICT", "1").strict);
  EXPECT_FALSE(With("TIDEPOOL_STRICT", "0").strict);
  EXPECT_FALSE(With("TIDEPOOL_STRICT", "").strict);
  EXPECT_EQ(ReadEnvironment().error, "");
  Refused("TIDEPOOL_STRICT", "yes", "accepted: 0 or 1");
  Refused("TIDEPOOL_STRICT", "2", "accepted: 0 or 1");
}

TEST_F(EnvironmentTest, Policy) {
  EXPECT_EQ(With("TIDEPOOL_POLICY", "lru").policy, "lru");
  EXPECT_EQ(ReadEnvironment().error, "");
  EXPECT_EQ(With("TIDEPOOL_POLICY", "").policy, "dtr-eq");
  Refused("TIDEPOOL_POLICY", "best", "dtr-eq");
}

TEST_F(EnvironmentTest, Log) {
  for (const char* level : {"error", "warn", "info", ""}) {
    const Environment env = With("TIDEPOOL_LOG", level);
    EXPECT_EQ(env.error, "") << level;
    EXPECT_FALSE(env.debug) << level;
  }
  EXPECT_TRUE(With("TIDEPOOL_LOG", "debug").debug);
  Refused("TIDEPOOL_LOG", "DEBUG", "accepted: error, warn, info, debug");
}

TEST_F(EnvironmentTest, WhatIsNotSupportedIsRefused) {
  EXPECT_THAT(With("TIDEPOOL_TRACE", "t").error, StartsWith("TIDEPOOL_TRACE: "));
}

TEST_F(EnvironmentTest, Config) {
  Refused("TIDEPOOL_CONFIG", "/nowhere/c.conf", "accepted: a text file of annotations");
  Refused("TIDEPOOL_CONFIG", "/", "accepted: a text file of annotations");
  Clear();
  const std::string path = ::testing::TempDir() + "environment_test.conf";
  std::ofstream(path) << "kernel Add 0=write 1=read\n";
  const Environment good = With("TIDEPOOL_CONFIG", path.c_str());
  EXPECT_EQ(good.error, "");
  ASSERT_EQ(good.annotations.size(), 1u);
  EXPECT_EQ(good.annotations[0].where, path + ":1");
  std::ofstream(path, std::ios::app) << "kernel Add 0=reed\n";
  const Environment bad = With("TIDEPOOL_CONFIG", path.c_str());
  EXPECT_THAT(bad.error, AllOf(StartsWith("TIDEPOOL_CONFIG: " + path + ":2: "), HasSubstr("0=reed"),
                               HasSubstr("accepted: read, write, update or ignore")));
  EXPECT_TRUE(bad.annotations.empty()) << "not in part";
  std::remove(path.c_str());
  EXPECT_EQ(With("TIDEPOOL_CONFIG", "").error, "");
}

TEST_F(EnvironmentTest, Files) {
  EXPECT_EQ(With("TIDEPOOL_REPORT", "a b.json").report, "a b.json");
  EXPECT_EQ(With("TIDEPOOL_TIMELINE", "t.json").timeline, "t.json");
  EXPECT_EQ(ReadEnvironment().error, "");
}

TEST_F(EnvironmentTest, TheFirstErrorIsTheOneSaid) {
  setenv("TIDEPOOL_STRICT", "maybe", 1);
  EXPECT_THAT(With("TIDEPOOL_BUDGET", "much").error, StartsWith("TIDEPOOL_BUDGET: "));
}

}  // namespace
}  // namespace tidepool
