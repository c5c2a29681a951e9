// What device code computes: Programming Guide, "C++ Language Extensions".
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include "conformance.h"

namespace {

class DeviceCode : public Conformance {};

// --- Threads, shared memory, barriers ---

__global__ void Indices(int* out) {
  const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const int threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = block * 10000 + thread;
}
// "Built-in Variables".
TEST_F(DeviceCode, BuiltInVariables) {
  const dim3 grid(3, 2, 2), block(5, 3, 4);
  DeviceArray<int> out(12 * 60);
  Indices<<<grid, block>>>(out.get());
  const std::vector<int> values = out.Read();
  for (int i = 0; i < 12 * 60; ++i) ASSERT_EQ(values[i], i / 60 * 10000 + i % 60);
}

__global__ void BlockSum(const int* in, int* out, int n) {
  extern __shared__ int part[];
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    sum += in[i];
  }
  part[threadIdx.x] = sum;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
// "Synchronization Functions", "Execution Configuration".
TEST_F(DeviceCode, SharedMemoryReduction) {
  std::vector<int> values(100000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i % 91) - 40;
  DeviceArray<int> in(values), out(16);
  BlockSum<<<16, 256, 256 * sizeof(int)>>>(in.get(), out.get(), static_cast<int>(values.size()));
  const std::vector<int> parts = out.Read();
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), 0),
            std::accumulate(values.begin(), values.end(), 0));
}

__global__ void Transpose(float* out, const float* in, int n) {
  __shared__ float tile[16][17];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < n && y < n) tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x;
  y = blockIdx.x * 16 + threadIdx.y;
  if (x < n && y < n) out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}
TEST_F(DeviceCode, TiledTranspose) {
  constexpr int n = 75;
  std::vector<float> values(n * n);
  for (int i = 0; i < n * n; ++i) values[i] = static_cast<float>(i);
  DeviceArray<float> in(values), out(values.size());
  Transpose<<<dim3(5, 5), dim3(16, 16)>>>(out.get(), in.get(), n);
  const std::vector<float> result = out.Read();
  for (int y = 0; y < n; ++y) {
    for (int x = 0; x < n; ++x) ASSERT_EQ(result[y * n + x], values[x * n + y]);
  }
}

__global__ void Votes(int* out) {
  const bool even = threadIdx.x % 2 == 0;
  const int count = __syncthreads_count(even);
  const int all = __syncthreads_and(even);
  const int any = __syncthreads_or(even);
  if (threadIdx.x == 0) {
    out[0] = count;
    out[1] = all != 0;
    out[2] = any != 0;
  }
}
TEST_F(DeviceCode, BarriersThatVote) {
  DeviceArray<int> out(3);
  Votes<<<1, 100>>>(out.get());
  EXPECT_EQ(out.Read(), (std::vector<int>{50, 0, 1}));
}

// --- Warps: "Warp Vote Functions", "Warp Match", "Warp Shuffle", "Warp Reduce" ---

