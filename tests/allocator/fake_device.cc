#include "tests/allocator/fake_device.h"

#include <algorithm>
#include <iterator>

namespace tidepool::testing {

absl::Status FakeDevice::Enter(Call call) {
  ++calls_;
  if (fail_in_ > 0 && --fail_in_ == 0) return absl::UnknownError("made to fail");
  if (int& times = fail_next_[call]; times > 0) {
    --times;
    return absl::UnknownError("made to fail");
  }
  return absl::OkStatus();
}

absl::Status FakeDevice::Breach(const std::string& what) {
  violations_.push_back(what);
  return absl::InvalidArgumentError(what);
}

void FakeDevice::Reclaim(uint64_t handle) {
  const Chunk& chunk = chunks_.at(handle);
  if (!chunk.released || chunk.mappings > 0) return;
  physical_ -= chunk.bytes;
  chunks_.erase(handle);
}

bool FakeDevice::Reserved(uint64_t address, uint64_t bytes) const {
  auto it = reservations_.upper_bound(address);
  if (it == reservations_.begin()) return false;
  --it;
  return address - it->first < it->second && bytes <= it->second - (address - it->first);
}

const FakeDevice::Mapping* FakeDevice::At(uint64_t address) const {
  auto it = mappings_.find(address);
  return it == mappings_.end() ? nullptr : &it->second;
}

absl::StatusOr<uint64_t> FakeDevice::CreateChunk(uint64_t bytes) {
  if (absl::Status status = Enter(Call::kCreate); !status.ok()) return status;
  if (bytes == 0 || bytes % granularity_ != 0) return Breach("a chunk of no whole granules");
  if (bytes > capacity_ || physical_ > capacity_ - bytes) {
    return absl::ResourceExhaustedError("no device memory");
  }
  physical_ += bytes;
  peak_ = std::max(peak_, physical_);
  const uint64_t handle = next_handle_++;
  chunks_[handle].bytes = bytes;
  return handle;
}

absl::Status FakeDevice::ReleaseChunk(uint64_t handle) {
  if (absl::Status status = Enter(Call::kRelease); !status.ok()) return status;
  auto it = chunks_.find(handle);
  if (it == chunks_.end() || it->second.released) return Breach("release of no chunk");
  it->second.released = true;
  Reclaim(handle);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> FakeDevice::Reserve(uint64_t bytes) {
  if (absl::Status status = Enter(Call::kReserve); !status.ok()) return status;
  if (bytes == 0 || bytes % granularity_ != 0) return Breach("reservation of no whole granules");
  if (bytes > max_reservation_ || bytes > max_reserved_ || reserved_ > max_reserved_ - bytes) {
    return absl::ResourceExhaustedError("no address space");
  }
  reserved_ += bytes;
  // From both ends in turn: addresses come in no order.
  uint64_t address = 0;
  if (reservations_.size() % 2 == 0) {
    next_high_ -= bytes + granularity_;
    address = next_high_;
  } else {
    address = next_low_;
    next_low_ += bytes + granularity_;
  }
  reservations_[address] = bytes;
  return address;
}

absl::Status FakeDevice::Unreserve(uint64_t address, uint64_t bytes) {
  if (absl::Status status = Enter(Call::kUnreserve); !status.ok()) return status;
  auto it = reservations_.find(address);
  if (it == reservations_.end() || it->second != bytes) return Breach("unreserve of another range");
  auto mapped = mappings_.lower_bound(address);
  if (mapped != mappings_.end() && mapped->first < address + bytes) {
    return Breach("unreserve of mapped addresses");
  }
  reserved_ -= bytes;
  reservations_.erase(it);
  return absl::OkStatus();
}

absl::Status FakeDevice::Map(uint64_t address, uint64_t bytes, uint64_t handle) {
  if (absl::Status status = Enter(Call::kMap); !status.ok()) return status;
  auto chunk = chunks_.find(handle);
  if (chunk == chunks_.end() || chunk->second.released) return Breach("map of no chunk");
  if (bytes != chunk->second.bytes) return Breach("map of a part of a chunk");
  if (address % granularity_ != 0 || !Reserved(address, bytes)) {
    return Breach("map at addresses that are not reserved");
  }
  auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first < address + bytes) return Breach("map over a mapping");
  if (next != mappings_.begin()) {
    const auto& [before, mapping] = *std::prev(next);
    if (before + mapping.bytes > address) return Breach("map over a mapping");
  }
  mappings_[address] = {bytes, handle, false};
  ++chunk->second.mappings;
  return absl::OkStatus();
}

absl::Status FakeDevice::SetAccess(uint64_t address, uint64_t bytes) {
  if (absl::Status status = Enter(Call::kSetAccess); !status.ok()) return status;
  if (bytes == 0) return Breach("access to nothing");
  const uint64_t end = address + bytes;
  for (uint64_t at = address; at < end;) {
    auto it = mappings_.find(at);
    if (it == mappings_.end()) return Breach("access to what is not mapped");
    at += it->second.bytes;
    if (at > end) return Breach("access to a part of a mapping");
  }
  for (auto it = mappings_.find(address); it != mappings_.end() && it->first < end; ++it) {
    it->second.access = true;
  }
  return absl::OkStatus();
}

absl::Status FakeDevice::Unmap(uint64_t address, uint64_t bytes) {
  if (absl::Status status = Enter(Call::kUnmap); !status.ok()) return status;
  if (bytes == 0) return Breach("unmap of nothing");
  const uint64_t end = address + bytes;
  for (uint64_t at = address; at < end;) {
    auto it = mappings_.find(at);
    if (it == mappings_.end()) return Breach("unmap of what is not mapped");
    at += it->second.bytes;
    if (at > end) return Breach("unmap of a part of a mapping");
  }
  for (auto it = mappings_.find(address); it != mappings_.end() && it->first < end;) {
    const uint64_t handle = it->second.handle;
    it = mappings_.erase(it);
    --chunks_.at(handle).mappings;
    Reclaim(handle);
  }
  return absl::OkStatus();
}

}  // namespace tidepool::testing
