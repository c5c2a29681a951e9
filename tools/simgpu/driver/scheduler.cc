#include "tools/simgpu/driver/scheduler.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "tools/simgpu/driver/settings.h"

namespace simgpu {
namespace {

thread_local uint64_t host_now = 0;
std::atomic<uint64_t> host_latest{0};

uint64_t ThisThread() {
  static std::atomic<uint64_t> next{1};
  thread_local uint64_t number = next.fetch_add(1);
  return number;
}

// In adversarial mode the device starts working by itself only when so much has piled up.
constexpr uint64_t kMostPending = 256;

}  // namespace

Scheduler& Scheduler::Get() {
  // Never destroyed: its threads may be at work when the process ends.
  static Scheduler* scheduler = new Scheduler;
  return *scheduler;
}

Scheduler::Scheduler() {
  const uint64_t seed = GetSettings().seed;
  adversarial_ = seed != 0;
  random_.seed(seed);
  legacy_.legacy = true;
  const int threads = adversarial_ ? 1 : 4;
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
  for (std::thread& thread : threads_) thread.detach();
}

uint64_t Scheduler::HostNow() {
  // A thread that begins finds the others' present.
  if (host_now == 0) host_now = host_latest.load() + 1;
  return host_now;
}

void Scheduler::HostSpend(uint64_t ns) {
  host_now = HostNow() + ns;
  uint64_t latest = host_latest.load();
  while (latest < host_now && !host_latest.compare_exchange_weak(latest, host_now)) {
  }
}

uint64_t Scheduler::virtual_time() {
  std::lock_guard<std::mutex> lock(mutex_);
  GiveTimes();
  return std::max(latest_, host_latest.load());
}

Stream* Scheduler::Create(bool blocking, int priority) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto stream = std::make_unique<Stream>();
  stream->id = ++next_id_;
  stream->blocking = blocking;
  stream->priority = priority;
  Stream* result = stream.get();
  streams_[result] = std::move(stream);
  return result;
}

Stream* Scheduler::Find(CUstream handle, bool per_thread) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (handle == CU_STREAM_LEGACY || (handle == nullptr && !per_thread)) return &legacy_;
  if (handle == CU_STREAM_PER_THREAD || handle == nullptr) {
    std::unique_ptr<Stream>& stream = thread_streams_[ThisThread()];
    if (stream == nullptr) {
      stream = std::make_unique<Stream>();
      stream->id = ++next_id_;
    }
    return stream.get();
  }
  auto it = streams_.find(handle);
  return it == streams_.end() ? nullptr : it->second.get();
}

CUresult Scheduler::Destroy(CUstream handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  // Its work goes on: dependents hold the ops. The legacy stream still has to wait for it.
  auto it = streams_.find(handle);
  if (it == streams_.end()) return CUDA_ERROR_INVALID_HANDLE;
  const Stream& stream = *it->second;
  if (stream.blocking && stream.last != nullptr && !stream.last->done) {
    std::erase_if(orphans_, [](const auto& op) { return op->done; });
    orphans_.push_back(stream.last);
  }
  streams_.erase(it);
  return CUDA_SUCCESS;
}

Event* Scheduler::CreateEvent(bool timing) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto event = std::make_unique<Event>();
  event->timing = timing;
  Event* result = event.get();
  events_[result] = std::move(event);
  return result;
}

Event* Scheduler::FindEvent(CUevent handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = events_.find(handle);
  return it == events_.end() ? nullptr : it->second.get();
}