__global__ void Warp(unsigned* out) {
  const unsigned lane = threadIdx.x;
  unsigned* mine = out + lane * 10;
  mine[0] = __ballot_sync(~0u, lane % 3 == 0);
  mine[1] = __all_sync(~0u, lane < 32) + 2 * __any_sync(~0u, lane == 40);
  mine[2] = __shfl_sync(~0u, lane * lane, 5);
  mine[3] = __shfl_up_sync(~0u, lane, 3);
  mine[4] = __shfl_down_sync(~0u, lane, 4, 16);
  mine[5] = __shfl_xor_sync(~0u, lane, 7);
  mine[6] = __match_any_sync(~0u, lane / 8);
  mine[7] = __reduce_add_sync(~0u, lane);
  mine[8] = __reduce_max_sync(~0u, lane ^ 21u);
  mine[9] = __activemask();
}
TEST_F(DeviceCode, WarpFunctions) {
  cudaDeviceProp p;
  ASSERT_OK(cudaGetDeviceProperties(&p, 0));
  if (p.major < 8) GTEST_SKIP() << "reductions over a warp need compute capability 8.0";
  DeviceArray<unsigned> out(320);
  Warp<<<1, 32>>>(out.get());
  const std::vector<unsigned> values = out.Read();
  unsigned ballot = 0;
  for (unsigned i = 0; i < 32; i += 3) ballot |= 1u << i;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned* mine = &values[lane * 10];
    EXPECT_EQ(mine[0], ballot);
    EXPECT_EQ(mine[1], 1u);
    EXPECT_EQ(mine[2], 25u);
    EXPECT_EQ(mine[3], lane < 3 ? lane : lane - 3);
    EXPECT_EQ(mine[4], lane % 16 + 4 < 16 ? lane + 4 : lane);
    EXPECT_EQ(mine[5], lane ^ 7);
    EXPECT_EQ(mine[6], 0xffu << (lane / 8 * 8));
    EXPECT_EQ(mine[7], 31u * 32 / 2);
    EXPECT_EQ(mine[8], 31u);
    EXPECT_EQ(mine[9], ~0u);
  }
}

__global__ void HalfWarp(int* out) {
  const int lane = threadIdx.x;
  int value = -1;
  if (lane < 16) {
    value = __shfl_sync(0xffffu, lane * 2, 3);
  } else {
    value = __shfl_sync(0xffff0000u, lane * 3, 20);
  }
  __syncwarp();
  out[lane] = value;
}
TEST_F(DeviceCode, ShufflesInDivergedWarps) {
  DeviceArray<int> out(32);
  HalfWarp<<<1, 32>>>(out.get());
  const std::vector<int> values = out.Read();
  for (int i = 0; i < 32; ++i) EXPECT_EQ(values[i], i < 16 ? 6 : 60) << i;
}

// --- "Atomic Functions" ---

struct Totals {
  int sum, maximum, minimum, exchanged, inc, ors, ands, xors, cas;
  unsigned long long wide;
  float real;
  double twice;
};
__global__ void Atomics(Totals* t) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&t->sum, i);
  atomicMax(&t->maximum, i * 5 % 1001);
  atomicMin(&t->minimum, i * 5 % 1001 - 500);
  atomicExch(&t->exchanged, 1);
  atomicInc(reinterpret_cast<unsigned*>(&t->inc), 99);
  atomicOr(&t->ors, 1 << (i % 31));
  atomicAnd(&t->ands, ~(1 << (i % 20)));
  atomicXor(&t->xors, i);
  atomicAdd(&t->wide, 1ull << 33);
  atomicAdd(&t->real, 1.0f);
  atomicAdd(&t->twice, 0.5);
  int seen = t->cas, assumed;
  do {
    assumed = seen;
    seen = atomicCAS(&t->cas, assumed, assumed + 2);
  } while (seen != assumed);
}
TEST_F(DeviceCode, Atomics) {
  Totals start = {};
  start.minimum = 1 << 30;
  start.ands = -1;
  DeviceArray<Totals> totals(std::vector<Totals>{start});
  constexpr int kThreads = 8 * 128;
  Atomics<<<8, 128>>>(totals.get());
  const Totals t = totals.Read()[0];
  EXPECT_EQ(t.sum, kThreads * (kThreads - 1) / 2);
  EXPECT_EQ(t.maximum, 1000);
  EXPECT_EQ(t.minimum, -500);
  EXPECT_EQ(t.exchanged, 1);
  EXPECT_EQ(t.inc, kThreads % 100);
  EXPECT_EQ(t.ors, 0x7fffffff);
  EXPECT_EQ(t.ands, ~0xfffff);
  EXPECT_EQ(t.xors, 0);
  EXPECT_EQ(t.wide, static_cast<unsigned long long>(kThreads) << 33);
  EXPECT_EQ(t.real, static_cast<float>(kThreads));
  EXPECT_EQ(t.twice, kThreads / 2);
  EXPECT_EQ(t.cas, 2 * kThreads);
}

