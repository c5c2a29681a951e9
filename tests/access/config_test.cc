// Annotations: the text, and how what is stated goes together with what the PTX shows.
#include "runtime/access/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/access/annotation.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Config, ReadsLines) {
  const auto config = ParseConfig(
      "# about two kernels\r\n\n"
      "kernel Add 0=write 1=read +16=ignore replayable # why\n"
      "  kernel\t\"ns::Scale<float>(float*, int)\" 0=update pin\r\n"
      "kernel {lambda()#1}* pin",
      "f.conf");
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->size(), 3u);
  const Annotation& add = (*config)[0];
  EXPECT_EQ(add.pattern, "Add");
  EXPECT_EQ(add.where, "f.conf:3");
  EXPECT_TRUE(add.replayable);
  EXPECT_FALSE(add.pin);
  ASSERT_EQ(add.parameters.size(), 3u);
  EXPECT_EQ(add.parameters[0].Text(), "0=write");
  EXPECT_EQ(add.parameters[1].Text(), "1=read");
  EXPECT_EQ(add.parameters[2].Text(), "+16=ignore");
  EXPECT_EQ((*config)[1].pattern, "ns::Scale<float>(float*, int)");
  EXPECT_TRUE((*config)[1].pin);
  EXPECT_EQ((*config)[2].pattern, "{lambda()#1}*");
  EXPECT_TRUE(ParseConfig("", "f")->empty());
  EXPECT_TRUE(ParseConfig("\n# nothing", "f")->empty());
}

TEST(Config, AnErrorSaysWhereWhatAndWhatIsAccepted) {
  const struct {
    const char* line;
    const char* found;
    const char* accepted;
  } cases[] = {
      {"kernal Add pin", "\"kernal\"", "kernel NAME"},
      {"kernel", "the end of the line", "name"},
      {"kernel Add", "the end of the line", "replayable, pin"},
      {"kernel Add # pin", "the end of the line", "replayable, pin"},
      {"kernel \"Add pin", "\"Add pin", "between two"},
      {"kernel \"\" pin", "\"\" pin", "between two"},
      {"kernel \"Add\"pin", "\"pin\"", "a blank"},
      {"kernel Ad\"d pin", "Ad\"d", "in \"\""},
      {"kernel Add 0=reed", "0=reed", "read, write, update or ignore"},
      {"kernel Add 0=", "0=", "read, write, update or ignore"},
      {"kernel Add 0=read=write", "0=read=write", "read, write, update or ignore"},
      {"kernel Add 0=Read", "0=Read", "read, write, update or ignore"},
      {"kernel Add =read", "=read", "N=ACCESS"},
      {"kernel Add -1=read", "-1=read", "N=ACCESS"},
      {"kernel Add 0x8=read", "0x8=read", "N=ACCESS"},
      {"kernel Add ++8=read", "++8=read", "N=ACCESS"},
      {"kernel Add 99999999999999999999=read", "9999", "up to 32764"},
      {"kernel Add 0 =read", "\"0\"", "N=ACCESS"},
      {"kernel Add 0=read 0=write", "0=write", "each parameter once"},
      {"kernel Add pure", "pure", "replayable, pin"},
      {"kernel Add pin pin", "pin", "each word once"},
      {"kernel Add\x01 pin", "control character 1", "text"},
      {"kernel A pin\r kernel B pin", "control character 13", "text"},
  };
  for (const auto& c : cases) {
    const auto config = ParseConfig(std::string("# line 1\n") + c.line, "dir/f.conf");
    ASSERT_FALSE(config.ok()) << c.line;
    EXPECT_THAT(std::string(config.status().message()),
                AllOf(StartsWith("dir/f.conf:2: found "), HasSubstr(c.found),
                      HasSubstr("; accepted: "), HasSubstr(c.accepted)));
  }
  EXPECT_FALSE(ParseConfig(std::string_view("kernel A\0 pin", 13), "f").ok());
  EXPECT_FALSE(ParseAnnotation("", "call").ok()) << "a line that states nothing";
  EXPECT_FALSE(ParseAnnotation("kernel A pin\nkernel B pin", "call").ok()) << "two lines";
  EXPECT_FALSE(ReadConfig("/nowhere/f.conf").ok());
  EXPECT_FALSE(ReadConfig("/").ok());
}

