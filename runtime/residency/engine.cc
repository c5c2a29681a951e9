#include "runtime/residency/engine.h"

#include <cstring>

#include "runtime/residency/engine_impl.h"

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
  std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->Allocate(bytes, out);
}

bool Engine::Free(CUdeviceptr address) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->Free(address);
}

void Engine::Reset() {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->Reset();
}

bool Engine::InPool(CUdeviceptr address) const {
  // Relaxed: a program that passes an address got it from an allocation that happened before.
  return address >= impl_->pool_low.load(std::memory_order_relaxed) &&
         address < impl_->pool_high.load(std::memory_order_relaxed);
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
  std::lock_guard<std::mutex> lock(impl_->mutex);
  Buffer* buffer = impl_->FindBuffer(address);
  return buffer == nullptr ? CUDA_SUCCESS : impl_->PinBuffer(buffer, reason);
}

CUresult Engine::PinPointersIn(const void* data, uint64_t bytes) {
  const auto start = reinterpret_cast<uint64_t>(data);
  const uint64_t aligned = (start + 7) & ~uint64_t{7};
  const uint64_t end = start + bytes;
  for (uint64_t at = aligned; at + 8 <= end; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const void*>(at), sizeof(word));
    if (!InPool(word)) continue;
    if (CUresult result = Pin(word, PinReason::kPointerInMemory); result != CUDA_SUCCESS) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}

CUresult Engine::PinAll(PinReason reason) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->PinAll(reason);
}

CUresult Engine::Run(const OpRequest& request, absl::FunctionRef<CUresult()> issue) {
  std::unique_lock<std::mutex> lock(impl_->mutex);
  return impl_->Run(request, issue, lock);
}

void Engine::OnStreamDestroy(CUstream stream) {
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
