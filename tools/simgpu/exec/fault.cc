// Page faults of simulated kernels and copies. Each thread that touches device memory sets a trap
// point; a SIGSEGV or SIGBUS then jumps there. Signals that are not ours go to whoever had them
// before.
#include <signal.h>

#include <cstring>
#include <mutex>

#include "tools/simgpu/exec/code.h"

namespace simgpu {

thread_local TrapPoint* trap_point = nullptr;

namespace {

struct sigaction previous_segv, previous_bus;

void OnSignal(int number, siginfo_t* info, void* context) {
  if (trap_point != nullptr) {
    TrapPoint* point = trap_point;
    trap_point = nullptr;
    point->address = reinterpret_cast<uint64_t>(info->si_addr);
    siglongjmp(point->jump, 1);
  }
  const struct sigaction& before = number == SIGSEGV ? previous_segv : previous_bus;
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
    signal(number, SIG_DFL);  // the access is made again, and ends the process as it would have
  } else {
    before.sa_handler(number);
  }
}

}  // namespace

void InstallTrapHandler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = OnSignal;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous_segv);
    sigaction(SIGBUS, &action, &previous_bus);
  });
}

bool SafeCopy(void* to, const void* from, uint64_t bytes) {
  InstallTrapHandler();
  TrapPoint point;
  if (sigsetjmp(point.jump, 0) != 0) return false;
  trap_point = &point;
  std::memmove(to, from, bytes);
  trap_point = nullptr;
  return true;
}

bool SafeFill(void* to, uint64_t pattern, uint32_t pattern_bytes, uint64_t count) {
  InstallTrapHandler();
  TrapPoint point;
  if (sigsetjmp(point.jump, 0) != 0) return false;
  trap_point = &point;
  auto* out = static_cast<uint8_t*>(to);
  if (pattern_bytes == 1) {
    std::memset(out, static_cast<int>(pattern & 0xff), count);
  } else {
    for (uint64_t i = 0; i < count; ++i) {
      std::memcpy(out + i * pattern_bytes, &pattern, pattern_bytes);
    }
  }
  trap_point = nullptr;
  return true;
}

}  // namespace simgpu
