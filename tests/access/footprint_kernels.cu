// Kernels in the shapes that trainers have, for the test of footprints. Each writes `out`; what it
// reads is of no interest.
#include <cstdint>

extern "C" {

__global__ void guarded(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * 2;
}

__global__ void guarded_unsigned(float* out, const float* in, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = in[i] + 1;
}

__global__ void guarded_long(double* out, long long n) {
  long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 3;
}

__global__ void grid_stride(float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = 1;
}

__global__ void block_per_row(float* out, const float* in, int columns) {
  const float* x = in + blockIdx.x * columns;
  float* y = out + blockIdx.x * columns;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) y[c] = x[c] + 1;
}

__global__ void warp_per_row(float* out, const float* in, int rows, int columns) {
  int warps = blockDim.x / 32;
  int row = blockIdx.x * warps + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
  for (int c = lane; c < columns; c += 32) sum += in[row * columns + c];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  for (int c = lane; c < columns; c += 32) out[row * columns + c] = in[row * columns + c] / sum;
}

__global__ void thread_per_row(float* out, const float* in, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    for (int c = 0; c < columns; ++c) out[row * columns + c] = in[c];
  }
}

__global__ void matmul(float* out, const float* a, const float* b, int m, int n, int k) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && column < n) {
    float sum = 0;
    for (int l = 0; l < k; ++l) sum += a[row * k + l] * b[l * n + column];
    out[row * n + column] = sum;
  }
}

__global__ void matmul_tiled(float* out, const float* a, const float* b, int m, int n, int k) {
  __shared__ float ta[16][16], tb[16][16];
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int l = 0; l < k; l += 16) {
    int ak = l + threadIdx.x, bk = l + threadIdx.y;
    ta[threadIdx.y][threadIdx.x] = row < m && ak < k ? a[row * k + ak] : 0;
    tb[threadIdx.y][threadIdx.x] = bk < k && column < n ? b[bk * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) out[row * n + column] = sum;
}

__global__ void transpose(float* out, const float* in, int rows, int columns) {
  int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows && c < columns) out[c * rows + r] = in[r * columns + c];
}

__global__ void permute(float* out, const float* in, int b, int n, int heads, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < b * n * heads * d) {
    int batch = i / (heads * n * d), rest = i % (heads * n * d);
    int head = rest / (n * d);
    rest %= n * d;
    int row = rest / d, column = rest % d;
    out[batch * n * heads * d + row * heads * d + head * d + column] = in[i];
  }
}

__global__ void vectors(float4* out, const float4* in, int n4) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n4) out[i] = in[i];
}

__global__ void four_each(float* out, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (i + k < n) out[i + k] = k;
  }
}

__global__ void both_sides(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    if (i % 3 == 0)
      out[i] = in[i];
    else
      out[i] = -in[i];
  }
}

__global__ void fixed_division(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[(i / 12) * 12 + (11 - i % 12)] = 1;
}

__global__ void one_result(float* out, const float* in, int n) {
  __shared__ float partial[256];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += in[i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

struct Args {
  float* out;
  const float* in;
  int n;
};
__global__ void in_struct(Args args) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < args.n) args.out[i] = args.in[i];
}

__global__ void bytes(uint8_t* out, short n) {
  short i = static_cast<short>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[n - 1 - i] = 7;
}

__global__ void reversed(float* out, int n) {
  for (int i = n - 1 - (blockIdx.x * blockDim.x + threadIdx.x); i >= 0;
       i -= gridDim.x * blockDim.x) {
    out[i] = 2;
  }
}

// --- What must not be taken for coverage ---

__global__ void data_guard(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] > 0.5f) out[i] = 1;
}

__global__ void early_end(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (in[0] > 0.5f) return;
  if (i < n) out[i] = 1;
}

__global__ void broken_loop(float* out, const float* in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    if (in[i] > 0.9f) break;
    out[i] = 1;
  }
}

__global__ void scatter(float* out, const int* index, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[index[i] % n] = 1;
}

__global__ void every_other(float* out, int n) {
  int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = 1;
}

__global__ void off_by_one(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n - 1) out[i] = 1;
}

__global__ void wrapping(float* out, unsigned start, int n) {
  unsigned i = start + blockIdx.x * blockDim.x + threadIdx.x;  // may pass 2^32
  if (i < static_cast<unsigned>(n)) out[i] = 1;
}

__global__ void narrow_index(float* out, int n) {
  unsigned char i = static_cast<unsigned char>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = 1;
}

__device__ __noinline__ void leave(const float* in) {
  if (in[0] > 0.5f) asm volatile("exit;");
}
__global__ void leaves_inside(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  leave(in);
  if (i < n) out[i] = 1;
}

}  // extern "C"
