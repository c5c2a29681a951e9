// Kernels as programs have them, compiled by nvcc for the tests of the executor and its benchmark.
#include <cooperative_groups.h>

#include <cassert>
#include <cstdio>

namespace cg = cooperative_groups;

extern "C" {

// --- Dense arithmetic ---

__global__ void matmul_naive(float* c, const float* a, const float* b, int m, int n, int k) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || col >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
  c[row * n + col] = sum;
}

__global__ void matmul_tiled(float* c, const float* a, const float* b, int m, int n, int k) {
  __shared__ float as[16][16], bs[16][16];
  const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.0f;
  for (int tile = 0; tile < k; tile += 16) {
    const int ka = tile + threadIdx.x, kb = tile + threadIdx.y;
    as[threadIdx.y][threadIdx.x] = row < m && ka < k ? a[row * k + ka] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = kb < k && col < n ? b[kb * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

__global__ void layernorm(float* out, const float* in, const float* weight, const float* bias,
                          int width) {
  extern __shared__ float shared[];
  const float* x = in + (size_t)blockIdx.x * width;
  float sum = 0.0f, squares = 0.0f;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    sum += x[i];
    squares += x[i] * x[i];
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffff, sum, offset);
    squares += __shfl_xor_sync(0xffffffff, squares, offset);
  }
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  if (lane == 0) {
    shared[warp] = sum;
    shared[warp + 32] = squares;
  }
  __syncthreads();
  sum = lane < warps ? shared[lane] : 0.0f;
  squares = lane < warps ? shared[lane + 32] : 0.0f;
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_down_sync(0xffffffff, sum, offset);
    squares += __shfl_down_sync(0xffffffff, squares, offset);
  }
  sum = __shfl_sync(0xffffffff, sum, 0);
  squares = __shfl_sync(0xffffffff, squares, 0);
  const float mean = sum / width, variance = squares / width - mean * mean;
  const float scale = rsqrtf(variance + 1e-5f);
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    out[(size_t)blockIdx.x * width + i] = (x[i] - mean) * scale * weight[i] + bias[i];
  }
}

__global__ void softmax(float* out, const float* in, int width) {
  __shared__ float partial[256];
  const float* x = in + (size_t)blockIdx.x * width;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < width; i += blockDim.x) most = fmaxf(most, x[i]);
  partial[threadIdx.x] = most;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) {
      partial[threadIdx.x] = fmaxf(partial[threadIdx.x], partial[threadIdx.x + s]);
    }
    __syncthreads();
  }
  most = partial[0];
  __syncthreads();
  float sum = 0.0f;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const float e = expf(x[i] - most);
    out[(size_t)blockIdx.x * width + i] = e;
    sum += e;
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];
    __syncthreads();
  }
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    out[(size_t)blockIdx.x * width + i] /= partial[0];
  }
}

__global__ void gelu(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = in[i];
  out[i] = 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

__global__ void adam(float* p, float* m, float* v, const float* g, int n, float rate, float b1,
                     float b2, float eps, float correct1, float correct2) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  m[i] = b1 * m[i] + (1.0f - b1) * g[i];
  v[i] = b2 * v[i] + (1.0f - b2) * g[i] * g[i];
  p[i] -= rate * (m[i] / correct1) / (sqrtf(v[i] / correct2) + eps);
}

__global__ void saxpy4(float4* y, const float4* x, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 u = x[i], w = y[i];
  w.x += a * u.x;
  w.y += a * u.y;
  w.z += a * u.z;
  w.w += a * u.w;
  y[i] = w;
}

// --- Functions of libdevice ---

__global__ void math_f32(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = in[i];
  float* o = out + (size_t)i * 12;
  o[0] = expf(x);
  o[1] = logf(fabsf(x) + 0.5f);
  o[2] = sinf(x);
  o[3] = cosf(x * 1000.0f);
  o[4] = tanhf(x);
  o[5] = powf(fabsf(x) + 0.1f, 1.7f);
  o[6] = erff(x);
  o[7] = atan2f(x, 0.7f);
  o[8] = sqrtf(fabsf(x));
  o[9] = cbrtf(x);
  o[10] = floorf(x) + rintf(x * 3.0f);
  o[11] = fmodf(x * 10.0f, 1.3f);
}

