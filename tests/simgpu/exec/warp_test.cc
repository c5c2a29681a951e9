// Warps and blocks: divergence, operations across lanes, barriers.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/simgpu/exec/harness.h"

namespace simgpu::test {
namespace {

// One kernel with a pointer to a word per thread (`out`), and registers to work with.
std::string Kernel(const std::string& body, const std::string& before = "") {
  return R"(
.version 8.6
.target sm_90
.address_size 64
)" + before +
         R"(
.visible .entry k(.param .u64 out, .param .u64 in)
{
  .reg .pred %p<10>;
  .reg .b32 %r<30>, %t, %lane;
  .reg .b64 %rd<20>, %out, %in;
  .shared .align 8 .b32 shared[1024];
  ld.param.u64 %out, [out];
  ld.param.u64 %in, [in];
  mov.u32 %t, %tid.x;
  mov.u32 %lane, %laneid;
  mul.wide.u32 %rd0, %t, 4;
  add.u64 %out, %out, %rd0;
)" + body +
         R"(
END:
  ret;
}
)";
}

class WarpTest : public testing::Test {
 protected:
  std::vector<uint32_t> Run(const std::string& body, uint32_t threads = 32,
                            const std::string& before = "", uint32_t blocks = 1) {
    const std::unique_ptr<Program> program = device_.Load(Kernel(body, before));
    if (program == nullptr) return {};
    const uint64_t out = device_.Upload(std::vector<uint32_t>(threads, 0xeeeeeeee));
    const uint64_t in = device_.Upload(std::vector<uint32_t>(threads, 0));
    result_ = Launch(device_, *program, "k", {{blocks}, {threads}}, Arguments(out, in));
    EXPECT_EQ(result_.fault, wanted_) << result_.message;
    return device_.Download<uint32_t>(out, threads);
  }
  // What each thread is to store.
  template <typename F>
  static std::vector<uint32_t> Each(uint32_t threads, F f) {
    std::vector<uint32_t> values(threads);
    for (uint32_t t = 0; t < threads; ++t) values[t] = static_cast<uint32_t>(f(t));
    return values;
  }

  Device device_;
  LaunchResult result_;
  Fault wanted_ = Fault::kNone;
};

TEST_F(WarpTest, ShuffleModes) {
  EXPECT_EQ(Run("shfl.sync.idx.b32 %r0, %lane, 5, 0x1f, -1; st.global.u32 [%out], %r0;"),
            Each(32, [](int) { return 5; }));
  EXPECT_EQ(Run("shfl.sync.up.b32 %r0|%p0, %lane, 3, 0, -1; selp.u32 %r1, 100, 0, %p0; "
                "add.u32 %r0, %r0, %r1; st.global.u32 [%out], %r0;"),
            Each(32, [](int t) { return t < 3 ? t : 100 + t - 3; }));
  EXPECT_EQ(Run("shfl.sync.down.b32 %r0|%p0, %lane, 4, 0x1f, -1; selp.u32 %r1, 100, 0, %p0; "
                "add.u32 %r0, %r0, %r1; st.global.u32 [%out], %r0;"),
            Each(32, [](int t) { return t >= 28 ? t : 100 + t + 4; }));
  EXPECT_EQ(Run("shfl.sync.bfly.b32 %r0, %lane, 6, 0x1f, -1; st.global.u32 [%out], %r0;"),
            Each(32, [](int t) { return t ^ 6; }));
  // Segments of 8: c = (32 - 8) << 8 | clamp.
  EXPECT_EQ(Run("shfl.sync.idx.b32 %r0, %lane, 2, 0x181f, -1; st.global.u32 [%out], %r0;"),
            Each(32, [](int t) { return (t & ~7) + 2; }));
  EXPECT_EQ(Run("shfl.sync.down.b32 %r0, %lane, 3, 0x181f, -1; st.global.u32 [%out], %r0;"),
            Each(32, [](int t) { return (t & 7) + 3 > 7 ? t : t + 3; }));
  EXPECT_EQ(Run("shfl.sync.up.b32 %r0, %lane, 3, 0x1800, -1; st.global.u32 [%out], %r0;"),
            Each(32, [](int t) { return (t & 7) < 3 ? t : t - 3; }));
  // A different source for each lane.
  EXPECT_EQ(Run("xor.b32 %r1, %lane, 21; shfl.sync.idx.b32 %r0, %lane, %r1, 0x1f, -1; "
                "st.global.u32 [%out], %r0;"),
            Each(32, [](int t) { return t ^ 21; }));
}

