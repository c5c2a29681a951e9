// The engine's state and its parts. Internal to runtime/residency; see engine.h for what it
// promises.
//
// Every member function below runs under `mutex`. Where one returns a Status, ResourceExhausted
// means that the budget does not hold what is wanted; anything else is a driver error.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/container/node_hash_set.h"
#include "allocator/chunk_pool.h"
#include "allocator/host_pool.h"
#include "allocator/slab.h"
#include "profiler/recorder.h"
#include "runtime/lineage/lineage.h"
#include "runtime/policy/policy.h"
#include "runtime/residency/cost_model.h"
#include "runtime/residency/engine.h"
#include "runtime/residency/stream_order.h"
#include "runtime/residency/vmm_device.h"

namespace tidepool {

// One buffer of an op about to run, all its regions merged.
struct Operand {
  Buffer* buffer = nullptr;
  AccessMode mode = AccessMode::kNone;
  bool covers = false;  // writes all of the buffer and reads none of it
  Value* in = nullptr;  // the value that the op depends on; locked while the op is prepared
  Value* overwritten = nullptr;  // the current value whose content the op destroys
  std::vector<ChunkId> fresh;    // chunks taken for the new value, until it exists
  bool writes() const { return Writes(mode); }
};
using Operands = absl::InlinedVector<Operand, 8>;

// Tags given automatically: indices of the tag table, ahead of the program's own.
enum Tag : uint32_t {
  kTagUntouched,   // never written
  kTagActivation,  // made on the device by ops that can be replayed
  kTagInput,       // uploaded from the host
  kTagState,       // updated in place, or made by ops that cannot be replayed
  kTagSmall,       // below half a chunk: always resident
  kTagCount,
};

struct RebuildStrategy;  // rebuild.cc

class Engine::Impl final : public LineageObserver {
 public:
  Impl(const DriverApi& api, const VmmDevice& device, const EngineOptions& options,
       std::unique_ptr<policy::Policy> policy, Recorder* recorder);
  ~Impl() override;

  std::mutex mutex;
  // Blocking calls of the program that are under way without the lock, on buffers that a replay
  // would write or show other content in: until they are over, nothing is rebuilt.
  uint32_t calls_under_way = 0;
  std::condition_variable calls_done;
  void WaitForCalls(std::unique_lock<std::mutex>& lock) {
    calls_done.wait(lock, [this] { return calls_under_way == 0; });
  }
  // Bounds of all address ranges, for the test that needs no lock.
  std::atomic<uint64_t> pool_low{~uint64_t{0}};
  std::atomic<uint64_t> pool_high{0};
  // The same of the module variables that are watched.
  std::atomic<uint64_t> variables_low{~uint64_t{0}};
  std::atomic<uint64_t> variables_high{0};
  std::atomic<uint64_t> watched_variables{0};  // so far

  // --- buffers.cc: allocation, lookup, pinning, tags ---
  CUresult Allocate(uint64_t bytes, CUdeviceptr* out);
  bool Free(CUdeviceptr address);
  void Reset();
  Buffer* FindBuffer(uint64_t address) const;  // live ones only
  // A block of a slab; makes room for the slab if need be.
  absl::StatusOr<uint64_t> AllocateSmall(uint64_t bytes);
  // The live buffers that a pointer may mean: the one that contains it, or, of one just behind the
  // end of a buffer or just before its start, those beside it.
  absl::InlinedVector<Buffer*, 2> BuffersAt(uint64_t address) const;
  CUresult PinBuffer(Buffer* buffer, PinReason reason);
  CUresult PinAll(PinReason reason);
  // What ran at an address, or in the chunk of a small buffer, before it got its present owner.
  UseSet FormerUses(uint64_t address, bool small);
  uint32_t TagIndex(const std::string& name);
  void SetTag(Buffer* buffer, uint32_t tag);
  uint64_t PinnedBytes() const {
    return (pinned_chunks_ * pool_->chunk_bytes()) + slab_->slab_bytes();
  }
  Statistics GetStatistics() const;

  // --- variables.cc: module variables that the host can change ---
  void WatchVariable(const std::string& name, uint64_t address, uint64_t bytes, const void* code);
  // Before their code goes away. ResourceExhausted: what was made from them does not fit.
  absl::Status ForgetVariables(const void* code);
  Buffer* FindVariable(uint64_t address) const;
  // Those of which [address, address + bytes) touches a byte.
  absl::InlinedVector<Buffer*, 2> VariablesIn(uint64_t address, uint64_t bytes) const;

