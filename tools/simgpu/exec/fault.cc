#include "tools/simgpu/exec/fault.h"

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "tools/simgpu/exec/exec.h"

namespace simgpu {
namespace {

thread_local TrapPoint* trap_point = nullptr;

// Handlers that were there before ours, by signal. Written under the mutex before ours is
// installed, read by the signal handler.
struct sigaction previous_segv, previous_bus;

void OnSignal(int number, siginfo_t* info, void* context) {
  TrapPoint* const point = trap_point;
  if (point != nullptr && info->si_code > 0) {  // sent by the kernel, not by kill()
    const auto address = reinterpret_cast<uint64_t>(info->si_addr);
    for (int k = 0; k < 2; ++k) {
      if (address - point->base[k] >= point->size[k]) continue;
      point->address = address;
      trap_point = point->outer;
      // The jump leaves the signals as they are now; whoever wraps this handler (a sanitizer) may
      // have blocked them in spite of SA_NODEFER.
      pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
      siglongjmp(point->jump, 1);
    }
  }
  const struct sigaction& before = number == SIGSEGV ? previous_segv : previous_bus;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
    // The access is made again and ends the process as it would have.
    signal(number, SIG_DFL);
    if (info->si_code <= 0) raise(number);
  } else {
    before.sa_handler(number);
  }
}

void InstallFor(int number, struct sigaction* previous) {
  struct sigaction now = {};
  sigaction(number, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == OnSignal) return;
  *previous = now;
  struct sigaction action = {};
  action.sa_sigaction = OnSignal;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

void InstallTrapHandler() {
  static std::mutex* const mutex = new std::mutex;
  {
    std::lock_guard<std::mutex> lock(*mutex);
    InstallFor(SIGSEGV, &previous_segv);
    InstallFor(SIGBUS, &previous_bus);
  }
  // A fault while its signal is blocked would end the process whatever the handler.
  thread_local bool unblocked = false;
  if (!unblocked) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    sigaddset(&set, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    unblocked = true;
  }
}

void SetTrapPoint(TrapPoint* point) {
  point->outer = trap_point;
  trap_point = point;
  // The accesses that follow are made by code that may be inlined here.
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void ClearTrapPoint(TrapPoint* point) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  trap_point = point->outer;
}

bool SafeReadByte(uint64_t address, uint8_t* out) {
  TrapPoint point;
  point.base[0] = address;
  point.size[0] = 1;
  if (sigsetjmp(point.jump, 0) != 0) return false;
  SetTrapPoint(&point);
  *out = *reinterpret_cast<const volatile uint8_t*>(address);
  ClearTrapPoint(&point);
  return true;
}

bool SafeCopy(void* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return true;
  InstallTrapHandler();
  TrapPoint point;
  point.base[0] = reinterpret_cast<uint64_t>(to);
  point.base[1] = reinterpret_cast<uint64_t>(from);
  point.size[0] = point.size[1] = bytes;
  if (sigsetjmp(point.jump, 0) != 0) return false;
  SetTrapPoint(&point);
  std::memmove(to, from, bytes);
  ClearTrapPoint(&point);
  return true;
}

bool SafeFill(void* to, uint64_t pattern, uint32_t pattern_bytes, uint64_t count) {
  if (count == 0) return true;
  InstallTrapHandler();
  TrapPoint point;
  point.base[0] = reinterpret_cast<uint64_t>(to);
  point.size[0] = pattern_bytes * count;
  if (sigsetjmp(point.jump, 0) != 0) return false;
  SetTrapPoint(&point);
  auto* out = static_cast<uint8_t*>(to);
  if (pattern_bytes == 1) {
    std::memset(out, static_cast<int>(pattern & 0xff), count);
  } else {
    for (uint64_t i = 0; i < count; ++i) {
      std::memcpy(out + i * pattern_bytes, &pattern, pattern_bytes);
    }
  }
  ClearTrapPoint(&point);
  return true;
}

}  // namespace simgpu