__global__ void SharedAtomics(const unsigned char* in, int n, unsigned* histogram) {
  __shared__ unsigned bins[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&bins[in[i]], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&histogram[i], bins[i]);
}
TEST_F(DeviceCode, Histogram) {
  std::vector<unsigned char> values(30000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<unsigned char>(i * i % 251);
  DeviceArray<unsigned char> in(values);
  DeviceArray<unsigned> histogram(std::vector<unsigned>(256, 0));
  SharedAtomics<<<7, 96>>>(in.get(), static_cast<int>(values.size()), histogram.get());
  std::vector<unsigned> wanted(256, 0);
  for (unsigned char v : values) ++wanted[v];
  EXPECT_EQ(histogram.Read(), wanted);
}

// --- Functions ---

__device__ __noinline__ int Fibonacci(int n) {
  return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2);
}
__global__ void Recursive(int* out) { out[threadIdx.x] = Fibonacci(threadIdx.x % 12); }
// "Function parameters and calls": device functions may be recursive.
TEST_F(DeviceCode, Recursion) {
  DeviceArray<int> out(64);
  Recursive<<<1, 64>>>(out.get());
  const std::vector<int> values = out.Read();
  const std::function<int(int)> fibonacci = [&](int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
  };
  for (int i = 0; i < 64; ++i) ASSERT_EQ(values[i], fibonacci(i % 12)) << i;
}

__device__ int AddOne(int x) { return x + 1; }
__device__ int Twice(int x) { return 2 * x; }
__device__ int Negate(int x) { return -x; }
__device__ int (*const kTable[3])(int) = {AddOne, Twice, Negate};
__global__ void Indirect(int* out) { out[threadIdx.x] = kTable[threadIdx.x % 3](threadIdx.x); }
// "Function Pointers".
TEST_F(DeviceCode, FunctionPointers) {
  DeviceArray<int> out(96);
  Indirect<<<1, 96>>>(out.get());
  const std::vector<int> values = out.Read();
  for (int i = 0; i < 96; ++i) {
    ASSERT_EQ(values[i], i % 3 == 0 ? i + 1 : i % 3 == 1 ? 2 * i : -i) << i;
  }
}

struct Matrix {
  float m[3][3];
  int tag;
};
__global__ void ByValue(Matrix a, const Matrix* b, float* out) {
  const int i = threadIdx.x / 3, j = threadIdx.x % 3;
  float sum = 0;
  for (int k = 0; k < 3; ++k) sum += a.m[i][k] * b->m[k][j];
  out[threadIdx.x] = sum + a.tag;
}
// "__global__ Function Parameters": passed by value.
TEST_F(DeviceCode, StructsByValue) {
  Matrix a, b;
  for (int i = 0; i < 9; ++i) {
    a.m[i / 3][i % 3] = static_cast<float>(i);
    b.m[i / 3][i % 3] = static_cast<float>(i * i);
  }
  a.tag = 100;
  b.tag = 0;
  DeviceArray<Matrix> device(std::vector<Matrix>{b});
  DeviceArray<float> out(9);
  ByValue<<<1, 9>>>(a, device.get(), out.get());
  const std::vector<float> values = out.Read();
  for (int i = 0; i < 9; ++i) {
    float sum = 0;
    for (int k = 0; k < 3; ++k) sum += a.m[i / 3][k] * b.m[k][i % 3];
    EXPECT_EQ(values[i], sum + 100) << i;
  }
}

