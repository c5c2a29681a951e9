#include "runtime/residency/engine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/residency/capture_mode.h"
#include "runtime/residency/engine_impl.h"
#include "runtime/residency/word_scan.h"

namespace tidepool {

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(const DriverApi& api, CUdevice device,
                                                       const EngineOptions& options,
                                                       Recorder* recorder) {
  absl::StatusOr<VmmDevice> vmm = VmmDevice::Create(api, device);
  if (!vmm.ok()) return vmm.status();
  absl::StatusOr<std::unique_ptr<policy::Policy>> policy = policy::MakePolicy(options.policy);
  if (!policy.ok()) return policy.status();
  return std::unique_ptr<Engine>(
      new Engine(std::make_unique<Impl>(api, *vmm, options, *std::move(policy), recorder)));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

CUresult Engine::Allocate(uint64_t bytes, CUdeviceptr* out) {
  const RelaxedCaptureMode relaxed(impl_->api_);
  std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->Allocate(bytes, out);
}

bool Engine::Free(CUdeviceptr address) {
  const RelaxedCaptureMode relaxed(impl_->api_);
  std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->Free(address);
}

bool Engine::FreeOrdered(CUdeviceptr address, StreamRef stream) {
  const RelaxedCaptureMode relaxed(impl_->api_);
  std::lock_guard<std::mutex> lock(impl_->mutex);
  auto it = impl_->buffers_.find(address);
  if (it == impl_->buffers_.end()) return false;
  Buffer* buffer = it->second;
  const uint32_t id = impl_->streams_->Resolve(stream);
  const uint64_t sequence = impl_->streams_->Commit(id);
  buffer->uses->Add(id, sequence);
  if (buffer->current != nullptr) buffer->current->uses->Add(id, sequence);
  return impl_->Free(address);
}

void Engine::Reset() {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->Reset();
}

bool Engine::MayBeInPool(CUdeviceptr address) const {
  // Relaxed: a program that passes an address got it from an allocation that happened before.
  const auto within = [address](const std::atomic<uint64_t>& low,
                                const std::atomic<uint64_t>& high) {
    return address >= low.load(std::memory_order_relaxed) &&
           address < high.load(std::memory_order_relaxed);
  };
  return within(impl_->pool_low, impl_->pool_high) ||
         within(impl_->variables_low, impl_->variables_high);
}

bool Engine::InPool(CUdeviceptr address) const {
  if (!MayBeInPool(address)) return false;
  std::lock_guard<std::mutex> lock(impl_->mutex);
  return !impl_->BuffersAt(address).empty() || impl_->pool_->FindRange(address) != nullptr;
}

Engine::Place Engine::Locate(CUdeviceptr address, uint64_t bytes) const {
  // (What ends in a variable may begin before all of them.)
  if (!MayBeInPool(address) && (bytes < 2 || !MayBeInPool(address + bytes - 1))) {
    return Place::kElsewhere;
  }
  std::lock_guard<std::mutex> lock(impl_->mutex);
  if (!impl_->VariablesIn(address, bytes).empty()) return Place::kInside;
  const Buffer* buffer = impl_->FindBuffer(address);
  if (buffer != nullptr) {
    const uint64_t behind = buffer->content_bytes() - (address - buffer->address);
    return bytes <= behind ? Place::kInside : Place::kBeyond;
  }
  return impl_->pool_->FindRange(address) != nullptr ? Place::kBeyond : Place::kElsewhere;
}

bool Engine::Find(CUdeviceptr address, BufferInfo* info) const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  const Buffer* buffer = impl_->FindBuffer(address);
  if (buffer == nullptr) return false;
  *info = {buffer->address, buffer->bytes, buffer->id};
  return true;
}

void Engine::MemGetInfo(size_t* free_bytes, size_t* total_bytes) const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  const uint64_t total = impl_->options_.budget_bytes;
  const uint64_t live = impl_->stats_.live_bytes;
  if (total_bytes != nullptr) *total_bytes = total;
  if (free_bytes != nullptr) *free_bytes = total > live ? total - live : 0;
}