TEST(Config, Globs) {
  EXPECT_TRUE(GlobMatches("*", ""));
  EXPECT_TRUE(GlobMatches("a*c*e", "abcde"));
  EXPECT_TRUE(GlobMatches("a?c", "abc"));
  EXPECT_FALSE(GlobMatches("a?c", "ac"));
  EXPECT_FALSE(GlobMatches("abc", "abcd"));
  EXPECT_FALSE(GlobMatches("", "a"));
  EXPECT_TRUE(GlobMatches("*ab", "aab"));
  EXPECT_TRUE(GlobMatches("f(float*)", "f(float*)"));
  EXPECT_FALSE(GlobMatches("[a]", "a"));
  EXPECT_FALSE(GlobMatches("*a*a*a*a*a*a*a*a*b", std::string(5000, 'a'))) << "and ends";
}

Annotation Stated(const std::string& words) {
  auto annotation = ParseAnnotation("kernel k " + words, "here");
  EXPECT_TRUE(annotation.ok()) << annotation.status();
  return *annotation;
}

TEST(Config, NamesAreMangledDemangledOrShort) {
  const std::string mangled = "_ZN2ns3AddIfEEvPT_i";
  for (const char* name : {"_ZN2ns3AddIfEEvPT_i", "_ZN2ns3Add*", "ns::Add<float>", "ns::*"}) {
    Annotation annotation = Stated("pin");
    annotation.pattern = name;
    EXPECT_TRUE(annotation.Matches(mangled)) << name;
  }
  Annotation annotation = Stated("pin");
  annotation.pattern = "void ns::Add<float>(float*, int)";
  EXPECT_TRUE(annotation.Matches(mangled));
  annotation.pattern = "Add";
  EXPECT_FALSE(annotation.Matches(mangled));
  annotation.pattern = "*";
  EXPECT_FALSE(annotation.Matches("")) << "a kernel whose name is not known";
}

const std::vector<ParamSlot> kParams = {{0, 8}, {8, 8}, {16, 4}, {24, 24}};

Annotated Put(const std::vector<Annotation>& annotations, KernelAccess* access) {
  std::vector<const Annotation*> matching;
  for (const Annotation& annotation : annotations) matching.push_back(&annotation);
  return Annotate(matching, kParams, access);
}
KernelAccess Opaque() {
  KernelAccess access;
  access.opaque = true;
  return access;
}
WordAccess Word(uint32_t offset, AccessMode mode) {
  WordAccess word;
  word.offset = offset;
  word.mode = mode;
  return word;
}

TEST(Annotate, AnOpaqueKernelIsWhatIsStated) {
  KernelAccess access = Opaque();
  access.unbased = true;
  const Annotated out =
      Put({Stated("0=write 1=read +32=update replayable"), Stated("2=ignore 1=read")}, &access);
  EXPECT_EQ(out.refused, "");
  EXPECT_TRUE(out.applied && out.only_stated);
  EXPECT_EQ(out.stated.size(), 4u);
  EXPECT_TRUE(access.Replayable()) << access.NotReplayableReason();
  ASSERT_EQ(access.words.size(), 3u);
  EXPECT_EQ(access.words[0].mode, AccessMode::kWrite);
  EXPECT_TRUE(access.words[0].covers);
  EXPECT_EQ(access.words[1].mode, AccessMode::kRead);
  EXPECT_FALSE(access.words[1].covers);
  EXPECT_EQ(access.words[2].offset, 32u);
  EXPECT_EQ(access.words[2].mode, AccessMode::kUpdate);
  for (const WordAccess& word : access.words) EXPECT_EQ(word.evidence, Evidence::kAnnotation);
}