CUresult Scheduler::DestroyEvent(CUevent handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  return events_.erase(handle) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void Scheduler::AddDependency(const std::shared_ptr<Op>& op, const std::shared_ptr<Op>& on) {
  if (on == nullptr || on == op) return;
  op->after.push_back(on);
  if (on->done) return;
  on->dependents.push_back(op);
  ++op->waiting;
}

std::shared_ptr<Op> Scheduler::Enqueue(Stream* stream, Engine engine,
                                       std::function<OpOutcome()> work, bool host_function) {
  auto op = std::make_shared<Op>();
  op->work = std::move(work);
  op->engine = engine;
  op->host_function = host_function;
  op->issued_ns = HostNow();
  std::lock_guard<std::mutex> lock(mutex_);
  EnqueueLocked(stream, op);
  return op;
}

void Scheduler::EnqueueLocked(Stream* stream, const std::shared_ptr<Op>& op) {
  AddDependency(op, stream->last);
  if (stream->legacy) {
    for (auto& [handle, other] : streams_) {
      if (other->blocking) AddDependency(op, other->last);
    }
    for (auto& [thread, other] : thread_streams_) AddDependency(op, other->last);
    for (auto& orphan : orphans_) AddDependency(op, orphan);
    orphans_.clear();  // what comes later waits for this op
  } else if (stream->blocking) {
    AddDependency(op, legacy_.last);
  }
  stream->last = op;
  Submit(op);
}

// Its dependencies are complete: it may run.
void Scheduler::Submit(const std::shared_ptr<Op>& op) {
  untimed_.push_back(op);
  ++pending_;
  if (op->waiting == 0) {
    ready_.push_back(op);
    if (!adversarial_ || waiters_ > 0 || pending_ > kMostPending) work_.notify_one();
  }
}

std::shared_ptr<Op> Scheduler::EnqueueGraph(Stream* stream, const std::vector<GraphStep>& steps,
                                            const std::shared_ptr<Op>& former) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto make = [&] {
    auto op = std::make_shared<Op>();
    op->issued_ns = HostNow();
    return op;
  };
  const std::shared_ptr<Op> begin = make();
  AddDependency(begin, former);
  EnqueueLocked(stream, begin);
  std::vector<std::shared_ptr<Op>> ops;
  std::vector<bool> leaf(steps.size(), true);
  for (const GraphStep& step : steps) {
    std::shared_ptr<Op> op = make();
    op->work = step.work.run;
    op->engine = step.work.engine;
    op->host_function = step.work.host_function;
    AddDependency(op, begin);
    for (size_t on : step.after) {
      AddDependency(op, ops[on]);
      leaf[on] = false;
    }
    if (step.waits_for != nullptr) AddDependency(op, step.waits_for->op);
    if (step.records != nullptr) step.records->op = op;
    Submit(op);
    ops.push_back(std::move(op));
  }
  const std::shared_ptr<Op> end = make();
  AddDependency(end, begin);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (leaf[i]) AddDependency(end, ops[i]);
  }
  stream->last = end;
  Submit(end);
  return end;
}

void Scheduler::Record(Event* event, Stream* stream) {
  std::shared_ptr<Op> op = Enqueue(stream, Engine::kNone, nullptr);
  std::lock_guard<std::mutex> lock(mutex_);
  event->op = std::move(op);
}

void Scheduler::WaitEvent(Stream* stream, Event* event) {
  std::shared_ptr<Op> on;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    on = event->op;
  }
  if (on == nullptr) return;  // never recorded: nothing to wait for
  auto op = std::make_shared<Op>();
  op->issued_ns = HostNow();
  std::lock_guard<std::mutex> lock(mutex_);
  AddDependency(op, stream->last);
  AddDependency(op, on);
  stream->last = op;
  Submit(op);
}

std::shared_ptr<Op> Scheduler::PickReady() {
  size_t index = 0;
  if (adversarial_) index = random_() % ready_.size();
  std::shared_ptr<Op> op = ready_[index];
  ready_.erase(ready_.begin() + static_cast<ptrdiff_t>(index));
  return op;
}

void Scheduler::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] {
      return !ready_.empty() &&
             (!adversarial_ || waiters_ > 0 || polls_ > 0 || pending_ > kMostPending);
    });
    if (polls_ > 0) --polls_;
    Start(lock, PickReady());
  }
}

