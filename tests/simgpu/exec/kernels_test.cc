// Kernels compiled by nvcc, against the same computation on the host; optimised code, and code for
// the debugger, which does everything through local memory and generic addresses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/simgpu/exec/harness.h"

namespace simgpu::test {
namespace {

std::vector<float> Random(size_t count, float low, float high, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(random);
  return values;
}

// Launches must succeed in all of these tests but those of faults.
#define RUN(...)                                             \
  do {                                                       \
    const LaunchResult result = Launch(__VA_ARGS__);         \
    ASSERT_EQ(result.fault, Fault::kNone) << result.message; \
  } while (false)

class KernelsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    program_ = device_.Load(ReadFile(GetParam()));
    ASSERT_NE(program_, nullptr);
  }
  bool optimised() const { return std::string(GetParam()) == SIMGPU_TEST_PTX; }

  Device device_{2};
  std::unique_ptr<Program> program_;
};

INSTANTIATE_TEST_SUITE_P(Builds, KernelsTest,
                         testing::Values(SIMGPU_TEST_PTX, SIMGPU_TEST_PTX_DEBUG),
                         [](const auto& info) { return info.index == 0 ? "Optimised" : "Debug"; });

std::vector<float> MatMul(const std::vector<float>& a, const std::vector<float>& b, int m, int n,
                          int k) {
  std::vector<float> c(static_cast<size_t>(m) * n);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l) sum = std::fmaf(a[i * k + l], b[l * n + j], sum);
      c[i * n + j] = sum;
    }
  }
  return c;
}

TEST_P(KernelsTest, MatMulIsExact) {
  const int m = 37, n = 51, k = 29;
  const auto a = Random(m * k, -1, 1, 1), b = Random(k * n, -1, 1, 2);
  const auto want = MatMul(a, b, m, n, k);
  const uint64_t da = device_.Upload(a), db = device_.Upload(b);
  for (const char* kernel : {"matmul_naive", "matmul_tiled"}) {
    const uint64_t c = device_.Alloc(want.size() * 4);
    RUN(device_, *program_, kernel, {{4, 3}, {16, 16}}, Arguments(c, da, db, m, n, k));
    const auto got = device_.Download<float>(c, want.size());
    if (optimised()) {  // the debug build does not contract
      EXPECT_EQ(got, want) << kernel;
    } else {
      for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << kernel << i;
    }
  }
}

TEST_P(KernelsTest, LayerNorm) {
  const int rows = 5, width = 200;
  const auto in = Random(rows * width, -2, 3, 3), weight = Random(width, 0.5, 2, 4),
             bias = Random(width, -1, 1, 5);
  const uint64_t out = device_.Alloc(in.size() * 4);
  RUN(device_, *program_, "layernorm", {{rows}, {128}, 64 * 4},
      Arguments(out, device_.Upload(in), device_.Upload(weight), device_.Upload(bias), width));
  const auto got = device_.Download<float>(out, in.size());
  for (int r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (int i = 0; i < width; ++i) mean += in[r * width + i];
    mean /= width;
    for (int i = 0; i < width; ++i) variance += std::pow(in[r * width + i] - mean, 2);
    variance /= width;
    for (int i = 0; i < width; ++i) {
      const double want = (in[r * width + i] - mean) / std::sqrt(variance + 1e-5) * weight[i] +
                          static_cast<double>(bias[i]);
      ASSERT_NEAR(got[r * width + i], want, 2e-5);
    }
  }
}

TEST_P(KernelsTest, Softmax) {
  const int rows = 7, width = 333;
  const auto in = Random(rows * width, -20, 20, 6);
  const uint64_t out = device_.Alloc(in.size() * 4);
  RUN(device_, *program_, "softmax", {{rows}, {256}}, Arguments(out, device_.Upload(in), width));
  const auto got = device_.Download<float>(out, in.size());
  for (int r = 0; r < rows; ++r) {
    const float* x = in.data() + r * width;
    const double most = *std::max_element(x, x + width);
    double sum = 0;
    for (int i = 0; i < width; ++i) sum += std::exp(x[i] - most);
    for (int i = 0; i < width; ++i) {
      const double want = std::exp(x[i] - most) / sum;
      ASSERT_NEAR(got[r * width + i], want, want * 1e-5 + 1e-30) << r << " " << i;
    }
  }
}

