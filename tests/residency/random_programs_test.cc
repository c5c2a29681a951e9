// Random op programs through the engine, under budgets from ample to hopeless, in overlay and
// strict mode, with one and several streams on a device that runs everything as late as it may: the
// bytes are those of a plain run, the budget is never exceeded, and no driver call is wrong.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/residency/program.h"

namespace tidepool::testing {
namespace {

int Programs(int otherwise) {
  const char* text = std::getenv("TIDEPOOL_TEST_PROGRAMS");
  return text != nullptr ? std::atoi(text) : otherwise;
}

struct Mode {
  uint64_t budget_pages;
  int streams;
  bool strict;
  uint64_t host_pages = 0;
};

class RandomPrograms : public ::testing::TestWithParam<Mode> {};

std::string Describe(const ProgramOptions& options) {
  return "seed " + std::to_string(options.seed) + ", budget " +
         std::to_string(options.budget_pages) + " pages, streams " +
         std::to_string(options.streams) + (options.strict ? ", strict" : "") + ", host " +
         std::to_string(options.host_pages) + " pages";
}

TEST_P(RandomPrograms, SameBytesWithinTheBudget) {
  const Mode mode = GetParam();
  uint64_t drops = 0, rebuilds = 0, refused = 0, swaps = 0;
  const int programs = Programs(170);
  for (int seed = 1; seed <= programs; ++seed) {
    ProgramOptions options;
    options.seed = static_cast<uint32_t>(seed);
    options.budget_pages = mode.budget_pages;
    options.streams = mode.streams;
    options.strict = mode.strict;
    options.host_pages = mode.host_pages;
    const ProgramResult result = RunProgram(options);
    ASSERT_EQ(result.difference, "") << Describe(options);
    ASSERT_TRUE(result.violations.empty()) << Describe(options) << ": " << result.violations[0];
    ASSERT_EQ(result.errors, 0u) << Describe(options);
    ASSERT_EQ(result.physical_after, 0u) << Describe(options);
    drops += result.statistics.drops;
    rebuilds += result.statistics.rebuilds;
    swaps += result.statistics.swaps_in;
    ASSERT_LE(result.statistics.peak_host_bytes, mode.host_pages * options.page_bytes);
    refused += result.out_of_memory;
  }
  // The test means something only if memory was short.
  if (mode.budget_pages < 64) {
    EXPECT_GT(drops, 0u);
    EXPECT_GT(rebuilds, 0u);
    EXPECT_EQ(swaps > 0, mode.host_pages > 0);
  } else {
    EXPECT_EQ(refused, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, RandomPrograms,
                         ::testing::Values(Mode{1024, 1, false}, Mode{48, 1, false},
                                           Mode{24, 1, false}, Mode{48, 1, true},
                                           Mode{24, 3, false}, Mode{32, 3, true},
                                           Mode{12, 2, false}, Mode{16, 4, false},
                                           Mode{24, 1, false, 256}, Mode{16, 3, true, 256},
                                           Mode{16, 3, false, 24}, Mode{12, 2, false, 256}));

// Every driver call made to fail once, in turn: the program sees an error or the right bytes, and
// nothing is leaked or corrupted.
class FaultInjection : public ::testing::TestWithParam<uint64_t> {};

TEST_P(FaultInjection, EachDriverCallFailsOnce) {
  ProgramOptions options;
  options.host_pages = GetParam();
  options.seed = 5;
  options.budget_pages = 24;
  options.streams = 2;
  options.ops = 120;
  const uint64_t calls = RunProgram(options).driver_calls;
  ASSERT_GT(calls, 50u);
  for (CUresult code : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_UNKNOWN}) {
    for (uint64_t n = 1; n <= calls; ++n) {
      options.fail_call = n;
      options.fail_with = code;
      const ProgramResult result = RunProgram(options);
      ASSERT_EQ(result.difference, "") << "call " << n << " failing with " << code;
      ASSERT_TRUE(result.violations.empty()) << "call " << n << ": " << result.violations[0];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HostPages, FaultInjection, ::testing::Values(0, 48));

}  // namespace
}  // namespace tidepool::testing