__global__ void math_f64(double* out, const double* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double x = in[i];
  double* o = out + (size_t)i * 8;
  o[0] = exp(x);
  o[1] = log(fabs(x) + 0.5);
  o[2] = sin(x * 100.0);
  o[3] = pow(fabs(x) + 0.1, 1.7);
  o[4] = tanh(x);
  o[5] = erf(x);
  o[6] = sqrt(fabs(x)) / (x * x + 0.3);
  o[7] = lgamma(fabs(x) + 1.0);
}

// --- Blocks that work together ---

__global__ void reduce_atomic(float* total, int* count, const float* in, int n) {
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    sum += in[i];
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) {
    atomicAdd(total, sum);
    atomicAdd(count, 1);
  }
}

__global__ void histogram(unsigned* bins, const unsigned char* in, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[in[i]], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

// Inclusive scan of one block, by warps.
__global__ void scan(int* out, const int* in, int n) {
  __shared__ int sums[32];
  const int i = threadIdx.x, lane = i % 32, warp = i / 32;
  int value = i < n ? in[i] : 0;
  for (int d = 1; d < 32; d *= 2) {
    const int other = __shfl_up_sync(~0u, value, d);
    if (lane >= d) value += other;
  }
  if (lane == 31) sums[warp] = value;
  __syncthreads();
  if (warp == 0) {
    int s = sums[lane];
    for (int d = 1; d < 32; d *= 2) {
      const int other = __shfl_up_sync(~0u, s, d);
      if (lane >= d) s += other;
    }
    sums[lane] = s;
  }
  __syncthreads();
  if (warp > 0) value += sums[warp - 1];
  if (i < n) out[i] = value;
}

__global__ void bitonic_sort(unsigned* data, int n) {
  extern __shared__ unsigned keys[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) keys[i] = data[i];
  __syncthreads();
  for (int k = 2; k <= n; k *= 2) {
    for (int j = k / 2; j > 0; j /= 2) {
      for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const int other = i ^ j;
        if (other > i) {
          const bool up = (i & k) == 0;
          if ((keys[i] > keys[other]) == up) {
            const unsigned t = keys[i];
            keys[i] = keys[other];
            keys[other] = t;
          }
        }
      }
      __syncthreads();
    }
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = keys[i];
}

// The last block sums what all of them left: the usual counter with a fence.
__device__ unsigned blocks_done = 0;
__global__ void last_block_sum(float* out, float* partial, const float* in, int n) {
  __shared__ float sums[256];
  __shared__ bool last;
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    sum += in[i];
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (threadIdx.x < s) sums[threadIdx.x] += sums[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sums[0];
    __threadfence();
    last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float total = 0.0f;
    for (int i = 0; i < gridDim.x; ++i) total += ((volatile float*)partial)[i];
    *out = total;
  }
}

// Every thread takes the same lock: a lane must not wait for one that waits for it.
__global__ void spin_lock(int* lock, int* counter, int rounds) {
  for (int r = 0; r < rounds; ++r) {
    bool done = false;
    while (!done) {
      if (atomicCAS(lock, 0, 1) == 0) {
        *(volatile int*)counter += 1;
        __threadfence();
        atomicExch(lock, 0);
        done = true;
      }
    }
  }
}

// Each block waits for the one before it.
__global__ void chain(volatile int* flags, int* out) {
  if (threadIdx.x == 0) {
    if (blockIdx.x > 0) {
      while (flags[blockIdx.x - 1] == 0) {
      }
    }
    out[blockIdx.x] = blockIdx.x == 0 ? 1 : out[blockIdx.x - 1] + 2;
    __threadfence();
    flags[blockIdx.x] = 1;
  }
}

// Each block waits for the one behind it, which may not have started.
__global__ void reverse_chain(volatile int* flags, int* out) {
  if (threadIdx.x == 0) {
    if (blockIdx.x + 1 < gridDim.x) {
      while (flags[blockIdx.x + 1] == 0) {
      }
    }
    out[blockIdx.x] = blockIdx.x + 1 == gridDim.x ? 1 : out[blockIdx.x + 1] + 2;
    __threadfence();
    flags[blockIdx.x] = 1;
  }
}

__global__ void grid_rounds(int* a, int* b, int rounds) {
  cg::grid_group grid = cg::this_grid();
  const unsigned n = grid.size(), i = grid.thread_rank();
  for (int r = 0; r < rounds; ++r) {
    b[i] = a[(i + 1) % n] + a[i];
    grid.sync();
    a[i] = b[(i + 7) % n];
    grid.sync();
  }
}

// --- Calls ---

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__global__ void recursion(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

__device__ __noinline__ float twice(float x) { return 2.0f * x; }
__device__ __noinline__ float square(float x) { return x * x; }
__device__ __noinline__ float negate(float x) { return -x; }
typedef float (*Function)(float);
__device__ Function functions[3] = {twice, square, negate};
__global__ void function_pointers(float* out, const float* in) {
  out[threadIdx.x] = functions[threadIdx.x % 3](in[threadIdx.x]);
}

struct Options {
  char tag;
  double scale;
  float* out;
  int sizes[5];
};
__device__ __noinline__ float pick(Options options, int i) {
  return (float)(options.scale * options.sizes[i % 5]);
}
__global__ void struct_params(Options options, short add) {
  const int i = threadIdx.x;
  options.out[i] = options.sizes[i % 5] * (float)options.scale + add + options.tag;
  options.sizes[i % 5] += i;
  options.out[i] += pick(options, i);
}

__device__ __noinline__ void fill(int* where, int count, int seed) {
  for (int i = 0; i < count; ++i) where[i] = seed + i;
}
__global__ void local_arrays(int* out, int pick) {
  int a[16], b[16];
  fill(a, 16, threadIdx.x);
  fill(b, 16, 100 * threadIdx.x);
  out[threadIdx.x] = a[pick % 16] + b[(pick + threadIdx.x) % 16];
}

// --- Divergence ---

__global__ void collatz(int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = i + 1;
  int steps = 0;
  while (x != 1) {
    x = x % 2 == 0 ? x / 2 : 3 * x + 1;
    ++steps;
  }
  out[i] = steps;
}

__global__ void switches(int* out) {
  int value = 0;
  for (int i = 0; i < 10; ++i) {
    switch ((threadIdx.x + i) % 7) {
      case 0:
        value += 3;
        break;
      case 1:
        value ^= 0x55;
        break;
      case 2:
        value *= 5;
      case 3:
        value -= 11;
        break;
      case 4:
        if (value > 100) goto out;
      default:
        value += threadIdx.x;
    }
  }
out:
  out[threadIdx.x] = value;
}

// --- Text ---

__global__ void hello(const char* name) {
  if (threadIdx.x < 2) {
    printf("block %d thread %u: %s %5.2f|%-6d|%lld|%c%%\n", blockIdx.x, threadIdx.x, "text",
           1.5 * threadIdx.x, 42, 1ll << 40, 'x');
  }
}

__global__ void assertion(const int* in) { assert(in[threadIdx.x] != 7); }

__global__ void device_heap(int** out) {
  int* mine = (int*)malloc(16 * sizeof(int));
  for (int i = 0; i < 16; ++i) mine[i] = threadIdx.x * i;
  out[threadIdx.x] = mine;
  int sum = 0;
  for (int i = 0; i < 16; ++i) sum += mine[i];
  free(mine);
  out[threadIdx.x] = (int*)(size_t)sum;
}

// --- For the benchmark: many instructions of one kind ---

__global__ void spin_float(float* out, int rounds) {
  float a = threadIdx.x, b = 1.0f, c = 0.5f, d = blockIdx.x;
  for (int i = 0; i < rounds; ++i) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      a = a * 0.999f + 0.1f;
      b = b * 0.998f + a;
      c = c * b + d;
      d = d * 0.997f + 0.2f;
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}

__global__ void spin_integer(unsigned* out, int rounds) {
  unsigned a = threadIdx.x, b = blockIdx.x;
  for (int i = 0; i < rounds; ++i) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      a = a * 1664525u + b;
      b ^= a >> 7;
      b += a << 3;
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = a ^ b;
}

__global__ void copy(float* out, const float* in, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    out[i] = in[i];
  }
}

}  // extern "C"