void Scheduler::Start(std::unique_lock<std::mutex>& lock, std::shared_ptr<Op> op) {
  op->started = true;
  OpOutcome outcome;
  const bool dead = error_ != CUDA_SUCCESS;
  if (op->work != nullptr && (!dead || op->host_function)) {
    if (op->host_function) {
      // A host function may block for long, or until other work is done.
      std::thread([this, op] {
        const OpOutcome result = op->work();
        std::lock_guard<std::mutex> guard(mutex_);
        Finish(op, result);
      }).detach();
      return;
    }
    lock.unlock();
    outcome = op->work();
    lock.lock();
  }
  Finish(op, outcome);
}

void Scheduler::Finish(const std::shared_ptr<Op>& op, const OpOutcome& outcome) {
  op->done = true;
  op->work = nullptr;
  op->duration_ns = outcome.duration_ns;
  --pending_;
  if (outcome.error != CUDA_SUCCESS && error_ == CUDA_SUCCESS) {
    error_ = outcome.error;
    if (!outcome.message.empty()) {
      const std::string line = "simgpu: " + outcome.message + "\n";
      [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    }
  }
  for (const std::shared_ptr<Op>& next : op->dependents) {
    if (--next->waiting == 0) {
      ready_.push_back(next);
      work_.notify_one();
    }
  }
  op->dependents.clear();
  GiveTimes();
  done_.notify_all();
}

void Scheduler::GiveTimes() {
  while (!untimed_.empty() && untimed_.front()->done) {
    std::shared_ptr<Op> op = std::move(untimed_.front());
    untimed_.pop_front();
    uint64_t start = op->issued_ns;
    for (const std::shared_ptr<Op>& on : op->after) start = std::max(start, on->end_ns);
    op->after.clear();  // a chain of all ops would never be freed
    auto& free = engine_free_[static_cast<size_t>(op->engine)];
    if (op->engine != Engine::kNone) start = std::max(start, free);
    op->start_ns = start;
    op->end_ns = start + op->duration_ns;
    if (op->engine != Engine::kNone) free = op->end_ns;
    op->timed = true;
    latest_ = std::max(latest_, op->end_ns);
  }
}

bool Scheduler::IsDone(const std::shared_ptr<Op>& op) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (op == nullptr || op->done) return true;
  // A program that polls must see progress: now and then the device takes one op.
  if (adversarial_ && random_() % 4 == 0) {
    ++polls_;
    work_.notify_one();
  }
  return false;
}

void Scheduler::Wait(const std::shared_ptr<Op>& op) {
  if (op == nullptr) return;
  std::unique_lock<std::mutex> lock(mutex_);
  ++waiters_;
  work_.notify_all();
  done_.wait(lock, [&] { return op->done; });
  --waiters_;
  GiveTimes();
  const uint64_t end = op->timed ? op->end_ns : latest_;
  lock.unlock();
  if (end > HostNow()) HostSpend(end - HostNow());
}

void Scheduler::WaitStream(Stream* stream) {
  std::shared_ptr<Op> last;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    last = stream->last;
  }
  if (stream->legacy) last = Enqueue(stream, Engine::kNone, nullptr);
  Wait(last);
}

void Scheduler::WaitAll() {
  std::unique_lock<std::mutex> lock(mutex_);
  ++waiters_;
  work_.notify_all();
  done_.wait(lock, [&] { return pending_ == 0; });
  --waiters_;
  GiveTimes();
  const uint64_t end = latest_;
  lock.unlock();
  if (end > HostNow()) HostSpend(end - HostNow());
}

bool Scheduler::StreamIdle(Stream* stream) {
  std::shared_ptr<Op> last;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    last = stream->last;
  }
  return IsDone(last);
}

CUresult Scheduler::error() {
  std::lock_guard<std::mutex> lock(mutex_);
  return error_;
}

void Scheduler::Reset() {
  std::lock_guard<std::mutex> lock(mutex_);
  streams_.clear();
  thread_streams_.clear();
  events_.clear();
  orphans_.clear();
  legacy_.last = nullptr;
}

void Scheduler::ClearError() {
  std::lock_guard<std::mutex> lock(mutex_);
  error_ = CUDA_SUCCESS;
}

}  // namespace simgpu
