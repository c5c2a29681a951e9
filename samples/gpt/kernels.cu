#include "kernels.h"
#include "tensor.h"

namespace {

constexpr int kThreads = 128;

int Blocks(int count) { return (count + kThreads - 1) / kThreads; }

void CheckLaunch() { CUDA_CHECK(cudaGetLastError()); }

__device__ inline float WarpSum(float x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}

__device__ inline float WarpMax(float x) {
  for (int offset = 16; offset > 0; offset /= 2) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, offset));
  }
  return x;
}

// Philox 2x32-10: a counter-based generator (Salmon et al., SC 2011).
__device__ inline uint32_t Philox(uint64_t seed, uint64_t counter) {
  uint32_t key = static_cast<uint32_t>(seed) ^ static_cast<uint32_t>(seed >> 32);
  uint32_t x0 = static_cast<uint32_t>(counter), x1 = static_cast<uint32_t>(counter >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint32_t high = __umulhi(0xD256D193u, x0), low = 0xD256D193u * x0;
    x0 = high ^ key ^ x1;
    x1 = low;
    key += 0x9E3779B9u;
  }
  return x0;
}

__global__ void EmbeddingForwardKernel(float* out, const int* tokens, const float* token_table,
                                       const float* position_table, int rows, int sequence,
                                       int channels) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * channels) return;
  const int row = i / channels, c = i % channels;
  out[i] = token_table[tokens[row] * channels + c] + position_table[row % sequence * channels + c];
}

__global__ void TokenBackwardKernel(float* d_table, const float* d_out, const int* tokens, int rows,
                                    int channels, int vocabulary) {
  const int token = blockIdx.x, c = threadIdx.x;
  if (token >= vocabulary || c >= channels) return;
  float sum = 0;
  for (int row = 0; row < rows; ++row) {
    if (tokens[row] == token) sum += d_out[row * channels + c];
  }
  d_table[token * channels + c] = sum;
}

__global__ void PositionBackwardKernel(float* d_table, const float* d_out, int rows, int sequence,
                                       int channels) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= sequence * channels) return;
  float sum = 0;
  for (int row = i / channels; row < rows; row += sequence) {
    sum += d_out[row * channels + i % channels];
  }
  d_table[i] = sum;
}

// One warp per row.
__global__ void LayerNormForwardKernel(float* out, float* mean, float* rstd, const float* in,
                                       const float* gain, const float* bias, int rows,
                                       int channels) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* x = in + row * channels;
  float sum = 0;
  for (int c = lane; c < channels; c += 32) sum += x[c];
  const float m = WarpSum(sum) / channels;
  float square = 0;
  for (int c = lane; c < channels; c += 32) square += (x[c] - m) * (x[c] - m);
  const float r = rsqrtf(WarpSum(square) / channels + 1e-5f);
  for (int c = lane; c < channels; c += 32) {
    out[row * channels + c] = (x[c] - m) * r * gain[c] + bias[c];
  }
  if (lane == 0) {
    mean[row] = m;
    rstd[row] = r;
  }
}

__global__ void LayerNormInputBackwardKernel(float* d_in, const float* d_out, const float* in,
                                             const float* mean, const float* rstd,
                                             const float* gain, int rows, int channels) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float m = mean[row], r = rstd[row];
  float sum = 0, sum_hat = 0;
  for (int c = lane; c < channels; c += 32) {
    const float hat = (in[row * channels + c] - m) * r;
    const float d_hat = d_out[row * channels + c] * gain[c];
    sum += d_hat;
    sum_hat += d_hat * hat;
  }
  sum = WarpSum(sum) / channels;
  sum_hat = WarpSum(sum_hat) / channels;
  for (int c = lane; c < channels; c += 32) {
    const float hat = (in[row * channels + c] - m) * r;
    const float d_hat = d_out[row * channels + c] * gain[c];
    d_in[row * channels + c] = r * (d_hat - sum - hat * sum_hat);
  }
}

