#include "runtime/residency/cost_model.h"

#include <algorithm>

namespace tidepool {
namespace {

constexpr uint64_t kMeasureFirst = 3;   // ops per key that are always measured ...
constexpr uint64_t kMeasureEvery = 64;  // ... and then one in so many
constexpr size_t kMaxPending = 64;
// Until measured: launch cost and memory traffic of a current device. Only ratios matter.
constexpr double kEstimateBaseNs = 3000;
constexpr double kEstimateNsPerByte = 1.0 / 2000;
constexpr double kEstimateNsPerTransferred = 1.0 / 25;

}  // namespace

CostModel::~CostModel() {
  for (const Pending& pending : pending_) {
    api_->EventDestroy(pending.begin);
    api_->EventDestroy(pending.end);
  }
  for (CUevent event : spare_) api_->EventDestroy(event);
}

void CostModel::Abandon() {
  pending_.clear();
  spare_.clear();
  open_ = {};
}

uint64_t CostModel::MeasuredOr(uint64_t key, double estimate_ns) const {
  auto it = entries_.find(key);
  const bool measured = it != entries_.end() && it->second.measured > 0;
  return static_cast<uint64_t>(measured ? std::max(1.0, it->second.mean_ns) : estimate_ns);
}

uint64_t CostModel::Cost(uint64_t key, uint64_t bytes) {
  return MeasuredOr(key, kEstimateBaseNs + kEstimateNsPerByte * static_cast<double>(bytes));
}

uint64_t CostModel::TransferCost(uint64_t key, uint64_t bytes) {
  return MeasuredOr(key, kEstimateBaseNs + kEstimateNsPerTransferred * static_cast<double>(bytes));
}

CUevent CostModel::TakeEvent() {
  CUevent event = nullptr;
  if (!spare_.empty()) {
    event = spare_.back();
    spare_.pop_back();
  } else if (api_->EventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
    return nullptr;
  }
  return event;
}

bool CostModel::Begin(uint64_t key, CUstream stream) {
  if (key == 0 || api_->EventElapsedTime == nullptr) return false;
  Entry& entry = entries_[key];
  const uint64_t seen = entry.seen++;
  if ((seen >= kMeasureFirst && seen % kMeasureEvery != 0) || pending_.size() >= kMaxPending) {
    return false;
  }
  open_ = {key, TakeEvent(), TakeEvent()};
  if (open_.begin == nullptr || open_.end == nullptr ||
      api_->EventRecord(open_.begin, stream) != CUDA_SUCCESS) {
    Cancel();
    return false;
  }
  return true;
}

void CostModel::End(CUstream stream) {
  if (api_->EventRecord(open_.end, stream) != CUDA_SUCCESS) {
    Cancel();
    return;
  }
  pending_.push_back(open_);
  open_ = {};
}

void CostModel::Cancel() {
  if (open_.begin != nullptr) spare_.push_back(open_.begin);
  if (open_.end != nullptr) spare_.push_back(open_.end);
  open_ = {};
}

void CostModel::Poll() {
  while (!pending_.empty() && api_->EventQuery(pending_.front().end) == CUDA_SUCCESS) {
    Pending done = pending_.front();
    pending_.pop_front();
    float milliseconds = 0;
    if (api_->EventElapsedTime(&milliseconds, done.begin, done.end) == CUDA_SUCCESS) {
      Entry& entry = entries_[done.key];
      ++entry.measured;
      const double ns = static_cast<double>(milliseconds) * 1e6;
      // A moving mean: clocks and neighbours change over a long run.
      const double weight = 1.0 / static_cast<double>(std::min<uint64_t>(entry.measured, 8));
      entry.mean_ns += (ns - entry.mean_ns) * weight;
    }
    spare_.push_back(done.begin);
    spare_.push_back(done.end);
  }
}

}  // namespace tidepool
