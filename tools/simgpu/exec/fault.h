// Page faults of simulated kernels and copies. A thread that is about to touch device memory sets
// a trap point; a SIGSEGV or SIGBUS on an address that it watches jumps there. Other signals go to
// whoever handled them before.
#pragma once

#include <csetjmp>
#include <cstdint>

namespace simgpu {

// The addresses of this thread's accesses that may fault: any of two ranges.
struct TrapPoint {
  sigjmp_buf jump;
  uint64_t base[2] = {0, 0};
  uint64_t size[2] = {0, 0};
  uint64_t address = 0;        // of the fault
  TrapPoint* outer = nullptr;  // the one that was set before
};

// Makes sure that our signal handler is the process's and that this thread does not block the
// signals. Cheap enough for every launch.
void InstallTrapHandler();

// Set with sigsetjmp(point.jump, 0) in between: the frame that calls it must outlive the access.
void SetTrapPoint(TrapPoint* point);
void ClearTrapPoint(TrapPoint* point);

// Whether a byte can be read; for text that kernels point to.
bool SafeReadByte(uint64_t address, uint8_t* out);

}  // namespace simgpu
