// Module variables that the host can change: memory of the driver's, always resident, whose content
// has versions like that of a small buffer. An op that reads one can be replayed as long as the
// version that it read is there, or in a snapshot.
#include <algorithm>

#include "runtime/residency/engine_impl.h"

namespace tidepool {

void Engine::Impl::WatchVariable(const std::string& name, uint64_t address, uint64_t bytes,
                                 const void* code) {
  if (bytes == 0) return;
  auto [it, inserted] = variables_.try_emplace(address);
  if (!inserted && it->second.buffer->bytes == bytes && it->second.code == code) return;
  if (!inserted) {
    // Other code at the address of code that went away unseen: what knew the old one is sealed.
    Buffer* old = it->second.buffer;
    if (SealBuffer(old, WorkStream()).ok()) lineage_->FreeBuffer(old);
  }
  Buffer* buffer = lineage_->NewBuffer(address, bytes, nullptr);
  buffer->variable = true;
  buffer->tag = kTagSmall;
  Value* value = lineage_->NewValue(buffer);
  value->resident = true;
  lineage_->SetCurrent(buffer, value);
  // What ran so far took it for a constant: its recipes read this version.
  const auto reads = [&](const Op& op) {
    return op.replay->code() == code && op.replay->ReadsVariable(name);
  };
  for (Op* op : lineage_->OpsWhere(reads)) lineage_->AddInput(op, value);
  it->second = {buffer, code};
  ++watched_variables;
  variables_low.store(std::min(variables_low.load(), address));
  variables_high.store(std::max(variables_high.load(), address + bytes));
}

absl::Status Engine::Impl::ForgetVariables(const void* code) {
  for (auto it = variables_.begin(); it != variables_.end();) {
    if (it->second.code != code) {
      ++it;
      continue;
    }
    Buffer* buffer = it->second.buffer;
    if (absl::Status status = SealBuffer(buffer, WorkStream()); !status.ok()) return status;
    it = variables_.erase(it);
    lineage_->FreeBuffer(buffer);
  }
  return absl::OkStatus();
}

Buffer* Engine::Impl::FindVariable(uint64_t address) const {
  auto it = variables_.upper_bound(address);
  if (it == variables_.begin()) return nullptr;
  Buffer* buffer = std::prev(it)->second.buffer;
  return address - buffer->address < buffer->bytes ? buffer : nullptr;
}

absl::InlinedVector<Buffer*, 2> Engine::Impl::VariablesIn(uint64_t address, uint64_t bytes) const {
  absl::InlinedVector<Buffer*, 2> found;
  if (Buffer* first = FindVariable(address)) found.push_back(first);
  for (auto it = variables_.upper_bound(address);
       it != variables_.end() && it->first - address < bytes; ++it) {
    found.push_back(it->second.buffer);
  }
  return found;
}

}  // namespace tidepool
