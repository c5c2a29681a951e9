// The barriers of a block.
#pragma once

#include "tools/simgpu/exec/warp.h"

namespace simgpu {

// The running split is at a barrier instruction: it waits, or goes on where that completes the
// barrier (or where it only arrives).
void ArriveAtBarrier(Warp& warp, const Instr& instr);

// Some threads are done: barriers no longer wait for them.
void ThreadsExited(Block* block, uint32_t threads);

}  // namespace simgpu