TEST_P(KernelsTest, GeluAdamSaxpy) {
  const int n = 1000;
  auto x = Random(n, -5, 5, 7);
  const uint64_t out = device_.Alloc(n * 4);
  RUN(device_, *program_, "gelu", {{8}, {128}}, Arguments(out, device_.Upload(x), n));
  const auto got = device_.Download<float>(out, n);
  for (int i = 0; i < n; ++i) {
    const double v = x[i];
    const double want = 0.5 * v * (1 + std::tanh(0.7978845608 * (v + 0.044715 * v * v * v)));
    ASSERT_NEAR(got[i], want, 1e-6) << v;
  }

  auto p = Random(n, -1, 1, 8), m = Random(n, -1, 1, 9), v = Random(n, 0, 1, 10),
       g = Random(n, -1, 1, 11);
  const uint64_t dp = device_.Upload(p), dm = device_.Upload(m), dv = device_.Upload(v);
  RUN(device_, *program_, "adam", {{8}, {128}},
      Arguments(dp, dm, dv, device_.Upload(g), n, 1e-3f, 0.9f, 0.999f, 1e-8f, 0.5f, 0.25f));
  const auto gp = device_.Download<float>(dp, n);
  for (int i = 0; i < n; ++i) {
    const double nm = 0.9 * m[i] + 0.1 * g[i], nv = 0.999 * v[i] + 0.001 * g[i] * g[i];
    ASSERT_NEAR(gp[i], p[i] - 1e-3 * (nm / 0.5) / (std::sqrt(nv / 0.25) + 1e-8), 1e-6);
  }

  auto a = Random(4 * n, -1, 1, 12), b = Random(4 * n, -1, 1, 13);
  const uint64_t da = device_.Upload(a);
  RUN(device_, *program_, "saxpy4", {{8}, {128}}, Arguments(da, device_.Upload(b), 2.5f, n));
  const auto ga = device_.Download<float>(da, 4 * n);
  for (int i = 0; i < 4 * n; ++i) {
    ASSERT_FLOAT_EQ(ga[i], optimised() ? std::fmaf(2.5f, b[i], a[i]) : a[i] + 2.5f * b[i]);
  }
}

TEST_P(KernelsTest, FloatFunctionsOfLibdevice) {
  auto x = Random(500, -4, 4, 14);
  x.insert(x.end(), {0.0f, -0.0f, 1.0f, -1.0f, 1e-30f, 80.0f, -80.0f, 12345.678f});
  const int n = static_cast<int>(x.size());
  const uint64_t out = device_.Alloc(n * 12 * 4);
  RUN(device_, *program_, "math_f32", {{5}, {128}}, Arguments(out, device_.Upload(x), n));
  const auto got = device_.Download<float>(out, n * 12);
  for (int i = 0; i < n; ++i) {
    const double v = x[i];
    const double a = std::fabs(v);
    const double want[12] = {std::exp(v),
                             std::log(x[i] < 0 ? -x[i] + 0.5f : x[i] + 0.5f),
                             std::sin(v),
                             std::cos(x[i] * 1000.0f),
                             std::tanh(v),
                             std::pow(static_cast<double>(std::fabs(x[i]) + 0.1f), 1.7f),
                             std::erf(v),
                             std::atan2(v, 0.7f),
                             std::sqrt(a),
                             std::cbrt(v),
                             std::floor(v) + std::nearbyint(x[i] * 3.0f),
                             std::fmod(x[i] * 10.0f, 1.3f)};
    for (int k = 0; k < 12; ++k) {
      const double w = static_cast<float>(want[k]);
      if (std::isinf(w)) {
        ASSERT_EQ(got[i * 12 + k], w) << v << " " << k;
      } else {
        ASSERT_NEAR(got[i * 12 + k], w, std::fabs(w) * 1.2e-6 + 2e-7) << v << " " << k;
      }
    }
  }
}

TEST_P(KernelsTest, DoubleFunctionsOfLibdevice) {
  std::vector<double> x = {0.0, -0.0, 1.0, 1e-200, 700.0, -700.0, 3.25};
  std::mt19937 random(15);
  for (int i = 0; i < 300; ++i) x.push_back(std::uniform_real_distribution<>(-6, 6)(random));
  const int n = static_cast<int>(x.size());
  const uint64_t out = device_.Alloc(n * 8 * 8);
  RUN(device_, *program_, "math_f64", {{3}, {128}}, Arguments(out, device_.Upload(x), n));
  const auto got = device_.Download<double>(out, n * 8);
  for (int i = 0; i < n; ++i) {
    const double v = x[i];
    const double want[8] = {std::exp(v),
                            std::log(std::fabs(v) + 0.5),
                            std::sin(v * 100.0),
                            std::pow(std::fabs(v) + 0.1, 1.7),
                            std::tanh(v),
                            std::erf(v),
                            std::sqrt(std::fabs(v)) / (v * v + 0.3),
                            std::lgamma(std::fabs(v) + 1.0)};
    for (int k = 0; k < 8; ++k) {
      ASSERT_NEAR(got[i * 8 + k], want[k], std::fabs(want[k]) * 4e-15 + 1e-15) << v << " " << k;
    }
  }
}

