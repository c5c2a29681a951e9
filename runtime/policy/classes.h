// Union-find over dropped values with a cost per class: the estimate of the evicted neighbourhood
// in h_DTR^eq (see docs/policy.md). Classes merge and never split; a value that leaves takes its
// cost out. Its node stays only while other nodes hang below it, so that memory is bounded by what
// is dropped now, not by what ever was. No recursion. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tidepool::policy {

class Classes {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;

  // A class of one member, `owner`, with `cost` in nanoseconds.
  uint32_t Make(uint32_t owner, uint64_t cost) {
    uint32_t node = free_;
    if (node == kNone) {
      node = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();
    } else {
      free_ = nodes_[node].parent;
    }
    nodes_[node] = {node, 1, 0, owner, node, node, node, cost, cost};
    ++live_;
    return node;
  }

  uint32_t Find(uint32_t node) {
    while (nodes_[node].parent != node) {
      const uint32_t parent = nodes_[node].parent;
      const uint32_t above = nodes_[parent].parent;
      if (parent != above) {  // halve the path
        nodes_[node].parent = above;
        ++nodes_[above].children;
        --nodes_[parent].children;
        Prune(parent);
      }
      node = above;
    }
    return node;
  }

  // Makes one class of the two; costs add up.
  void Merge(uint32_t a, uint32_t b) {
    a = Find(a);
    b = Find(b);
    if (a == b) return;
    if (nodes_[a].size < nodes_[b].size) std::swap(a, b);
    Node& root = nodes_[a];
    Node& other = nodes_[b];
    other.parent = a;
    ++root.children;
    // A rank for balance only; it need not grow beyond what is counted.
    root.size += std::min(other.size, ~root.size);
    root.cost += other.cost;
    root.peak += other.peak;
    // Two rings become one.
    const uint32_t last = nodes_[root.first].previous;
    const uint32_t other_last = nodes_[other.first].previous;
    nodes_[last].next = other.first;
    nodes_[other.first].previous = last;
    nodes_[other_last].next = root.first;
    nodes_[root.first].previous = other_last;
  }

  // The owner leaves: its cost is taken out, `node` is no more. Returns the root of the class, or
  // kNone if it was the last member.
  uint32_t Remove(uint32_t node, uint64_t cost) {
    const uint32_t root = Find(node);
    nodes_[root].cost -= std::min(cost, nodes_[root].cost);
    if (nodes_[root].first == node) nodes_[root].first = nodes_[node].next;
    const bool last = nodes_[node].next == node;
    nodes_[nodes_[node].next].previous = nodes_[node].previous;
    nodes_[nodes_[node].previous].next = nodes_[node].next;
    nodes_[node].owner = kNone;
    Prune(node);
    return last ? kNone : root;
  }

  void ChangeCost(uint32_t node, uint64_t from, uint64_t to) {
    Node& root = nodes_[Find(node)];
    root.cost = root.cost - std::min(from, root.cost) + to;
    root.peak = std::max(root.peak, root.cost);
  }

  uint64_t Cost(uint32_t root) const { return nodes_[root].cost; }
  // No less than what the classes that became this one ever cost together since they were settled.
  uint64_t Peak(uint32_t root) const { return nodes_[root].peak; }
  void Settle(uint32_t root) { nodes_[root].peak = nodes_[root].cost; }

  template <typename Visit>
  void ForEachOwner(uint32_t root, Visit visit) const {
    const uint32_t first = nodes_[root].first;
    uint32_t node = first;
    do {
      visit(nodes_[node].owner);
      node = nodes_[node].next;
    } while (node != first);
  }

  uint64_t nodes() const { return live_; }  // in use

 private:
  struct Node {
    uint32_t parent = 0;  // itself: a root. While unused: the next unused one
    uint32_t size = 1;
    uint32_t children = 0;  // nodes whose parent it is
    uint32_t owner = kNone;
    uint32_t next = 0, previous = 0;  // the ring of nodes of the class that have owners
    uint32_t first = 0;               // of the ring; in roots
    uint64_t cost = 0, peak = 0;      // in roots
  };

  // Frees the node if nothing needs it, and then what it alone kept.
  void Prune(uint32_t node) {
    while (nodes_[node].owner == kNone && nodes_[node].children == 0) {
      const uint32_t parent = nodes_[node].parent;
      nodes_[node].parent = free_;
      free_ = node;
      --live_;
      if (parent == node) return;
      --nodes_[parent].children;
      node = parent;
    }
  }

  std::vector<Node> nodes_;
  uint32_t free_ = kNone;
  uint64_t live_ = 0;
};

}  // namespace tidepool::policy
