// Footprints against what the executor writes: nothing may be called written that is not, for any
// launch; and the usual kernels must be seen to cover their outputs.
#include "runtime/access/footprint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "ptx/parser.h"
#include "tests/simgpu/exec/harness.h"

namespace tidepool {
namespace {

using simgpu::test::Arguments;
using simgpu::test::Device;
using simgpu::test::Shape;

class FootprintTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string text = simgpu::test::ReadFile(GetParam());
    absl::StatusOr<ptx::Module> module = ptx::Parse(text);
    ASSERT_TRUE(module.ok()) << module.status();
    module_ = *std::move(module);
    program_ = device_.Load(text);
    ASSERT_NE(program_, nullptr);
    // Numbers around the thresholds of the kernels that look at data.
    std::vector<float> data(1 << 16);
    std::mt19937 random(3);
    for (float& value : data) value = static_cast<float>(random() % 1000) / 1000;
    data[0] = 0.25f;
    in_ = device_.Upload(data);
    out_ = device_.Alloc(kOutBytes);
  }
  bool optimised() const { return std::string(GetParam()) == TIDEPOOL_FOOTPRINT_PTX; }

  struct Outcome {
    std::vector<ByteRange> claimed;
    std::vector<bool> written;  // by byte of `out`
  };
  // Runs the kernel over two different fillings and asks for its footprint. `word`: of `out`.
  Outcome Run(const std::string& kernel, const Shape& shape, const Arguments& arguments,
              const std::vector<uint32_t>& pointers, uint32_t word) {
    Outcome outcome;
    std::vector<std::vector<uint8_t>> after;
    for (int fill : {0x00, 0xff}) {
      std::memset(reinterpret_cast<void*>(out_), fill, kOutBytes);
      const simgpu::LaunchResult result = Launch(device_, *program_, kernel, shape, arguments);
      EXPECT_EQ(result.fault, simgpu::Fault::kNone) << kernel << ": " << result.message;
      after.push_back(device_.Download<uint8_t>(out_, kOutBytes));
    }
    outcome.written.resize(kOutBytes);
    for (size_t i = 0; i < kOutBytes; ++i) {
      outcome.written[i] = after[0][i] != 0x00 || after[1][i] != 0xff;
    }
    std::shared_ptr<KernelFootprint>& footprint = footprints_[kernel];
    if (footprint == nullptr) {
      footprint = KernelFootprint::Build(module_, *module_.FindFunction(kernel));
      if (footprint == nullptr) return outcome;
    }
    LaunchShape launch;
    const uint32_t grid[] = {shape.grid.x, shape.grid.y, shape.grid.z};
    const uint32_t block[] = {shape.block.x, shape.block.y, shape.block.z};
    std::copy_n(grid, 3, launch.grid);
    std::copy_n(block, 3, launch.block);
    const auto answer = footprint->Evaluate(launch, arguments.bytes(), pointers);
    for (const WordFootprint& of : *answer) {
      if (of.offset == word) outcome.claimed = of.written;
    }
    for (const ByteRange& range : outcome.claimed) {
      EXPECT_GE(range.first, 0) << kernel;
      EXPECT_LE(range.end, static_cast<int64_t>(kOutBytes)) << kernel;
      for (int64_t i = std::max<int64_t>(0, range.first);
           i < std::min<int64_t>(range.end, kOutBytes); ++i) {
        if (outcome.written[static_cast<size_t>(i)]) continue;
        ADD_FAILURE() << kernel << ": byte " << i << " is called written and is not; grid "
                      << shape.grid.x << "," << shape.grid.y << " block " << shape.block.x << ","
                      << shape.block.y;
        return outcome;
      }
    }
    return outcome;
  }
  // All that was written, was it seen?
  static bool Complete(const Outcome& outcome) {
    std::vector<bool> claimed(outcome.written.size(), false);
    for (const ByteRange& range : outcome.claimed) {
      for (int64_t i = std::max<int64_t>(0, range.first); i < range.end; ++i) {
        claimed[static_cast<size_t>(i)] = true;
      }
    }
    return claimed == outcome.written;
  }

  static constexpr size_t kOutBytes = size_t{1} << 18;
  Device device_{2};
  ptx::Module module_;
  std::unique_ptr<simgpu::Program> program_;
  std::map<std::string, std::shared_ptr<KernelFootprint>> footprints_;
  uint64_t in_ = 0, out_ = 0;
  const std::vector<uint32_t> two_ = {0, 8};
  const std::vector<uint32_t> one_ = {0};
};