TEST_P(KernelsTest, ReductionHistogramLastBlock) {
  const int n = 10000;
  auto x = Random(n, 0, 1, 16);
  const double want = std::accumulate(x.begin(), x.end(), 0.0);
  const uint64_t dx = device_.Upload(x), total = device_.Upload<float>({0.0f}),
                 count = device_.Upload<int>({0});
  RUN(device_, *program_, "reduce_atomic", {{6}, {128}}, Arguments(total, count, dx, n));
  EXPECT_NEAR(device_.Download<float>(total, 1)[0], want, 1e-2);
  EXPECT_EQ(device_.Download<int>(count, 1)[0], 6 * 4);

  std::vector<uint8_t> bytes(n);
  std::vector<uint32_t> bins(256), expected(256);
  std::mt19937 random(17);
  for (uint8_t& byte : bytes) ++expected[byte = static_cast<uint8_t>(random() % 200)];
  const uint64_t db = device_.Upload(bins);
  RUN(device_, *program_, "histogram", {{7}, {96}}, Arguments(db, device_.Upload(bytes), n));
  EXPECT_EQ(device_.Download<uint32_t>(db, 256), expected);

  const uint64_t out = device_.Alloc(4), partial = device_.Alloc(9 * 4);
  for (int round = 0; round < 2; ++round) {  // the counter wraps to zero
    RUN(device_, *program_, "last_block_sum", {{9}, {256}}, Arguments(out, partial, dx, n));
    EXPECT_NEAR(device_.Download<float>(out, 1)[0], want, 1e-2);
  }
}

TEST_P(KernelsTest, ScanAndSort) {
  std::mt19937 random(18);
  std::vector<int> values(1000), want(1000);
  for (int& value : values) value = static_cast<int>(random() % 100) - 50;
  std::partial_sum(values.begin(), values.end(), want.begin());
  const uint64_t out = device_.Alloc(4000);
  RUN(device_, *program_, "scan", {{1}, {1024}}, Arguments(out, device_.Upload(values), 1000));
  EXPECT_EQ(device_.Download<int>(out, 1000), want);

  std::vector<uint32_t> keys(512);
  for (uint32_t& key : keys) key = static_cast<uint32_t>(random());
  const uint64_t dk = device_.Upload(keys);
  RUN(device_, *program_, "bitonic_sort", {{1}, {96}, 512 * 4}, Arguments(dk, 512));
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(device_.Download<uint32_t>(dk, 512), keys);
}

TEST_P(KernelsTest, ThreadsWaitForEachOther) {
  const uint64_t lock = device_.Upload<int>({0}), counter = device_.Upload<int>({0});
  RUN(device_, *program_, "spin_lock", {{3}, {64}}, Arguments(lock, counter, 2));
  EXPECT_EQ(device_.Download<int>(counter, 1)[0], 3 * 64 * 2);

  const int blocks = 20;
  for (const char* kernel : {"chain", "reverse_chain"}) {
    const uint64_t flags = device_.Upload(std::vector<int>(blocks)),
                   out = device_.Alloc(blocks * 4);
    RUN(device_, *program_, kernel, {{blocks}, {32}}, Arguments(flags, out));
    const auto got = device_.Download<int>(out, blocks);
    for (int i = 0; i < blocks; ++i) {
      EXPECT_EQ(got[i], 1 + 2 * (kernel[0] == 'c' ? i : blocks - 1 - i)) << kernel;
    }
  }
}

TEST_P(KernelsTest, GridSync) {
  const int n = 5 * 64;
  std::vector<int> a(n), b(n);
  std::iota(a.begin(), a.end(), 0);
  const uint64_t da = device_.Upload(a), db = device_.Upload(b);
  EXPECT_TRUE(Info(*program_->FindKernel("grid_rounds")).uses_grid_sync);
  Shape shape{{5}, {64}};
  shape.cooperative = true;
  RUN(device_, *program_, "grid_rounds", shape, Arguments(da, db, 4));
  for (int r = 0; r < 4; ++r) {
    for (int i = 0; i < n; ++i) b[i] = a[(i + 1) % n] + a[i];
    for (int i = 0; i < n; ++i) a[i] = b[(i + 7) % n];
  }
  EXPECT_EQ(device_.Download<int>(da, n), a);
}

