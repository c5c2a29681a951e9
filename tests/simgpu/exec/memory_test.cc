// Spaces, widths, atomics and initialisers.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/simgpu/exec/harness.h"
#include "tests/simgpu/exec/ops.h"

namespace simgpu::test {
namespace {

const char kHeader[] = R"(
.version 8.6
.target sm_90
.address_size 64
)";

class MemoryTest : public testing::Test {
 protected:
  void Load(const std::string& text) {
    program_ = device_.Load(kHeader + text);
    ASSERT_NE(program_, nullptr);
  }
  void Run(const Shape& shape, const Arguments& arguments) {
    ASSERT_NE(program_, nullptr);
    const LaunchResult result = Launch(device_, *program_, "k", shape, arguments);
    ASSERT_EQ(result.fault, Fault::kNone) << result.message;
  }
  Device device_;
  std::unique_ptr<Program> program_;
};

// A strided copy through registers of every width, plain and as vectors; alignment and stride make
// the addresses of neighbouring lanes follow each other, repeat or scatter.
struct Access {
  const char* type;
  int bytes, count;
};
void PrintTo(const Access& access, std::ostream* out) {
  *out << access.type << " x" << access.count;
}
class AccessTest : public testing::TestWithParam<Access> {};

TEST_P(AccessTest, CopiesWhateverThePattern) {
  const Access& access = GetParam();
  const bool wide = access.bytes == 8;
  std::string vector, registers;
  if (access.count > 1) vector = ".v" + std::to_string(access.count);
  for (int k = 0; k < access.count; ++k) {
    registers += std::string(k == 0 ? "" : ", ") + (wide ? "%w" : "%v") + std::to_string(k);
  }
  if (access.count > 1) registers = "{" + registers + "}";
  const std::string op = vector + "." + access.type;
  const int whole = access.bytes * access.count;
  const std::string text = std::string(kHeader) + R"(
.visible .entry k(.param .u64 out, .param .u64 in, .param .u64 index, .param .u32 skip)
{
  .reg .b32 %r<9>, %v<4>;
  .reg .b64 %rd<9>, %w<4>;
  .reg .pred %p;
  .shared .align 16 .b8 buffer[8192];
  .local .align 16 .b8 depot[64];
  ld.param.u64 %rd0, [out];
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [index];
  ld.param.u32 %r2, [skip];
  mov.u32 %r0, %tid.x;
  rem.u32 %r3, %r0, 5;
  setp.eq.u32 %p, %r3, %r2;
  @%p bra END;
  mul.wide.u32 %rd3, %r0, 4;
  add.u64 %rd2, %rd2, %rd3;
  ld.global.u32 %r1, [%rd2];
  mul.wide.u32 %rd4, %r1, )" +
                           std::to_string(whole) + R"(;
  add.u64 %rd5, %rd1, %rd4;
  ld.global)" + op + " " + registers +
                           R"(, [%rd5];
  st.local)" + op + " [depot+16], " +
                           registers + R"(;
  mov.u64 %rd6, depot;
  cvta.local.u64 %rd6, %rd6;
  ld)" + op + " " + registers +
                           R"(, [%rd6+16];
  mov.u32 %r4, buffer;
  mad.lo.u32 %r4, %r0, )" + std::to_string(whole) +
                           R"(, %r4;
  st.shared)" + op + " [%r4], " +
                           registers + R"(;
  cvt.u64.u32 %rd7, %r4;
  cvta.shared.u64 %rd7, %rd7;
  ld)" + op + " " + registers +
                           R"(, [%rd7];
  mul.wide.u32 %rd4, %r0, )" +
                           std::to_string(whole) + R"(;
  add.u64 %rd5, %rd0, %rd4;
  st)" + op + " [%rd5], " + registers +
                           R"(;