INSTANTIATE_TEST_SUITE_P(Builds, FootprintTest,
                         ::testing::Values(TIDEPOOL_FOOTPRINT_PTX, TIDEPOOL_FOOTPRINT_PTX_DEBUG),
                         [](const auto& info) { return info.index == 0 ? "Optimised" : "Debug"; });

struct Args {
  uint64_t out, in;
  int n;
};

TEST_P(FootprintTest, RandomLaunches) {
  std::mt19937 random(11);
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1));
  };
  std::map<std::string, int> runs, complete;
  const auto note = [&](const std::string& kernel, const Outcome& outcome) {
    ++runs[kernel];
    complete[kernel] += Complete(outcome) ? 1 : 0;
  };
  for (int round = 0; round < 25 && !HasFailure(); ++round) {
    const int n = pick(1, 6000);
    const auto block = static_cast<uint32_t>(pick(1, 8) * (round % 4 == 0 ? 13 : 32));
    const auto enough = static_cast<uint32_t>((n + static_cast<int>(block) - 1)) / block;
    const auto grid = round % 5 == 1 ? static_cast<uint32_t>(pick(1, 8)) : enough;
    const Shape line{{grid, 1, 1}, {block, 1, 1}};
    for (const char* kernel : {"guarded", "guarded_unsigned", "both_sides", "data_guard",
                               "early_end", "leaves_inside", "scatter"}) {
      note(kernel, Run(kernel, line, Arguments(out_, in_, n), two_, 0));
    }
    for (const char* kernel : {"grid_stride", "four_each", "fixed_division", "every_other",
                               "off_by_one", "narrow_index", "reversed"}) {
      note(kernel, Run(kernel, line, Arguments(out_, n), one_, 0));
    }
    note("guarded_long",
         Run("guarded_long", line, Arguments(out_, static_cast<int64_t>(n)), one_, 0));
    note("bytes", Run("bytes", line, Arguments(out_, static_cast<int16_t>(n)), one_, 0));
    note("wrapping",
         Run("wrapping", line, Arguments(out_, static_cast<uint32_t>(-pick(0, n)), n), one_, 0));
    note("vectors", Run("vectors", line, Arguments(out_, in_, n), two_, 0));
    note("in_struct", Run("in_struct", line, Arguments(Args{out_, in_, n}), two_, 0));
    note("broken_loop",
         Run("broken_loop", {{1, 1, 1}, {block, 1, 1}}, Arguments(out_, in_, n), two_, 0));
    const int columns = pick(1, 300), rows = pick(1, 60);
    note("block_per_row", Run("block_per_row", {{static_cast<uint32_t>(rows), 1, 1}, {block, 1, 1}},
                              Arguments(out_, in_, columns), two_, 0));
    const uint32_t warps = static_cast<uint32_t>(pick(1, 4));
    note("warp_per_row",
         Run("warp_per_row",
             {{(static_cast<uint32_t>(rows) + warps - 1) / warps, 1, 1}, {32 * warps, 1, 1}},
             Arguments(out_, in_, rows, columns), two_, 0));
    note("thread_per_row", Run("thread_per_row", {{2, 1, 1}, {32, 1, 1}},
                               Arguments(out_, in_, rows, columns), two_, 0));
    const uint32_t bx = static_cast<uint32_t>(pick(1, 16)), by = static_cast<uint32_t>(pick(1, 16));
    const Shape plane{{(static_cast<uint32_t>(columns) + bx - 1) / bx,
                       (static_cast<uint32_t>(rows) + by - 1) / by, 1},
                      {bx, by, 1}};
    note("matmul",
         Run("matmul", plane, Arguments(out_, in_, in_, rows, columns, 7), {0, 8, 16}, 0));
    note("transpose", Run("transpose", plane, Arguments(out_, in_, rows, columns), two_, 0));
    const Shape tiles{
        {(static_cast<uint32_t>(columns) + 15) / 16, (static_cast<uint32_t>(rows) + 15) / 16, 1},
        {16, 16, 1}};
    note("matmul_tiled",
         Run("matmul_tiled", tiles, Arguments(out_, in_, in_, rows, columns, 20), {0, 8, 16}, 0));
    const int batch = pick(1, 3), tokens = pick(1, 20), heads = pick(1, 4), d = pick(1, 24);
    const int all = batch * tokens * heads * d;
    note("permute", Run("permute", {{(static_cast<uint32_t>(all) + 127) / 128, 1, 1}, {128, 1, 1}},
                        Arguments(out_, in_, batch, tokens, heads, d), two_, 0));
    note("one_result", Run("one_result", {{static_cast<uint32_t>(rows), 1, 1}, {64, 1, 1}},
                           Arguments(out_, in_, n), two_, 0));
  }
  // The kernels whose every store depends on numbers alone are seen through, in every launch.
  for (const auto& [kernel, count] : runs) {
    const bool by_data = kernel == "data_guard" || kernel == "early_end" || kernel == "scatter" ||
                         kernel == "broken_loop" || kernel == "leaves_inside";
    if (by_data) {
      EXPECT_LT(complete[kernel], count) << kernel;
    } else if (optimised()) {
      EXPECT_EQ(complete[kernel], count) << kernel;
    }
  }
}