__global__ void LocalArrays(int* out, int n) {
  int stack[32];
  for (int i = 0; i < 32; ++i) stack[i] = i * threadIdx.x;
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += stack[(i * 7 + threadIdx.x) % 32];
  out[threadIdx.x] = sum;
}
TEST_F(DeviceCode, LocalMemory) {
  DeviceArray<int> out(64);
  LocalArrays<<<1, 64>>>(out.get(), 50);
  const std::vector<int> values = out.Read();
  for (int t = 0; t < 64; ++t) {
    int sum = 0;
    for (int i = 0; i < 50; ++i) sum += (i * 7 + t) % 32 * t;
    ASSERT_EQ(values[t], sum) << t;
  }
}

__global__ void Diverge(int* out) {
  int steps = 0;
  for (unsigned x = threadIdx.x + 1; x != 1; x = x % 2 ? 3 * x + 1 : x / 2) ++steps;
  switch (threadIdx.x % 5) {
    case 0:
      steps += 1000;
      break;
    case 2:
      if (steps % 2) steps = -steps;
      break;
    case 3:
      return;
    default:
      break;
  }
  out[threadIdx.x] = steps;
}
TEST_F(DeviceCode, DivergentLoopsAndExits) {
  DeviceArray<int> out(std::vector<int>(200, 7));
  Diverge<<<1, 200>>>(out.get());
  const std::vector<int> values = out.Read();
  for (int t = 0; t < 200; ++t) {
    int steps = 0;
    for (unsigned x = t + 1; x != 1; x = x % 2 ? 3 * x + 1 : x / 2) ++steps;
    if (t % 5 == 0) steps += 1000;
    if (t % 5 == 2 && steps % 2) steps = -steps;
    ASSERT_EQ(values[t], t % 5 == 3 ? 7 : steps) << t;
  }
}

// --- Numbers ---

__global__ void Integers(const int* a, const int* b, long long* out) {
  const int i = threadIdx.x;
  const unsigned ua = a[i], ub = b[i];
  long long* o = out + 12 * i;
  o[0] = a[i] / b[i];
  o[1] = a[i] % b[i];
  o[2] = ua / ub;
  o[3] = __mulhi(a[i], b[i]);
  o[4] = __umulhi(ua, ub);
  o[5] = __popc(ua);
  o[6] = __clz(a[i]);
  o[7] = __ffs(a[i]);
  o[8] = __brev(ua);
  o[9] = static_cast<long long>(a[i]) * b[i];
  o[10] = a[i] >> (ub % 32);
  o[11] = __byte_perm(ua, ub, 0x5140);
}
// "Integer Intrinsics" of the CUDA Math API.
TEST_F(DeviceCode, IntegerArithmetic) {
  const std::vector<int> a = {0, 1, -1, 12345, -98765, 2147483647, -2147483647 - 1, 77};
  const std::vector<int> b = {1, -3, 7, 100, -17, 3, 5, -2147483647 - 1};
  DeviceArray<int> da(a), db(b);
  DeviceArray<long long> out(12 * a.size());
  Integers<<<1, static_cast<unsigned>(a.size())>>>(da.get(), db.get(), out.get());
  const std::vector<long long> values = out.Read();
  for (size_t i = 0; i < a.size(); ++i) {
    const unsigned ua = a[i], ub = b[i];
    const long long* o = &values[12 * i];
    EXPECT_EQ(o[0], a[i] / b[i]);
    EXPECT_EQ(o[1], a[i] % b[i]);
    EXPECT_EQ(o[2], ua / ub);
    EXPECT_EQ(o[3], static_cast<long long>(a[i]) * b[i] >> 32);
    EXPECT_EQ(o[4], static_cast<long long>(static_cast<unsigned long long>(ua) * ub >> 32));
    EXPECT_EQ(o[5], __builtin_popcount(ua));
    EXPECT_EQ(o[6], ua == 0 ? 32 : __builtin_clz(ua));
    EXPECT_EQ(o[7], __builtin_ffs(a[i]));
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= (ua >> bit & 1u) << (31 - bit);
    EXPECT_EQ(o[8], reversed);
    EXPECT_EQ(o[9], static_cast<long long>(a[i]) * b[i]);
    EXPECT_EQ(o[10], a[i] >> (ub % 32));
    const unsigned bytes =
        (ua & 0xff) | (ub & 0xff) << 8 | (ua >> 8 & 0xff) << 16 | (ub >> 8 & 0xff) << 24;
    EXPECT_EQ(o[11], bytes);
  }
}