TEST_F(WarpTest, Votes) {
  EXPECT_EQ(Run("setp.lt.u32 %p0, %lane, 7; vote.sync.ballot.b32 %r0, %p0, -1; "
                "st.global.u32 [%out], %r0;"),
            Each(32, [](int) { return 0x7f; }));
  EXPECT_EQ(Run("setp.lt.u32 %p0, %lane, 7; vote.sync.ballot.b32 %r0, !%p0, -1; "
                "st.global.u32 [%out], %r0;"),
            Each(32, [](int) { return ~0x7fu; }));
  EXPECT_EQ(Run("setp.lt.u32 %p0, %lane, 32; vote.sync.all.pred %p1, %p0, -1; "
                "setp.lt.u32 %p0, %lane, 31; vote.sync.all.pred %p2, %p0, -1; "
                "setp.eq.u32 %p0, %lane, 9; vote.sync.any.pred %p3, %p0, -1; "
                "vote.sync.uni.pred %p4, %p0, -1; "
                "selp.u32 %r0, 1, 0, %p1; selp.u32 %r1, 2, 0, %p2; selp.u32 %r2, 4, 0, %p3; "
                "selp.u32 %r3, 8, 0, %p4; or.b32 %r0, %r0, %r1; or.b32 %r0, %r0, %r2; "
                "or.b32 %r0, %r0, %r3; st.global.u32 [%out], %r0;"),
            Each(32, [](int) { return 1 | 4; }));
  // Both halves of a warp, each with its own members, in one instruction.
  EXPECT_EQ(Run("setp.lt.u32 %p0, %lane, 16; selp.b32 %r1, 0x0000ffff, 0xffff0000, %p0; "
                "and.b32 %r2, %lane, 1; setp.eq.u32 %p1, %r2, 1; "
                "vote.sync.ballot.b32 %r0, %p1, %r1; st.global.u32 [%out], %r0;"),
            Each(32, [](int t) { return t < 16 ? 0xaaaa : 0xaaaa0000; }));
}

TEST_F(WarpTest, MatchReduxElectMasks) {
  EXPECT_EQ(Run("and.b32 %r1, %lane, 3; match.any.sync.b32 %r0, %r1, -1; "
                "st.global.u32 [%out], %r0;"),
            Each(32, [](int t) { return 0x11111111u << (t & 3); }));
  EXPECT_EQ(Run("mov.u64 %rd1, 7; match.all.sync.b64 %r0|%p0, %rd1, -1; "
                "selp.u32 %r1, %r0, 5, %p0; st.global.u32 [%out], %r1;"),
            Each(32, [](int) { return ~0u; }));
  EXPECT_EQ(Run("match.all.sync.b32 %r0|%p0, %lane, -1; selp.u32 %r1, 4, %r0, %p0; "
                "st.global.u32 [%out], %r1;"),
            Each(32, [](int) { return 0; }));
  EXPECT_EQ(Run("sub.s32 %r1, %lane, 20; redux.sync.min.s32 %r0, %r1, -1; "
                "redux.sync.max.u32 %r2, %r1, -1; redux.sync.add.s32 %r3, %lane, -1; "
                "redux.sync.xor.b32 %r4, %lane, -1; sub.s32 %r0, %r0, %r2; "
                "mad.lo.s32 %r0, %r3, 1000, %r0; add.s32 %r0, %r0, %r4; "
                "st.global.u32 [%out], %r0;"),
            Each(32, [](int) { return 496 * 1000 + (-20 - -1) + 0; }));
  EXPECT_EQ(Run("elect.sync %r0|%p0, 0xfffffff0; selp.u32 %r1, 100, 0, %p0; "
                "add.u32 %r0, %r0, %r1; st.global.u32 [%out], %r0;",
                32)
                .at(4),
            104u);
  EXPECT_EQ(Run("mov.u32 %r0, %lanemask_lt; mov.u32 %r1, %lanemask_ge; mov.u32 %r2, %lanemask_eq; "
                "sub.u32 %r0, %r1, %r0; xor.b32 %r0, %r0, %r2; st.global.u32 [%out], %r0;"),
            Each(32, [](int t) {
              const uint32_t eq = 1u << t, lt = eq - 1;
              return (~lt - lt) ^ eq;
            }));
}

