// Allocation, lookup, pinning, tags and statistics.
#include <unistd.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/residency/engine_impl.h"

namespace tidepool {
namespace {

// Tags given automatically; their indices in the tag table.
constexpr std::array<const char*, kTagCount> kTagNames = {"untouched", "activation", "input",
                                                          "state", "small"};

}  // namespace

std::string_view PinReasonName(PinReason reason) {
  switch (reason) {
    case PinReason::kOpaqueKernel:
      return "opaque_kernel";
    case PinReason::kEscapes:
      return "escapes";
    case PinReason::kPointerInMemory:
      return "pointer_in_memory";
    case PinReason::kGraph:
      return "graph";
    case PinReason::kShared:
      return "shared";
    case PinReason::kTexture:
      return "texture";
    case PinReason::kUnknownCall:
      return "unknown_call";
    case PinReason::kUser:
      return "user";
    case PinReason::kCount:
      break;
  }
  return "?";
}

void Complain(std::string_view text) {
  std::string line = absl::StrCat("tidepool: ", absl::string_view(text.data(), text.size()), "\n");
  // One write, so that lines of several threads and of the program do not mix. Nothing to be done
  // if it fails.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

std::string FormatBytes(uint64_t bytes) {
  constexpr uint64_t kKiB = 1024, kMiB = kKiB * 1024, kGiB = kMiB * 1024;
  const auto value = static_cast<double>(bytes);
  if (bytes >= kGiB) return absl::StrFormat("%.2f GiB", value / kGiB);
  if (bytes >= kMiB) return absl::StrFormat("%.2f MiB", value / kMiB);
  if (bytes >= kKiB) return absl::StrFormat("%.1f KiB", value / kKiB);
  return absl::StrCat(bytes, " bytes");
}

Engine::Impl::Impl(const DriverApi& api, const VmmDevice& device, const EngineOptions& options,
                   std::unique_ptr<policy::Policy> policy, Recorder* recorder)
    : api_(api),
      options_(options),
      device_(std::make_unique<VmmDevice>(device)),
      recorder_(recorder),
      policy_(std::move(policy)) {
  for (const char* name : kTagNames) TagIndex(name);
  Reset();
}

Engine::Impl::~Impl() {
  if (swap_stream_ != nullptr) api_.StreamDestroy(swap_stream_);
}

void Engine::Impl::Reset() {
  if (lineage_ != nullptr) {
    costs_->Abandon();
    streams_->Abandon();
    // Handles and addresses died with the context: forget them without calls.
    device_->Abandon();
    lineage_ = nullptr;
    slab_ = nullptr;
    pool_ = nullptr;
    device_ = std::make_unique<VmmDevice>(device_->Renewed());
    policy_ = *policy::MakePolicy(options_.policy);
    by_policy_id_.clear();
    buffers_.clear();
    variables_.clear();
    chunk_uses_.clear();
    chunk_owner_.clear();
    address_uses_.clear();
    range_uses_.clear();
    zombies_.clear();
    temporaries_.clear();
    if (host_ != nullptr) host_->Abandon();
    host_ = nullptr;
    host_uses_.clear();
    host_copies_.clear();
    unswappable_.clear();
    swap_stream_ = nullptr;
    pinned_chunks_ = 0;
    resident_chunks_ = 0;
    stats_.live_bytes = 0;
    std::fill(live_by_tag_.begin(), live_by_tag_.end(), 0);
  }
  pool_ = std::make_unique<ChunkPool>(device_.get(), options_.budget_bytes);
  slab_ = std::make_unique<SlabAllocator>(pool_.get());
  streams_ = std::make_unique<StreamOrder>(&api_);
  costs_ = std::make_unique<CostModel>(&api_);
  lineage_ = std::make_unique<Lineage>(this);
  const bool can_copy = api_.MemHostAlloc != nullptr && api_.MemFreeHost != nullptr &&
                        api_.MemcpyHtoDAsync != nullptr && api_.MemcpyDtoHAsync != nullptr &&
                        api_.StreamCreate != nullptr && api_.StreamDestroy != nullptr;
  if (options_.host_budget_bytes > 0 && can_copy) {
    host_ =
        std::make_unique<HostPool>(device_.get(), options_.host_budget_bytes, pool_->chunk_bytes());
  }
}

uint32_t Engine::Impl::TagIndex(const std::string& name) {
  for (uint32_t i = 0; i < tag_names_.size(); ++i) {
    if (tag_names_[i] == name) return i;
  }
  tag_names_.push_back(name);
  live_by_tag_.push_back(0);
  peak_by_tag_.push_back(0);
  return static_cast<uint32_t>(tag_names_.size() - 1);
}

void Engine::Impl::SetTag(Buffer* buffer, uint32_t tag) {
  if (buffer->tag == tag || buffer->user_tag) return;
  live_by_tag_[buffer->tag] -= buffer->bytes;
  live_by_tag_[tag] += buffer->bytes;
  // A buffer counts at the peak under what it turned out to be, so that what was allocated and not
  // yet written when the peak was reached does not hide as "untouched". A live buffer that is not
  // younger than the one that made the peak was live then.
  if (buffer->id <= peak_buffer_) {
    peak_by_tag_[buffer->tag] -= buffer->bytes;
    peak_by_tag_[tag] += buffer->bytes;
  }
  buffer->tag = tag;
}

absl::StatusOr<uint64_t> Engine::Impl::AllocateSmall(uint64_t bytes) {
  absl::StatusOr<uint64_t> address = slab_->Allocate(bytes);
  while (!address.ok() && absl::IsResourceExhausted(address.status())) {
    if (!MakeAvailable(pool_->available_chunks() + 1).ok()) break;
    address = slab_->Allocate(bytes);
  }
  return address;
}

CUresult Engine::Impl::Allocate(uint64_t bytes, CUdeviceptr* out) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Buffer* buffer = nullptr;
  if (bytes <= slab_->max_bytes()) {
    // A byte more where that costs little, so that the address of a buffer's end is nobody else's.
    const uint64_t cheap = std::min<uint64_t>(4096, slab_->max_bytes() - 1);
    absl::StatusOr<uint64_t> address = AllocateSmall(bytes <= cheap ? bytes + 1 : bytes);
    if (!address.ok()) {
      // A context that is dead says so.
      if (!absl::IsResourceExhausted(address.status())) return ResultOf(address.status());
      ++stats_.out_of_memory;
      ReportOutOfMemory(absl::StrCat("an allocation of ", FormatBytes(bytes)), {},
                        address.status());
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    buffer = lineage_->NewBuffer(*address, bytes, nullptr);
    buffer->tag = kTagSmall;
  } else {
    const uint64_t chunks = bytes / pool_->chunk_bytes() + (bytes % pool_->chunk_bytes() != 0);
    const uint64_t slab_chunks = slab_->slab_bytes() / pool_->chunk_bytes();
    if (chunks + pinned_chunks_ + slab_chunks > pool_->budget_chunks()) {
      ++stats_.out_of_memory;
      ReportOutOfMemory(absl::StrCat("an allocation of ", FormatBytes(bytes)), {},
                        absl::ResourceExhaustedError("it cannot fit beside what is pinned"));
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    absl::StatusOr<AddressRange*> range = pool_->AcquireRange(bytes);
    if (!range.ok()) {
      if (!absl::IsResourceExhausted(range.status())) return ResultOf(range.status());
      ++stats_.out_of_memory;
      ReportOutOfMemory(absl::StrCat("an allocation of ", FormatBytes(bytes)), {}, range.status());
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    buffer = lineage_->NewBuffer((*range)->address, bytes, *range);
  }
  *buffer->uses = FormerUses(buffer->address, buffer->small());
  // Pointers just beside a buffer may mean it (BuffersAt).
  const uint64_t margin = pool_->chunk_bytes();
  pool_low.store(std::min(pool_low.load(), buffer->address - margin));
  pool_high.store(std::max(pool_high.load(), buffer->address + bytes + margin));
  buffers_[buffer->address] = buffer;
  ++stats_.allocations;
  live_by_tag_[buffer->tag] += bytes;
  stats_.live_bytes += bytes;
  if (stats_.live_bytes > stats_.peak_live_bytes) {
    stats_.peak_live_bytes = stats_.live_bytes;
    peak_by_tag_ = live_by_tag_;
    peak_buffer_ = buffer->id;
  }
  if (pin_all_.has_value()) {
    if (CUresult result = PinBuffer(buffer, *pin_all_); result != CUDA_SUCCESS) {
      Free(buffer->address);
      return result;
    }
  }
  *out = buffer->address;
  return CUDA_SUCCESS;
}

UseSet Engine::Impl::FormerUses(uint64_t address, bool small) {
  UseSet uses;
  for (auto* table : {&address_uses_, &range_uses_}) {
    if (small && table == &range_uses_) continue;  // the slab keeps its range's mapping
    auto it = table->find(address);
    if (it == table->end()) continue;
    uses.Merge(*it->second);
    table->erase(it);
  }
  if (small) {
    // The slab may have taken its chunk from a value whose last ops are still running.
    const AddressRange* range = pool_->FindRange(address);
    const ChunkId chunk = range->pages[(address - range->address) / pool_->chunk_bytes()];
    if (chunk < chunk_uses_.size() && chunk_uses_[chunk] != nullptr) {
      uses.Merge(*chunk_uses_[chunk]);
    }
  }
  return uses;
}

bool Engine::Impl::Free(CUdeviceptr address) {
  auto it = buffers_.find(address);
  if (it == buffers_.end()) return false;
  Buffer* buffer = it->second;
  buffers_.erase(it);
  ++stats_.frees;
  stats_.live_bytes -= buffer->bytes;
  live_by_tag_[buffer->tag] -= buffer->bytes;
  if (buffer->pin_reasons != 0 && !buffer->small()) pinned_chunks_ -= ChunkCount(*buffer);

  Value* last = buffer->current;
  if (last != nullptr) Lock(last);
  lineage_->FreeBuffer(buffer);
  if (last == nullptr) return true;
  Unlock(last);
  if (!last->readers.empty() && last->resident && !buffer->small() && last->locks == 0) {
    if (last->recipe != nullptr) {
      // Eager eviction: the memory is free for the next allocation, the lineage stays. A failure
      // (strict mode, a dead context) leaves the value resident, and the next eviction tries again.
      Drop(last).IgnoreError();
    } else {
      zombies_[last->id] = last;
    }
  }
  lineage_->Collect(last);
  return true;
}

Buffer* Engine::Impl::FindBuffer(uint64_t address) const {
  auto it = buffers_.upper_bound(address);
  if (it == buffers_.begin()) return nullptr;
  Buffer* buffer = std::prev(it)->second;
  return address - buffer->address < buffer->bytes ? buffer : nullptr;
}

absl::InlinedVector<Buffer*, 2> Engine::Impl::BuffersAt(uint64_t address) const {
  if (Buffer* variable = FindVariable(address)) return {variable};
  auto next = buffers_.upper_bound(address);
  Buffer* before = next == buffers_.begin() ? nullptr : std::prev(next)->second;
  Buffer* behind = next == buffers_.end() ? nullptr : next->second;
  if (before != nullptr && address - before->address < before->bytes) return {before};
  // Between buffers. There is a guard page between ranges, and mostly a byte or more between small
  // buffers: what is further away, or in memory of another range, is meant by no pointer.
  const AddressRange* range = pool_->FindRange(address);
  auto beside = [&](const Buffer* buffer, uint64_t distance) {
    if (buffer->small()) {
      return distance <= kSlabAlignment &&
             (range == nullptr || range == pool_->FindRange(buffer->address));
    }
    return distance < pool_->chunk_bytes() && (range == nullptr || range == buffer->range);
  };
  absl::InlinedVector<Buffer*, 2> found;
  if (before != nullptr && beside(before, address - before->address - before->bytes)) {
    found.push_back(before);
  }
  if (behind != nullptr && beside(behind, behind->address - address)) found.push_back(behind);
  return found;
}

CUresult Engine::Impl::PinBuffer(Buffer* buffer, PinReason reason) {
  const uint32_t bit = 1u << static_cast<uint32_t>(reason);
  if ((buffer->pin_reasons & bit) != 0) return CUDA_SUCCESS;
  const bool first = buffer->pin_reasons == 0;
  if (first) {
    const uint32_t stream = WorkStream();
    absl::Status status = absl::OkStatus();
    Value* held = nullptr;
    UseSet before;
    if (buffer->current == nullptr) {
      // Something unseen may write it: it needs memory from now on.
      std::vector<ChunkId> chunks;
      if (!buffer->small()) {
        status = TakeChunks(buffer, &chunks, &before);
        if (status.ok()) status = Bind(buffer, chunks);
        if (!status.ok() && !chunks.empty()) {
          GiveBackChunks(&chunks, std::make_shared<UseSet>(before));
        }
      }
      if (status.ok()) {
        Value* value = lineage_->NewValue(buffer);
        value->resident = true;
        value->chunks = std::move(chunks);
        NoteOwner(*value);
        lineage_->SetCurrent(buffer, value);
      }
    } else {
      status = EnsureResident({buffer->current}, stream);
      if (status.ok()) {
        if (!buffer->small()) status = Bind(buffer, buffer->current->chunks);
        before = buffer->current->inserted;
        held = buffer->current;  // until it is pinned
      }
    }
    // The next use may be one that is not seen, on any stream: what came before must be over.
    if (status.ok()) status = HostWait(before);
    // Its content may change unseen from now on, so no recipe may read it or write it.
    if (status.ok()) status = SealBuffer(buffer, stream);
    if (status.ok()) {
      buffer->pin_reasons |= bit;
      RemoveFromPolicy(buffer->current);
      ReleaseHostCopy(buffer->current);
    }
    if (held != nullptr) Unlock(held);
    if (!status.ok()) {
      ++stats_.out_of_memory;
      ReportOutOfMemory(
          absl::StrCat(
              "pinning ", FormatBytes(buffer->bytes), " (",
              absl::string_view(PinReasonName(reason).data(), PinReasonName(reason).size()), ")"),
          {}, status);
      return absl::IsResourceExhausted(status) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN;
    }
    if (!buffer->small()) pinned_chunks_ += ChunkCount(*buffer);
    RecordEvent(EventKind::kPin, PinReasonName(reason), 0, buffer->bytes, buffer->id, Now());
  }
  buffer->pin_reasons |= bit;
  return CUDA_SUCCESS;
}

CUresult Engine::Impl::PinAll(PinReason reason) {
  if (!pin_all_.has_value()) {
    Complain(
        absl::StrCat("the program uses something that cannot be followed (",
                     absl::string_view(PinReasonName(reason).data(), PinReasonName(reason).size()),
                     "): every buffer stays resident from here on"));
    pin_all_ = reason;
  }
  for (const auto& [address, buffer] : buffers_) {
    if (CUresult result = PinBuffer(buffer, reason); result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

Statistics Engine::Impl::GetStatistics() const {
  Statistics stats = stats_;
  stats.budget_bytes = options_.budget_bytes;
  stats.chunk_bytes = pool_->chunk_bytes();
  stats.physical_bytes = pool_->created_chunks() * pool_->chunk_bytes();
  stats.peak_physical_bytes = pool_->peak_physical_bytes();
  stats.resident_bytes = resident_chunks_ * pool_->chunk_bytes();
  stats.pinned_bytes = PinnedBytes();
  if (host_ != nullptr) {
    stats.host_budget_bytes = host_->budget_bytes();
    stats.peak_host_bytes = host_->peak_bytes();
  }
  stats.lineage_ops = lineage_->op_count();
  stats.lineage_bytes = lineage_->footprint();
  for (uint32_t r = 0; r < static_cast<uint32_t>(PinReason::kCount); ++r) {
    uint64_t bytes = 0;
    for (const auto& [address, buffer] : buffers_) {
      if ((buffer->pin_reasons & (1u << r)) != 0) bytes += buffer->bytes;
    }
    if (bytes > 0) {
      stats.pinned_bytes_by_reason[std::string(PinReasonName(static_cast<PinReason>(r)))] = bytes;
    }
  }
  if (slab_->slab_bytes() > 0) stats.pinned_bytes_by_reason["small"] = slab_->slab_bytes();
  for (size_t i = 0; i < tag_names_.size(); ++i) {
    if (peak_by_tag_[i] > 0) stats.peak_bytes_by_tag[tag_names_[i]] = peak_by_tag_[i];
  }
  return stats;
}

void Engine::Impl::OnValueDead(Value* value) {
  RemoveFromPolicy(value);
  zombies_.erase(value->id);
  if (!temporaries_.empty()) std::erase(temporaries_, value);
  if (!unswappable_.empty()) std::erase(unswappable_, value);
  ReleaseHostCopy(value);
  if (value->snapshot != nullptr) lineage_->FreeBuffer(std::exchange(value->snapshot, nullptr));
  if (value->resident && !value->buffer->small()) GiveBackChunks(&value->chunks, value->uses);
}

void Engine::Impl::OnRoot(Value* value) {
  RemoveFromPolicy(value);
  OfferForSwap(value);
  if (!value->current && value->resident && !value->buffer->small()) zombies_[value->id] = value;
  if (value->current && value->buffer->tag == kTagActivation) {
    SetTag(value->buffer, kTagState);
  }
}

void Engine::Impl::OnBufferDead(Buffer* buffer) {
  if (buffer->variable) return;
  if (!buffer->uses->empty()) address_uses_[buffer->address] = buffer->uses;
  if (buffer->small() && !buffer->uses->empty()) {
    // If its slab goes with it, the next owners of the chunk and of the range come behind its ops.
    const AddressRange* range = pool_->FindRange(buffer->address);
    const ChunkId chunk = range->pages[(buffer->address - range->address) / pool_->chunk_bytes()];
    if (chunk_uses_.size() <= chunk) chunk_uses_.resize(chunk + 1);
    auto merged = std::make_shared<UseSet>(*buffer->uses);
    if (chunk_uses_[chunk] != nullptr) merged->Merge(*chunk_uses_[chunk]);
    chunk_uses_[chunk] = merged;
    std::shared_ptr<UseSet>& of_range = range_uses_[range->address];
    if (of_range == nullptr) of_range = std::make_shared<UseSet>();
    of_range->Merge(*buffer->uses);
  }
  if (buffer->small()) {
    slab_->Free(buffer->address);
  } else {
    pool_->RetireRange(buffer->range);
  }
}

void Engine::Impl::RemoveFromPolicy(Value* value) {
  if (!value->in_policy) return;
  policy_->Remove(value->id);
  by_policy_id_.erase(value->id);
  value->in_policy = false;
}

const std::string* Engine::Impl::Intern(std::string_view text) {
  const absl::string_view view(text.data(), text.size());
  auto it = names_.find(view);
  if (it == names_.end()) it = names_.insert(std::string(text)).first;
  return &*it;
}

void Engine::Impl::RecordEvent(EventKind kind, std::string_view name, uint32_t stream,
                               uint64_t bytes, uint64_t buffer, uint64_t start_ns,
                               uint64_t duration_ns) {
  if (recorder_ == nullptr) return;
  recorder_->Record({kind, start_ns, duration_ns, name, stream, bytes, buffer});
}

void Engine::Impl::SampleMemory() {
  if (recorder_ == nullptr) return;
  recorder_->Memory(pool_->created_chunks() * pool_->chunk_bytes(),
                    resident_chunks_ * pool_->chunk_bytes(), stats_.live_bytes, PinnedBytes());
}

}  // namespace tidepool