__global__ void Floats(const float* a, const float* b, float* out, int n) {
  const int i = threadIdx.x;
  float* o = out + 8 * i;
  if (i >= n) return;
  o[0] = __fadd_rn(a[i], b[i]);
  o[1] = __fmul_rn(a[i], b[i]);
  o[2] = __fdiv_rn(a[i], b[i]);
  o[3] = __fsqrt_rn(fabsf(a[i]));
  o[4] = __fmaf_rn(a[i], b[i], 1.0f);
  o[5] = __fadd_rz(a[i], b[i]);
  o[6] = fminf(a[i], b[i]);
  o[7] = truncf(a[i]);
}
// "Standard Functions": these are correctly rounded (IEEE 754).
TEST_F(DeviceCode, RoundedFloatArithmetic) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> a = {1.5f, -2.75f, 1e-40f, 3.4e38f, 0.1f, -0.0f, inf, 16777217.0f};
  const std::vector<float> b = {0.3f, 7.0f, 3.0f, 10.0f, 0.7f, 5.0f, 2.0f, 1.0f / 3};
  const int n = static_cast<int>(a.size());
  DeviceArray<float> da(a), db(b), out(8 * a.size());
  Floats<<<1, 32>>>(da.get(), db.get(), out.get(), n);
  const std::vector<float> values = out.Read();
  for (int i = 0; i < n; ++i) {
    const float* o = &values[8 * i];
    const volatile float x = a[i], y = b[i];
    EXPECT_EQ(o[0], x + y) << i;
    EXPECT_EQ(o[1], x * y) << i;
    EXPECT_EQ(o[2], x / y) << i;
    EXPECT_EQ(o[3], std::sqrt(std::fabs(x))) << i;
    EXPECT_EQ(o[4], std::fma(x, y, 1.0f)) << i;
    EXPECT_LE(std::fabs(o[5]), std::fabs(x + y)) << i;
    EXPECT_EQ(o[6], std::fmin(x, y)) << i;
    EXPECT_EQ(o[7], std::trunc(x)) << i;
  }
}

__global__ void Functions(const float* x, float* out, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  float* o = out + 8 * i;
  o[0] = expf(x[i]);
  o[1] = logf(fabsf(x[i]) + 0.5f);
  o[2] = sinf(x[i]);
  o[3] = cosf(x[i]);
  o[4] = tanhf(x[i]);
  o[5] = powf(fabsf(x[i]) + 0.1f, 1.7f);
  o[6] = erff(x[i]);
  o[7] = rsqrtf(fabsf(x[i]) + 0.25f);
}
// "Mathematical Functions Appendix": the errors that the tables give, with room to spare.
TEST_F(DeviceCode, MathFunctions) {
  std::vector<float> x;
  for (int i = -15; i <= 15; ++i) x.push_back(static_cast<float>(i) * 0.37f);
  const int n = static_cast<int>(x.size());
  DeviceArray<float> in(x), out(8 * x.size());
  Functions<<<1, 32>>>(in.get(), out.get(), n);
  const std::vector<float> values = out.Read();
  for (int i = 0; i < n; ++i) {
    const double v = x[i], p = std::fabs(x[i]);
    const double wanted[] = {
        std::exp(v),
        std::log(static_cast<double>(std::fabs(x[i]) + 0.5f)),
        std::sin(v),
        std::cos(v),
        std::tanh(v),
        std::pow(static_cast<double>(std::fabs(x[i]) + 0.1f), static_cast<double>(1.7f)),
        std::erf(v),
        1 / std::sqrt(p + 0.25)};
    for (int f = 0; f < 8; ++f) {
      const double tolerance = 1e-6 * std::max(1.0, std::fabs(wanted[f]));
      EXPECT_NEAR(values[8 * i + f], wanted[f], tolerance) << "function " << f << " of " << v;
    }
  }
}

