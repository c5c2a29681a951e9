// Kernels of the trainer, as functions that launch them on the default stream. Shapes: R rows
// (batch x sequence) of C channels, row-major.
#pragma once

#include <cstdint>

void EmbeddingForward(float* out, const int* tokens, const float* token_table,
                      const float* position_table, int rows, int sequence, int channels);
// Gathers: one thread per table entry sums its rows in order, so that the bits do not depend on
// timing.
void EmbeddingBackward(float* d_token_table, float* d_position_table, const float* d_out,
                       const int* tokens, int rows, int sequence, int channels, int vocabulary);

void LayerNormForward(float* out, float* mean, float* rstd, const float* in, const float* gain,
                      const float* bias, int rows, int channels);
void LayerNormBackward(float* d_in, float* d_gain, float* d_bias, const float* d_out,
                       const float* in, const float* mean, const float* rstd, const float* gain,
                       int rows, int channels);

// out[R,N] = in[R,K] weight[K,N] + bias[N]
void LinearForward(float* out, const float* in, const float* weight, const float* bias, int rows,
                   int k, int n);
// d_in[R,K] = d_out[R,N] weight^T; d_weight[K,N] = in^T d_out; d_bias[N] = column sums of d_out.
void LinearBackward(float* d_in, float* d_weight, float* d_bias, const float* d_out,
                    const float* in, const float* weight, int rows, int k, int n);

// qkv[R,3C] -> scores[B,H,T,T] (softmax, causal) and out[R,C]
void AttentionForward(float* out, float* scores, const float* qkv, int batch, int sequence,
                      int channels, int heads);
void AttentionBackward(float* d_qkv, float* d_scores, const float* d_out, const float* qkv,
                       const float* scores, int batch, int sequence, int channels, int heads);

void GeluForward(float* out, const float* in, int count);
void GeluBackward(float* d_in, const float* d_out, const float* in, int count);
void AddForward(float* out, const float* a, const float* b, int count);
void AddInPlace(float* inout, const float* in, int count);

// Drops each element with probability p: a pure function of (seed, offset + index).
void Dropout(float* out, const float* in, int count, float p, uint64_t seed, uint64_t offset);

// losses[R] = -log softmax(logits)[target]; d_logits = (softmax - onehot) / R
void CrossEntropy(float* losses, float* d_logits, const float* logits, const int* targets, int rows,
                  int vocabulary);
// *out = mean of in[count], summed in a fixed order
void Mean(float* out, const float* in, int count);

void AdamW(float* weight, float* m, float* v, const float* gradient, int count, float rate,
           float beta1, float beta2, float epsilon, float decay, int step);
void InitNormal(float* out, int count, float deviation, uint64_t seed);
void Fill(float* out, int count, float value);