CUresult Engine::Pin(CUdeviceptr address, PinReason reason) {
  const RelaxedCaptureMode relaxed(impl_->api_);
  std::unique_lock<std::mutex> lock(impl_->mutex);
  impl_->WaitForCalls(lock);
  for (Buffer* buffer : impl_->BuffersAt(address)) {
    if (CUresult result = impl_->PinBuffer(buffer, reason); result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult Engine::PinPointersIn(const void* data, uint64_t bytes) {
  const uint64_t low = std::min(impl_->pool_low.load(std::memory_order_relaxed),
                                impl_->variables_low.load(std::memory_order_relaxed));
  const uint64_t high = std::max(impl_->pool_high.load(std::memory_order_relaxed),
                                 impl_->variables_high.load(std::memory_order_relaxed));
  if (low > high) return CUDA_SUCCESS;
  return ForEachWordWithin(data, bytes, low, high, [&](uint64_t word) {
    return MayBeInPool(word) ? Pin(word, PinReason::kPointerInMemory) : CUDA_SUCCESS;
  });
}

CUresult Engine::PinAll(PinReason reason) {
  const RelaxedCaptureMode relaxed(impl_->api_);
  std::unique_lock<std::mutex> lock(impl_->mutex);
  impl_->WaitForCalls(lock);
  return impl_->PinAll(reason);
}

CUresult Engine::Run(const OpRequest& request, absl::FunctionRef<CUresult()> issue) {
  std::unique_lock<std::mutex> lock(impl_->mutex);
  return impl_->Run(request, issue, lock);
}

CUresult Engine::OnCodeUnload(const void* code) {
  const RelaxedCaptureMode relaxed(impl_->api_);
  std::unique_lock<std::mutex> lock(impl_->mutex);
  impl_->WaitForCalls(lock);
  absl::Status status =
      impl_->ForgetOpsWhere([&](const Op& op) { return op.replay->code() == code; });
  if (status.ok()) status = impl_->ForgetVariables(code);
  return impl_->ResultOfForgetting("unloading code that values were made with", status);
}

CUresult Engine::OnKernelChange(const void* code, std::string_view name) {
  const RelaxedCaptureMode relaxed(impl_->api_);
  std::unique_lock<std::mutex> lock(impl_->mutex);
  impl_->WaitForCalls(lock);
  return impl_->ResultOfForgetting("changing a kernel that values were made with",
                                   impl_->ForgetOpsWhere([&](const Op& op) {
                                     return op.replay->code() == code && *op.name == name;
                                   }));
}

void Engine::WatchVariable(const std::string& name, CUdeviceptr address, uint64_t bytes,
                           const void* code) {
  const RelaxedCaptureMode relaxed(impl_->api_);
  std::unique_lock<std::mutex> lock(impl_->mutex);
  impl_->WaitForCalls(lock);
  impl_->WatchVariable(name, address, bytes, code);
}

uint64_t Engine::watched_variables() const { return impl_->watched_variables.load(); }

void Engine::Settle(const StreamRef* stream) {
  const RelaxedCaptureMode relaxed(impl_->api_);
  std::lock_guard<std::mutex> lock(impl_->mutex);
  absl::Status status = stream == nullptr
                            ? impl_->streams_->HostWaitAll()
                            : impl_->streams_->HostWaitFor(impl_->streams_->Resolve(*stream));
  if (!status.ok()) Complain(absl::StrCat("before a capture: ", status.message()));
}

void Engine::OnStreamDestroy(CUstream stream) {
  const RelaxedCaptureMode relaxed(impl_->api_);
  std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->streams_->OnDestroy(stream);
}

bool Engine::Tag(CUdeviceptr address, const std::string& tag) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  Buffer* buffer = impl_->FindBuffer(address);
  if (buffer == nullptr) return false;
  buffer->user_tag = false;
  impl_->SetTag(buffer, impl_->TagIndex(tag));
  buffer->user_tag = true;
  return true;
}

Statistics Engine::GetStatistics() const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->GetStatistics();
}

}  // namespace tidepool