TEST(Annotate, WithoutTheWordItIsNotReplayed) {
  KernelAccess access = Opaque();
  EXPECT_NE(Put({Stated("0=write")}, &access).no_replay, "");
  EXPECT_FALSE(access.opaque);
  EXPECT_FALSE(access.Replayable());
}

TEST(Annotate, PinStatesNothingElse) {
  KernelAccess access = Opaque();
  const Annotated out = Put({Stated("pin")}, &access);
  EXPECT_TRUE(out.pin);
  EXPECT_FALSE(out.applied);
  EXPECT_TRUE(access.opaque);
}

TEST(Annotate, WhatThePtxShowsStays) {
  const auto refused = [](const char* words, const KernelAccess& access) {
    KernelAccess after = access;
    const Annotated out = Put({Stated(words), Stated("pin")}, &after);
    EXPECT_EQ(after.words.size(), access.words.size());
    EXPECT_EQ(after.opaque, access.opaque && !out.applied);
    EXPECT_EQ(out.refused.empty(), out.applied);
    EXPECT_TRUE(out.pin) << "it is never wrong";
    return !out.refused.empty();
  };
  for (const bool opaque : {false, true}) {
    KernelAccess access;
    access.opaque = opaque;
    access.words = {Word(0, AccessMode::kWrite), Word(8, AccessMode::kRead)};
    EXPECT_TRUE(refused("0=read", access));
    EXPECT_TRUE(refused("0=ignore", access));
    EXPECT_TRUE(refused("1=write", access));
    EXPECT_TRUE(refused("1=ignore", access));
    EXPECT_FALSE(refused("0=update 1=update", access));
    EXPECT_FALSE(refused("0=write 1=read", access));
    access.effects.reads_clock = true;
    EXPECT_TRUE(refused("replayable 0=write 1=read", access));
  }
  KernelAccess known;
  known.words = {Word(0, AccessMode::kWrite)};
  EXPECT_TRUE(refused("1=write", known)) << "the old content stays";
  EXPECT_TRUE(refused("9=read", known)) << "no such parameter";
  EXPECT_TRUE(refused("2=read", known)) << "no room for an address";
  EXPECT_TRUE(refused("3=read", known)) << "which of its words?";
  EXPECT_TRUE(refused("+20=read", known)) << "in no parameter";
  EXPECT_TRUE(refused("+44=read", known)) << "past the end";
}

TEST(Annotate, OfAKnownKernelOnlyCoverageIsTaken) {
  KernelAccess access;
  access.words = {Word(0, AccessMode::kWrite), Word(8, AccessMode::kRead)};
  EXPECT_TRUE(Put({Stated("0=write 1=update")}, &access).applied);
  EXPECT_TRUE(access.words[0].covers);
  EXPECT_EQ(access.words[1].mode, AccessMode::kRead) << "the PTX is more exact";
  EXPECT_EQ(access.words[1].evidence, Evidence::kPtx);
}

TEST(Annotate, LinesThatDisagreeAreRefused) {
  KernelAccess access = Opaque();
  EXPECT_NE(Put({Stated("0=read"), Stated("0=write")}, &access).refused, "");
  EXPECT_NE(Put({Stated("0=read +4=read")}, &access).refused, "");
  EXPECT_NE(Put({Stated("0=read +0=write")}, &access).refused, "");
  EXPECT_TRUE(access.opaque);
}

TEST(Annotate, AnAddressThatIsStoredStaysStored) {
  KernelAccess access = Opaque();
  access.words = {Word(0, AccessMode::kRead)};
  access.words[0].escapes = true;
  EXPECT_TRUE(Put({Stated("0=read replayable")}, &access).applied);
  EXPECT_TRUE(access.words[0].escapes);
}

}  // namespace
}  // namespace tidepool
