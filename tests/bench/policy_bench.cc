// What one decision costs with many candidates: select, drop, and the rebuild of what was dropped
// before, so that the number of candidates stays.
#include <benchmark/benchmark.h>

#include <deque>
#include <memory>
#include <random>

#include "runtime/policy/policy.h"

namespace tidepool::policy {
namespace {

// Layers: values made one from the other, every eighth also from one 50 back, like the activations
// of a deep model; sizes and costs over four orders of magnitude, accesses in order.
std::unique_ptr<Policy> Filled(std::string_view name, uint64_t values, uint64_t* now) {
  std::unique_ptr<Policy> policy = *MakePolicy(name);
  std::mt19937_64 random(1);
  for (ValueId id = 0; id < values; ++id) {
    const uint64_t cost = uint64_t{1000} << (random() % 12);
    *now += cost;
    policy->Add(id, uint64_t{2} << (20 + random() % 8), cost, *now);
    if (id > 0) policy->Link(id - 1, id);
    if (id % 8 == 0 && id >= 50) policy->Link(id - 50, id);
  }
  return policy;
}

void Decisions(benchmark::State& state, std::string_view name) {
  uint64_t now = 0;
  const auto values = static_cast<uint64_t>(state.range(0));
  std::unique_ptr<Policy> policy = Filled(name, values, &now);
  // A tenth of all values is dropped at any time.
  std::deque<ValueId> dropped;
  const auto drop = [&] {
    const ValueId victim = policy->SelectVictim(now, 0).value();
    policy->OnDrop(victim);
    dropped.push_back(victim);
  };
  for (uint64_t i = 0; i < values / 10; ++i) drop();
  while (state.KeepRunning()) {
    now += 10000;
    drop();
    policy->OnRebuild(dropped.front(), now);
    dropped.pop_front();
  }
  state.SetItemsProcessed(state.iterations());
}

// One op of a training step that evicts nothing: a value is added, linked, read twice, removed.
void Bookkeeping(benchmark::State& state) {
  uint64_t now = 0;
  const auto values = static_cast<uint64_t>(state.range(0));
  std::unique_ptr<Policy> policy = Filled("dtr-eq", values, &now);
  ValueId next = values;
  while (state.KeepRunning()) {
    now += 10000;
    policy->Add(next, 2 << 20, 10000, now);
    policy->Link(next - 1, next);
    policy->Lock(next - 1);
    policy->OnAccess(next - 1, now);
    policy->Unlock(next - 1);
    policy->OnAccess(next - values / 2, now);
    policy->Remove(next - values);
    ++next;
  }
  state.SetItemsProcessed(state.iterations());
}

void Sizes(benchmark::internal::Benchmark* bench) {
  for (int64_t values : {1000, 10000, 100000, 1000000}) bench->Arg(values);
}

BENCHMARK_CAPTURE(Decisions, dtr_eq, "dtr-eq")->Apply(Sizes);
BENCHMARK_CAPTURE(Decisions, dtr_local, "dtr-local")->Apply(Sizes);
BENCHMARK_CAPTURE(Decisions, lru, "lru")->Apply(Sizes);
BENCHMARK_CAPTURE(Decisions, msps, "msps")->Apply(Sizes);
BENCHMARK_CAPTURE(Decisions, random, "random")->Apply(Sizes);
BENCHMARK(Bookkeeping)->Apply(Sizes);

}  // namespace
}  // namespace tidepool::policy
