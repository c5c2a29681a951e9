#include "tests/simgpu/exec/ops.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/simgpu/exec/harness.h"
#include "tools/simgpu/exec/handlers.h"

namespace simgpu::test {
namespace {

std::string Kernel(const std::string& text) {
  std::string result = "cvt.u64.u32 %d64, %d32;";
  if (text.find("%d64") != std::string::npos) result = "";
  if (text.find("%d16") != std::string::npos) result = "cvt.u64.u16 %d64, %d16;";
  if (text.find("%p") != std::string::npos) {
    result = "selp.u64 %d64, 1, 0, %p;";
    if (text.find("%q") != std::string::npos) {
      result += "selp.u64 %x64, 4294967296, 0, %q; or.b64 %d64, %d64, %x64;";
    }
  }
  std::string all = R"(
.version 8.6
.target sm_90
.address_size 64
.visible .entry op(.param .u64 out, .param .u64 in, .param .u32 n, .param .u32 skip)
{
  .reg .pred %p, %q, %guard;
  .reg .b16 %a16, %b16, %c16, %d16, %o16;
  .reg .b32 %a32, %b32, %c32, %d32, %o32, %i, %n, %r1, %r2;
  .reg .b64 %a64, %b64, %c64, %d64, %o64, %x64, %out, %in, %at;
  ld.param.u64 %out, [out];
  ld.param.u64 %in, [in];
  ld.param.u32 %n, [n];
  mov.u32 %i, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.s32 %i, %i, %r1, %r2;
  setp.ge.u32 %guard, %i, %n;
  @%guard bra END;
  // Where asked for, every third lane goes its own way.
  ld.param.u32 %r1, [skip];
  setp.eq.u32 %guard, %r1, 0;
  @%guard bra ALL;
  rem.u32 %r2, %i, 3;
  setp.eq.u32 %guard, %r2, 0;
  @%guard bra END;
ALL:
  mul.wide.u32 %at, %i, 24;
  add.u64 %at, %at, %in;
  ld.global.u64 %a64, [%at];
  ld.global.u64 %b64, [%at+8];
  ld.global.u64 %c64, [%at+16];
  cvt.u32.u64 %a32, %a64;
  cvt.u32.u64 %b32, %b64;
  cvt.u32.u64 %c32, %c64;
  cvt.u16.u64 %a16, %a64;
  cvt.u16.u64 %b16, %b64;
  cvt.u16.u64 %c16, %c64;
  mov.u16 %o16, 65535;
  mov.u32 %o32, 4294967295;
  mov.u64 %o64, -1;
  )" + text + "\n  " +
                    result + R"(
  mul.wide.u32 %at, %i, 8;
  add.u64 %at, %at, %out;
  st.global.u64 [%at], %d64;
END:
  ret;
}
)";
  return all;
}

std::vector<uint64_t> Run(const std::string& text, const std::vector<Inputs>& inputs, bool skip) {
  Device device;
  const std::unique_ptr<Program> program = device.Load(Kernel(text));
  if (program == nullptr) return {};
  const auto n = static_cast<uint32_t>(inputs.size());
  const uint64_t in = device.Upload(inputs);
  const uint64_t out = device.Upload(std::vector<uint64_t>(n));
  const LaunchResult result = Launch(device, *program, "op", {{(n + 127) / 128}, {128}},
                                     Arguments(out, in, n, uint32_t{skip}));
  EXPECT_EQ(result.fault, Fault::kNone) << result.message;
  return device.Download<uint64_t>(out, n);
}

std::vector<Inputs> Combine(const std::vector<uint64_t>& special,
                            const std::function<uint64_t(std::mt19937_64&)>& draw) {
  std::mt19937_64 random(20);
  std::vector<Inputs> inputs;
  for (const uint64_t a : special) {
    for (const uint64_t b : special) {
      inputs.push_back({a, b, special[random() % special.size()]});
    }
  }
  for (int i = 0; i < 600; ++i) {
    Inputs one;
    for (uint64_t& value : one) {
      value = random() % 4 == 0 ? special[random() % special.size()] : draw(random);
    }
    inputs.push_back(one);
  }
  while (inputs.size() % 32 != 0) inputs.push_back(inputs[inputs.size() / 2]);
  return inputs;
}

const std::vector<uint64_t>& SpecialFloats() {
  static const auto* const values = new std::vector<uint64_t>{
      0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
      0x7fc00000, 0xffc00001, 0x7f800001, 0x00000001, 0x80000001, 0x007fffff,
      0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x34000000, 0x4b800001,
      0x3effffff, 0x3f000000, 0x40490fdb, 0x1f800000, 0x5f000000, 0x4f000000,
      0xcf000000, 0x4f800000, 0x4effffff, 0xc0200000, 0x40200000};
  return *values;
}

