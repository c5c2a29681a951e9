#include "tools/simgpu/exec/handlers.h"

#include <atomic>
#include <unordered_map>

namespace simgpu {
namespace {

using Table = std::unordered_map<std::string, HandlerPair>;

Table* MakeTable(bool avx2) {
  auto* table = new Table;
  const HandlerSink sink{
      [](void* to, const char* op, const char* type, Handler full, Handler masked) {
        std::string name(op);
        if (*type != '\0') name.append(".").append(type);
        (*static_cast<Table*>(to))[name] = {full, masked};
      },
      table};
#if !defined(SIMGPU_NO_AVX2)
  if (avx2) {
    RegisterIntegerAvx2(sink);
    RegisterFloatAvx2(sink);
    RegisterApproxAvx2(sink);
    RegisterCompareAvx2(sink);
    RegisterConvertAvx2(sink);
    RegisterHalfAvx2(sink);
    RegisterMemoryAvx2(sink);
  }
#endif
  if (!avx2) {
    RegisterIntegerBase(sink);
    RegisterFloatBase(sink);
    RegisterApproxBase(sink);
    RegisterCompareBase(sink);
    RegisterConvertBase(sink);
    RegisterHalfBase(sink);
    RegisterMemoryBase(sink);
  }
  RegisterBits(sink);
  RegisterVideo(sink);
  RegisterConversions(sink);
  RegisterAtomics(sink);
  RegisterWarp(sink);
  RegisterSpecial(sink);
  RegisterMisc(sink);
  return table;
}

bool HasAvx2() {
#if defined(__x86_64__) && !defined(SIMGPU_NO_AVX2)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

std::atomic<bool> use_baseline{false};

}  // namespace

const HandlerPair* FindHandler(const std::string& name) {
  static const Table* const best = MakeTable(HasAvx2());
  const Table* table = best;
  if (use_baseline.load(std::memory_order_relaxed)) {
    static const Table* const base = MakeTable(false);
    table = base;
  }
  const auto found = table->find(name);
  return found == table->end() ? nullptr : &found->second;
}

void UseBaselineHandlers(bool on) { use_baseline = on; }

}  // namespace simgpu
