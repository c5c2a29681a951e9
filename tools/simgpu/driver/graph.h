// Graphs: nodes with parameters and dependencies, and what is made of them to be launched. Handles
// are pointers to these. As in CUDA, the caller sees to it that a graph is used by one thread at a
// time; the tables behind the look-ups are thread-safe.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "tools/simgpu/driver/module.h"
#include "tools/simgpu/driver/scheduler.h"

namespace simgpu {

struct KernelLaunch {
  Function* function = nullptr;
  Dim3 grid, block;
  uint32_t shared = 0;
  bool cooperative = false;
  std::vector<uint8_t> parameters;
};

struct Graph;

struct GraphNode {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Graph* graph = nullptr;
  std::vector<GraphNode*> after;
  // By the type, one of these.
  KernelLaunch kernel;
  std::vector<void*> arguments;  // for who asks: pointers into the kernel's parameters
  CUDA_MEMCPY3D copy = {};
  CUDA_MEMSET_NODE_PARAMS fill = {};
  CUDA_HOST_NODE_PARAMS host = {};
  CUevent event = nullptr;
  std::unique_ptr<Graph> child;
  const GraphNode* original = nullptr;  // in the graph that this one's graph is a clone of
};

struct Graph {
  ~Graph();
  GraphNode* Add(const std::vector<GraphNode*>& after);  // of type empty
  // Nodes so that each comes behind what it depends on. Empty if there is a cycle.
  std::vector<GraphNode*> Order() const;

  std::vector<std::unique_ptr<GraphNode>> nodes;
  const Graph* original = nullptr;  // of a clone
  bool owned = false;               // a child of a node, or still being captured
};

// A graph ready to launch: steps with the nodes they were made from, children's in their place.
struct GraphExec {
  struct Source {
    const GraphNode* node = nullptr;
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUevent event = nullptr;
    Function* function = nullptr;
    bool enabled = true;
  };
  std::vector<GraphStep> steps;
  std::vector<Source> sources;  // one per step
  unsigned long long flags = 0;
  std::shared_ptr<Op> last;  // of its last launch
};

class Graphs {
 public:
  static Graphs& Get();
  // Makes a graph with a handle.
  Graph* Create();
  void Publish(std::unique_ptr<Graph> graph);
  CUresult Destroy(void* handle);
  Graph* Find(void* handle);
  GraphNode* FindNode(void* handle);
  CUresult DestroyNode(GraphNode* node);
  void OnNode(GraphNode* node, bool alive);
  void OnGraph(Graph* graph, bool alive);

  GraphExec* Add(std::unique_ptr<GraphExec> exec);
  GraphExec* FindExec(void* handle);
  CUresult DestroyExec(void* handle);

 private:
  std::mutex mutex_;
  std::set<void*> graphs_, nodes_;
  std::map<void*, std::unique_ptr<Graph>> owned_;
  std::map<void*, std::unique_ptr<GraphExec>> execs_;
};

// Deep copy, children included.
void CopyGraph(const Graph& from, Graph* to);
// Everything of `from` but its place in its graph.
void CopyParameters(const GraphNode& from, GraphNode* to);
CUresult Instantiate(const Graph& graph, GraphExec* exec, const GraphNode** failed);

// What nodes do. Errors: the parameters are not valid.
CUresult WorkOf(const GraphNode& node, Work* work);
Work WorkOf(const KernelLaunch& launch);
Work WorkOf(const CUDA_HOST_NODE_PARAMS& host);
CUresult WorkOf(const CUDA_MEMCPY3D& box, Work* work);
CUresult WorkOf(const CUDA_MEMSET_NODE_PARAMS& fill, Work* work);
// Checks the configuration, fills in function and parameters.
CUresult CompleteLaunch(CUfunction function, void** params, void** extra, KernelLaunch* launch);

}  // namespace simgpu