TEST_F(WarpTest, LanesComeTogetherBehindABranch) {
  EXPECT_EQ(Run("setp.lt.u32 %p0, %lane, 11; @%p0 bra LOW; mov.u32 %r0, 2; bra JOIN; "
                "LOW: mov.u32 %r0, 1; JOIN: activemask.b32 %r1; popc.b32 %r1, %r1; "
                "mad.lo.u32 %r0, %r0, 100, %r1; st.global.u32 [%out], %r0;"),
            Each(32, [](int t) { return (t < 11 ? 100 : 200) + 32; }));
  // Loops of different lengths.
  EXPECT_EQ(Run("mov.u32 %r0, 0; LOOP: add.u32 %r0, %r0, %lane; add.u32 %r1, %r0, 1; "
                "setp.lt.u32 %p0, %r0, 50; setp.ne.and.u32 %p0, %lane, 0, %p0; @%p0 bra LOOP; "
                "activemask.b32 %r1; popc.b32 %r1, %r1; mad.lo.u32 %r0, %r0, 100, %r1; "
                "st.global.u32 [%out], %r0;"),
            Each(32, [](int t) {
              int sum = 0;
              do sum += t;
              while (t != 0 && sum < 50);
              return sum * 100 + 32;
            }));
}

TEST_F(WarpTest, OperationsWaitForTheirMembers) {
  // The two halves come by different ways, at different times.
  EXPECT_EQ(Run("setp.lt.u32 %p0, %lane, 16; @%p0 bra SHUFFLE; mov.u32 %r2, 0; "
                "LOOP: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 100; @%p1 bra LOOP; "
                "SHUFFLE: shfl.sync.bfly.b32 %r0, %lane, 16, 0x1f, -1; "
                "st.global.u32 [%out], %r0;"),
            Each(32, [](int t) { return t ^ 16; }));
  // Lanes that have left are not waited for.
  EXPECT_EQ(Run("setp.ge.u32 %p0, %lane, 20; @%p0 bra END; "
                "vote.sync.ballot.b32 %r0, 1, -1; st.global.u32 [%out], %r0;"),
            Each(32, [](int t) { return t < 20 ? 0xfffff : 0xeeeeeeee; }));
  // Barriers of a warp at two places: what one half writes the other reads.
  EXPECT_EQ(Run("mov.u32 %r5, shared; shl.b32 %r6, %lane, 2; add.u32 %r5, %r5, %r6; "
                "setp.lt.u32 %p0, %lane, 16; @%p0 bra LOW; "
                "bar.warp.sync -1; ld.shared.u32 %r0, [%r5-64]; bra STORE; "
                "LOW: add.u32 %r7, %lane, 7; st.shared.u32 [%r5], %r7; bar.warp.sync -1; "
                "mov.u32 %r0, 1; STORE: st.global.u32 [%out], %r0;"),
            Each(32, [](int t) { return t < 16 ? 1 : t - 16 + 7; }));
}

