// Constructs that carry a pointer past an analysis that is not careful. Each kernel here really
// reads, writes or keeps what its first parameter points to (or what it finds in memory); an answer
// that says neither so, nor that the kernel cannot be followed, would let that buffer be dropped
// while it is used.
#include <gtest/gtest.h>

#include <string>

#include "ptx/parser.h"
#include "runtime/access/kernel_access.h"

namespace tidepool {
namespace {

KernelAccess AnalyzeText(const std::string& rest) {
  absl::StatusOr<ptx::Module> module =
      ptx::Parse(".version 9.0\n.target sm_90\n.address_size 64\n" + rest);
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return {};
  return AnalyzeKernel(*module, *module->FindFunction("k"));
}

constexpr char kRegisters[] =
    ".reg .b64 %rd<20>;\n.reg .b32 %r<20>;\n.reg .b16 %rs<20>;\n.reg .f32 %f<10>;\n"
    ".reg .f64 %fd<10>;\n.reg .b128 %q<4>;\n.reg .pred %p<4>;\n"
    ".local .align 16 .b8 depot[64];\n.shared .align 16 .b8 tile[64];\n";

// p0 is the pointer, p1 another one; %rd0 and %rd1 hold them, %r0 and %r1 the halves of p0, each
// loaded by itself.
KernelAccess Analyze(const std::string& body, const std::string& before = "") {
  return AnalyzeText(before + ".visible .entry k(.param .u64 p0, .param .u64 p1)\n{\n" +
                     kRegisters +
                     "ld.param.u64 %rd0, [p0];\nld.param.u64 %rd1, [p1];\n"
                     "ld.param.u32 %r0, [p0];\nld.param.u32 %r1, [p0+4];\n" +
                     body + "\nret;\n}\n");
}

// A struct by value: { int n; T* p; } packed to 4 bytes, or any other bytes.
KernelAccess AnalyzeStruct(const std::string& body) {
  return AnalyzeText(
      ".visible .entry k(.param .align 4 .b8 s[12], .param .align 16 .b8 t[32])\n{\n" +
      std::string(kRegisters) + body + "\nret;\n}\n");
}

const WordAccess* Word(const KernelAccess& access, uint32_t offset) {
  for (const WordAccess& word : access.words) {
    if (word.offset == offset && word.bytes == 8) return &word;
  }
  return nullptr;
}

bool Uses(const KernelAccess& access, uint32_t offset, AccessMode mode) {
  const WordAccess* word = Word(access, offset);
  return access.opaque || (word != nullptr && (word->mode | mode) == word->mode);
}
bool Keeps(const KernelAccess& access, uint32_t offset) {
  const WordAccess* word = Word(access, offset);
  return access.opaque || (word != nullptr && word->escapes);
}
// Everything must stay where it is, or what memory names is pinned.
bool Anything(const KernelAccess& access) {
  return access.opaque || access.unbased || access.indirect;
}

struct Case {
  const char* name;
  const char* body;
};

class AWriteThroughTheFirstParameter : public ::testing::TestWithParam<Case> {};
TEST_P(AWriteThroughTheFirstParameter, IsSeen) {
  const KernelAccess access = Analyze(GetParam().body);
  EXPECT_TRUE(Uses(access, 0, AccessMode::kWrite)) << access.NotReplayableReason();
}

INSTANTIATE_TEST_SUITE_P(
    Adversary, AWriteThroughTheFirstParameter,
    ::testing::Values(
        Case{"HalvesOfAWord",
             "mov.b64 {%r2, %r3}, %rd0;\nmov.b64 %rd4, {%r2, %r3};\nst.global.u32 [%rd4], 1;"},
        Case{"HalvesLoadedApart", "mov.b64 %rd4, {%r0, %r1};\nst.global.u32 [%rd4], 1;"},
        Case{"HalvesBesideAnIndexOfTheOther",
             "ld.global.u32 %r5, [%rd1];\nmov.b64 %rd4, {%r0, %r1};\nmul.wide.u32 %rd5, %r5, 4;\n"
             "add.s64 %rd6, %rd4, %rd5;\nst.global.u32 [%rd6], 1;"},
        Case{"ShiftAndOr",
             "cvt.u64.u32 %rd4, %r0;\ncvt.u64.u32 %rd5, %r1;\nshl.b64 %rd6, %rd5, 32;\n"
             "or.b64 %rd7, %rd6, %rd4;\nst.global.u32 [%rd7], 1;"},
        Case{"MultiplyUp",
             "cvt.u64.u32 %rd4, %r0;\ncvt.u64.u32 %rd5, %r1;\n"
             "mad.lo.u64 %rd7, %rd5, 4294967296, %rd4;\nst.global.u32 [%rd7], 1;"},
        Case{"BitInsert",
             "cvt.u64.u32 %rd4, %r0;\ncvt.u64.u32 %rd5, %r1;\nbfi.b64 %rd6, %rd5, %rd4, 32, 32;\n"
             "st.global.u32 [%rd6], 1;"},
        Case{"BytesPermuted",
             "prmt.b32 %r2, %r0, %r1, 0x3210;\nprmt.b32 %r3, %r0, %r1, 0x7654;\n"
             "mov.b64 %rd4, {%r2, %r3};\nst.global.u32 [%rd4], 1;"},
        Case{"FunnelShift",
             "shf.l.wrap.b32 %r2, %r0, %r1, 0;\nmov.b64 %rd4, {%r0, %r2};\n"
             "st.global.u32 [%rd4], 1;"},
        Case{"CarryChain",
             "add.cc.u32 %r2, %r0, 16;\naddc.u32 %r3, %r1, 0;\nmov.b64 %rd4, {%r2, %r3};\n"
             "st.global.u32 [%rd4], 1;"},
        Case{"Xor",
             "xor.b64 %rd4, %rd0, %rd1;\nxor.b64 %rd5, %rd4, %rd1;\nst.global.u32 [%rd5], 1;"},
        Case{"Lop3",
             "mov.b64 {%r2, %r3}, %rd0;\nlop3.b32 %r4, %r2, 0, 0, 0xf0;\n"
             "mov.b64 %rd4, {%r4, %r3};\nst.global.u32 [%rd4], 1;"},
        Case{"ADouble",
             "mov.b64 %fd1, %rd0;\nmov.f64 %fd2, %fd1;\nmov.b64 %rd4, %fd2;\n"
             "st.global.u32 [%rd4], 1;"},
        Case{"ADoubleParameter",
             "ld.param.f64 %fd1, [p0];\nmov.b64 %rd4, %fd1;\n"
             "st.global.u32 [%rd4], 1;"},
        Case{"ASelectedDouble",
             "mov.b64 %fd1, %rd0;\nsetp.eq.u32 %p1, %r5, 0;\nselp.f64 %fd2, %fd1, "
             "0d0000000000000000, %p1;\n"
             "mov.b64 %rd4, %fd2;\nst.global.u32 [%rd4], 1;"},
        Case{"TwoFloats",
             "mov.b32 %f1, %r0;\nmov.b32 %f2, %r1;\nmov.b64 %rd4, {%f1, %f2};\n"
             "st.global.u32 [%rd4], 1;"},
        Case{"FourHalves",
             "mov.b64 {%rs0, %rs1, %rs2, %rs3}, %rd0;\nmov.b32 %r2, {%rs0, %rs1};\n"
             "mov.b32 %r3, {%rs2, %rs3};\nmov.b64 %rd4, {%r2, %r3};\nst.global.u32 [%rd4], 1;"},
        Case{"ConvertedToANumberAndBack",
             "cvt.rn.f64.u64 %fd1, %rd0;\ncvt.rzi.u64.f64 %rd4, %fd1;\nst.global.u32 [%rd4], 1;"},
        Case{"Shuffled",
             "mov.b64 {%r2, %r3}, %rd0;\nshfl.sync.idx.b32 %r4, %r2, 0, 31, -1;\n"
             "shfl.sync.idx.b32 %r5, %r3, 0, 31, -1;\nmov.b64 %rd4, {%r4, %r5};\n"
             "st.global.u32 [%rd4], 1;"},
        Case{
            "Reduced",
            "mov.b64 {%r2, %r3}, %rd0;\nredux.sync.or.b32 %r4, %r2, -1;\n"
            "redux.sync.or.b32 %r5, %r3, -1;\nmov.b64 %rd4, {%r4, %r5};\nst.global.u32 [%rd4], 1;"},
        Case{"SharedHalves",
             "mov.b64 {%r2, %r3}, %rd0;\nst.shared.u32 [tile], %r2;\nst.shared.u32 [tile+4], %r3;\n"
             "ld.shared.u64 %rd4, [tile];\nst.global.u32 [%rd4], 1;"},
        Case{"SharedHalvesLoadedApart",
             "st.shared.v2.u32 [tile], {%r0, %r1};\nld.shared.u64 %rd4, [tile];\n"
             "st.global.u32 [%rd4], 1;"},
        Case{"SharedExchange",
             "atom.shared.exch.b64 %rd4, [tile], %rd0;\natom.shared.exch.b64 %rd5, [tile], %rd1;\n"
             "st.global.u32 [%rd5], 1;"},
        Case{"LocalHalves",
             "st.local.u32 [depot], %r0;\nst.local.u32 [depot+4], %r1;\n"
             "ld.local.u64 %rd4, [depot];\nst.global.u32 [%rd4], 1;"},
        Case{"LocalAsFloats",
             "mov.b64 {%f1, %f2}, %rd0;\nst.local.v2.f32 [depot], {%f1, %f2};\n"
             "ld.local.u64 %rd4, [depot];\nst.global.u32 [%rd4], 1;"},
        Case{"LocalThroughAGenericAddress",
             "mov.u64 %rd4, depot;\ncvta.local.u64 %rd5, %rd4;\nst.u64 [%rd5+8], %rd0;\n"
             "ld.local.u64 %rd6, [depot+8];\nst.global.u32 [%rd6], 1;"},
        Case{"AGenericStore", "st.u32 [%rd0], 1;"},
        Case{"AVolatileStore", "st.volatile.global.u32 [%rd0], 1;"},
        Case{"WmmaStore",
             "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd0], {%f0,%f1,%f2,%f3,%f4,%f5,"
             "%f6,%f7}, %r5;"},
        Case{"AnAtomic", "red.global.add.u32 [%rd0], 1;"},
        Case{"ASurfaceOfPieces",  // opaque would do as well
             "mov.b64 {%r2, %r3}, %rd0;\nslct.u32.s32 %r4, %r2, %r2, %r5;\n"
             "mov.b64 %rd4, {%r4, %r3};\nst.global.u32 [%rd4], 1;"},
        Case{"ABulkCopy", "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 64;"},
        Case{"AnUnknownInstruction", "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r3};"}),
    [](const auto& info) { return std::string(info.param.name); });

class AnAddressFromMemory : public ::testing::TestWithParam<Case> {};
TEST_P(AnAddressFromMemory, IsSeen) {
  const KernelAccess access = Analyze(GetParam().body);
  EXPECT_TRUE(Anything(access));
  EXPECT_FALSE(access.Replayable());
}
INSTANTIATE_TEST_SUITE_P(
    Adversary, AnAddressFromMemory,
    ::testing::Values(
        Case{"Vector", "ld.global.v2.u64 {%rd4, %rd5}, [%rd0];\nld.global.u32 %r5, [%rd5];"},
        Case{"Wide",
             "ld.global.b128 %q1, [%rd0];\nmov.b128 {%rd4, %rd5}, %q1;\n"
             "ld.global.u32 %r5, [%rd5];"},
        Case{"VectorOfHalves",
             "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd0];\nmov.b64 %rd4, {%r4, %r5};\n"
             "ld.global.u32 %r6, [%rd4];"},
        Case{"FloatHalves",
             "ld.global.v2.f32 {%f1, %f2}, [%rd0];\nmov.b64 %rd4, {%f1, %f2};\n"
             "ld.global.u32 %r6, [%rd4];"},
        Case{"ADouble",
             "ld.global.f64 %fd1, [%rd0];\nmov.b64 %rd4, %fd1;\nld.global.u32 %r6, [%rd4];"},
        Case{"HalvesThroughLocal",
             "ld.global.v2.u32 {%r2, %r3}, [%rd0];\nst.local.v2.u32 [depot], {%r2, %r3};\n"
             "ld.local.u64 %rd4, [depot];\nadd.s64 %rd5, %rd4, %rd1;\nld.global.u32 %r6, [%rd5];"},
        Case{"HalvesThroughShared",
             "ld.global.v2.f32 {%f2, %f3}, [%rd0];\nst.shared.v2.f32 [tile], {%f2, %f3};\n"
             "ld.shared.u64 %rd4, [tile];\nadd.s64 %rd5, %rd4, %rd1;\nld.global.u32 %r6, [%rd5];"},
        Case{"CopiedToShared",
             "mov.u32 %r2, tile;\ncp.async.ca.shared.global [%r2], [%rd0], 8;\n"
             "ld.shared.u64 %rd4, [tile];\nld.global.u32 %r6, [%rd4];"},
        Case{"SplitAndJoined",
             "ld.global.u64 %rd4, [%rd0];\ncvt.u32.u64 %r2, %rd4;\nshr.u64 %rd5, %rd4, 32;\n"
             "cvt.u32.u64 %r3, %rd5;\nst.local.v2.u32 [depot], {%r2, %r3};\n"
             "ld.local.u64 %rd6, [depot];\nadd.s64 %rd7, %rd6, %rd1;\nld.global.u32 %r6, [%rd7];"},
        Case{
            "Compressed",  // (nothing but a number went into it)
            "ld.global.u32 %r2, [%rd0];\nmul.wide.u32 %rd4, %r2, 256;\nld.global.u32 %r6, [%rd4];"},
        Case{"Exchanged", "atom.global.exch.b64 %rd4, [%rd0], %rd1;\nld.global.u32 %r6, [%rd4];"},
        Case{"WmmaFragments",
             "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r2,%r3,%r4,%r5,%r6,%r7,%r8,%r9}, "
             "[%rd0], %r10;\nmov.b64 %rd4, {%r2, %r3};\nld.global.u32 %r6, [%rd4];"},
        Case{"ANumber", "mov.u64 %rd4, 65536;\nld.global.u32 %r6, [%rd4];"}),
    [](const auto& info) { return std::string(info.param.name); });

class AStoredPointer : public ::testing::TestWithParam<Case> {};
TEST_P(AStoredPointer, Escapes) { EXPECT_TRUE(Keeps(Analyze(GetParam().body), 0)); }
INSTANTIATE_TEST_SUITE_P(
    Adversary, AStoredPointer,
    ::testing::Values(
        Case{"Whole", "st.global.u64 [%rd1], %rd0;"},
        Case{"Halves", "mov.b64 {%r2, %r3}, %rd0;\nst.global.v2.u32 [%rd1], {%r2, %r3};"},
        Case{"HalvesLoadedApart", "st.global.u32 [%rd1], %r0;\nst.global.u32 [%rd1+4], %r1;"},
        Case{"AsADouble", "mov.b64 %fd1, %rd0;\nst.global.f64 [%rd1], %fd1;"},
        Case{"AsFloats", "mov.b64 {%f1, %f2}, %rd0;\nst.global.v2.f32 [%rd1], {%f1, %f2};"},
        Case{"Exchanged", "atom.global.exch.b64 %rd4, [%rd1], %rd0;"},
        Case{"AddedToZero", "red.global.add.u64 [%rd1], %rd0;"},
        Case{"Hidden", "xor.b64 %rd4, %rd0, 12345;\nst.global.u64 [%rd1], %rd4;"},
        Case{"ToNowhereKnown", "mov.u64 %rd4, 65536;\nst.u64 [%rd4], %rd0;"},
        Case{"ThroughAnAddressInMemory", "ld.global.u64 %rd4, [%rd1];\nst.u64 [%rd4], %rd0;"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Adversary, PackedStructsByPieces) {
  // The pointer at byte 4, in halves.
  EXPECT_TRUE(Uses(AnalyzeStruct("ld.param.u32 %r2, [s+4];\nld.param.u32 %r3, [s+8];\n"
                                 "mov.b64 %rd4, {%r2, %r3};\nst.global.u32 [%rd4], 1;"),
                   4, AccessMode::kWrite));
  // Byte by byte.
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i), at = std::to_string(i + 4);
    bytes += "ld.param.u8 %rs" + n + ", [s+" + at + "];\ncvt.u64.u16 %rd4, %rs" + n +
             ";\nshl.b64 %rd5, %rd4, " + std::to_string(8 * i) + ";\nor.b64 %rd6, %rd6, %rd5;\n";
  }
  EXPECT_TRUE(Uses(AnalyzeStruct(bytes + "st.global.u32 [%rd6], 1;"), 4, AccessMode::kWrite));
  // Through its address, of which it is not known which word it is.
  EXPECT_TRUE(Uses(AnalyzeStruct("mov.b64 %rd4, s;\nld.param.u64 %rd5, [%rd4+8];\n"
                                 "st.global.u32 [%rd5], 1;"),
                   0, AccessMode::kWrite));
  // Copied to local memory in words, by a loop.
  EXPECT_TRUE(Uses(AnalyzeStruct("mov.b64 %rd4, t;\nL:\nld.param.u32 %r2, [%rd4];\n"
                                 "st.local.u32 [%rd6], %r2;\nadd.s64 %rd4, %rd4, 4;\n"
                                 "setp.lt.u64 %p1, %rd4, 99;\n@%p1 bra L;\n"
                                 "ld.local.u64 %rd5, [depot+16];\nst.global.u32 [%rd5], 1;"),
                   24, AccessMode::kWrite));
  // Sixteen bytes at once: both words.
  for (uint32_t word : {16u, 24u}) {
    EXPECT_TRUE(Uses(AnalyzeStruct("ld.param.v2.u64 {%rd4, %rd5}, [t];\nst.global.u32 [%rd4], 1;\n"
                                   "st.global.u32 [%rd5], 1;"),
                     word, AccessMode::kWrite));
    EXPECT_TRUE(Uses(AnalyzeStruct("ld.param.b128 %q1, [t];\nmov.b128 {%rd4, %rd5}, %q1;\n"
                                   "st.global.u32 [%rd5], 1;"),
                     word, AccessMode::kWrite));
  }
}

TEST(Adversary, TwoNumbersAreNoPointer) {
  // Two 32-bit sizes side by side, both part of an index: not a word that is looked up.
  const KernelAccess access = Analyze(
      "add.u32 %r2, %r0, %r1;\nmul.wide.u32 %rd4, %r2, 4;\nadd.s64 %rd5, %rd1, %rd4;\n"
      "st.global.u32 [%rd5], 1;");
  EXPECT_EQ(Word(access, 0), nullptr);
  EXPECT_TRUE(access.Replayable()) << access.NotReplayableReason();
}

TEST(Adversary, Functions) {
  const std::string by_value =
      ".func (.param .align 8 .b8 out[16]) f(.param .align 8 .b8 a[16])\n{\n.reg .b32 %r<9>;\n"
      "ld.param.u32 %r1, [a+8];\nld.param.u32 %r2, [a+12];\nst.param.b32 [out], %r1;\n"
      "st.param.b32 [out+4], %r2;\nret;\n}\n";
  EXPECT_TRUE(Uses(Analyze("{\n.param .align 8 .b8 x[16];\nst.param.b32 [x+8], %r0;\n"
                           "st.param.b32 [x+12], %r1;\n.param .align 8 .b8 y[16];\n"
                           "call.uni (y), f, (x);\nld.param.b64 %rd4, [y];\n}\n"
                           "st.global.u32 [%rd4], 1;",
                           by_value),
                   0, AccessMode::kWrite));
  const std::string recursive =
      ".func f(.param .b64 a, .param .b64 b)\n{\n.reg .b64 %rd<5>;\n.reg .pred %p<2>;\n"
      "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nst.global.u32 [%rd2], 1;\n"
      "setp.eq.u64 %p1, %rd1, 0;\n@%p1 ret;\n{\n.param .b64 x;\nst.param.b64 [x], %rd2;\n"
      ".param .b64 y;\nst.param.b64 [y], %rd1;\ncall.uni f, (x, y);\n}\nret;\n}\n";
  EXPECT_TRUE(Uses(Analyze("{\n.param .b64 x;\nst.param.b64 [x], %rd0;\n.param .b64 y;\n"
                           "st.param.b64 [y], %rd1;\ncall.uni f, (x, y);\n}",
                           recursive),
                   0, AccessMode::kWrite));
  // The address of a function's own parameter.
  const std::string takes_address =
      ".func f(.param .b64 a)\n{\n.reg .b64 %rd<5>;\nmov.b64 %rd1, a;\nld.param.u64 %rd2, [%rd1];\n"
      "st.global.u32 [%rd2], 1;\nret;\n}\n";
  EXPECT_TRUE(Uses(
      Analyze("{\n.param .b64 x;\nst.param.b64 [x], %rd0;\ncall.uni f, (x);\n}", takes_address), 0,
      AccessMode::kWrite));
  // printf("%s", p) reads what p points to.
  EXPECT_TRUE(
      Uses(Analyze("st.local.u64 [depot], %rd0;\nmov.u64 %rd4, depot;\n{\n.param .b64 x;\n"
                   "st.param.b64 [x], %rd1;\n.param .b64 y;\nst.param.b64 [y], %rd4;\n"
                   ".param .b32 r;\ncall.uni (r), vprintf, (x, y);\n}",
                   ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"),
           0, AccessMode::kRead));
}

TEST(Adversary, AVariableThatMemoryNamesMayBeWritten) {
  absl::StatusOr<ptx::Module> module = ptx::Parse(
      ".version 9.0\n.target sm_80\n.address_size 64\n"
      ".visible .global .align 8 .b8 target[8];\n"
      ".visible .global .align 8 .u64 table[1] = {generic(target)};\n"
      ".extern .global .align 4 .b8 elsewhere[4];\n"
      ".visible .entry k()\n{\n.reg .b64 %rd<4>;\nld.global.u64 %rd1, [table];\n"
      "st.u32 [%rd1], 1;\nret;\n}\n");
  ASSERT_TRUE(module.ok()) << module.status();
  for (const ModuleVariableUse& use : AnalyzeModule(*module).variables) {
    EXPECT_EQ(use.written, use.name != "table") << use.name;
  }
}

TEST(Adversary, EveryObstacleIsNamedWithItsLine) {
  for (const auto& [body, construct] :
       {std::pair<const char*, const char*>{"mov.u64 %rd4, %clock64;", "%clock64"},
        {"mov.u32 %r2, %smid;", "%smid"},
        {"activemask.b32 %r2;", "activemask.b32"},
        {"atom.global.add.u32 %r2, [%rd0], 1;", "atom.global.add.u32"},
        {"fence.sc.sys;", "fence.sc.sys"},
        {"ld.volatile.global.u32 %r2, [%rd0];", "ld.volatile.global.u32"},
        {"cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group"},
        {"mov.u64 %rd4, 4096;\nst.global.u32 [%rd4], 1;", "no parameter"},
        {"ld.global.u64 %rd4, [%rd0];\nst.global.u32 [%rd4], 1;", "loaded from memory"}}) {
    const std::string reason = Analyze(body).NotReplayableReason();
    EXPECT_NE(reason.find(construct), std::string::npos) << reason;
    EXPECT_NE(reason.find("line "), std::string::npos) << reason;
  }
}

}  // namespace
}  // namespace tidepool
