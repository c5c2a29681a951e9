// Single PTX instructions against the same computation on the host: for full warps, for a part of
// the lanes, and with the handlers of a machine without AVX2.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace simgpu::test {

using Inputs = std::array<uint64_t, 3>;

// `text` computes the result from %a32, %a64, %a16 (the same for b and c; the narrow ones are the
// low bits of the wide) into %d32, %d64, %d16 or the predicate %p. %q is a second predicate: if
// the text mentions it, the result's bit 32 is it. %o32 and so on start with all bits set.
struct OpCase {
  const char* text;
  std::function<uint64_t(uint64_t a, uint64_t b, uint64_t c)> want;
};
inline void PrintTo(const OpCase& op, std::ostream* out) { *out << op.text; }

// Fails the test for every input where the device's result is not what is wanted.
void CheckOp(const OpCase& op, const std::vector<Inputs>& inputs);
// The results, for computations that are allowed an error.
std::vector<uint64_t> RunOp(const std::string& text, const std::vector<Inputs>& inputs);

// Interesting values, and random ones, in all combinations that a test can afford.
std::vector<Inputs> IntegerInputs();
std::vector<Inputs> FloatInputs();
std::vector<Inputs> DoubleInputs();
std::vector<Inputs> HalfInputs();  // any 16-bit patterns, in pairs
// One operand, many values.
std::vector<Inputs> OneFloat();
std::vector<Inputs> OneDouble();

inline float F(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
inline double D(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint64_t Bits(float x) { return std::bit_cast<uint32_t>(x); }
inline uint64_t Bits(double x) { return std::bit_cast<uint64_t>(x); }
// As the hardware gives NaNs.
inline uint64_t Result(float x) { return x == x ? Bits(x) : 0x7fffffffu; }
inline uint64_t Result(double x) { return x == x ? Bits(x) : uint64_t{0xfff8000000000000}; }

}  // namespace simgpu::test