TEST_P(KernelsTest, Calls) {
  const uint64_t out = device_.Alloc(64 * 4);
  RUN(device_, *program_, "recursion", {{1}, {40}}, Arguments(out));
  const auto got = device_.Download<int>(out, 40);
  const int fibonacci[12] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
  for (int i = 0; i < 40; ++i) EXPECT_EQ(got[i], fibonacci[i % 12]);

  const auto x = Random(64, -3, 3, 19);
  RUN(device_, *program_, "function_pointers", {{1}, {64}}, Arguments(out, device_.Upload(x)));
  const auto f = device_.Download<float>(out, 64);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(f[i], i % 3 == 0 ? 2 * x[i] : i % 3 == 1 ? x[i] * x[i] : -x[i]);
  }

  RUN(device_, *program_, "local_arrays", {{1}, {64}}, Arguments(out, 5));
  const auto l = device_.Download<int>(out, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(l[i], i + 5 + 100 * i + (5 + i) % 16);
}

TEST_P(KernelsTest, StructParameters) {
  struct Options {
    char tag;
    double scale;
    uint64_t out;
    int sizes[5];
  };
  const Options options = {'A', 1.5, device_.Alloc(64 * 4), {10, 20, 30, 40, 50}};
  RUN(device_, *program_, "struct_params", {{1}, {64}}, Arguments(options, short{-3}));
  const auto got = device_.Download<float>(options.out, 64);
  for (int i = 0; i < 64; ++i) {
    const int size = options.sizes[i % 5];
    EXPECT_EQ(got[i], size * 1.5f - 3 + 'A' + 1.5f * (size + i)) << i;
  }
}

TEST_P(KernelsTest, Divergence) {
  const int n = 300;
  const uint64_t out = device_.Alloc(n * 4);
  RUN(device_, *program_, "collatz", {{3}, {128}}, Arguments(out, n));
  const auto got = device_.Download<int>(out, n);
  for (int i = 0; i < n; ++i) {
    int steps = 0;
    for (uint32_t x = static_cast<uint32_t>(i) + 1; x != 1; ++steps) {
      x = x % 2 == 0 ? x / 2 : 3 * x + 1;
    }
    ASSERT_EQ(got[i], steps) << i;
  }

  RUN(device_, *program_, "switches", {{1}, {96}}, Arguments(out));
  const auto values = device_.Download<int>(out, 96);
  for (int t = 0; t < 96; ++t) {
    int value = 0;
    bool leave = false;
    for (int i = 0; i < 10 && !leave; ++i) {
      switch ((t + i) % 7) {
        case 0:
          value += 3;
          break;
        case 1:
          value ^= 0x55;
          break;
        case 2:
          value *= 5;
          [[fallthrough]];
        case 3:
          value -= 11;
          break;
        case 4:
          if (value > 100) {
            leave = true;
            break;
          }
          [[fallthrough]];
        default:
          value += t;
      }
    }
    ASSERT_EQ(values[t], value) << t;
  }
}

TEST_P(KernelsTest, Printf) {
  std::string printed;
  RUN(device_, *program_, "hello", {{2}, {32}}, Arguments(uint64_t{0}), &printed);
  EXPECT_EQ(printed,
            "block 0 thread 0: text  0.00|42    |1099511627776|x%\n"
            "block 0 thread 1: text  1.50|42    |1099511627776|x%\n"
            "block 1 thread 0: text  0.00|42    |1099511627776|x%\n"
            "block 1 thread 1: text  1.50|42    |1099511627776|x%\n");
}

TEST_P(KernelsTest, Assertion) {
  std::vector<int> values(64, 1);
  values[35] = 7;
  std::string printed;
  const LaunchResult result = Launch(device_, *program_, "assertion", {{1}, {64}},
                                     Arguments(device_.Upload(values)), &printed);
  EXPECT_EQ(result.fault, Fault::kAssert);
  EXPECT_NE(result.message.find("kernel assertion, block (0,0,0), thread (35,0,0)"),
            std::string::npos)
      << result.message;
  EXPECT_NE(printed.find("thread: [35,0,0] Assertion `in[threadIdx.x] != 7` failed."),
            std::string::npos)
      << printed;
}

TEST_P(KernelsTest, DeviceHeap) {
  const uint64_t out = device_.Alloc(64 * 8);
  RUN(device_, *program_, "device_heap", {{1}, {64}}, Arguments(out));
  const auto got = device_.Download<uint64_t>(out, 64);
  for (uint64_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], 120 * i);
}

}  // namespace
}  // namespace simgpu::test