const std::vector<uint64_t>& SpecialDoubles() {
  static const auto* const values = new std::vector<uint64_t>{
      0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000,
      0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000001,
      0x7ff0000000000001, 0x0000000000000001, 0x8000000000000001, 0x000fffffffffffff,
      0x0010000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x3cb0000000000000,
      0x3fe0000000000000, 0x4004000000000000, 0xc004000000000000, 0x43e0000000000000,
      0xc3e0000000000000, 0x41dfffffffe00000, 0x41efffffffe00000, 0x36a0000000000000,
      0x3690000000000000, 0x47efffffe0000000, 0x47effffff0000000, 0x40effc0000000000,
      0x40effe0000000000, 0x3e70000000000000};
  return *values;
}

}  // namespace

std::vector<uint64_t> RunOp(const std::string& text, const std::vector<Inputs>& inputs) {
  return Run(text, inputs, false);
}

void CheckOp(const OpCase& op, const std::vector<Inputs>& inputs) {
  for (const bool baseline : {false, true}) {
    for (const bool skip : {false, true}) {
      UseBaselineHandlers(baseline);
      const std::vector<uint64_t> got = Run(op.text, inputs, skip);
      UseBaselineHandlers(false);
      ASSERT_EQ(got.size(), inputs.size());
      for (size_t i = 0; i < inputs.size(); ++i) {
        const auto& [a, b, c] = inputs[i];
        const uint64_t want = skip && i % 3 == 0 ? 0 : op.want(a, b, c);
        ASSERT_EQ(got[i], want) << op.text << std::hex << " of " << a << ", " << b << ", " << c
                                << ": " << got[i] << ", not " << want
                                << (baseline ? " (baseline)" : "") << (skip ? " (masked)" : "");
      }
    }
  }
}

std::vector<Inputs> IntegerInputs() {
  return Combine({0,
                  1,
                  2,
                  3,
                  7,
                  8,
                  15,
                  16,
                  31,
                  32,
                  33,
                  63,
                  64,
                  65,
                  127,
                  128,
                  255,
                  256,
                  0x7fff,
                  0x8000,
                  0xffff,
                  0x10000,
                  0x7fffffff,
                  0x80000000,
                  0xffffffff,
                  0x100000000,
                  0x7fffffffffffffff,
                  0x8000000000000000,
                  0xffffffffffffffff,
                  0xffffffff80000000,
                  0xff00ff0012345678},
                 [](std::mt19937_64& random) { return random() >> (random() % 64); });
}

std::vector<Inputs> FloatInputs() {
  return Combine(SpecialFloats(), [](std::mt19937_64& random) {
    // Mostly of similar size, sometimes any pattern.
    if (random() % 4 == 0) return random() & 0xffffffff;
    return (random() & 0x807fffff) | ((120 + random() % 16) << 23);
  });
}

std::vector<Inputs> DoubleInputs() {
  return Combine(SpecialDoubles(), [](std::mt19937_64& random) {
    if (random() % 4 == 0) return static_cast<uint64_t>(random());
    return (random() & 0x800fffffffffffff) | ((1015 + random() % 16) << 52);
  });
}

std::vector<Inputs> HalfInputs() {
  return Combine({0x00000000, 0x80008000, 0x3c003c00, 0xbc003f80, 0x7c007f80, 0xfc00ff80,
                  0x7e007fc0, 0xfe00ffc1, 0x00010001, 0x80018001, 0x03ff007f, 0x04000080,
                  0x7bff7f7f, 0xfbffff7f, 0x35550001, 0x68003c01},
                 [](std::mt19937_64& random) {
                   if (random() % 3 == 0) return random() & 0xffffffff;
                   return (random() & 0x83ff83ff) | 0x38003800 | (random() & 0x0c000c00);
                 });
}

std::vector<Inputs> OneFloat() {
  std::mt19937_64 random(21);
  std::vector<Inputs> inputs;
  for (const uint64_t value : SpecialFloats()) inputs.push_back({value, 0, 0});
  for (int i = 0; i < 1500; ++i) {
    uint64_t value = random() & 0xffffffff;
    if (i % 2 == 0) value = (value & 0x807fffff) | ((110 + random() % 50) << 23);
    inputs.push_back({value, 0, 0});
  }
  while (inputs.size() % 32 != 0) inputs.push_back(inputs[0]);
  return inputs;
}

std::vector<Inputs> OneDouble() {
  std::mt19937_64 random(22);
  std::vector<Inputs> inputs;
  for (const uint64_t value : SpecialDoubles()) inputs.push_back({value, 0, 0});
  for (int i = 0; i < 1500; ++i) {
    uint64_t value = random();
    if (i % 4 != 0) value = (value & 0x800fffffffffffff) | ((880 + random() % 280) << 52);
    if (i % 4 == 1) value = (value & 0x800fffffffffffff) | ((1005 + random() % 80) << 52);
    inputs.push_back({value, 0, 0});
  }
  while (inputs.size() % 32 != 0) inputs.push_back(inputs[0]);
  return inputs;
}

}  // namespace simgpu::test