TEST_F(WarpTest, PartialWarpsAndGuards) {
  EXPECT_EQ(Run("activemask.b32 %r0; st.global.u32 [%out], %r0;", 40),
            Each(40, [](int t) { return t < 32 ? 0xffffffff : 0xff; }));
  EXPECT_EQ(Run("setp.eq.u32 %p0, %lane, 3; @%p0 exit; st.global.u32 [%out], %lane;"),
            Each(32, [](int t) { return t == 3 ? 0xeeeeeeee : t; }));
  EXPECT_EQ(Run("setp.gt.u32 %p0, %lane, 3; @!%p0 ret; @%p0 st.global.u32 [%out], %lane;"),
            Each(32, [](int t) { return t > 3 ? t : 0xeeeeeeee; }));
  EXPECT_EQ(Run("and.b32 %r1, %lane, 1; setp.eq.u32 %p0, %r1, 1; mov.u32 %r0, 9; "
                "@%p0 shl.b32 %r0, %lane, 3; @!%p0 add.u32 %r0, %r0, %lane; "
                "st.global.u32 [%out], %r0;"),
            Each(32, [](int t) { return t % 2 == 1 ? 8 * t : 9 + t; }));
}

TEST_F(WarpTest, IndexedBranches) {
  EXPECT_EQ(Run("rem.u32 %r1, %lane, 3; TABLE: .branchtargets A, B, C; brx.idx %r1, TABLE; "
                "A: mov.u32 %r0, 10; bra OUT; B: mov.u32 %r0, 20; bra OUT; C: mov.u32 %r0, 30; "
                "OUT: activemask.b32 %r2; popc.b32 %r2, %r2; add.u32 %r0, %r0, %r2; "
                "st.global.u32 [%out], %r0;"),
            Each(32, [](int t) { return 10 * (t % 3 + 1) + 32; }));
}

TEST_F(WarpTest, BlockBarriers) {
  // Every thread reads what a thread of another warp wrote.
  EXPECT_EQ(Run("mov.u32 %r5, shared; shl.b32 %r6, %t, 2; add.u32 %r5, %r5, %r6; "
                "st.shared.u32 [%r5], %t; bar.sync 0; xor.b32 %r6, %r6, 0x100; "
                "mov.u32 %r5, shared; add.u32 %r5, %r5, %r6; ld.shared.u32 %r0, [%r5]; "
                "st.global.u32 [%out], %r0;",
                128),
            Each(128, [](int t) { return t ^ 64; }));
  // Threads that have left are not waited for; the barrier's number is in a register.
  EXPECT_EQ(Run("setp.ge.u32 %p0, %t, 70; @%p0 bra END; mov.u32 %r9, 3; barrier.sync %r9; "
                "st.global.u32 [%out], %t;",
                100),
            Each(100, [](int t) { return t < 70 ? t : 0xeeeeeeee; }));
  // Producers arrive, consumers wait: 64 threads at barrier 1.
  EXPECT_EQ(Run("setp.ge.u32 %p0, %t, 32; @%p0 bra CONSUME; mov.u32 %r5, shared; "
                "shl.b32 %r6, %t, 2; add.u32 %r5, %r5, %r6; mul.lo.u32 %r7, %t, 3; "
                "st.shared.u32 [%r5], %r7; bar.arrive 1, 64; bra END; "
                "CONSUME: bar.sync 1, 64; mov.u32 %r5, shared; shl.b32 %r6, %lane, 2; "
                "add.u32 %r5, %r5, %r6; ld.shared.u32 %r0, [%r5]; st.global.u32 [%out], %r0;",
                64),
            Each(64, [](int t) { return t < 32 ? 0xeeeeeeee : 3 * (t - 32); }));
}

TEST_F(WarpTest, BarrierReductions) {
  EXPECT_EQ(Run("rem.u32 %r1, %t, 5; setp.eq.u32 %p0, %r1, 0; bar.red.popc.u32 %r0, 0, %p0; "
                "st.global.u32 [%out], %r0;",
                100),
            Each(100, [](int) { return 20; }));
  EXPECT_EQ(Run("setp.lt.u32 %p0, %t, 99; bar.red.and.pred %p1, 0, %p0; "
                "bar.red.or.pred %p2, 0, !%p0; selp.u32 %r0, 1, 0, %p1; "
                "selp.u32 %r1, 2, 0, %p2; or.b32 %r0, %r0, %r1; st.global.u32 [%out], %r0;",
                100),
            Each(100, [](int) { return 2; }));
}

