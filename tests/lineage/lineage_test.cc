#include "runtime/lineage/lineage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace tidepool {
namespace {

class NoReplay final : public Replay {
 public:
  CUresult Issue(CUstream) const override { return CUDA_SUCCESS; }
  uint64_t footprint() const override { return 100; }
};

class Watcher final : public LineageObserver {
 public:
  void OnValueDead(Value* value) override { dead_values.push_back(value->id); }
  void OnRoot(Value* value) override { roots.insert(value->id); }
  void OnBufferDead(Buffer* buffer) override { dead_buffers.insert(buffer->id); }
  std::vector<uint64_t> dead_values;
  std::set<uint64_t> roots, dead_buffers;
};

class LineageTest : public ::testing::Test {
 protected:
  Buffer* NewBuffer() {
    // Pages only say that the buffer is not small.
    return lineage_.NewBuffer(next_address_ += 4096, 4096, &range_);
  }
  Value* NewValue(Buffer* buffer) {
    Value* value = lineage_.NewValue(buffer);
    value->resident = true;
    return value;
  }
  // out = f(ins...), recorded, and out becomes current.
  Value* Make(Buffer* buffer, const std::vector<Value*>& ins) {
    Value* out = NewValue(buffer);
    std::vector<OpUse> uses;
    for (Value* in : ins) uses.push_back({in->buffer, in, nullptr, false});
    uses.push_back({buffer, nullptr, out, true});
    lineage_.Record(&name_, std::make_shared<NoReplay>(), uses, 1, 1);
    lineage_.SetCurrent(buffer, out);
    return out;
  }
  Value* MakeRoot(Buffer* buffer) {
    Value* value = NewValue(buffer);
    lineage_.SetCurrent(buffer, value);
    return value;
  }

