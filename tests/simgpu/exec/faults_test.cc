// What goes wrong, and what is said about it; programs that cannot be run; independence of the
// number of workers.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include "ptx/parser.h"
#include "tests/simgpu/exec/harness.h"

namespace simgpu::test {
namespace {

const char kHeader[] = R"(
.version 8.6
.target sm_90
.address_size 64
)";

// Line 7 of the text is the access.
std::string Accesses(const std::string& access) {
  return std::string(kHeader) + ".visible .entry k(.param .u64 a, .param .u32 who) {" +
         ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p; .shared .align 8 .b8 s[64];" + R"(
  ld.param.u64 %rd0, [a]; ld.param.u32 %r0, [who]; mov.u32 %r1, %tid.x; setp.ne.u32 %p, %r1, %r0;
  @%p bra END;
  )" + access +
         R"(
END: ret; }
)";
}

struct FaultCase {
  const char* access;
  uint64_t offset;  // of the argument from an address that is fine; ~0: an unmapped page
  Fault fault;
  const char* text;
};
void PrintTo(const FaultCase& fault, std::ostream* out) { *out << fault.access; }

class FaultTest : public testing::TestWithParam<FaultCase> {};

TEST_P(FaultTest, SaysWhereAndWhat) {
  const FaultCase& c = GetParam();
  for (const int workers : {1, 3}) {
    Device device(workers);
    const auto program = device.Load(Accesses(c.access));
    ASSERT_NE(program, nullptr);
    const uint64_t a = c.offset == ~uint64_t{0} ? device.unmapped() : device.Alloc(4096) + c.offset;
    const LaunchResult result =
        Launch(device, *program, "k", {{5}, {64}}, Arguments(a, uint32_t{37}));
    EXPECT_EQ(result.fault, c.fault);
    EXPECT_NE(result.message.find("kernel k, block (0,0,0), thread (37,0,0), PTX line 8"),
              std::string::npos)
        << result.message;
    EXPECT_NE(result.message.find(c.text), std::string::npos) << result.message;
    // The device is as good as before.
    const uint64_t good = device.Alloc(4096);
    const auto fine = device.Load(Accesses("st.global.u32 [%rd0], 5;"));
    EXPECT_EQ(Launch(device, *fine, "k", {{5}, {64}}, Arguments(good, uint32_t{37})).fault,
              Fault::kNone);
    EXPECT_EQ(device.Download<uint32_t>(good, 1)[0], 5u);
  }
}

constexpr uint64_t kUnmapped = ~uint64_t{0};
INSTANTIATE_TEST_SUITE_P(
    All, FaultTest,
    testing::Values(
        FaultCase{"ld.global.u32 %r2, [%rd0];", kUnmapped, Fault::kIllegalAddress,
                  "page without access"},
        FaultCase{"st.global.u32 [%rd0+4], %r1;", kUnmapped, Fault::kIllegalAddress,
                  "page without access"},
        FaultCase{"st.u64 [%rd0+8], %rd0;", kUnmapped, Fault::kIllegalAddress,
                  "page without access"},
        FaultCase{"red.global.add.u32 [%rd0], 1;", kUnmapped, Fault::kIllegalAddress,
                  "page without access"},
        FaultCase{"ld.global.u32 %r2, [%rd0+2];", 0, Fault::kMisalignedAddress, "misaligned"},
        FaultCase{"ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd0+8];", 0, Fault::kMisalignedAddress,
                  "misaligned"},
        FaultCase{"atom.global.add.u64 %rd1, [%rd0+4], %rd0;", 0, Fault::kMisalignedAddress,
                  "misaligned"},
        FaultCase{"mov.u64 %rd1, 64; ld.global.u32 %r2, [%rd1];", 0, Fault::kIllegalAddress,
                  "illegal address 0x40"},
        FaultCase{"ld.shared.u32 %r2, [s+64];", 0, Fault::kIllegalAddress, "outside shared memory"},
        FaultCase{"mov.u32 %r3, s; st.shared.u16 [%r3+1], %r2;", 0, Fault::kMisalignedAddress,
                  "shared memory"},
        FaultCase{"cvta.shared.u64 %rd1, 1000; st.u32 [%rd1], %r1;", 0, Fault::kIllegalAddress,
                  "outside shared memory"},
        FaultCase{"ld.local.u32 %r2, [%rd0];", 0, Fault::kIllegalAddress, "outside local memory"},
        FaultCase{"trap;", 0, Fault::kTrap, "trap"}));