END:
  ret;
}
)";
  Device device;
  const auto program = device.Load(text);
  ASSERT_NE(program, nullptr);
  std::vector<uint8_t> data(256 * static_cast<size_t>(whole));
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 7 + i / 251);
  const uint64_t in = device.Upload(data);
  const std::vector<std::function<uint32_t(uint32_t)>> patterns = {
      [](uint32_t t) { return t; },           [](uint32_t) { return 5u; },
      [](uint32_t t) { return t * 2; },       [](uint32_t t) { return t / 16; },
      [](uint32_t t) { return 127 - t; },     [](uint32_t t) { return t * 37 % 128; },
      [](uint32_t t) { return t % 16 + 100; }};
  for (const uint32_t skip : {99u, 2u}) {
    for (size_t p = 0; p < patterns.size(); ++p) {
      std::vector<uint32_t> index(128);
      for (uint32_t t = 0; t < 128; ++t) index[t] = patterns[p](t);
      const uint64_t out = device.Alloc(128 * static_cast<uint64_t>(whole));
      const LaunchResult result = Launch(device, *program, "k", {{1}, {128}},
                                         Arguments(out, in, device.Upload(index), skip));
      ASSERT_EQ(result.fault, Fault::kNone) << result.message;
      const auto got = device.Download<uint8_t>(out, 128 * static_cast<size_t>(whole));
      for (uint32_t t = 0; t < 128; ++t) {
        for (int k = 0; k < whole; ++k) {
          const uint8_t want =
              t % 5 == skip ? 0xa5 : data[index[t] * static_cast<size_t>(whole) + k];
          ASSERT_EQ(got[t * static_cast<size_t>(whole) + k], want)
              << "pattern " << p << " thread " << t << " byte " << k;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AccessTest,
                         testing::Values(Access{"u8", 1, 1}, Access{"s8", 1, 1}, Access{"b8", 1, 4},
                                         Access{"u16", 2, 1}, Access{"s16", 2, 2},
                                         Access{"b32", 4, 1}, Access{"f32", 4, 2},
                                         Access{"u32", 4, 4}, Access{"b64", 8, 1},
                                         Access{"f64", 8, 2}, Access{"s32", 4, 1}));

TEST_F(MemoryTest, NarrowLoadsExtend) {
  Load(R"(
.visible .entry k(.param .u64 out, .param .u64 in)
{
  .reg .b16 %h<3>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd0, [out];
  ld.param.u64 %rd1, [in];
  ld.global.s8 %r0, [%rd1+1];
  ld.global.u8 %r1, [%rd1+1];
  ld.global.s16 %r2, [%rd1+2];
  ld.global.s8 %rd2, [%rd1+1];
  ld.global.u32 %rd3, [%rd1+4];
  ld.global.s32 %rd4, [%rd1+4];
  ld.global.s8 %h0, [%rd1+1];
  cvt.u32.u16 %r3, %h0;
  st.global.u32 [%rd0], %r0;
  st.global.u32 [%rd0+4], %r1;
  st.global.u32 [%rd0+8], %r2;
  st.global.u32 [%rd0+12], %r3;
  st.global.u64 [%rd0+16], %rd2;
  st.global.u64 [%rd0+24], %rd3;
  st.global.u64 [%rd0+32], %rd4;
  st.global.u8 [%rd0+40], %rd4;
  st.global.u16 [%rd0+42], %r2;
  ret;
}
)");
  const uint64_t in = device_.Upload<uint8_t>({0, 0x81, 0x02, 0x83, 0x04, 0x05, 0x06, 0x87});
  const uint64_t out = device_.Alloc(44);
  Run({{1}, {1}}, Arguments(out, in));
  EXPECT_EQ(device_.Download<uint32_t>(out, 4),
            (std::vector<uint32_t>{0xffffff81, 0x81, 0xffff8302, 0xff81}));
  EXPECT_EQ(device_.Download<uint64_t>(out + 16, 3),
            (std::vector<uint64_t>{0xffffffffffffff81, 0x87060504, 0xffffffff87060504}));
  EXPECT_EQ(device_.Download<uint8_t>(out + 40, 1)[0], 0x04);
  EXPECT_EQ(device_.Download<uint16_t>(out + 42, 1)[0], 0x8302);
}

TEST_F(MemoryTest, InitialisersAndRelocations) {
  Load(R"(
.global .align 4 .u32 numbers[4] = {1, 2, 3, 0xffffffff};
.global .align 8 .u64 pointers[3] = {numbers, generic(numbers)+8, second};
.const .align 4 .f32 factors[2] = {0f3F000000, 0f40000000};
.global .align 4 .b8 second[8] = {9, 8, 7, 6};
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd0, [out];
  ld.global.u32 %r0, [numbers+4];
  mov.u64 %rd1, pointers;
  ld.global.u64 %rd2, [%rd1+8];
  ld.u32 %r1, [%rd2];
  ld.global.u64 %rd3, [%rd1+16];
  ld.global.u32 %r2, [%rd3];
  ld.const.f32 %f0, [factors+4];
  mov.b32 %r3, %f0;
  ld.global.u32 %r4, [second+4];
  st.global.v4.u32 [%rd0], {%r0, %r1, %r2, %r3};
  st.global.u32 [%rd0+16], %r4;
  st.global.u32 [numbers], 77;
  ret;
}
)");
  const uint64_t out = device_.Alloc(20);
  Run({{1}, {1}}, Arguments(out));
  EXPECT_EQ(device_.Download<uint32_t>(out, 5),
            (std::vector<uint32_t>{2, 3, 0x06070809, 0x40000000, 0}));
  ASSERT_EQ(program_->variables().size(), 4u);
  EXPECT_EQ(program_->variables()[0].name, "numbers");
  EXPECT_EQ(device_.Download<uint32_t>(program_->variables()[0].address, 1)[0], 77u);
  EXPECT_TRUE(program_->variables()[2].constant);
}

TEST_F(MemoryTest, ParameterStructsByAddress) {
  Load(R"(
.visible .entry k(.param .u64 out, .param .align 8 .b8 s[24])
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<6>;
  mov.b64 %rd1, s;
  ld.param.u64 %rd0, [out];
  ld.param.u32 %r0, [%rd1+8];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.param.u32 %r2, [%rd3];
  cvta.param.u64 %rd4, %rd3;
  ld.u32 %r3, [%rd4];
  add.u32 %r2, %r2, %r0;
  add.u32 %r2, %r2, %r3;
  add.u64 %rd0, %rd0, %rd2;
  st.global.u32 [%rd0], %r2;
  ret;
}
)");
  struct S {
    uint64_t align[3];
  } s;
  uint32_t words[6] = {1, 20, 300, 4000, 50000, 600000};
  std::memcpy(&s, words, sizeof(s));
  const uint64_t out = device_.Alloc(24);
  Run({{1}, {6}}, Arguments(out, s));
  const auto got = device_.Download<uint32_t>(out, 6);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(got[i], 300 + 2 * words[i]);
}

TEST_F(MemoryTest, DynamicSharedMemoryFollowsStatic) {
  Load(R"(
.shared .align 4 .b32 fixed[8];
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, fixed;
  mov.u32 %r1, dynamic;
  sub.u32 %r2, %r1, %r0;
  mov.u32 %r3, %total_smem_size;
  st.shared.u32 [dynamic+60], %r3;
  ld.shared.u32 %r4, [%r1+60];
  st.global.v2.u32 [%rd0], {%r2, %r4};
  ret;
}
)");
  EXPECT_EQ(Info(*program_->FindKernel("k")).static_shared_bytes, 32u);
  const uint64_t out = device_.Alloc(8);
  Run({{1}, {1}, 64}, Arguments(out));
  EXPECT_EQ(device_.Download<uint32_t>(out, 2), (std::vector<uint32_t>{32, 96}));
}