__global__ void Doubles(double* out) {
  const double x = 0.1 * (threadIdx.x + 1);
  out[threadIdx.x] = fma(x, x, sqrt(x)) / (1 + exp(-x));
}
TEST_F(DeviceCode, DoublePrecision) {
  DeviceArray<double> out(32);
  Doubles<<<1, 32>>>(out.get());
  const std::vector<double> values = out.Read();
  for (int i = 0; i < 32; ++i) {
    const double x = 0.1 * (i + 1);
    const double wanted = std::fma(x, x, std::sqrt(x)) / (1 + std::exp(-x));
    EXPECT_NEAR(values[i], wanted, 1e-14 * wanted) << i;
  }
}

// --- "Half Precision Intrinsics", "Bfloat16 Precision Intrinsics" of the CUDA Math API ---

__global__ void Halves(const float* a, const float* b, float* out, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  const __half x = __float2half(a[i]), y = __float2half(b[i]);
  float* o = out + 5 * i;
  o[0] = __half2float(x);
  o[1] = __half2float(__hadd(x, y));
  o[2] = __half2float(__hmul(x, y));
  o[3] = __half2float(__hfma(x, y, __float2half(1.0f)));
  const __half2 pair = __hadd2(__halves2half2(x, y), __halves2half2(y, y));
  o[4] = __half2float(__high2half(pair));
}
__global__ void Bfloats(const float* a, const float* b, float* out, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  const __nv_bfloat16 x = __float2bfloat16(a[i]), y = __float2bfloat16(b[i]);
  float* o = out + 4 * i;
  o[0] = __bfloat162float(x);
  o[1] = __bfloat162float(__hadd(x, y));
  o[2] = __bfloat162float(__hmul(x, y));
  o[3] = __bfloat162float(__hfma(x, y, __float2bfloat16(1.0f)));
}
// The header's conversions on the host round to nearest even as well.
TEST_F(DeviceCode, HalfPrecision) {
  const std::vector<float> a = {1.0f, 0.1f, -3.14159f, 1000.5f, 6e-5f, 65000.0f, 2049.0f, -0.3333f};
  const std::vector<float> b = {2.0f, 0.2f, 2.71828f, 0.001f, 3e-6f, 1.5f, 1.0f, 0.6667f};
  const int n = static_cast<int>(a.size());
  DeviceArray<float> da(a), db(b), out(5 * a.size());
  Halves<<<1, 32>>>(da.get(), db.get(), out.get(), n);
  const std::vector<float> values = out.Read();
  auto round = [](double v) { return __half2float(__float2half(static_cast<float>(v))); };
  for (int i = 0; i < n; ++i) {
    // Sums, products and fused sums of halves are exact in double.
    const double x = round(a[i]), y = round(b[i]);
    EXPECT_EQ(values[5 * i], x);
    EXPECT_EQ(values[5 * i + 1], round(x + y)) << i;
    EXPECT_EQ(values[5 * i + 2], round(x * y)) << i;
    EXPECT_EQ(values[5 * i + 3], __half2float(__double2half(x * y + 1.0))) << i;
    EXPECT_EQ(values[5 * i + 4], round(y + y)) << i;
  }
}
TEST_F(DeviceCode, BfloatPrecision) {
  const std::vector<float> a = {1.0f, 0.1f, -3.14159f, 1000.5f, 6e-5f, 65000.0f, 257.0f, -0.3333f};
  const std::vector<float> b = {2.0f, 0.2f, 2.71828f, 0.001f, 3e-6f, 1.5f, 1.0f, 0.6667f};
  const int n = static_cast<int>(a.size());
  DeviceArray<float> da(a), db(b), out(4 * a.size());
  Bfloats<<<1, 32>>>(da.get(), db.get(), out.get(), n);
  const std::vector<float> values = out.Read();
  auto round = [](double v) { return __bfloat162float(__double2bfloat16(v)); };
  for (int i = 0; i < n; ++i) {
    const double x = round(a[i]), y = round(b[i]);
    EXPECT_EQ(values[4 * i], x);
    EXPECT_EQ(values[4 * i + 1], round(x + y)) << i;
    EXPECT_EQ(values[4 * i + 2], round(x * y)) << i;
    EXPECT_EQ(values[4 * i + 3], round(x * y + 1.0)) << i;
  }
}

