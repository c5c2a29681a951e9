// The policies written down directly from their definitions: every candidate's score computed anew,
// the neighbourhood by labels that are repainted. Slow, and obviously right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/policy/policy.h"

namespace tidepool::policy {

class Reference {
 public:
  struct Value {
    uint64_t bytes = 0, cost = 0, last = 0;
    uint32_t locks = 0;
    bool resident = true;
    uint64_t label = 0;  // of its class, while dropped
    std::multiset<ValueId> links;
  };

  explicit Reference(std::string policy) : policy_(std::move(policy)) {}

  std::map<ValueId, Value> values;

  void Drop(ValueId id) {
    Value& value = values.at(id);
    value.resident = false;
    value.label = next_label_++;
    for (ValueId link : value.links) Join(id, link);
  }
  void Rebuild(ValueId id, uint64_t now) {
    values.at(id).resident = true;
    values.at(id).last = now;
  }
  void Link(ValueId from, ValueId to) {
    values.at(from).links.insert(to);
    values.at(to).links.insert(from);
    Join(from, to);
  }
  void Remove(ValueId id) {
    for (ValueId link : values.at(id).links) values.at(link).links.erase(id);
    values.erase(id);
  }

  uint64_t Candidates() const {
    return static_cast<uint64_t>(std::count_if(values.begin(), values.end(), [](const auto& each) {
      return each.second.resident && each.second.locks == 0;
    }));
  }

  double Score(ValueId id, uint64_t now) const {
    const Value& value = values.at(id);
    const double staleness = static_cast<double>(now > value.last ? now - value.last : 0) + 1;
    const auto bytes = static_cast<double>(value.bytes);
    auto cost = static_cast<double>(value.cost);
    if (policy_ == "lru") return 1 / staleness;
    if (policy_ == "size") return 1 / bytes;
    if (policy_ == "dtr-local") return (cost + 1) / bytes / staleness;
    std::set<uint64_t> labels;
    for (ValueId link : value.links) {
      if (!values.at(link).resident) labels.insert(values.at(link).label);
    }
    for (const auto& [other, each] : values) {
      if (!each.resident && labels.count(each.label) != 0) cost += static_cast<double>(each.cost);
    }
    return policy_ == "msps" ? (cost + 1) / bytes : (cost + 1) / bytes / staleness;
  }

  double Least(uint64_t now) const {
    double least = -1;
    for (const auto& [id, value] : values) {
      if (!value.resident || value.locks > 0) continue;
      const double score = Score(id, now);
      if (least < 0 || score < least) least = score;
    }
    return least;
  }

 private:
  void Join(ValueId a, ValueId b) {
    if (values.at(a).resident || values.at(b).resident) return;
    const uint64_t from = values.at(b).label;
    for (auto& [id, value] : values) {
      if (!value.resident && value.label == from) value.label = values.at(a).label;
    }
  }

  const std::string policy_;
  uint64_t next_label_ = 1;
};

}  // namespace tidepool::policy