TEST(Faults, OutsideTheWindowTheMapIsAsked) {
  Device device;
  std::vector<uint32_t> host(16, 3);
  const auto address = reinterpret_cast<uint64_t>(host.data());
  const auto program = device.Load(
      Accesses("ld.global.u32 %r2, [%rd0]; add.u32 %r2, %r2, 1; st.global.u32 [%rd0+4], %r2;"));
  ASSERT_NE(program, nullptr);
  bool writes = false;
  device.map().other = [&](uint64_t at, uint64_t bytes, bool write) {
    writes |= write;
    return at >= address && at + bytes <= address + 64;
  };
  EXPECT_EQ(Launch(device, *program, "k", {{1}, {1}}, Arguments(address, uint32_t{0})).fault,
            Fault::kNone);
  EXPECT_TRUE(writes);
  EXPECT_EQ(host[1], 4u);
  const LaunchResult result =
      Launch(device, *program, "k", {{1}, {1}}, Arguments(address + 60, uint32_t{0}));
  EXPECT_EQ(result.fault, Fault::kIllegalAddress);
  EXPECT_NE(result.message.find("write"), std::string::npos) << result.message;
}

TEST(Faults, SafeCopyAndFill) {
  Device device;
  const uint64_t a = device.Alloc(4096), b = device.Alloc(4096);
  const auto pointer = [](uint64_t address) { return reinterpret_cast<void*>(address); };
  EXPECT_TRUE(SafeFill(pointer(a), 0x1234, 2, 100));
  EXPECT_EQ(device.Download<uint16_t>(a, 101)[99], 0x1234);
  EXPECT_EQ(device.Download<uint16_t>(a, 101)[100], 0xa5a5);
  EXPECT_TRUE(SafeFill(pointer(a), 0x7f, 1, 50));
  EXPECT_TRUE(SafeCopy(pointer(b), pointer(a), 200));
  EXPECT_EQ(device.Download<uint8_t>(b, 200), device.Download<uint8_t>(a, 200));
  EXPECT_FALSE(SafeCopy(pointer(b), pointer(device.unmapped()), 8));
  EXPECT_FALSE(SafeCopy(pointer(device.unmapped()), pointer(b), 8));
  EXPECT_FALSE(SafeFill(pointer(device.unmapped()), 0, 4, 8));
  EXPECT_TRUE(SafeCopy(pointer(b), pointer(device.unmapped()), 0));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Faults that are not ours go to the handler that was there before.
TEST(FaultsDeathTest, ForeignFaultsAreForeign) {
  EXPECT_EXIT(
      {
        signal(SIGSEGV, [](int) { _exit(42); });
        Device device;
        const auto program = device.Load(Accesses("trap;"));
        Launch(device, *program, "k", {{1}, {1}}, Arguments(uint64_t{0}, uint32_t{0}));
        *reinterpret_cast<volatile int*>(device.unmapped()) = 1;
      },
      testing::ExitedWithCode(42), "");
}
#endif

TEST(Faults, LaunchesThatCannotBe) {
  Device device;
  const auto program = device.Load(Accesses("trap;"));
  ASSERT_NE(program, nullptr);
  const Arguments arguments(uint64_t{0}, uint32_t{5000});
  EXPECT_EQ(Launch(device, *program, "k", {{1}, {1025}}, arguments).fault, Fault::kInvalidLaunch);
  EXPECT_EQ(Launch(device, *program, "k", {{0}, {32}}, arguments).fault, Fault::kInvalidLaunch);
  EXPECT_EQ(Launch(device, *program, "k", {{1}, {32}, 1 << 20}, arguments).fault,
            Fault::kInvalidLaunch);
  EXPECT_EQ(Launch(device, *program, "k", {{1}, {32}}, Arguments(uint32_t{0})).fault,
            Fault::kInvalidLaunch);
}

// What is not executed exactly is refused, by its full name.
class UnsupportedTest : public testing::TestWithParam<const char*> {};
TEST_P(UnsupportedTest, IsNamed) {
  Device device;
  const std::string text = Accesses(GetParam());
  auto module = tidepool::ptx::Parse(text);
  ASSERT_TRUE(module.ok()) << module.status();
  const auto program = Program::Load(
      *std::move(module), [&](const auto&) { return absl::StatusOr<uint64_t>(device.Alloc(64)); });
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.status().code(), absl::StatusCode::kUnimplemented) << program.status();
  const std::string instruction = GetParam();
  const std::string name = instruction.substr(0, instruction.find_first_of(" ;"));
  const std::string message(program.status().message());
  EXPECT_NE(message.find(name), std::string::npos) << message;
  EXPECT_NE(message.find("line 8"), std::string::npos) << message;
}
INSTANTIATE_TEST_SUITE_P(
    All, UnsupportedTest,
    testing::Values("tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%rd0, {%r4, %r5}];",
                    "frobnicate.u32 %r0, %r1;", "add.sat.u64 %rd0, %rd1, %rd2;",
                    "cvt.rn.satfinite.e4m3x2.f32 %r0, %r1, %r2;", "wgmma.fence.sync.aligned;",
                    "add.half.u32 %r0, %r1, %r2;",
                    "atom.global.add.v2.f32 {%r0, %r1}, [%rd0], {%r2, %r3};",
                    "mul.f32x2 %rd0, %rd1, %rd2;"));

