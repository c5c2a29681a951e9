// The SIMD video instructions: vadd2, vsub4, vabsdiff4 and so on, on the bytes or half-words of
// two words, with operands and results of either sign.
#include <cstdint>

#include "tools/simgpu/exec/handlers.h"
#include "tools/simgpu/exec/lanes.h"
#include "tools/simgpu/exec/video.h"

namespace simgpu {
namespace {

int32_t Part(uint32_t word, int k, int bits, bool is_signed) {
  const uint32_t value = word >> (k * bits) & ((1u << bits) - 1);
  const uint32_t top = 1u << (bits - 1);
  return is_signed ? static_cast<int32_t>(value ^ top) - static_cast<int32_t>(top)
                   : static_cast<int32_t>(value);
}

int32_t Combine(VideoOp op, int32_t x, int32_t y) {
  switch (op) {
    case VideoOp::kAdd:
      return x + y;
    case VideoOp::kSub:
      return x - y;
    case VideoOp::kAverage: {
      // Rounded to nearest, halves away from zero.
      const int32_t sum = x + y;
      return (sum + (sum >= 0 ? 1 : 0)) >> 1;
    }
    case VideoOp::kAbsDiff:
      return x > y ? x - y : y - x;
    case VideoOp::kMin:
      return x < y ? x : y;
    case VideoOp::kMax:
      return x > y ? x : y;
  }
  return 0;
}

// imm holds a VideoMode.
void Video(Warp& w, const Instr& in) {
  const VideoMode mode = VideoMode::FromBits(static_cast<uint64_t>(in.imm));
  const int bits = 32 / mode.parts;
  const int32_t low = mode.signed_d ? -(1 << (bits - 1)) : 0;
  const int32_t high = mode.signed_d ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
  ForLanes(w.mask, [&](int i) {
    const uint32_t a = Lane<uint32_t>(w, in.a)[i], b = Lane<uint32_t>(w, in.b)[i];
    const uint32_t c = Lane<uint32_t>(w, in.c)[i];
    uint32_t out = 0, sum = c;
    for (int k = 0; k < mode.parts; ++k) {
      int32_t r = Combine(static_cast<VideoOp>(mode.op), Part(a, k, bits, mode.signed_a),
                          Part(b, k, bits, mode.signed_b));
      if (mode.saturate) r = r < low ? low : r > high ? high : r;
      out |= (static_cast<uint32_t>(r) & ((1u << bits) - 1)) << (k * bits);
      sum += static_cast<uint32_t>(r);
    }
    Lane<uint32_t>(w, in.d)[i] = mode.accumulate ? sum : out;
  });
}

}  // namespace

void RegisterVideo(const HandlerSink& sink) { sink.Put("video", "", Video); }

}  // namespace simgpu