__global__ void LayerNormParameterBackwardKernel(float* d_gain, float* d_bias, const float* d_out,
                                                 const float* in, const float* mean,
                                                 const float* rstd, int rows, int channels) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= channels) return;
  float gain = 0, bias = 0;
  for (int row = 0; row < rows; ++row) {
    const float d = d_out[row * channels + c];
    gain += d * (in[row * channels + c] - mean[row]) * rstd[row];
    bias += d;
  }
  d_gain[c] = gain;
  d_bias[c] = bias;
}

// C[M,N] = op(A) op(B) (+ bias): 32x32 tiles in shared memory, 4 rows of results per thread.
constexpr int kTile = 32;
template <bool kTransposeA, bool kTransposeB, bool kBias>
__global__ void MatmulKernel(float* c, const float* a, const float* b, const float* bias, int m,
                             int n, int k) {
  __shared__ float tile_a[kTile][kTile + 1];
  __shared__ float tile_b[kTile][kTile + 1];
  const int column = blockIdx.x * kTile + threadIdx.x;
  const int row = blockIdx.y * kTile + threadIdx.y;
  float sum[4] = {0, 0, 0, 0};
  for (int start = 0; start < k; start += kTile) {
    for (int i = 0; i < 4; ++i) {
      const int y = threadIdx.y + 8 * i;
      if (kTransposeA) {  // A is [K,M]
        const int kk = start + y, mm = blockIdx.y * kTile + threadIdx.x;
        tile_a[threadIdx.x][y] = kk < k && mm < m ? a[kk * m + mm] : 0;
      } else {
        const int mm = blockIdx.y * kTile + y, kk = start + threadIdx.x;
        tile_a[y][threadIdx.x] = kk < k && mm < m ? a[mm * k + kk] : 0;
      }
      if (kTransposeB) {  // B is [N,K]
        const int nn = blockIdx.x * kTile + y, kk = start + threadIdx.x;
        tile_b[threadIdx.x][y] = kk < k && nn < n ? b[nn * k + kk] : 0;
      } else {
        const int kk = start + y;
        tile_b[y][threadIdx.x] = kk < k && column < n ? b[kk * n + column] : 0;
      }
    }
    __syncthreads();
    for (int kk = 0; kk < kTile; ++kk) {
      const float value = tile_b[kk][threadIdx.x];
      for (int i = 0; i < 4; ++i) sum[i] += tile_a[threadIdx.y + 8 * i][kk] * value;
    }
    __syncthreads();
  }
  if (column >= n) return;
  const float add = kBias ? bias[column] : 0;
  for (int i = 0; i < 4; ++i) {
    if (row + 8 * i < m) c[(row + 8 * i) * n + column] = sum[i] + add;
  }
}

__global__ void ColumnSumKernel(float* out, const float* in, int rows, int columns) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= columns) return;
  float sum = 0;
  for (int row = 0; row < rows; ++row) sum += in[row * columns + c];
  out[c] = sum;
}

// One warp per (batch, head, query): scores over the keys up to the query, softmax, weighted
// values.
__global__ void AttentionForwardKernel(float* out, float* scores, const float* qkv, int sequence,
                                       int channels, int heads) {
  const int t = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, lane = threadIdx.x;
  const int size = channels / heads;
  const float scale = rsqrtf(static_cast<float>(size));
  const float* q = qkv + (batch * sequence + t) * 3 * channels + head * size;
  float* row = scores + ((batch * heads + head) * sequence + t) * sequence;
  float most = -1e30f;
  for (int s = lane; s < sequence; s += 32) {
    float score = -1e30f;
    if (s <= t) {
      const float* key = qkv + (batch * sequence + s) * 3 * channels + channels + head * size;
      score = 0;
      for (int i = 0; i < size; ++i) score += q[i] * key[i];
      score *= scale;
    }
    row[s] = score;
    most = fmaxf(most, score);
  }
  most = WarpMax(most);
  float sum = 0;
  for (int s = lane; s < sequence; s += 32) {
    const float e = s <= t ? expf(row[s] - most) : 0;
    row[s] = e;
    sum += e;
  }
  sum = WarpSum(sum);
  for (int s = lane; s < sequence; s += 32) row[s] /= sum;
  __syncwarp();
  for (int i = lane; i < size; i += 32) {
    float value = 0;
    for (int s = 0; s <= t; ++s) {
      value += row[s] * qkv[(batch * sequence + s) * 3 * channels + 2 * channels + head * size + i];
    }
    out[(batch * sequence + t) * channels + head * size + i] = value;
  }
}

