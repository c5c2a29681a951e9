// Lineage: the graph of buffers, values and ops from which a dropped value can be rebuilt.
//
// A buffer is one allocation of the program; a value is its content between two writes; an op reads
// values and makes values. A value's `recipe` is the op that makes it again; a value without one is
// a root. The invariant that everything rests on:
//
//   every value that is not resident and still needed has a copy in host memory or a recipe, and
//   every value that this recipe reads is resident, or is itself not resident and has one of these.
//
// A value is needed while it is the current value of a live buffer, or while an op that reads it is
// the recipe of a needed value. What is not needed is collected at once. No function recurses on
// the C stack.
//
// Pure bookkeeping: no device, no clock. Not thread-safe (the engine's lock covers it).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "allocator/chunk_pool.h"
#include "allocator/host_pool.h"
#include "runtime/lineage/replay.h"
#include "runtime/lineage/use_set.h"

namespace tidepool {

struct Op;
struct Value;

struct Buffer {
  uint64_t id = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;             // as the program asked
  AddressRange* range = nullptr;  // null: a small buffer, inside a slab: always resident
  bool variable = false;          // a module variable: small, and memory of the driver's
  bool freed = false;             // by the program; lineage may still mention it
  uint32_t pin_reasons = 0;       // bit per PinReason; 0: not pinned
  uint32_t tag = 0;               // index into the engine's tag table
  bool user_tag = false;
  // Small buffers only: the value whose content is there; outlives `current` when freed.
  Value* holds = nullptr;
  Value* current = nullptr;  // null: never written (undefined), or freed
  uint32_t references = 0;   // values and op uses that mention it, plus one while not freed
  uint32_t version_depth =
      0;  // in-place updates since the last value that did not read its predecessor
  std::vector<Op*> mentions;                                  // recorded ops that use it
  std::shared_ptr<UseSet> uses = std::make_shared<UseSet>();  // of its address, whatever the value
  bool small() const { return range == nullptr; }
  // The driver gives memory in units of 512 bytes, and kernels that write a little more than was
  // asked for run there: what is copied is the content up to the end of the unit.
  uint64_t content_bytes() const { return variable ? bytes : (bytes + 511) / 512 * 512; }
};

struct Value {
  uint64_t id = 0;
  Buffer* buffer = nullptr;
  Op* recipe = nullptr;
  std::vector<Op*> readers;     // recorded ops that read this value, one entry per use
  std::vector<ChunkId> chunks;  // if resident and not in a slab
  bool resident = false;
  HostBlock* host = nullptr;  // a copy in host memory, resident or not
  bool current = false;       // what a read of the live buffer would see
  uint32_t depth = 0;      // ops on the longest way from a root to it; 0: a root when it was made
  uint32_t locks = 0;      // must stay resident while > 0
  bool in_policy = false;  // known to the eviction policy
  // Small buffers only: where the content is kept once another value has taken its place.
  Buffer* snapshot = nullptr;
  std::shared_ptr<UseSet> uses = std::make_shared<UseSet>();
  UseSet inserted;  // uses that the program does not know of: replays, copies
  // It may lose its chunks: there is a way to bring it back.
  bool restorable() const { return recipe != nullptr || host != nullptr; }
};

// How an op uses one buffer. in == null: does not depend on what was there (undefined, or covered).
// writes: it makes a value; out == null then means that this value is not needed any more.
struct OpUse {
  Buffer* buffer = nullptr;
  Value* in = nullptr;
  Value* out = nullptr;
  bool writes = false;
};

struct Op {
  uint64_t id = 0;
  const std::string* name = nullptr;  // interned by the engine
  std::shared_ptr<const Replay> replay;
  std::vector<OpUse> uses;
  uint64_t cost_ns = 0;
  uint64_t cost_key = 0;
  uint32_t live_outputs = 0;
};

// Told of what the graph decides by itself.
class LineageObserver {
 public:
  virtual ~LineageObserver() = default;
  // The value is about to be deleted: give its chunks back.
  virtual void OnValueDead(Value* value) = 0;
  // The value lost its recipe and is a root from now on.
  virtual void OnRoot(Value* value) = 0;
  // No value and no op mentions the freed buffer any more: its address may be used again.
  virtual void OnBufferDead(Buffer* buffer) = 0;
};

// What must happen before a root's content goes away.
struct LossPlan {
  // Dropped values that the program may still read: they must be rebuilt first (or the root
  // preserved).
  std::vector<Value*> rescue;
  uint64_t rescue_bytes = 0;
  // Ops that cannot be recipes any more, in an order in which they can be forgotten.
  std::vector<Op*> invalid;
};

class Lineage {
 public:
  explicit Lineage(LineageObserver* observer) : observer_(observer) {}
  ~Lineage();
  Lineage(const Lineage&) = delete;
  Lineage& operator=(const Lineage&) = delete;

  Buffer* NewBuffer(uint64_t address, uint64_t bytes, AddressRange* range);
  // The program freed it: its current value stops being current. The buffer may be dead on return.
  void FreeBuffer(Buffer* buffer);

  // Keeps the buffer (not its values) alive across a time when the lock is not held.
  static void Retain(Buffer* buffer) { ++buffer->references; }
  void Release(Buffer* buffer) { DropReference(buffer); }

  // A value of `buffer`, not current, a root, not resident.
  Value* NewValue(Buffer* buffer);
  // Makes `value` the buffer's current value; the one before it stops being current and may be
  // collected.
  void SetCurrent(Buffer* buffer, Value* value);

  // Records the op as the recipe of the values it makes (uses[i].out).
  Op* Record(const std::string* name, std::shared_ptr<const Replay> replay, std::vector<OpUse> uses,
             uint64_t cost_ns, uint64_t cost_key);

  // The recorded op reads the value too (a root, of a buffer that it was not known to use).
  void AddInput(Op* op, Value* value);

  // What giving up these ops as recipes would entail. To lose the content of a root: its readers;
  // to seal a buffer against replay: its mentions.
  LossPlan PlanLoss(const std::vector<Op*>& seeds) const;
  // Forgets the ops as recipes: their living outputs become roots. Call after the rescue.
  void Invalidate(const std::vector<Op*>& ops);

  // Collects the value if nobody needs it (not current, no readers, no locks).
  void Collect(Value* value);

  // The recorded ops that fulfil the condition.
  std::vector<Op*> OpsWhere(absl::FunctionRef<bool(const Op&)> condition) const;
  // Whether the op is still recorded (for lists that may have outlived it).
  bool Contains(const Op* op) const { return ops_.contains(const_cast<Op*>(op)); }

  uint64_t op_count() const { return ops_.size(); }
  uint64_t value_count() const { return values_.size(); }
  uint64_t footprint() const { return footprint_; }

 private:
  void ForgetOp(Op* op, std::vector<Value*>* work);
  void DropReference(Buffer* buffer);
  void CollectAll(std::vector<Value*> work);

  LineageObserver* observer_;
  uint64_t next_id_ = 1;
  absl::flat_hash_set<Buffer*> buffers_;
  absl::flat_hash_set<Value*> values_;
  absl::flat_hash_set<Op*> ops_;
  uint64_t footprint_ = 0;
};

}  // namespace tidepool