  // --- run.cc: one op of the program ---
  CUresult Run(const OpRequest& request, absl::FunctionRef<CUresult()> issue,
               std::unique_lock<std::mutex>& lock);

  // --- evict.cc: chunks for new values ---
  // Takes chunks for all of the buffer, evicting what must go. `*before` gets the uses by their
  // former owners, which the first use by the new one has to be ordered behind.
  absl::Status TakeChunks(Buffer* buffer, std::vector<ChunkId>* out, UseSet* before);
  absl::Status MakeAvailable(uint64_t chunks);
  // Evicts the policy's choice; false if there is nothing that can be evicted.
  absl::StatusOr<bool> EvictOne(uint64_t bytes_wanted);
  // Where eviction is due anyway: evicts who holds the chunks that are mapped at the buffer's
  // address, if that costs no more than the policy's choice and the driver calls that it spares.
  absl::Status EvictAtHome(const Buffer& buffer);
  // Notes whose the value's chunks are.
  void NoteOwner(const Value& value);
  // Evicts the value: drops it, or swaps it to the host. It must not be locked.
  absl::Status Drop(Value* value);
  void GiveBack(Value* value);  // its chunks; it is not resident then
  void GiveBackChunks(std::vector<ChunkId>* chunks, const std::shared_ptr<UseSet>& uses);
  // The same for chunks that were taken and never used: what they were waiting for still counts.
  void ReturnUnused(std::vector<ChunkId>* chunks);
  // Makes the buffer's address show these chunks.
  absl::Status Bind(Buffer* buffer, const std::vector<ChunkId>& chunks);
  absl::Status HostWait(const UseSet& uses);
  void EvictToLowWatermark();
  void Lock(Value* value);
  void Unlock(Value* value);

  // --- swap.cc: the host tier ---
  // Room for a copy of the value in host memory, and the copy, made by a stream of the engine's own
  // behind all uses of the value. It stays resident. ResourceExhausted: no room on the host.
  absl::Status CopyToHost(Value* value);
  // The content from host memory into chunks, on `stream`. The host's copy stays valid.
  absl::Status SwapIn(Value* value, uint32_t stream);
  // Makes sure that the value can come back once its chunks are gone, in the cheaper way.
  // ResourceExhausted: neither is possible; it is no candidate for eviction any more.
  absl::Status MakeRestorable(Value* value);
  void ReleaseHostCopy(Value* value);
  bool CanSwap(const Buffer& buffer) const {
    return host_ != nullptr && !buffer.small() && buffer.pin_reasons == 0;
  }
  // Known to the policy as one that can be swapped, if that is so; costs as a swap.
  void OfferForSwap(Value* value);
  absl::Status MakeSwapStream();
  // For work that no op of the program asked for.
  uint32_t WorkStream();
  uint64_t SwapCost(const Buffer& buffer);

  // --- rebuild.cc ---
  // Makes all of `wanted` resident and locks each once. On error nothing stays locked. Unavailable:
  // something has to be rebuilt while calls are under way; wait for them and try again.
  absl::Status EnsureResident(const std::vector<Value*>& wanted, uint32_t stream);
  absl::Status TryResident(const std::vector<Value*>& wanted, uint32_t stream,
                           const RebuildStrategy& strategy);
  absl::Status Replay(Op* op, uint32_t stream);
  // Copies a resident value into chunks of its own, with `stream`; the copy's chunks go to `*out`.
  absl::Status Duplicate(Value* value, uint32_t stream, std::vector<ChunkId>* out);

  // --- rescue.cc ---
  // The current value's content is about to be destroyed (by an op on `stream`), and no replay can
  // bring it back: rescues what depends on it. Returns true if the content was preserved in a copy,
  // in which case the value stays resident with chunks of its own and `*moved` are those at the
  // buffer's address.
  absl::StatusOr<bool> BeforeLoss(Value* value, uint32_t stream, std::vector<ChunkId>* moved);
  // Whether the content of a small value is worth keeping before an op with these operands
  // destroys it: values that can be dropped are made from it, or will be by this op.
  bool WorthSnapshot(const Value& value, const Operands& operands, bool recordable) const;
  // Copies the small value's content aside, with `stream`.
  absl::Status Snapshot(Value* value, uint32_t stream);
  // Makes everything resident that would be lost with these ops as recipes, then forgets them.
  absl::Status RescueAndInvalidate(const std::vector<Op*>& seeds, uint32_t stream);
  // The same of the recorded ops that fulfil the condition.
  absl::Status ForgetOpsWhere(absl::FunctionRef<bool(const Op&)> condition);
  CUresult ResultOfForgetting(std::string_view what, const absl::Status& status);
  // No recipe reads or writes the buffer from now on.
  absl::Status SealBuffer(Buffer* buffer, uint32_t stream);
  // Gives up a freed root that only resident values were made from; they become roots.
  bool ForgetOneZombie();