TEST_F(MemoryTest, AsynchronousCopies) {
  Load(R"(
.visible .entry k(.param .u64 out, .param .u64 in)
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<4>;
  .shared .align 16 .b8 buffer[1024];
  ld.param.u64 %rd0, [out];
  ld.param.u64 %rd1, [in];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd2, %r0, 16;
  add.u64 %rd1, %rd1, %rd2;
  add.u64 %rd0, %rd0, %rd2;
  mov.u32 %r1, buffer;
  mad.lo.u32 %r1, %r0, 16, %r1;
  cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16;
  cp.async.commit_group;
  mov.u32 %r2, 4;
  cp.async.ca.shared.global [%r1], [%rd1], 8, %r2;
  cp.async.wait_group 0;
  ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r1];
  st.global.v4.u32 [%rd0], {%r3, %r4, %r5, %r6};
  ret;
}
)");
  std::vector<uint32_t> in(32);
  std::iota(in.begin(), in.end(), 1);
  const uint64_t out = device_.Alloc(128);
  Run({{1}, {8}}, Arguments(out, device_.Upload(in)));
  for (size_t i = 1; i < in.size(); i += 4) in[i] = 0;  // not read, so zero
  EXPECT_EQ(device_.Download<uint32_t>(out, 32), in);
}

// Atomics: all threads of a warp on one word.
struct AtomicCase {
  const char* op;  // with its type
  const char* space;
  uint64_t start;
  std::function<uint64_t(uint64_t old, uint64_t operand)> apply;
  bool wide = false;
};
void PrintTo(const AtomicCase& atomic, std::ostream* out) {
  *out << atomic.space << "." << atomic.op;
}
class AtomicTest : public testing::TestWithParam<AtomicCase> {};