// Gradients of the scores and of the queries: one warp per (batch, head, query).
__global__ void AttentionQueryBackwardKernel(float* d_qkv, float* d_scores, const float* d_out,
                                             const float* qkv, const float* scores, int sequence,
                                             int channels, int heads) {
  const int t = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, lane = threadIdx.x;
  const int size = channels / heads;
  const float scale = rsqrtf(static_cast<float>(size));
  const float* row = scores + ((batch * heads + head) * sequence + t) * sequence;
  float* d_row = d_scores + ((batch * heads + head) * sequence + t) * sequence;
  const float* d = d_out + (batch * sequence + t) * channels + head * size;
  float dot = 0;
  for (int s = lane; s < sequence; s += 32) {
    float gradient = 0;
    if (s <= t) {
      const float* value = qkv + (batch * sequence + s) * 3 * channels + 2 * channels + head * size;
      for (int i = 0; i < size; ++i) gradient += d[i] * value[i];
    }
    d_row[s] = gradient;
    dot += gradient * row[s];
  }
  dot = WarpSum(dot);
  for (int s = lane; s < sequence; s += 32) {
    d_row[s] = s <= t ? row[s] * (d_row[s] - dot) * scale : 0;
  }
  __syncwarp();
  for (int i = lane; i < size; i += 32) {
    float sum = 0;
    for (int s = 0; s <= t; ++s) {
      sum += d_row[s] * qkv[(batch * sequence + s) * 3 * channels + channels + head * size + i];
    }
    d_qkv[(batch * sequence + t) * 3 * channels + head * size + i] = sum;
  }
}

// Gradients of the keys and values: one warp per (batch, head, key).
__global__ void AttentionKeyBackwardKernel(float* d_qkv, const float* d_scores, const float* d_out,
                                           const float* qkv, const float* scores, int sequence,
                                           int channels, int heads) {
  const int s = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, lane = threadIdx.x;
  const int size = channels / heads;
  const int matrix = (batch * heads + head) * sequence * sequence;
  for (int i = lane; i < size; i += 32) {
    float key = 0, value = 0;
    for (int t = s; t < sequence; ++t) {
      const int base = batch * sequence + t;
      key += d_scores[matrix + t * sequence + s] * qkv[base * 3 * channels + head * size + i];
      value += scores[matrix + t * sequence + s] * d_out[base * channels + head * size + i];
    }
    float* d = d_qkv + (batch * sequence + s) * 3 * channels + head * size + i;
    d[channels] = key;
    d[2 * channels] = value;
  }
}

constexpr float kGeluScale = 0.7978845608f;  // sqrt(2 / pi)

__global__ void GeluForwardKernel(float* out, const float* in, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float x = in[i];
  out[i] = 0.5f * x * (1 + tanhf(kGeluScale * (x + 0.044715f * x * x * x)));
}

__global__ void GeluBackwardKernel(float* d_in, const float* d_out, const float* in, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float x = in[i];
  const float t = tanhf(kGeluScale * (x + 0.044715f * x * x * x));
  const float slope = kGeluScale * (1 + 3 * 0.044715f * x * x);
  d_in[i] = d_out[i] * (0.5f * (1 + t) + 0.5f * x * (1 - t * t) * slope);
}

__global__ void AddKernel(float* out, const float* a, const float* b, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = a[i] + b[i];
}

__global__ void AddInPlaceKernel(float* inout, const float* in, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) inout[i] += in[i];
}

__global__ void DropoutKernel(float* out, const float* in, int count, float p, uint64_t seed,
                              uint64_t offset) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float u = Philox(seed, offset + i) * (1.0f / 4294967296.0f);
  out[i] = u < p ? 0 : in[i] / (1 - p);
}

