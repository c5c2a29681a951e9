// Graphs as a whole: nodes, edges, clones.
#include <algorithm>

#include "tools/simgpu/driver/api.h"
#include "tools/simgpu/driver/graph.h"

using namespace simgpu;

#define SIMGPU_GRAPH(name, handle)          \
  Graph* name = Graphs::Get().Find(handle); \
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE
#define SIMGPU_NODE(name, handle)                   \
  GraphNode* name = Graphs::Get().FindNode(handle); \
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE

SIMGPU_API cuGraphCreate(CUgraph* out, unsigned int flags) {
  SIMGPU_ENTER();
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUgraph>(Graphs::Get().Create());
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphDestroy(CUgraph graph) {
  SIMGPU_ENTER();
  return Graphs::Get().Destroy(graph);
}
SIMGPU_API cuGraphClone(CUgraph* out, CUgraph graph) {
  SIMGPU_ENTER();
  SIMGPU_GRAPH(from, graph);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Graph* copy = Graphs::Get().Create();
  CopyGraph(*from, copy);
  *out = reinterpret_cast<CUgraph>(copy);
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode node, CUgraph clone) {
  SIMGPU_ENTER();
  SIMGPU_NODE(n, node);
  SIMGPU_GRAPH(g, clone);
  if (out == nullptr || g->original != n->graph) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& other : g->nodes) {
    if (other->original != n) continue;
    *out = reinterpret_cast<CUgraphNode>(other.get());
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}
SIMGPU_API cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  SIMGPU_ENTER();
  SIMGPU_NODE(n, node);
  if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = n->type;
  return CUDA_SUCCESS;
}

// Lists: with a null array the number that there is; otherwise the array is filled, the rest of it
// with zeros.
static CUresult Answer(const std::vector<GraphNode*>& found, CUgraphNode* nodes, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (nodes != nullptr) {
    for (size_t i = 0; i < *count; ++i) {
      nodes[i] = i < found.size() ? reinterpret_cast<CUgraphNode>(found[i]) : nullptr;
    }
    *count = std::min(*count, found.size());
  } else {
    *count = found.size();
  }
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  SIMGPU_ENTER();
  SIMGPU_GRAPH(g, graph);
  std::vector<GraphNode*> found;
  for (const auto& node : g->nodes) found.push_back(node.get());
  return Answer(found, nodes, count);
}
SIMGPU_API cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  SIMGPU_ENTER();
  SIMGPU_GRAPH(g, graph);
  std::vector<GraphNode*> found;
  for (const auto& node : g->nodes) {
    if (node->after.empty()) found.push_back(node.get());
  }
  return Answer(found, nodes, count);
}
static void NoEdgeData(CUgraphEdgeData* edges, const size_t* count) {
  if (edges != nullptr) std::fill(edges, edges + *count, CUgraphEdgeData{});
}
SIMGPU_API cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                              CUgraphEdgeData* edges, size_t* count) {
  SIMGPU_ENTER();
  SIMGPU_GRAPH(g, graph);
  if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> starts, ends;
  for (const auto& node : g->nodes) {
    for (GraphNode* on : node->after) {
      starts.push_back(on);
      ends.push_back(node.get());
    }
  }
  size_t room = *count;
  Answer(starts, from, count);
  if (from != nullptr) {
    Answer(ends, to, &room);
    NoEdgeData(edges, count);
  }
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes,
                                         CUgraphEdgeData* edges, size_t* count) {
  SIMGPU_ENTER();
  SIMGPU_NODE(n, node);
  const CUresult result = Answer(n->after, nodes, count);
  if (nodes != nullptr && result == CUDA_SUCCESS) NoEdgeData(edges, count);
  return result;
}
SIMGPU_API cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes,
                                           CUgraphEdgeData* edges, size_t* count) {
  SIMGPU_ENTER();
  SIMGPU_NODE(n, node);
  std::vector<GraphNode*> found;
  for (const auto& other : n->graph->nodes) {
    if (std::find(other->after.begin(), other->after.end(), n) != other->after.end()) {
      found.push_back(other.get());
    }
  }
  const CUresult result = Answer(found, nodes, count);
  if (nodes != nullptr && result == CUDA_SUCCESS) NoEdgeData(edges, count);
  return result;
}

static CUresult Pairs(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count,
                      bool add) {
  SIMGPU_ENTER();
  SIMGPU_GRAPH(g, graph);
  if (count > 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    SIMGPU_NODE(a, from[i]);
    SIMGPU_NODE(b, to[i]);
    const bool there = std::find(b->after.begin(), b->after.end(), a) != b->after.end();
    if (a->graph != g || b->graph != g || a == b || there == add) return CUDA_ERROR_INVALID_VALUE;
    if (add) {
      b->after.push_back(a);
    } else {
      std::erase(b->after, a);
    }
  }
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                     const CUgraphEdgeData*, size_t count) {
  return Pairs(graph, from, to, count, true);
}
SIMGPU_API cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from,
                                        const CUgraphNode* to, const CUgraphEdgeData*,
                                        size_t count) {
  return Pairs(graph, from, to, count, false);
}
SIMGPU_API cuGraphDestroyNode(CUgraphNode node) {
  SIMGPU_ENTER();
  SIMGPU_NODE(n, node);
  return Graphs::Get().DestroyNode(n);
}