TEST_P(AtomicTest, ResultsChain) {
  const AtomicCase& atomic = GetParam();
  const std::string w = atomic.wide ? "64" : "32";
  const bool shared = std::string(atomic.space) == ".shared";
  const std::string at = shared ? "[word]" : "[%cell]";
  const std::string text = std::string(kHeader) + R"(
.visible .entry k(.param .u64 cell, .param .u64 results, .param .u64 operands)
{
  .reg .b32 %a32, %b32, %i;
  .reg .b64 %a64, %b64, %cell, %results, %operands, %at;
  .reg .pred %p;
  .shared .align 8 .b64 word;
  ld.param.u64 %cell, [cell];
  ld.param.u64 %results, [results];
  ld.param.u64 %operands, [operands];
  mov.u32 %i, %tid.x;
  ld.global.b)" + w + " %a" +
                           w + R"(, [%cell];
  st.shared.b)" + w + " [word], %a" +
                           w + R"(;
  bar.sync 0;
  mul.wide.u32 %at, %i, 8;
  add.u64 %operands, %operands, %at;
  add.u64 %results, %results, %at;
  ld.global.b)" + w + " %b" +
                           w + R"(, [%operands];
  atom)" + atomic.space + "." +
                           atomic.op + " %a" + w + ", " + at + ", %b" + w + R"(;
  st.global.b)" + w + " [%results], %a" +
                           w + R"(;
  bar.sync 0;
  ld.shared.b)" + w + " %a" +
                           w + R"(, [word];
  )" + (shared ? "st.global.b" + w + " [%cell], %a" + w + ";" : "") +
                           R"(
  ret;
}
)";
  Device device;
  const auto program = device.Load(text);
  ASSERT_NE(program, nullptr);
  const uint32_t n = 32;
  std::vector<uint64_t> operands(n);
  for (uint32_t i = 0; i < n; ++i) operands[i] = i * 0x9e3779b97f4a7c15u >> (atomic.wide ? 3 : 35);
  if (std::string(atomic.op).find("f32") != std::string::npos) {
    for (uint32_t i = 0; i < n; ++i) operands[i] = Bits(0.1f * static_cast<float>(i));
  } else if (std::string(atomic.op).find("f64") != std::string::npos) {
    for (uint32_t i = 0; i < n; ++i) operands[i] = Bits(0.1 * i);
  }
  const uint64_t cell = device.Upload<uint64_t>({atomic.start}),
                 results = device.Upload(std::vector<uint64_t>(n));
  const LaunchResult result =
      Launch(device, *program, "k", {{1}, {n}}, Arguments(cell, results, device.Upload(operands)));
  ASSERT_EQ(result.fault, Fault::kNone) << result.message;
  const auto got = device.Download<uint64_t>(results, n);
  // The lanes of a warp go in order.
  const uint64_t mask = atomic.wide ? ~uint64_t{0} : 0xffffffff;
  uint64_t value = atomic.start & mask;
  for (uint32_t i = 0; i < n; ++i) {
    ASSERT_EQ(got[i] & mask, value) << i;
    value = atomic.apply(value, operands[i] & mask) & mask;
  }
  EXPECT_EQ(device.Download<uint64_t>(cell, 1)[0] & mask, value);
  EXPECT_EQ(result.stats.atomics, n);
}