// The same results and the same counts, whatever the number of workers.
TEST(Determinism, WorkersDoNotShow) {
  std::vector<std::vector<uint32_t>> words;
  std::vector<ExecStats> stats;
  std::vector<std::string> texts;
  for (const int workers : {1, 2, 5}) {
    Device device(workers);
    const auto program = device.Load(ReadFile(SIMGPU_TEST_PTX));
    ASSERT_NE(program, nullptr);
    std::vector<float> x(20000);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 977) * 0.37f - 100.0f;
    const int n = static_cast<int>(x.size());
    const uint64_t in = device.Upload(x), out = device.Upload(std::vector<float>(x.size())),
                   total = device.Upload(std::vector<uint32_t>(2));
    ExecStats sum;
    std::string printed;
    const auto run = [&](const char* kernel, const Shape& shape, const Arguments& arguments) {
      const LaunchResult result = Launch(device, *program, kernel, shape, arguments, &printed);
      ASSERT_EQ(result.fault, Fault::kNone) << result.message;
      sum.warp_instructions += result.stats.warp_instructions;
      sum.lane_instructions += result.stats.lane_instructions;
      sum.flops += result.stats.flops;
      sum.global_read_bytes += result.stats.global_read_bytes;
      sum.global_written_bytes += result.stats.global_written_bytes;
      sum.atomics += result.stats.atomics;
    };
    run("gelu", {{157}, {128}}, Arguments(out, in, n));
    run("reduce_atomic", {{40}, {128}}, Arguments(total, total + 4, in, n));
    run("softmax", {{20}, {256}}, Arguments(out, in, 1000));
    const uint64_t lock = device.Upload(std::vector<int>(2));
    run("spin_lock", {{6}, {32}}, Arguments(lock, lock + 4, 1));
    const uint64_t flags = device.Upload(std::vector<int>(30)),
                   chain = device.Upload(std::vector<int>(30));
    run("chain", {{30}, {32}}, Arguments(flags, chain));
    run("hello", {{50}, {32}}, Arguments(uint64_t{0}));
    words.push_back(device.Download<uint32_t>(out, x.size()));
    words.back().push_back(device.Download<uint32_t>(total, 1)[0]);
    stats.push_back(sum);
    texts.push_back(printed);
  }
  for (size_t k = 1; k < words.size(); ++k) {
    EXPECT_EQ(words[k], words[0]);
    EXPECT_EQ(texts[k], texts[0]);
    EXPECT_EQ(stats[k].warp_instructions, stats[0].warp_instructions);
    EXPECT_EQ(stats[k].lane_instructions, stats[0].lane_instructions);
    EXPECT_EQ(stats[k].flops, stats[0].flops);
    EXPECT_EQ(stats[k].global_read_bytes, stats[0].global_read_bytes);
    EXPECT_EQ(stats[k].global_written_bytes, stats[0].global_written_bytes);
    EXPECT_EQ(stats[k].atomics, stats[0].atomics);
  }
}

// Counts by hand: three lanes, of which one is off.
TEST(Stats, CountLanesAndBytes) {
  Device device;
  const auto program = device.Load(std::string(kHeader) + R"(
.visible .entry k(.param .u64 a)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<3>;
  .reg .f32 %f<3>;
  .reg .pred %p;
  ld.param.u64 %rd0, [a];
  mov.u32 %r0, %tid.x;
  ld.global.f32 %f0, [%rd0];
  fma.rn.f32 %f1, %f0, %f0, %f0;
  setp.eq.u32 %p, %r0, 1;
  @%p st.global.v2.f32 [%rd0+8], {%f1, %f1};
  add.f32 %f2, %f1, %f1;
  red.global.add.f32 [%rd0+16], %f2;
  ret;
}
)");
  ASSERT_NE(program, nullptr);
  const uint64_t a = device.Upload(std::vector<float>(8, 1.0f));
  const LaunchResult result = Launch(device, *program, "k", {{2}, {3}}, Arguments(a));
  ASSERT_EQ(result.fault, Fault::kNone) << result.message;
  EXPECT_EQ(result.stats.warp_instructions, 2u * 9);
  EXPECT_EQ(result.stats.lane_instructions, 2u * (8 * 3 + 1));
  EXPECT_EQ(result.stats.flops, 2u * 3 * (2 + 1 + 1));
  EXPECT_EQ(result.stats.global_read_bytes, 2u * 3 * (4 + 4));
  EXPECT_EQ(result.stats.global_written_bytes, 2u * (8 + 3 * 4));
  EXPECT_EQ(result.stats.atomics, 2u * 3);
}

}  // namespace
}  // namespace simgpu::test
