#include "ptx/parser.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "ptx/fatbin.h"

namespace tidepool::ptx {
namespace {

const std::string kHead = ".version 9.0\n.target sm_80\n.address_size 64\n";

Module Parsed(const std::string& text) {
  absl::StatusOr<Module> module = Parse(kHead + text);
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? *std::move(module) : Module();
}

TEST(Parser, ReadsTheHead) {
  const Module module = Parsed("");
  EXPECT_EQ(module.version_major, 9u);
  EXPECT_EQ(module.version_minor, 0u);
  EXPECT_EQ(module.sm, 80u);
  EXPECT_EQ(module.address_size, 64u);
}

TEST(Parser, LaysOutKernelParameters) {
  const Module module = Parsed(
      ".visible .entry k(.param .u32 a, .param .u64 .ptr .global .align 16 b, "
      ".param .align 8 .b8 c[24], .param .u8 d)\n.maxntid 128, 1, 1\n{\nret;\n}");
  const Function* k = module.FindFunction("k");
  ASSERT_NE(k, nullptr);
  ASSERT_EQ(k->params.size(), 4u);
  EXPECT_EQ(k->params[1].offset, 8u);
  EXPECT_TRUE(k->params[1].is_pointer);
  EXPECT_EQ(k->params[2].offset, 16u);
  EXPECT_EQ(k->params[2].size, 24u);
  EXPECT_EQ(k->params[3].offset, 40u);
  EXPECT_EQ(k->param_bytes, 41u);
  EXPECT_EQ(k->max_threads[0], 128u);
}

TEST(Parser, InnerNamesHideOuterOnes) {
  const Module module = Parsed(
      ".entry k()\n{\n.reg .b32 %r<3>;\n{\n.reg .b32 %r1;\nmov.u32 %r1, 1;\n}\nmov.u32 %r1, "
      "2;\nret;\n}");
  const Function* k = module.FindFunction("k");
  ASSERT_EQ(k->body.size(), 3u);
  EXPECT_NE(k->body[0].operands[0].reg, k->body[1].operands[0].reg);
}

TEST(Parser, OperandsOfEveryForm) {
  const Module module = Parsed(
      ".entry k()\n{\n.reg .b64 %rd<4>;\n.reg .b32 %r<8>;\n.reg .f32 %f<3>;\n.reg .pred %p<3>;\n"
      "@!%p1 bra $L;\nld.global.nc.L2::128B.v4.u32 {%r1, %r2, _, %r4}, [%rd1+-16];\n"
      "shfl.sync.down.b32 %r1|%p1, %r2, 16, 31, -1;\nadd.f32 %f1, %f2, 0fBF800000;\n"
      "mov.u32 %r3, %ctaid.y;\n$L:\nret;\n}");
  const Function* k = module.FindFunction("k");
  const Instruction& branch = k->body[0];
  EXPECT_TRUE(branch.guard_negated);
  EXPECT_EQ(branch.operands[0].kind, Operand::Kind::kLabel);
  EXPECT_EQ(branch.operands[0].bits, 5u);
  const Instruction& load = k->body[1];
  EXPECT_EQ(load.space, Space::kGlobal);
  EXPECT_EQ(load.vector, 4);
  EXPECT_TRUE(load.Has("L2::128B"));
  EXPECT_EQ(load.operands[0].elements[2].kind, Operand::Kind::kSink);
  EXPECT_EQ(load.operands[1].offset, -16);
  ASSERT_EQ(k->body[2].operands[0].second.size(), 1u);
  EXPECT_TRUE(k->body[3].operands[2].single);
  EXPECT_EQ(k->body[3].operands[2].bits, 0xBF800000u);
  EXPECT_EQ(k->body[4].operands[1].name, "%ctaid.y");
}

TEST(Parser, InitializersAndRelocations) {
  const Module module = Parsed(
      ".global .align 4 .u32 table[3] = {1, 0xff, 3};\n.const .align 8 .u64 to = "
      "generic(table)+4;\n"
      ".extern .shared .align 16 .b8 dynamic[];\n");
  ASSERT_EQ(module.variables.size(), 3u);
  EXPECT_EQ(module.variables[0].size, 12u);
  EXPECT_EQ(module.variables[0].init[4], 0xff);
  ASSERT_EQ(module.variables[1].relocations.size(), 1u);
  EXPECT_EQ(module.variables[1].relocations[0].symbol, "table");
  EXPECT_EQ(module.variables[1].relocations[0].addend, 4);
  EXPECT_EQ(module.variables[2].size, 0u);
}

TEST(Parser, ErrorsNameTheLine) {
  for (const std::string& text :
       {std::string(".entry k()\n{\nbra nowhere;\n}"), std::string(".entry k()\n{\n"),
        std::string(".entry k(.param .u64)\n{ret;}"), std::string(".bogus x;")}) {
    absl::StatusOr<Module> module = Parse(kHead + text);
    ASSERT_FALSE(module.ok()) << text;
    EXPECT_NE(module.status().message().find("line"), absl::string_view::npos) << module.status();
  }
  EXPECT_FALSE(Parse("").ok());
  EXPECT_FALSE(Parse("hello").ok());
}

// A fat binary of one stored PTX entry.
std::vector<uint8_t> Fatbin(const std::string& text, uint32_t arch) {
  const uint64_t padded = (text.size() + 8) / 8 * 8;
  std::vector<uint8_t> bytes(16 + 64 + padded, 0);
  auto put = [&](size_t at, uint64_t value, size_t size) {
    std::memcpy(bytes.data() + at, &value, size);
  };
  put(0, 0xBA55ED50u, 4);
  put(4, 1, 2);
  put(6, 16, 2);
  put(8, 64 + padded, 8);
  put(16, 1, 2);
  put(20, 64, 4);
  put(24, padded, 8);
  put(44, arch, 4);
  std::memcpy(bytes.data() + 80, text.data(), text.size());
  return bytes;
}

TEST(Fatbin, ReadsAStoredEntry) {
  const std::vector<uint8_t> bytes = Fatbin(kHead, 80);
  EXPECT_EQ(FatbinSize(bytes.data()), bytes.size());
  absl::StatusOr<std::vector<FatbinEntry>> entries = ReadFatbin(bytes);
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 1u);
  EXPECT_EQ((*entries)[0].arch, 80u);
  EXPECT_EQ((*entries)[0].ptx, kHead);
}

TEST(Fatbin, DamagedOnesAreRefusedOrRead) {
  const std::vector<uint8_t> good = Fatbin(kHead, 80);
  for (size_t length = 0; length < good.size(); ++length) {
    // A copy of exactly that length, for the sanitizer to watch over.
    const std::vector<uint8_t> cut(good.begin(), good.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_FALSE(ReadFatbin(cut).ok()) << length;
  }
  for (size_t at = 0; at < 80; ++at) {
    for (const uint8_t flip : {0x01, 0x80, 0xff}) {
      std::vector<uint8_t> bad = good;
      bad[at] ^= flip;
      ReadFatbin(bad).IgnoreError();  // any answer, but no access outside
    }
  }
}

TEST(Fatbin, TheDriversChoice) {
  std::vector<FatbinEntry> entries(3);
  entries[0].kind = FatbinEntry::Kind::kElf;
  entries[0].arch = 75;
  entries[1].kind = FatbinEntry::Kind::kPtx;
  entries[1].arch = 75;
  entries[2].kind = FatbinEntry::Kind::kPtx;
  entries[2].arch = 100;
  // No machine code for the device: the highest PTX that is not above it.
  EXPECT_EQ(SelectForDevice(entries, 90).ptx, &entries[1]);
  EXPECT_EQ(SelectForDevice(entries, 90).code, &entries[1]);
  // Machine code of another architecture than the PTX is described by none.
  entries[0].arch = 90;
  EXPECT_EQ(SelectForDevice(entries, 90).code, &entries[0]);
  EXPECT_EQ(SelectForDevice(entries, 90).ptx, nullptr);
}

}  // namespace
}  // namespace tidepool::ptx