  // --- LineageObserver ---
  void OnValueDead(Value* value) override;
  void OnRoot(Value* value) override;
  void OnBufferDead(Buffer* buffer) override;

  // --- helpers ---
  void AddToPolicy(Value* value, uint64_t cost_ns, const std::vector<OpUse>& uses);
  void RemoveFromPolicy(Value* value);
  const std::string* Intern(std::string_view text);
  void RecordEvent(EventKind kind, std::string_view name, uint32_t stream, uint64_t bytes,
                   uint64_t buffer, uint64_t start_ns, uint64_t duration_ns = 0);
  void SampleMemory();
  uint64_t Now() const { return recorder_ != nullptr ? recorder_->Now() : 0; }
  uint64_t ChunkCount(const Buffer& buffer) const {
    return (buffer.bytes + pool_->chunk_bytes() - 1) / pool_->chunk_bytes();
  }

  // run.cc
  Operands ResolveOperands(const OpRequest& request, bool* unknown);
  absl::Status Prepare(const OpRequest& request, Operands& operands, uint32_t stream,
                       bool* recordable);
  // Sees to what depends on the values whose content the op destroys.
  absl::Status BeforeOverwrite(const OpRequest& request, Operands& operands, uint32_t stream,
                               bool* recordable);
  void Commit(const OpRequest& request, Operands& operands, uint32_t stream, bool recordable);
  void Abort(Operands& operands);
  void ReportOutOfMemory(std::string_view what, const Operands& operands,
                         const absl::Status& status);

  const DriverApi& api_;
  const EngineOptions options_;
  std::unique_ptr<VmmDevice> device_;
  Recorder* recorder_;
  std::unique_ptr<ChunkPool> pool_;
  std::unique_ptr<SlabAllocator> slab_;
  std::unique_ptr<policy::Policy> policy_;
  std::unique_ptr<StreamOrder> streams_;
  std::unique_ptr<CostModel> costs_;
  std::unique_ptr<Lineage> lineage_;
  std::unique_ptr<HostPool> host_;  // null: no swapping
  CUstream swap_stream_ = nullptr;
  std::vector<UseSet> host_uses_;           // of host blocks, by id
  std::map<uint64_t, Value*> host_copies_;  // values with a copy on the host, by id
  std::vector<Value*> unswappable_;         // roots that found no room on the host

  std::map<uint64_t, Buffer*> buffers_;  // live ones, by address
  struct WatchedVariable {
    Buffer* buffer = nullptr;
    const void* code = nullptr;  // that it belongs to
  };
  std::map<uint64_t, WatchedVariable> variables_;  // by address
  std::vector<std::shared_ptr<UseSet>>
      chunk_uses_;  // of chunks given back: their last owner's uses
  // By chunk, the id of the value that got it last, which may have given it back or be gone.
  std::vector<policy::ValueId> chunk_owner_;
  absl::flat_hash_map<policy::ValueId, Value*> by_policy_id_;
  // Uses of an address by its former buffers (a range's or a slab block's), which may still be
  // running when the next buffer gets it.
  absl::flat_hash_map<uint64_t, std::shared_ptr<UseSet>> address_uses_;
  // The same of ranges that were slabs, by the range's address.
  absl::flat_hash_map<uint64_t, std::shared_ptr<UseSet>> range_uses_;
  // Freed roots that something dropped or droppable still depends on, by id.
  std::map<uint64_t, Value*> zombies_;
  // Values rebuilt on the way to others, that the program cannot reach: first to go, oldest first.
  std::vector<Value*> temporaries_;
  absl::node_hash_set<std::string> names_;
  std::vector<std::string> tag_names_;
  std::vector<uint64_t> live_by_tag_;
  std::vector<uint64_t> peak_by_tag_;
  uint64_t peak_buffer_ = 0;  // the buffer whose allocation made the peak of live bytes
  uint64_t pinned_chunks_ = 0;
  std::optional<PinReason> pin_all_;
  uint64_t clock_ns_ = 0;  // logical: the cost of all ops so far
  uint64_t resident_chunks_ = 0;
  bool rebuilding_ = false;
  int out_of_memory_lines_ = 0;
  Statistics stats_;
};

// Writes one line, "tidepool: <text>", to stderr.
void Complain(std::string_view text);

std::string FormatBytes(uint64_t bytes);

}  // namespace tidepool
