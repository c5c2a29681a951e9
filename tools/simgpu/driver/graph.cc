#include "tools/simgpu/driver/graph.h"

#include <algorithm>

namespace simgpu {

Graph::~Graph() {
  for (const auto& node : nodes) Graphs::Get().OnNode(node.get(), false);
  Graphs::Get().OnGraph(this, false);
}

GraphNode* Graph::Add(const std::vector<GraphNode*>& after) {
  auto node = std::make_unique<GraphNode>();
  node->graph = this;
  node->after = after;
  nodes.push_back(std::move(node));
  Graphs::Get().OnNode(nodes.back().get(), true);
  return nodes.back().get();
}

std::vector<GraphNode*> Graph::Order() const {
  std::map<const GraphNode*, size_t> waiting;
  std::map<const GraphNode*, std::vector<GraphNode*>> dependents;
  std::vector<GraphNode*> order;
  for (const auto& node : nodes) {
    waiting[node.get()] = node->after.size();
    for (GraphNode* on : node->after) dependents[on].push_back(node.get());
    if (node->after.empty()) order.push_back(node.get());
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (GraphNode* next : dependents[order[i]]) {
      if (--waiting[next] == 0) order.push_back(next);
    }
  }
  if (order.size() != nodes.size()) order.clear();
  return order;
}

Graphs& Graphs::Get() {
  static Graphs* graphs = new Graphs;
  return *graphs;
}

Graph* Graphs::Create() {
  auto graph = std::make_unique<Graph>();
  Graph* result = graph.get();
  Publish(std::move(graph));
  return result;
}

void Graphs::Publish(std::unique_ptr<Graph> graph) {
  std::lock_guard<std::mutex> lock(mutex_);
  graph->owned = false;
  graphs_.insert(graph.get());
  owned_[graph.get()] = std::move(graph);
}

CUresult Graphs::Destroy(void* handle) {
  std::unique_ptr<Graph> graph;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = owned_.find(handle);
    if (it == owned_.end()) return CUDA_ERROR_INVALID_VALUE;
    graph = std::move(it->second);
    owned_.erase(it);
  }
  return CUDA_SUCCESS;  // it takes its nodes out of the tables itself
}

Graph* Graphs::Find(void* handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  return graphs_.contains(handle) ? static_cast<Graph*>(handle) : nullptr;
}

GraphNode* Graphs::FindNode(void* handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  return nodes_.contains(handle) ? static_cast<GraphNode*>(handle) : nullptr;
}

CUresult Graphs::DestroyNode(GraphNode* node) {
  Graph* graph = node->graph;
  for (const auto& other : graph->nodes) std::erase(other->after, node);
  OnNode(node, false);
  std::erase_if(graph->nodes, [&](const auto& other) { return other.get() == node; });
  return CUDA_SUCCESS;
}

void Graphs::OnNode(GraphNode* node, bool alive) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (alive) {
    nodes_.insert(node);
  } else {
    nodes_.erase(node);
  }
}

void Graphs::OnGraph(Graph* graph, bool alive) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (alive) {
    graphs_.insert(graph);
  } else {
    graphs_.erase(graph);
  }
}

GraphExec* Graphs::Add(std::unique_ptr<GraphExec> exec) {
  std::lock_guard<std::mutex> lock(mutex_);
  GraphExec* result = exec.get();
  execs_[result] = std::move(exec);
  return result;
}

GraphExec* Graphs::FindExec(void* handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = execs_.find(handle);
  return it == execs_.end() ? nullptr : it->second.get();
}

CUresult Graphs::DestroyExec(void* handle) {
  // A launch that is under way has its own copy of the steps.
  std::lock_guard<std::mutex> lock(mutex_);
  return execs_.erase(handle) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void CopyParameters(const GraphNode& from, GraphNode* to) {
  to->type = from.type;
  to->kernel = from.kernel;
  to->copy = from.copy;
  to->fill = from.fill;
  to->host = from.host;
  to->event = from.event;
  to->child = nullptr;
  if (from.child != nullptr) {
    to->child = std::make_unique<Graph>();
    to->child->owned = true;
    Graphs::Get().OnGraph(to->child.get(), true);
    CopyGraph(*from.child, to->child.get());
  }
}

void CopyGraph(const Graph& from, Graph* to) {
  to->original = &from;
  std::map<const GraphNode*, GraphNode*> copies;
  for (const auto& node : from.nodes) {
    GraphNode* copy = to->Add({});
    CopyParameters(*node, copy);
    copy->original = node.get();
    copies[node.get()] = copy;
  }
  for (const auto& node : from.nodes) {
    for (GraphNode* on : node->after) copies[node.get()]->after.push_back(copies[on]);
  }
}

Work WorkOf(const CUDA_HOST_NODE_PARAMS& host) {
  return {Engine::kNone,
          [host] {
            host.fn(host.userData);
            return OpOutcome();
          },
          true};
}

CUresult WorkOf(const GraphNode& node, Work* work) {
  *work = {};
  switch (node.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      *work = WorkOf(node.kernel);
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return WorkOf(node.copy, work);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return WorkOf(node.fill, work);
    case CU_GRAPH_NODE_TYPE_HOST:
      if (node.host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *work = WorkOf(node.host);
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return Scheduler::Get().FindEvent(node.event) != nullptr ? CUDA_SUCCESS
                                                               : CUDA_ERROR_INVALID_HANDLE;
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

namespace {

// Appends the graph's steps, those without dependencies behind `begin`. `*leaves`: its last steps.
CUresult Append(const Graph& graph, const std::vector<size_t>& begin, GraphExec* exec,
                std::vector<size_t>* leaves, const GraphNode** failed) {
  const std::vector<GraphNode*> order = graph.Order();
  if (order.empty() && !graph.nodes.empty()) return CUDA_ERROR_INVALID_VALUE;
  std::map<const GraphNode*, size_t> step_of;
  std::set<size_t> last;
  for (const GraphNode* node : order) {
    GraphStep step;
    if (node->after.empty()) step.after = begin;
    for (const GraphNode* on : node->after) {
      step.after.push_back(step_of[on]);
      last.erase(step_of[on]);
    }
    if (CUresult r = WorkOf(*node, &step.work); r != CUDA_SUCCESS) {
      *failed = node;
      return r;
    }
    if (node->child != nullptr) {
      // A step at the start, the child's, and one at the end, which stands for the node.
      std::vector<size_t> inner, start = {exec->steps.size()};
      exec->steps.push_back(step);
      exec->sources.push_back({});
      if (CUresult r = Append(*node->child, start, exec, &inner, failed); r != CUDA_SUCCESS) {
        return r;
      }
      step.after = inner.empty() ? start : inner;
    }
    step_of[node] = exec->steps.size();
    last.insert(exec->steps.size());
    exec->steps.push_back(std::move(step));
    exec->sources.push_back({node, node->type, node->event, node->kernel.function, true});
  }
  leaves->assign(last.begin(), last.end());
  return CUDA_SUCCESS;
}

}  // namespace

CUresult Instantiate(const Graph& graph, GraphExec* exec, const GraphNode** failed) {
  std::vector<size_t> leaves;
  return Append(graph, {}, exec, &leaves, failed);
}

}  // namespace simgpu