TEST_P(FootprintTest, LargeLaunchesAreQuick) {
  if (!optimised()) return;
  const auto covers = [&](const char* kernel, const LaunchShape& shape, const Arguments& arguments,
                          const std::vector<uint32_t>& pointers, int64_t bytes) {
    auto footprint = KernelFootprint::Build(module_, *module_.FindFunction(kernel));
    if (footprint == nullptr) return false;
    const auto answer = footprint->Evaluate(shape, arguments.bytes(), pointers);
    return answer->size() == 1 && (*answer)[0].Covers(0, bytes) &&
           !(*answer)[0].Covers(0, bytes + 1);
  };
  const int n = 1'000'000'007;
  EXPECT_TRUE(covers("guarded", {{(n + 255) / 256, 1, 1}, {256, 1, 1}}, Arguments(out_, in_, n),
                     two_, 4ll * n));
  EXPECT_TRUE(
      covers("grid_stride", {{132 * 8, 1, 1}, {512, 1, 1}}, Arguments(out_, n), one_, 4ll * n));
  EXPECT_TRUE(covers("warp_per_row", {{65536, 1, 1}, {1024, 1, 1}},
                     Arguments(out_, in_, 65536 * 32, 768), two_, 4ll * 65536 * 32 * 768));
  EXPECT_TRUE(covers("matmul", {{3072 / 16, 65536 / 16, 1}, {16, 16, 1}},
                     Arguments(out_, in_, in_, 65536, 3072, 768), {0, 8, 16}, 4ll * 65536 * 3072));
  // The coordinates do not fit 32 bits: nothing may be concluded.
  EXPECT_FALSE(
      covers("guarded", {{1u << 30, 1, 1}, {1024, 1, 1}}, Arguments(out_, in_, -5), two_, 4));
}

TEST(WrittenBytes, UnionsOfImages) {
  WrittenBytes bytes;
  Box box;
  box.hi = {3, 0, 0, 9, 0, 0};
  AffineForm form;
  form.coefficient[0] = 4;
  form.coefficient[3] = 32;
  bytes.Add(form, box, 4);  // 16 bytes out of every 32
  form.constant = 16;
  bytes.Add(form, box, 4);  // the others
  EXPECT_EQ(bytes.Ranges(), (std::vector<ByteRange>{{0, 320}}));
}

TEST(Affine, DivisionCutsAtMultiples) {
  Box box;
  box.hi[0] = 99;
  AffineForm form;
  form.coefficient[0] = 1;
  Decision<AffineForm> d = DivideFloor(form, 32, box);
  ASSERT_FALSE(d.answer.has_value());
  EXPECT_EQ(d.cut.at, 32);
  form.coefficient[0] = -1;
  form.constant = 99;
  d = DivideFloor(form, 32, box);
  ASSERT_FALSE(d.answer.has_value());
  EXPECT_EQ(d.cut.at, 4);  // 99 - x passes 96
  form.coefficient[3] = 64;
  box.hi[0] = 0;
  box.hi[3] = 10;
  d = DivideFloor(form, 32, box);
  ASSERT_TRUE(d.answer.has_value());
  EXPECT_EQ(d.answer->coefficient[3], 2);
  EXPECT_EQ(d.answer->constant, 3);
}

}  // namespace
}  // namespace tidepool
