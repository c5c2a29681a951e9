// Union-find over dropped values with a cost per class: the estimate of the evicted neighbourhood
// in h_DTR^eq. Classes merge and never split; a value that is rebuilt takes its cost out and leaves
// its node behind. No recursion. Not thread-safe.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tidepool::policy {

class Classes {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;

  uint32_t Make(uint64_t cost) {
    const auto node = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({node, 1, cost});
    return node;
  }
  uint32_t Find(uint32_t node) {
    while (nodes_[node].parent != node) {
      nodes_[node].parent = nodes_[nodes_[node].parent].parent;  // halve the path
      node = nodes_[node].parent;
    }
    return node;
  }
  void Merge(uint32_t a, uint32_t b) {
    a = Find(a);
    b = Find(b);
    if (a == b) return;
    if (nodes_[a].size < nodes_[b].size) std::swap(a, b);
    nodes_[b].parent = a;
    nodes_[a].size += nodes_[b].size;
    nodes_[a].cost += nodes_[b].cost;
  }
  uint64_t Cost(uint32_t node) { return nodes_[Find(node)].cost; }
  void AddCost(uint32_t node, uint64_t cost) { nodes_[Find(node)].cost += cost; }
  void Subtract(uint32_t node, uint64_t cost) {
    uint64_t& total = nodes_[Find(node)].cost;
    total -= cost < total ? cost : total;
  }

 private:
  struct Node {
    uint32_t parent = 0;
    uint32_t size = 1;
    uint64_t cost = 0;
  };
  std::vector<Node> nodes_;
};

}  // namespace tidepool::policy
