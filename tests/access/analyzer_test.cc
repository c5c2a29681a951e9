#include <gtest/gtest.h>

#include <string>

#include "ptx/parser.h"
#include "runtime/access/kernel_access.h"
#include "runtime/access/kernel_name.h"

namespace tidepool {
namespace {

// A kernel with parameters p0..p3 of 64 bits and enough registers, around `body`.
KernelAccess Analyze(const std::string& body, const std::string& before = "") {
  const std::string text = ".version 9.0\n.target sm_80\n.address_size 64\n" + before +
                           ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, "
                           ".param .u64 p3)\n{\n.reg .b64 %rd<40>;\n.reg .b32 %r<40>;\n"
                           ".reg .f32 %f<10>;\n.reg .f64 %fd<4>;\n.reg .pred %p<4>;\n"
                           ".local .align 16 .b8 depot[64];\n.shared .align 16 .b8 tile[64];\n"
                           "ld.param.u64 %rd0, [p0];\nld.param.u64 %rd1, [p1];\n"
                           "ld.param.u64 %rd2, [p2];\nld.param.u64 %rd3, [p3];\n" +
                           body + "\nret;\n}\n";
  absl::StatusOr<ptx::Module> module = ptx::Parse(text);
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return {};
  return AnalyzeKernel(*module, *module->FindFunction("k"));
}

AccessMode ModeOf(const KernelAccess& access, uint32_t parameter) {
  for (const WordAccess& word : access.words) {
    if (word.offset == 8 * parameter) return word.mode;
  }
  return AccessMode::kNone;
}

bool Escapes(const KernelAccess& access, uint32_t parameter) {
  for (const WordAccess& word : access.words) {
    if (word.offset == 8 * parameter) return word.escapes;
  }
  return false;
}

TEST(Analyzer, TellsReadsFromWritesFromUpdates) {
  const KernelAccess access = Analyze(
      "cvta.to.global.u64 %rd4, %rd0;\nmul.wide.u32 %rd5, %r1, 4;\nadd.s64 %rd6, %rd4, %rd5;\n"
      "ld.global.f32 %f1, [%rd6];\nst.global.f32 [%rd1], %f1;\n"
      "ld.global.f32 %f2, [%rd2+4];\nst.global.f32 [%rd2+4], %f2;");
  EXPECT_EQ(ModeOf(access, 0), AccessMode::kRead);
  EXPECT_EQ(ModeOf(access, 1), AccessMode::kWrite);
  EXPECT_EQ(ModeOf(access, 2), AccessMode::kUpdate);
  EXPECT_EQ(ModeOf(access, 3), AccessMode::kNone);
  EXPECT_TRUE(access.Replayable()) << access.NotReplayableReason();
}

TEST(Analyzer, ASelectedPointerMayBeEither) {
  const KernelAccess access = Analyze(
      "setp.eq.s32 %p1, %r1, 0;\nselp.b64 %rd4, %rd0, %rd1, %p1;\nst.global.f32 [%rd4], %f1;");
  EXPECT_EQ(ModeOf(access, 0), AccessMode::kWrite);
  EXPECT_EQ(ModeOf(access, 1), AccessMode::kWrite);
}

TEST(Analyzer, PingPongInALoopUsesBothBothWays) {
  const KernelAccess access = Analyze(
      "mov.u64 %rd4, %rd0;\nmov.u64 %rd5, %rd1;\nL:\nld.global.f32 %f1, [%rd4];\n"
      "st.global.f32 [%rd5], %f1;\nmov.u64 %rd6, %rd4;\nmov.u64 %rd4, %rd5;\nmov.u64 %rd5, %rd6;\n"
      "setp.lt.s32 %p1, %r1, 9;\n@%p1 bra L;");
  EXPECT_EQ(ModeOf(access, 0), AccessMode::kUpdate);
  EXPECT_EQ(ModeOf(access, 1), AccessMode::kUpdate);
}

TEST(Analyzer, APointerThroughLocalOrSharedMemoryIsFollowed) {
  for (const char* space : {"local", "shared"}) {
    const std::string variable = std::string(space) == "local" ? "depot" : "tile";
    const KernelAccess access =
        Analyze("st." + std::string(space) + ".u64 [" + variable + "+8], %rd0;\nld." + space +
                ".u64 %rd4, [" + variable + "+8];\nst.global.f32 [%rd4], %f1;");
    EXPECT_EQ(ModeOf(access, 0), AccessMode::kWrite) << space;
    EXPECT_FALSE(Escapes(access, 0)) << space;
    EXPECT_FALSE(access.indirect) << space;
  }
}

TEST(Analyzer, APointerStoredToGlobalMemoryEscapes) {
  const KernelAccess access = Analyze("st.global.u64 [%rd0], %rd1;");
  EXPECT_TRUE(Escapes(access, 1));
  EXPECT_FALSE(Escapes(access, 0));
}

TEST(Analyzer, AnAddressLoadedFromMemoryIsIndirect) {
  const KernelAccess access = Analyze(
      "ld.global.u64 %rd4, [%rd0];\nld.global.f32 %f1, [%rd4];\nst.global.f32 [%rd1], %f1;");
  EXPECT_TRUE(access.indirect);
  EXPECT_FALSE(access.Replayable());
  // Put together from two halves it is one, too.
  EXPECT_TRUE(Analyze("ld.global.u32 %r1, [%rd0];\nld.global.u32 %r2, [%rd0+4];\n"
                      "mov.b64 %rd4, {%r1, %r2};\nst.global.f32 [%rd4], %f1;")
                  .indirect);
}

TEST(Analyzer, ALoadedIndexIsNoPointer) {
  const KernelAccess access = Analyze(
      "ld.global.u64 %rd4, [%rd0];\nshl.b64 %rd5, %rd4, 2;\nadd.s64 %rd6, %rd1, %rd5;\n"
      "ld.global.f32 %f1, [%rd6];\nst.global.f32 [%rd2], %f1;");
  EXPECT_FALSE(access.indirect);
  EXPECT_EQ(ModeOf(access, 1), AccessMode::kRead);
  EXPECT_TRUE(access.Replayable()) << access.NotReplayableReason();
}

TEST(Analyzer, FunctionsAreFollowed) {
  const std::string function =
      ".func (.param .b64 out) inner(.param .b64 a, .param .b64 b)\n{\n.reg .b64 %rd<5>;\n"
      ".reg .f32 %f<3>;\nld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\n"
      "st.global.f32 [%rd2], %f1;\nst.param.b64 [out], %rd1;\nret;\n}\n";
  const KernelAccess access = Analyze(
      "{\n.param .b64 x;\nst.param.b64 [x], %rd0;\n.param .b64 y;\nst.param.b64 [y], %rd1;\n"
      ".param .b64 r;\ncall.uni (r), inner, (x, y);\nld.param.b64 %rd4, [r];\n}\n"
      "ld.global.f32 %f1, [%rd4];",
      function);
  EXPECT_EQ(ModeOf(access, 0), AccessMode::kRead);
  EXPECT_EQ(ModeOf(access, 1), AccessMode::kWrite);
  EXPECT_FALSE(access.opaque) << access.opaque_reason;
}

TEST(Analyzer, WhatIsNotFollowedIsOpaqueAndSaysWhere) {
  const KernelAccess unknown = Analyze("frobnicate.b64 %rd4, %rd0;");
  EXPECT_TRUE(unknown.opaque);
  EXPECT_NE(unknown.opaque_reason.find("frobnicate.b64"), std::string::npos);
  EXPECT_NE(unknown.opaque_reason.find("line"), std::string::npos);
  EXPECT_TRUE(Analyze("{\n.param .b64 x;\nst.param.b64 [x], %rd0;\ncall.uni outside, (x);\n}",
                      ".extern .func outside(.param .b64 a);\n")
                  .opaque);
  EXPECT_TRUE(Analyze("proto: .callprototype _ (.param .b64 _);\n{\n.param .b64 x;\n"
                      "st.param.b64 [x], %rd0;\ncall %rd1, (x), proto;\n}")
                  .opaque);
}

TEST(Analyzer, OrderDependentAtomicsCannotBeReplayed) {
  EXPECT_TRUE(Analyze("red.global.add.u32 [%rd0], %r1;").Replayable());
  EXPECT_FALSE(Analyze("red.global.add.f32 [%rd0], %f1;").Replayable());
  EXPECT_FALSE(Analyze("atom.global.add.u32 %r2, [%rd0], %r1;").Replayable());
  EXPECT_FALSE(Analyze("atom.global.exch.b32 %r2, [%rd0], %r1;").Replayable());
  EXPECT_EQ(ModeOf(Analyze("red.global.add.u32 [%rd0], %r1;"), 0), AccessMode::kUpdate);
}

TEST(Analyzer, WhatDependsOnTimeOrPlaceCannotBeReplayed) {
  EXPECT_FALSE(Analyze("mov.u64 %rd4, %clock64;\nst.global.u64 [%rd0], %rd4;").Replayable());
  EXPECT_FALSE(Analyze("mov.u32 %r1, %smid;\nst.global.u32 [%rd0], %r1;").Replayable());
  EXPECT_FALSE(Analyze("ld.volatile.global.u32 %r1, [%rd0];").Replayable());
  EXPECT_TRUE(Analyze("mov.u32 %r1, %tid.x;\nst.global.u32 [%rd0], %r1;").Replayable());
}

TEST(Analyzer, ModuleVariables) {
  const std::string variable = ".visible .global .align 4 .b8 state[64];\n";
  const KernelAccess reader =
      Analyze("ld.global.u32 %r1, [state+4];\nst.global.u32 [%rd0], %r1;", variable);
  ASSERT_EQ(reader.variables.size(), 1u);
  EXPECT_EQ(reader.variables[0].mode, AccessMode::kRead);
  EXPECT_TRUE(reader.Replayable());
  const KernelAccess writer = Analyze("st.global.u32 [state], %r1;", variable);
  EXPECT_FALSE(writer.Replayable());
}

TEST(KernelName, IsReadable) {
  EXPECT_EQ(ShortKernelName("_Z3AddPfi"), "Add");
  EXPECT_EQ(ShortKernelName("_ZN2ns3AddIfEEvPT_i"), "ns::Add<float>");
  EXPECT_EQ(ShortKernelName("_ZN12_GLOBAL__N_13AddEPf"), "Add");
  EXPECT_EQ(ShortKernelName("plain_c"), "plain_c");
  EXPECT_EQ(ShortKernelName(""), "");
}

}  // namespace
}  // namespace tidepool