// One warp per row.
__global__ void CrossEntropyKernel(float* losses, float* d_logits, const float* logits,
                                   const int* targets, int rows, int vocabulary) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* x = logits + row * vocabulary;
  float most = -1e30f;
  for (int v = lane; v < vocabulary; v += 32) most = fmaxf(most, x[v]);
  most = WarpMax(most);
  float sum = 0;
  for (int v = lane; v < vocabulary; v += 32) sum += expf(x[v] - most);
  sum = WarpSum(sum);
  const int target = targets[row];
  for (int v = lane; v < vocabulary; v += 32) {
    const float p = expf(x[v] - most) / sum;
    d_logits[row * vocabulary + v] = (p - (v == target ? 1.0f : 0.0f)) / rows;
  }
  if (lane == 0) losses[row] = logf(sum) + most - x[target];
}

__global__ void MeanKernel(float* out, const float* in, int count) {
  __shared__ float partial[32];
  float sum = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += in[i];
  sum = WarpSum(sum);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
    sum = WarpSum(sum);
    if (threadIdx.x == 0) *out = sum / count;
  }
}

__global__ void AdamWKernel(float* weight, float* m, float* v, const float* gradient, int count,
                            float rate, float beta1, float beta2, float epsilon, float decay,
                            float correction1, float correction2) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float g = gradient[i];
  m[i] = beta1 * m[i] + (1 - beta1) * g;
  v[i] = beta2 * v[i] + (1 - beta2) * g * g;
  const float step = (m[i] / correction1) / (sqrtf(v[i] / correction2) + epsilon);
  weight[i] -= rate * (step + decay * weight[i]);
}

__global__ void InitNormalKernel(float* out, int count, float deviation, uint64_t seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  // Irwin-Hall: the sum of twelve uniforms is close to normal, and exact arithmetic everywhere.
  float sum = -6;
  for (int k = 0; k < 12; ++k) {
    sum += Philox(seed, static_cast<uint64_t>(i) * 12 + k) * (1.0f / 4294967296.0f);
  }
  out[i] = sum * deviation;
}

__global__ void FillKernel(float* out, int count, float value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = value;
}

template <bool kTransposeA, bool kTransposeB, bool kBias>
void Matmul(float* c, const float* a, const float* b, const float* bias, int m, int n, int k) {
  const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile), block(kTile, 8);
  MatmulKernel<kTransposeA, kTransposeB, kBias><<<grid, block>>>(c, a, b, bias, m, n, k);
  CheckLaunch();
}

}  // namespace

void EmbeddingForward(float* out, const int* tokens, const float* token_table,
                      const float* position_table, int rows, int sequence, int channels) {
  EmbeddingForwardKernel<<<Blocks(rows * channels), kThreads>>>(
      out, tokens, token_table, position_table, rows, sequence, channels);
  CheckLaunch();
}

void EmbeddingBackward(float* d_token_table, float* d_position_table, const float* d_out,
                       const int* tokens, int rows, int sequence, int channels, int vocabulary) {
  TokenBackwardKernel<<<vocabulary, channels>>>(d_token_table, d_out, tokens, rows, channels,
                                                vocabulary);
  CheckLaunch();
  PositionBackwardKernel<<<Blocks(sequence * channels), kThreads>>>(d_position_table, d_out, rows,
                                                                    sequence, channels);
  CheckLaunch();
}

void LayerNormForward(float* out, float* mean, float* rstd, const float* in, const float* gain,
                      const float* bias, int rows, int channels) {
  LayerNormForwardKernel<<<(rows + 3) / 4, 128>>>(out, mean, rstd, in, gain, bias, rows, channels);
  CheckLaunch();
}

void LayerNormBackward(float* d_in, float* d_gain, float* d_bias, const float* d_out,
                       const float* in, const float* mean, const float* rstd, const float* gain,
                       int rows, int channels) {
  LayerNormInputBackwardKernel<<<(rows + 3) / 4, 128>>>(d_in, d_out, in, mean, rstd, gain, rows,
                                                        channels);
  CheckLaunch();
  LayerNormParameterBackwardKernel<<<(channels + 31) / 32, 32>>>(d_gain, d_bias, d_out, in, mean,
                                                                 rstd, rows, channels);
  CheckLaunch();
}

