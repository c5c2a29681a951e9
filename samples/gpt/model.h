// A character-level GPT: parameters, one training step, and digests of the result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor.h"

struct Config {
  std::string data = "/usr/share/common-licenses/GPL-3";
  int steps = 3;
  int batch = 16;
  int sequence = 64;
  int layers = 6;
  int heads = 4;
  int channels = 32;
  float rate = 1e-3f;
  float dropout = 0.1f;
  uint64_t seed = 1337;
};

// A parameter with its gradient and the optimizer's state.
struct Parameter {
  std::string name;
  Tensor value, gradient, m, v;
};

struct LayerParameters {
  Parameter norm1_gain, norm1_bias, qkv_weight, qkv_bias, projection_weight, projection_bias;
  Parameter norm2_gain, norm2_bias, up_weight, up_bias, down_weight, down_bias;
};

// What the backward pass needs of one layer's forward pass; freed as soon as it has used it.
struct LayerActivations {
  Tensor input;  // of the layer
  Tensor norm1, mean1, rstd1, qkv, scores, attention, middle;
  Tensor norm2, mean2, rstd2, up, gelu;
};

class Model {
 public:
  Model(const Config& config, int vocabulary);

  // One step on tokens and targets [batch x sequence]; returns the loss before the update.
  float Step(const std::vector<int>& tokens, const std::vector<int>& targets, int step);

  size_t parameter_count() const;
  // FNV-1a over all bytes, in the order of the parameters.
  uint64_t ParameterDigest();
  uint64_t GradientDigest();

 private:
  Parameter Make(const std::string& name, int count, float deviation, float fill);
  std::vector<Parameter*> Parameters();
  Tensor LayerForward(LayerParameters& p, LayerActivations& a, Tensor input, int layer, int step);
  Tensor LayerBackward(LayerParameters& p, LayerActivations& a, Tensor d_out, int layer, int step);
  uint64_t DropoutOffset(int step, int layer, int place) const;
  uint64_t Digest(bool gradients);

  Config config_;
  int vocabulary_;
  int rows_;
  Parameter tokens_, positions_, norm_gain_, norm_bias_, head_weight_, head_bias_;
  std::vector<LayerParameters> layers_;
  Buffer<int> input_, targets_;
};