TEST_F(WarpTest, DeadlocksAreFaults) {
  wanted_ = Fault::kTimeout;
  Run("setp.lt.u32 %p0, %t, 32; @%p0 bra END; bar.sync 1, 96;", 64);
  EXPECT_NE(result_.message.find("deadlock"), std::string::npos) << result_.message;
}

TEST_F(WarpTest, SpecialRegisters) {
  const std::unique_ptr<Program> program = device_.Load(R"(
.version 8.6
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<20>;
  .reg .b64 %rd<6>;
  .reg .pred %p;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %tid.y;
  mov.u32 %r2, %tid.z;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %ntid.y;
  mad.lo.u32 %r5, %r2, %r4, %r1;
  mad.lo.u32 %r5, %r5, %r3, %r0;
  mov.u32 %r6, %ctaid.x;
  mov.u32 %r7, %ctaid.y;
  mov.u32 %r8, %nctaid.x;
  mad.lo.u32 %r6, %r7, %r8, %r6;
  mov.u32 %r9, %ntid.z;
  mul.lo.u32 %r10, %r3, %r4;
  mul.lo.u32 %r10, %r10, %r9;
  mad.lo.u32 %r11, %r6, %r10, %r5;
  ld.param.u64 %rd0, [out];
  mul.wide.u32 %rd1, %r11, 4;
  add.u64 %rd0, %rd0, %rd1;
  mov.u32 %r12, %warpid;
  mov.u32 %r13, %dynamic_smem_size;
  mov.u64 %rd2, %clock64;
  mov.u64 %rd3, %clock64;
  setp.gt.u64 %p, %rd3, %rd2;
  selp.u32 %r14, 1000, 0, %p;
  add.u32 %r12, %r12, %r13;
  add.u32 %r12, %r12, %r14;
  st.global.u32 [%rd0], %r12;
  ret;
}
)");
  ASSERT_NE(program, nullptr);
  const uint64_t out = device_.Alloc(6 * 60 * 4);
  const LaunchResult result =
      Launch(device_, *program, "k", {{3, 2}, {5, 4, 3}, 4000}, Arguments(out));
  ASSERT_EQ(result.fault, Fault::kNone) << result.message;
  const auto got = device_.Download<uint32_t>(out, 360);
  for (uint32_t i = 0; i < 360; ++i) EXPECT_EQ(got[i], 5000 + (i % 60) / 32) << i;
}

TEST_F(WarpTest, IndirectCallsDiverge) {
  const std::string functions = R"(
.func (.param .b32 r) one(.param .b32 x)
{ .reg .b32 %a; ld.param.u32 %a, [x]; add.u32 %a, %a, 1; st.param.b32 [r], %a; ret; }
.func (.param .b32 r) many(.param .b32 x)
{ .reg .b32 %a; ld.param.u32 %a, [x]; mul.lo.u32 %a, %a, 10; st.param.b32 [r], %a; ret; }
.global .align 8 .u64 table[2] = {one, many};
)";
  EXPECT_EQ(Run("and.b32 %r1, %lane, 1; mul.wide.u32 %rd1, %r1, 8; mov.u64 %rd2, table; "
                "add.u64 %rd2, %rd2, %rd1; ld.global.u64 %rd3, [%rd2]; "
                "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %lane; "
                "proto: .callprototype (.param .b32 _) _ (.param .b32 _); "
                "call (b), %rd3, (a), proto; ld.param.b32 %r0, [b]; } "
                "activemask.b32 %r2; popc.b32 %r2, %r2; mad.lo.u32 %r0, %r2, 1000, %r0; "
                "st.global.u32 [%out], %r0;",
                32, functions),
            Each(32, [](int t) { return 32000 + (t % 2 == 0 ? t + 1 : 10 * t); }));
}

}  // namespace
}  // namespace simgpu::test