void LinearForward(float* out, const float* in, const float* weight, const float* bias, int rows,
                   int k, int n) {
  Matmul<false, false, true>(out, in, weight, bias, rows, n, k);
}

void LinearBackward(float* d_in, float* d_weight, float* d_bias, const float* d_out,
                    const float* in, const float* weight, int rows, int k, int n) {
  Matmul<false, true, false>(d_in, d_out, weight, nullptr, rows, k, n);
  Matmul<true, false, false>(d_weight, in, d_out, nullptr, k, n, rows);
  ColumnSumKernel<<<(n + 31) / 32, 32>>>(d_bias, d_out, rows, n);
  CheckLaunch();
}

void AttentionForward(float* out, float* scores, const float* qkv, int batch, int sequence,
                      int channels, int heads) {
  AttentionForwardKernel<<<dim3(sequence, heads, batch), 32>>>(out, scores, qkv, sequence, channels,
                                                               heads);
  CheckLaunch();
}

void AttentionBackward(float* d_qkv, float* d_scores, const float* d_out, const float* qkv,
                       const float* scores, int batch, int sequence, int channels, int heads) {
  AttentionQueryBackwardKernel<<<dim3(sequence, heads, batch), 32>>>(
      d_qkv, d_scores, d_out, qkv, scores, sequence, channels, heads);
  CheckLaunch();
  AttentionKeyBackwardKernel<<<dim3(sequence, heads, batch), 32>>>(
      d_qkv, d_scores, d_out, qkv, scores, sequence, channels, heads);
  CheckLaunch();
}

void GeluForward(float* out, const float* in, int count) {
  GeluForwardKernel<<<Blocks(count), kThreads>>>(out, in, count);
  CheckLaunch();
}

void GeluBackward(float* d_in, const float* d_out, const float* in, int count) {
  GeluBackwardKernel<<<Blocks(count), kThreads>>>(d_in, d_out, in, count);
  CheckLaunch();
}

void AddForward(float* out, const float* a, const float* b, int count) {
  AddKernel<<<Blocks(count), kThreads>>>(out, a, b, count);
  CheckLaunch();
}

void AddInPlace(float* inout, const float* in, int count) {
  AddInPlaceKernel<<<Blocks(count), kThreads>>>(inout, in, count);
  CheckLaunch();
}

void Dropout(float* out, const float* in, int count, float p, uint64_t seed, uint64_t offset) {
  DropoutKernel<<<Blocks(count), kThreads>>>(out, in, count, p, seed, offset);
  CheckLaunch();
}

void CrossEntropy(float* losses, float* d_logits, const float* logits, const int* targets, int rows,
                  int vocabulary) {
  CrossEntropyKernel<<<(rows + 3) / 4, 128>>>(losses, d_logits, logits, targets, rows, vocabulary);
  CheckLaunch();
}

void Mean(float* out, const float* in, int count) {
  MeanKernel<<<1, 256>>>(out, in, count);
  CheckLaunch();
}

void AdamW(float* weight, float* m, float* v, const float* gradient, int count, float rate,
           float beta1, float beta2, float epsilon, float decay, int step) {
  float correction1 = 1, correction2 = 1;
  for (int i = 0; i < step; ++i) {
    correction1 *= beta1;
    correction2 *= beta2;
  }
  AdamWKernel<<<Blocks(count), kThreads>>>(weight, m, v, gradient, count, rate, beta1, beta2,
                                           epsilon, decay, 1 - correction1, 1 - correction2);
  CheckLaunch();
}

void InitNormal(float* out, int count, float deviation, uint64_t seed) {
  InitNormalKernel<<<Blocks(count), kThreads>>>(out, count, deviation, seed);
  CheckLaunch();
}

void Fill(float* out, int count, float value) {
  FillKernel<<<Blocks(count), kThreads>>>(out, count, value);
  CheckLaunch();
}