  std::string name_ = "op";
  AddressRange range_;
  uint64_t next_address_ = 0;
  Watcher watcher_;
  Lineage lineage_{&watcher_};
};

TEST_F(LineageTest, WhatNobodyNeedsIsCollectedAtOnce) {
  Buffer* a = NewBuffer();
  Value* first = MakeRoot(a);
  const uint64_t id = first->id;
  MakeRoot(a);
  EXPECT_EQ(watcher_.dead_values, std::vector<uint64_t>{id});
  EXPECT_EQ(lineage_.value_count(), 1u);
}

TEST_F(LineageTest, FreedAncestorsStayWhileSomethingIsMadeFromThem) {
  Buffer* x = NewBuffer();
  Buffer* y = NewBuffer();
  Buffer* z = NewBuffer();
  Value* vx = MakeRoot(x);
  Value* vy = Make(y, {vx});
  Make(z, {vy});
  const uint64_t x_id = x->id, y_id = y->id;
  lineage_.FreeBuffer(x);
  lineage_.FreeBuffer(y);
  EXPECT_TRUE(watcher_.dead_values.empty());
  EXPECT_TRUE(watcher_.dead_buffers.empty());
  EXPECT_EQ(lineage_.op_count(), 2u);
  lineage_.FreeBuffer(z);
  EXPECT_EQ(lineage_.op_count(), 0u);
  EXPECT_EQ(lineage_.value_count(), 0u);
  EXPECT_TRUE(watcher_.dead_buffers.contains(x_id));
  EXPECT_TRUE(watcher_.dead_buffers.contains(y_id));
  EXPECT_EQ(lineage_.footprint(), 0u);
}

TEST_F(LineageTest, LosingARootWithResidentDependentsNeedsNoRescue) {
  Value* root = MakeRoot(NewBuffer());
  Value* made = Make(NewBuffer(), {root});
  LossPlan plan = lineage_.PlanLoss(root->readers);
  EXPECT_TRUE(plan.rescue.empty());
  ASSERT_EQ(plan.invalid.size(), 1u);
  lineage_.Invalidate(plan.invalid);
  EXPECT_EQ(made->recipe, nullptr);
  EXPECT_TRUE(watcher_.roots.contains(made->id));
  EXPECT_TRUE(root->readers.empty());
}

TEST_F(LineageTest, DroppedDependentsOfALostRootAreToBeRescued) {
  Value* root = MakeRoot(NewBuffer());
  Buffer* middle = NewBuffer();
  Value* vm = Make(middle, {root});
  Value* end = Make(NewBuffer(), {vm});
  vm->resident = false;
  end->resident = false;
  // Both can be read by the program: both are named, and the second needs nothing beyond the first.
  LossPlan plan = lineage_.PlanLoss(root->readers);
  ASSERT_EQ(plan.rescue.size(), 1u);
  EXPECT_EQ(plan.rescue[0], vm);
  EXPECT_EQ(plan.rescue_bytes, 4096u);
  // Freed, the middle value is only lineage: the loss reaches through it to the end.
  lineage_.FreeBuffer(middle);
  plan = lineage_.PlanLoss(root->readers);
  ASSERT_EQ(plan.rescue.size(), 1u);
  EXPECT_EQ(plan.rescue[0], end);
  EXPECT_EQ(plan.invalid.size(), 2u);
}

TEST_F(LineageTest, LineageOfResidentValuesIsCutAtTheRim) {
  Value* root = MakeRoot(NewBuffer());
  Buffer* temporary = NewBuffer();
  Value* vt = Make(temporary, {root});
  Value* end = Make(NewBuffer(), {vt});
  vt->resident = false;
  lineage_.FreeBuffer(temporary);
  LossPlan plan = lineage_.PlanLoss(root->readers);
  EXPECT_TRUE(plan.rescue.empty());
  lineage_.Invalidate(plan.invalid);
  EXPECT_EQ(end->recipe, nullptr);
  EXPECT_EQ(lineage_.op_count(), 0u);
  EXPECT_EQ(lineage_.value_count(), 2u);  // root and end
}

TEST_F(LineageTest, ALongChainIsCollectedWithoutRecursion) {
  constexpr int kLength = 200000;
  Buffer* last = NewBuffer();
  Value* value = MakeRoot(last);
  for (int i = 0; i < kLength; ++i) {
    Buffer* next = NewBuffer();
    Value* made = Make(next, {value});
    lineage_.FreeBuffer(last);
    last = next;
    value = made;
  }
  EXPECT_EQ(lineage_.op_count(), static_cast<uint64_t>(kLength));
  EXPECT_EQ(value->depth, static_cast<uint32_t>(kLength));
  lineage_.FreeBuffer(last);
  EXPECT_EQ(lineage_.op_count(), 0u);
}

// Random graphs: after any sequence, exactly what is needed exists, and no reader is dangling.
TEST_F(LineageTest, RandomGraphsKeepExactlyWhatIsNeeded) {
  std::mt19937 random(7);
  std::vector<Buffer*> live;
  for (int step = 0; step < 20000; ++step) {
    const uint32_t what = random() % 10;
    if (live.size() < 2 || (what < 2 && live.size() < 40)) {
      Buffer* buffer = NewBuffer();
      MakeRoot(buffer);
      live.push_back(buffer);
    } else if (what < 4) {
      const size_t i = random() % live.size();
      lineage_.FreeBuffer(live[i]);
      live.erase(live.begin() + static_cast<ptrdiff_t>(i));
    } else if (what < 9) {
      Buffer* to = live[random() % live.size()];
      Value* in = live[random() % live.size()]->current;
      Make(to, {in});
    } else {
      Value* root = live[random() % live.size()]->current;
      lineage_.Invalidate(lineage_.PlanLoss(root->readers).invalid);
    }
    if (step % 500 != 0) continue;
    std::set<const Value*> needed;
    std::set<const Op*> ops;
    std::vector<const Value*> work;
    for (const Buffer* buffer : live) work.push_back(buffer->current);
    while (!work.empty()) {
      const Value* value = work.back();
      work.pop_back();
      if (!needed.insert(value).second || value->recipe == nullptr) continue;
      ASSERT_TRUE(lineage_.Contains(value->recipe));
      ops.insert(value->recipe);
      for (const OpUse& use : value->recipe->uses) {
        if (use.in == nullptr) continue;
        ASSERT_NE(std::find(use.in->readers.begin(), use.in->readers.end(), value->recipe),
                  use.in->readers.end());
        work.push_back(use.in);
      }
    }
    ASSERT_EQ(needed.size(), lineage_.value_count());
    ASSERT_EQ(ops.size(), lineage_.op_count());
  }
}

}  // namespace
}  // namespace tidepool
