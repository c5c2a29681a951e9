// The parameter block of a launch, from both ways of giving the arguments.
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/intercept/launch.h"

namespace tidepool {
namespace {

using Block = std::vector<uint8_t>;

// void kernel(float* p, char c, struct { float* q; int n; } s)
KernelRecord Record() {
  KernelRecord record;
  record.has_layout = true;
  record.params = {{0, 8}, {8, 1}, {16, 16}};
  record.param_bytes = 32;
  return record;
}

uint64_t Word(const Block& block, size_t at) {
  uint64_t word = 0;
  std::memcpy(&word, block.data() + at, sizeof(word));
  return word;
}

struct Arguments {
  uint64_t p = 0x1122334455667788;
  char c = 'x';
  struct {
    uint64_t q = 0x99aabbccddeeff00;
    int n = 7, padding = 0;
  } s;
};

TEST(PackParameters, PlacesEachArgumentAndClearsTheRest) {
  Arguments a;
  void* params[] = {&a.p, &a.c, &a.s};
  Block block(100, 0xee);
  ASSERT_TRUE(PackParameters(Record(), params, nullptr, &block));
  ASSERT_EQ(block.size(), 32u);
  EXPECT_EQ(Word(block, 0), a.p);
  EXPECT_EQ(Word(block, 8), uint64_t{'x'});
  EXPECT_EQ(Word(block, 16), a.s.q);
  EXPECT_EQ(Word(block, 24), 7u);
}

TEST(PackParameters, TakesThePackedBuffer) {
  Block packed(40);
  for (size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<uint8_t>(i + 1);
  size_t bytes = 32;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &bytes, CU_LAUNCH_PARAM_END};
  Block block;
  ASSERT_TRUE(PackParameters(Record(), nullptr, extra, &block));
  EXPECT_EQ(block, Block(packed.begin(), packed.begin() + 32));
  void* other_order[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_BUFFER_POINTER,
                         packed.data(), CU_LAUNCH_PARAM_END};
  Block again;
  ASSERT_TRUE(PackParameters(Record(), nullptr, other_order, &again));
  EXPECT_EQ(again, block);
  bytes = 40;
  EXPECT_TRUE(PackParameters(Record(), nullptr, extra, &block)) << "more than is needed";
  EXPECT_EQ(block.size(), 32u);
}

TEST(PackParameters, DoesNotReadArgumentsOfAKernelWithoutAny) {
  KernelRecord none;
  none.has_layout = true;
  Block block(3);
  EXPECT_TRUE(PackParameters(none, nullptr, nullptr, &block));
  EXPECT_TRUE(block.empty());
  void** nowhere = reinterpret_cast<void**>(8);
  EXPECT_TRUE(PackParameters(none, nowhere, nullptr, &block));
}

TEST(PackParameters, RefusesWhatTheDriverIsToJudge) {
  Arguments a;
  Block packed(32), block;
  size_t bytes = 31;
  void* params[] = {&a.p, &a.c, &a.s};
  void* one_missing[] = {&a.p, nullptr, &a.s};
  void* too_short[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                       &bytes, CU_LAUNCH_PARAM_END};
  void* no_size[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed.data(), CU_LAUNCH_PARAM_END};
  void* no_buffer[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  void* null_size[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                       nullptr, CU_LAUNCH_PARAM_END};
  void* unknown[] = {reinterpret_cast<void*>(77), packed.data(), CU_LAUNCH_PARAM_END};
  void* empty[] = {CU_LAUNCH_PARAM_END};
  EXPECT_FALSE(PackParameters(Record(), nullptr, nullptr, &block));
  EXPECT_FALSE(PackParameters(Record(), one_missing, nullptr, &block));
  for (void** extra : {too_short, no_size, no_buffer, null_size, unknown, empty}) {
    EXPECT_FALSE(PackParameters(Record(), nullptr, extra, &block));
  }
  bytes = 32;
  EXPECT_TRUE(PackParameters(Record(), nullptr, too_short, &block));
  EXPECT_FALSE(PackParameters(Record(), params, too_short, &block)) << "both ways at once";
}

TEST(PackParameters, KnowsNothingWithoutALayout) {
  Arguments a;
  void* params[] = {&a.p};
  KernelRecord record = Record();
  record.has_layout = false;
  Block block;
  EXPECT_FALSE(PackParameters(record, params, nullptr, &block));
  EXPECT_FALSE(PackParameters(record, nullptr, nullptr, &block));
}

}  // namespace
}  // namespace tidepool
