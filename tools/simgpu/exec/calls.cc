// Frames, calls and returns.
#include <algorithm>
#include <bit>
#include <cstring>

#include "tools/simgpu/exec/heap.h"
#include "tools/simgpu/exec/lanes.h"
#include "tools/simgpu/exec/program_impl.h"
#include "tools/simgpu/exec/warp.h"

namespace simgpu {
namespace {

constexpr uint32_t kMaxDepth = 4096;
// For the alignment, and for a look at a 32-bit operand as if it had 64.
constexpr size_t kPadding = 64 + 8 * kLanes;

// A formal's place for one lane.
uint8_t* Place(Frame& frame, const Formal& formal, int lane) {
  if (formal.reg != kNoRef) {
    return frame.registers + formal.reg +
           static_cast<ptrdiff_t>(lane) * (formal.bytes == 8 ? 8 : 4);
  }
  return frame.params + static_cast<size_t>(lane) * frame.code->param_bytes + formal.offset;
}

void CopyFormals(Frame& from, const std::vector<Formal>& sources, Frame& to,
                 const std::vector<Formal>& targets, uint32_t lanes) {
  const size_t count = std::min(sources.size(), targets.size());
  for (size_t k = 0; k < count; ++k) {
    const uint32_t bytes = std::min(sources[k].bytes, targets[k].bytes);
    ForLanes(lanes, [&](int i) {
      std::memcpy(Place(to, targets[k], i), Place(from, sources[k], i), bytes);
    });
  }
}

template <typename T>
T Argument(Frame& frame, const CallSite& site, size_t k, int lane) {
  T value{};
  if (k < site.arguments.size()) {
    std::memcpy(&value, Place(frame, site.arguments[k], lane),
                std::min<size_t>(sizeof(T), site.arguments[k].bytes));
  }
  return value;
}

void Builtin(Warp& w, const CallSite& site, uint32_t lanes) {
  Frame& frame = *w.frame;
  switch (site.builtin) {
    case CallSite::Builtin::kPrintf:
      DevicePrintf(w, lanes, site);
      return;
    case CallSite::Builtin::kAssert:
      DeviceAssert(w, lanes, site);
    case CallSite::Builtin::kMalloc:
      ForLanes(lanes, [&](int i) {
        const uint64_t address = DeviceHeap::Get().Allocate(Argument<uint64_t>(frame, site, 0, i));
        if (!site.results.empty()) std::memcpy(Place(frame, site.results[0], i), &address, 8);
      });
      return;
    case CallSite::Builtin::kFree:
      ForLanes(lanes, [&](int i) {
        const auto address = Argument<uint64_t>(frame, site, 0, i);
        if (!DeviceHeap::Get().Free(address)) {
          ThrowFault(Fault::kIllegalAddress, address, i, "free of what malloc did not give");
        }
      });
      return;
    case CallSite::Builtin::kNone:
      return;
  }
}

}  // namespace

FrameRef::FrameRef(Frame* frame) : frame_(frame) { ++frame_->refs; }
FrameRef::FrameRef(const FrameRef& other) : frame_(other.frame_) {
  if (frame_ != nullptr) ++frame_->refs;
}
FrameRef::~FrameRef() {
  if (frame_ != nullptr && --frame_->refs == 0) frame_->pool->Release(frame_);
}

FramePool::~FramePool() = default;

FrameRef FramePool::New(const Code* code) {
  std::vector<std::unique_ptr<Frame>>& free = free_[code->index];
  std::unique_ptr<Frame> frame;
  if (!free.empty()) {
    frame = std::move(free.back());
    free.pop_back();
  } else {
    frame = std::make_unique<Frame>();
    frame->code = code;
    frame->pool = this;
    const size_t params = static_cast<size_t>(code->param_bytes) * kLanes;
    frame->storage = std::make_unique<uint8_t[]>(code->register_bytes + params + kPadding);
    const auto base = reinterpret_cast<uintptr_t>(frame->storage.get());
    frame->registers = reinterpret_cast<uint8_t*>((base + 63) & ~uintptr_t{63});
    frame->params = frame->registers + code->register_bytes;
    std::copy(code->constants.begin(), code->constants.end(),
              frame->registers + code->constant_offset);
  }
  // Whatever an earlier call left must not show.
  for (const auto& [offset, bytes] : code->undefined) {
    std::memset(frame->registers + offset, 0, bytes);
  }
  return FrameRef(frame.release());
}

void FramePool::Release(Frame* frame) {
  frame->caller = FrameRef();
  free_[frame->code->index].emplace_back(frame);
}

void CallFunction(Warp& w, const Instr& in, uint32_t lanes) {
  Split& self = w.splits[w.running];
  Frame& caller = *self.frame;
  const CallSite& site = caller.code->sites[in.target];
  const int first = std::countr_zero(lanes);
  if (site.builtin != CallSite::Builtin::kNone) {
    Builtin(w, site, lanes);
    ++self.pc;
    return;
  }
  const Code* callee = site.callee;
  uint32_t going = lanes;
  if (callee == nullptr) {
    // Indirect: the lanes that call the same function go together; the rest comes here again.
    const uint64_t* tokens = Lane<uint64_t>(w, in.a);
    const uint64_t token = tokens[first];
    going = 0;
    ForLanes(lanes, [&](int i) { going |= static_cast<uint32_t>(tokens[i] == token) << i; });
    callee = FunctionByToken(w, token);
    if (callee == nullptr) {
      ThrowFault(Fault::kIllegalAddress, token, first, "call of what is no function");
    }
  }
  if (caller.depth + 1 >= kMaxDepth) {
    ThrowFault(Fault::kIllegalAddress, 0, first, "stack overflow");
  }
  FrameRef frame = w.block->frames->New(callee);
  frame->caller = self.frame;
  frame->site = &site;
  frame->depth = caller.depth + 1;
  frame->return_pc = self.pc + 1;
  frame->local_base = caller.local_base + caller.code->local_bytes;
  if (frame->local_base + callee->local_bytes > w.block->local_stride) {
    ThrowFault(Fault::kIllegalAddress, 0, first, "stack overflow");
  }
  CopyFormals(caller, site.arguments, *frame, callee->formals, going);
  Split inside;
  inside.mask = going;
  inside.frame = std::move(frame);
  if (going == self.mask) {
    self = std::move(inside);
  } else {
    self.mask &= ~going;
    w.splits.push_back(std::move(inside));
  }
}

void ReturnFromFunction(Warp& w, uint32_t lanes) {
  Split& self = w.splits[w.running];
  Frame& frame = *self.frame;
  CopyFormals(frame, frame.code->returns, *frame.caller, frame.site->results, lanes);
  Split back;
  back.pc = frame.return_pc;
  back.mask = lanes;
  back.frame = frame.caller;
  self = std::move(back);
}

}  // namespace simgpu