// --- "Vector Types", "Read-Only Data Cache Load Function" ---

__global__ void Vectors(const float4* in, float4* out, const int2* pairs, int* sums) {
  const float4 v = __ldg(&in[threadIdx.x]);
  out[threadIdx.x] = make_float4(v.w, v.z, v.y, v.x);
  const int2 p = pairs[threadIdx.x];
  sums[threadIdx.x] = p.x + p.y;
}
TEST_F(DeviceCode, VectorLoads) {
  std::vector<float4> values(40);
  std::vector<int2> pairs(40);
  for (int i = 0; i < 40; ++i) {
    values[i] = make_float4(i, i + 0.25f, i + 0.5f, i + 0.75f);
    pairs[i] = make_int2(i, 1000 * i);
  }
  DeviceArray<float4> in(values), out(values.size());
  DeviceArray<int2> device_pairs(pairs);
  DeviceArray<int> sums(pairs.size());
  Vectors<<<1, 40>>>(in.get(), out.get(), device_pairs.get(), sums.get());
  const std::vector<float4> result = out.Read();
  const std::vector<int> added = sums.Read();
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(result[i].x, i + 0.75f);
    EXPECT_EQ(result[i].w, static_cast<float>(i));
    EXPECT_EQ(added[i], 1001 * i);
  }
}

// --- "Memory Fence Functions": the last block sees what the others wrote ---

__device__ unsigned finished;
__global__ void LastBlockSums(volatile int* parts, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = static_cast<int>(blockIdx.x) + 1;
    __threadfence();
    last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += parts[i];
    *out = sum;
  }
}
TEST_F(DeviceCode, LastBlockSeesAll) {
  DeviceArray<int> parts(std::vector<int>(100, 0)), out(1);
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(cudaMemset(parts.get(), 0, parts.bytes()));
    LastBlockSums<<<100, 32>>>(parts.get(), out.get());
    EXPECT_EQ(out.Read()[0], 100 * 101 / 2);
  }
}

// --- "Formatted Output" ---

__global__ void Print(int n, double x, const char* text) {
  printf("%d of %d: %5.2f %s %llx %c%%\n", static_cast<int>(threadIdx.x), n, x * threadIdx.x, text,
         0x123456789abcull, 'z');
}
__device__ char word[] = "words";
// The output is flushed by synchronisation, lines of different threads in any order.
TEST_F(DeviceCode, Printf) {
  void* text = nullptr;
  ASSERT_OK(cudaGetSymbolAddress(&text, word));
  std::fflush(stdout);
  ::testing::internal::CaptureStdout();
  Print<<<1, 3>>>(3, 1.5, static_cast<const char*>(text));
  const cudaError_t e = cudaDeviceSynchronize();
  std::fflush(stdout);
  const std::string output = ::testing::internal::GetCapturedStdout();
  ASSERT_OK(e);
  size_t bytes = 0;
  for (int i = 0; i < 3; ++i) {
    char line[100];
    std::snprintf(line, sizeof(line), "%d of 3: %5.2f words 123456789abc z%%\n", i, 1.5 * i);
    EXPECT_NE(output.find(line), std::string::npos) << line << " in " << output;
    bytes += std::strlen(line);
  }
  EXPECT_EQ(output.size(), bytes);
}

}  // namespace
