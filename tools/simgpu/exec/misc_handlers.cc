// isspacep, cp.async.
#include <cstring>

#include "tools/simgpu/exec/handlers.h"
#include "tools/simgpu/exec/lanes.h"

namespace simgpu {
namespace {

// imm: the window's start; 0 asks for global memory, which is none of the windows.
void Isspacep(Warp& w, const Instr& in) {
  const uint64_t* a = Lane<uint64_t>(w, in.a);
  const auto window = static_cast<uint64_t>(in.imm);
  uint32_t bits = 0;
  ForLanes(w.mask, [&](int i) {
    const bool is = window != 0 ? a[i] - window < kWindowBytes
                                : a[i] - kSharedWindow >= kFunctionTokens - kSharedWindow;
    bits |= static_cast<uint32_t>(is) << i;
  });
  SetPred(w, in.d, bits);
}

// a: to, plus imm (shared); b: from (global); aux: bytes; c: how many of them are read, the rest is
// zero; f: a predicate that makes it none.
template <typename A>
void CpAsync(Warp& w, const Instr& in) {
  MayFault(w, in);
  const uint32_t bytes = in.aux;
  ForLanes(w.mask, [&](int i) {
    uint32_t read = bytes;
    if (in.c != kNoRef) read = Lane<uint32_t>(w, in.c)[i];
    if (in.f != kNoRef && (Pred(w, in.f) >> i & 1) != 0) read = 0;
    if (read > bytes) ThrowFault(Fault::kTrap, 0, i, "cp.async reads more than it copies");
    const A to = Lane<A>(w, in.a)[i] + static_cast<A>(in.imm);
    uint8_t* target = SharedPointer(w, i, to, bytes);
    uint8_t buffer[16] = {};
    if (read != 0) {
      const uint64_t from = Lane<uint64_t>(w, in.b)[i];
      std::memcpy(buffer, GlobalPointer(w, i, from, bytes, false), read);
    }
    std::memcpy(target, buffer, bytes);
  });
}

}  // namespace

void RegisterMisc(const HandlerSink& sink) {
  sink.Put("isspacep", "", Isspacep);
  sink.Put("cp.async.32", "", CpAsync<uint32_t>);
  sink.Put("cp.async.64", "", CpAsync<uint64_t>);
}

}  // namespace simgpu