std::vector<AtomicCase> AtomicCases() {
  std::vector<AtomicCase> cases;
  for (const char* space : {".global", ".shared", ""}) {
    const auto add = [&](const char* op, uint64_t start, auto apply, bool wide = false) {
      cases.push_back({op, space, start, apply, wide});
    };
    add("add.u32", 5, [](uint64_t a, uint64_t b) { return a + b; });
    add(
        "add.u64", 5, [](uint64_t a, uint64_t b) { return a + b; }, true);
    add("min.s32", 1000, [](uint64_t a, uint64_t b) -> uint64_t {
      return static_cast<uint32_t>(std::min(static_cast<int32_t>(a), static_cast<int32_t>(b)));
    });
    add(
        "max.u64", 7, [](uint64_t a, uint64_t b) { return std::max(a, b); }, true);
    add("and.b32", ~uint64_t{0}, [](uint64_t a, uint64_t b) { return a & b; });
    add(
        "or.b64", 1, [](uint64_t a, uint64_t b) { return a | b; }, true);
    add("xor.b32", 1, [](uint64_t a, uint64_t b) { return a ^ b; });
    add("exch.b32", 9, [](uint64_t, uint64_t b) { return b; });
    add("inc.u32", 3, [](uint64_t a, uint64_t b) { return a >= b ? 0 : a + 1; });
    add("dec.u32", 3, [](uint64_t a, uint64_t b) { return a == 0 || a > b ? b : a - 1; });
    add("add.f32", Bits(1.5f), [](uint64_t a, uint64_t b) { return Bits(F(a) + F(b)); });
    add(
        "add.f64", Bits(1.5), [](uint64_t a, uint64_t b) { return Bits(D(a) + D(b)); }, true);
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, AtomicTest, testing::ValuesIn(AtomicCases()));

TEST_F(MemoryTest, CompareAndSwapAndHalves) {
  Load(R"(
.visible .entry k(.param .u64 cells)
{
  .reg .b16 %h<3>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [cells];
  mov.u32 %r0, %tid.x;
  add.u32 %r1, %r0, 1;
  atom.global.cas.b32 %r2, [%rd0], %r0, %r1;
  mov.u16 %h0, 0x3c00;
  atom.global.add.noftz.f16 %h1, [%rd0+4], %h0;
  mov.u32 %r3, 0x3c004000;
  red.global.add.noftz.f16x2 [%rd0+8], %r3;
  mov.u32 %r4, 0x3f803f80;
  atom.global.add.noftz.bf16x2 %r5, [%rd0+12], %r4;
  cvt.u16.u32 %h2, %r0;
  atom.global.cas.b16 %h2, [%rd0+16], %h2, 500;
  ret;
}
)");
  const uint64_t cells = device_.Upload<uint32_t>({0, 0, 0, 0, 3});
  Run({{1}, {32}}, Arguments(cells));
  EXPECT_EQ(device_.Download<uint32_t>(cells, 5),
            // 32 (f16: 0x5000), 64 (0x5400) and 32 (bf16: 0x4200)
            (std::vector<uint32_t>{32, 0x5000, 0x50005400, 0x42004200, 500}));
}

TEST_F(MemoryTest, ConcurrentBlocksCount) {
  // Reductions whose order cannot show run on all workers.
  Device device(4);
  program_ = device.Load(std::string(kHeader) + R"(
.visible .entry k(.param .u64 cell)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd0, [cell];
  mov.u32 %r0, %tid.x;
  red.global.add.u32 [%rd0], 1;
  atom.global.max.u32 %r1, [%rd0+4], %r0;
  red.global.add.u64 [%rd0+8], 3;
  ret;
}
)");
  ASSERT_NE(program_, nullptr);
  const uint64_t cell = device.Upload<uint64_t>({0, 0});
  const LaunchResult result = Launch(device, *program_, "k", {{500}, {64}}, Arguments(cell));
  ASSERT_EQ(result.fault, Fault::kNone) << result.message;
  EXPECT_EQ(device.Download<uint64_t>(cell, 2),
            (std::vector<uint64_t>{32000 | uint64_t{63} << 32, 96000}));
}

}  // namespace
}  // namespace simgpu::test
