// Streams and events: a graph of ops that worker threads run in any order the API allows, and the
// virtual clock. Thread-safe.
//
// Every op waits for the op before it on its stream, for what the legacy default stream's rules
// say, and for events. With a seed the device is adversarial: it does nothing until the host waits
// for something, and then takes ready ops in random order.
//
// Virtual time: an op starts when its dependencies have ended, its engine is free and the host had
// issued it, and takes what the device model says. Times are given in the order of issue, so they
// depend on nothing but the program.
#pragma once

#include <cuda.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace simgpu {

struct Capture;    // capture.h
struct GraphNode;  // graph.h

enum class Engine : uint8_t { kNone, kCompute, kCopyIn, kCopyOut };

// What running an op gave.
struct OpOutcome {
  CUresult error = CUDA_SUCCESS;  // a fault: the context is dead
  uint64_t duration_ns = 0;       // virtual
  std::string message;            // of the fault
};

// What an op does.
struct Work {
  Engine engine = Engine::kNone;
  std::function<OpOutcome()> run;  // null: nothing
  bool host_function = false;
};

struct Op {
  std::function<OpOutcome()> work;  // null: nothing (markers)
  std::vector<std::shared_ptr<Op>> after;
  std::vector<std::shared_ptr<Op>> dependents;
  uint32_t waiting = 0;  // dependencies not done
  bool started = false, done = false, timed = false;
  bool host_function = false;
  Engine engine = Engine::kNone;
  uint64_t issued_ns = 0, start_ns = 0, end_ns = 0, duration_ns = 0;
};

struct Stream {
  uint64_t id = 0;
  bool blocking = true;  // synchronises with the legacy stream
  bool legacy = false;
  int priority = 0;
  std::shared_ptr<Op> last;
  // While it is part of a capture: of which, and what its next node comes behind. Under the lock of
  // captures.
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode*> captured;
};

struct Event {
  std::shared_ptr<Op> op;  // of the last record; null: never recorded
  bool timing = true;
  // If it was recorded last in a stream that was being captured, as in Stream.
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode*> captured;
};

// One node of a graph that is launched.
struct GraphStep {
  Work work;
  std::vector<size_t> after;   // earlier steps
  Event* records = nullptr;    // the step is this event's record
  Event* waits_for = nullptr;  // the step waits for the event's last record
};

class Scheduler {
 public:
  static Scheduler& Get();

  // Handles are pointers to these; a handle that was destroyed is not found.
  Stream* Create(bool blocking, int priority);
  // Null: not a stream. Handle 0 and the special ones as the API has them.
  Stream* Find(CUstream handle, bool per_thread);
  CUresult Destroy(CUstream handle);
  Event* CreateEvent(bool timing);
  Event* FindEvent(CUevent handle);
  CUresult DestroyEvent(CUevent handle);

  std::shared_ptr<Op> Enqueue(Stream* stream, Engine engine, std::function<OpOutcome()> work,
                              bool host_function = false);
  void Record(Event* event, Stream* stream);
  void WaitEvent(Stream* stream, Event* event);
  // The steps behind what the stream was given and behind `former`, in any order that their
  // dependencies allow. Returns the op at their end.
  std::shared_ptr<Op> EnqueueGraph(Stream* stream, const std::vector<GraphStep>& steps,
                                   const std::shared_ptr<Op>& former);

  bool IsDone(const std::shared_ptr<Op>& op);
  // Waits; the host's clock moves to the op's end.
  void Wait(const std::shared_ptr<Op>& op);
  void WaitStream(Stream* stream);
  void WaitAll();
  bool StreamIdle(Stream* stream);

  // Forgets every stream and event, as when their context is destroyed. Nothing may be pending.
  void Reset();

  // The sticky error, CUDA_SUCCESS while the context lives.
  CUresult error();
  void ClearError();

  // The calling thread's virtual clock.
  static uint64_t HostNow();
  static void HostSpend(uint64_t ns);
  uint64_t virtual_time();

 private:
  Scheduler();
  void Loop();
  void Start(std::unique_lock<std::mutex>& lock, std::shared_ptr<Op> op);
  void Finish(const std::shared_ptr<Op>& op, const OpOutcome& outcome);
  void EnqueueLocked(Stream* stream, const std::shared_ptr<Op>& op);
  void Submit(const std::shared_ptr<Op>& op);
  void AddDependency(const std::shared_ptr<Op>& op, const std::shared_ptr<Op>& on);
  void GiveTimes();
  std::shared_ptr<Op> PickReady();

  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::map<void*, std::unique_ptr<Stream>> streams_;
  std::map<uint64_t, std::unique_ptr<Stream>> thread_streams_;
  std::map<void*, std::unique_ptr<Event>> events_;
  Stream legacy_;
  // The last ops of blocking streams that are gone: the legacy stream still waits for them.
  std::vector<std::shared_ptr<Op>> orphans_;
  std::vector<std::shared_ptr<Op>> ready_;
  std::deque<std::shared_ptr<Op>> untimed_;  // in the order of issue
  uint64_t engine_free_[4] = {0, 0, 0, 0};
  uint64_t latest_ = 0;
  uint64_t next_id_ = 1;
  uint64_t pending_ = 0;
  int waiters_ = 0;
  int polls_ = 0;  // queries that are to bring progress
  bool adversarial_ = false;
  std::mt19937_64 random_;
  CUresult error_ = CUDA_SUCCESS;
  std::vector<std::thread> threads_;
};

}  // namespace simgpu
