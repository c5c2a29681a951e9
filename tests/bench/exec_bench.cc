// How fast simulated kernels run: lane-instructions a second on one core.
#include <benchmark/benchmark.h>

#include "tests/simgpu/exec/harness.h"

namespace simgpu::test {
namespace {

struct Fixture {
  Fixture() : program(device.Load(ReadFile(SIMGPU_TEST_PTX))) {}
  Device device{1};
  std::unique_ptr<Program> program;
};

Fixture& Get() {
  static Fixture* const fixture = new Fixture;
  return *fixture;
}

void RunKernel(benchmark::State& state, const char* kernel, const Shape& shape,
               const Arguments& arguments) {
  Fixture& f = Get();
  ExecStats total;
  for (auto _ : state) {
    const LaunchResult result = Launch(f.device, *f.program, kernel, shape, arguments);
    if (result.fault != Fault::kNone) {
      state.SkipWithError(result.message.c_str());
      return;
    }
    total.lane_instructions += result.stats.lane_instructions;
    total.flops += result.stats.flops;
    total.global_read_bytes += result.stats.global_read_bytes + result.stats.global_written_bytes;
  }
  const auto rate = [](uint64_t count) {
    return benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsRate);
  };
  state.counters["lane_instructions"] = rate(total.lane_instructions);
  state.counters["flops"] = rate(total.flops);
  state.counters["global_bytes"] = rate(total.global_read_bytes);
}

void Float(benchmark::State& state) {
  RunKernel(state, "spin_float", {{4}, {256}}, Arguments(Get().device.Alloc(4096), 200));
}
BENCHMARK(Float);

void Integer(benchmark::State& state) {
  RunKernel(state, "spin_integer", {{4}, {256}}, Arguments(Get().device.Alloc(4096), 200));
}
BENCHMARK(Integer);

void Copy(benchmark::State& state) {
  const int n = 1 << 20;
  static const uint64_t to = Get().device.Alloc(n * 4), from = Get().device.Alloc(n * 4);
  RunKernel(state, "copy", {{n / 256}, {256}}, Arguments(to, from, n));
}
BENCHMARK(Copy);

void MatMul(benchmark::State& state, const char* kernel) {
  const int n = 128;
  static const uint64_t a = Get().device.Upload(std::vector<float>(n * n, 1.5f)),
                        b = Get().device.Upload(std::vector<float>(n * n, 0.5f)),
                        c = Get().device.Alloc(n * n * 4);
  RunKernel(state, kernel, {{n / 16, n / 16}, {16, 16}}, Arguments(c, a, b, n, n, n));
}
BENCHMARK_CAPTURE(MatMul, Naive, "matmul_naive");
BENCHMARK_CAPTURE(MatMul, Tiled, "matmul_tiled");

void Gelu(benchmark::State& state) {
  const int n = 1 << 16;
  static const uint64_t x = Get().device.Upload(std::vector<float>(n, 0.7f)),
                        y = Get().device.Alloc(n * 4);
  RunKernel(state, "gelu", {{n / 256}, {256}}, Arguments(y, x, n));
}
BENCHMARK(Gelu);

void Softmax(benchmark::State& state) {
  const int rows = 64, width = 1024;
  static const uint64_t x = Get().device.Upload(std::vector<float>(rows * width, 0.7f)),
                        y = Get().device.Alloc(rows * width * 4);
  RunKernel(state, "softmax", {{rows}, {256}}, Arguments(y, x, width));
}
BENCHMARK(Softmax);

void Divergent(benchmark::State& state) {
  RunKernel(state, "collatz", {{16}, {256}}, Arguments(Get().device.Alloc(16384), 4096));
}
BENCHMARK(Divergent);

void EmptyLaunch(benchmark::State& state) {
  RunKernel(state, "copy", {{1}, {32}}, Arguments(Get().device.Alloc(4), Get().device.Alloc(4), 0));
}
BENCHMARK(EmptyLaunch);

}  // namespace
}  // namespace simgpu::test
