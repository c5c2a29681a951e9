#include "kernels.h"
#include "model.h"

size_t DeviceBytes::now = 0;
size_t DeviceBytes::peak = 0;

namespace {

uint64_t Fnv(const std::vector<float>& data, uint64_t hash) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(data.data());
  for (size_t i = 0; i < data.size() * sizeof(float); ++i) {
    hash = (hash ^ bytes[i]) * 0x100000001b3ull;
  }
  return hash;
}

}  // namespace

Model::Model(const Config& config, int vocabulary)
    : config_(config), vocabulary_(vocabulary), rows_(config.batch * config.sequence) {
  const int c = config.channels;
  const float deviation = 0.05f;
  tokens_ = Make("tokens", vocabulary * c, deviation, 0);
  positions_ = Make("positions", config.sequence * c, deviation, 0);
  for (int i = 0; i < config.layers; ++i) {
    const std::string n = "layer" + std::to_string(i) + ".";
    LayerParameters p;
    p.norm1_gain = Make(n + "norm1.gain", c, 0, 1);
    p.norm1_bias = Make(n + "norm1.bias", c, 0, 0);
    p.qkv_weight = Make(n + "qkv.weight", c * 3 * c, deviation, 0);
    p.qkv_bias = Make(n + "qkv.bias", 3 * c, 0, 0);
    p.projection_weight = Make(n + "projection.weight", c * c, deviation, 0);
    p.projection_bias = Make(n + "projection.bias", c, 0, 0);
    p.norm2_gain = Make(n + "norm2.gain", c, 0, 1);
    p.norm2_bias = Make(n + "norm2.bias", c, 0, 0);
    p.up_weight = Make(n + "up.weight", c * 4 * c, deviation, 0);
    p.up_bias = Make(n + "up.bias", 4 * c, 0, 0);
    p.down_weight = Make(n + "down.weight", 4 * c * c, deviation, 0);
    p.down_bias = Make(n + "down.bias", c, 0, 0);
    layers_.push_back(std::move(p));
  }
  norm_gain_ = Make("norm.gain", c, 0, 1);
  norm_bias_ = Make("norm.bias", c, 0, 0);
  head_weight_ = Make("head.weight", c * vocabulary, deviation, 0);
  head_bias_ = Make("head.bias", vocabulary, 0, 0);
  input_ = Buffer<int>(rows_);
  targets_ = Buffer<int>(rows_);
}

Parameter Model::Make(const std::string& name, int count, float deviation, float fill) {
  Parameter p;
  p.name = name;
  p.value = Tensor(count);
  p.gradient = Tensor(count);
  p.m = Tensor(count);
  p.v = Tensor(count);
  uint64_t seed = config_.seed;
  for (char letter : name) seed = seed * 1099511628211ull + static_cast<unsigned char>(letter);
  if (deviation > 0) {
    InitNormal(p.value.data(), count, deviation, seed);
  } else {
    Fill(p.value.data(), count, fill);
  }
  CUDA_CHECK(cudaMemset(p.gradient.data(), 0, p.gradient.bytes()));
  CUDA_CHECK(cudaMemset(p.m.data(), 0, p.m.bytes()));
  CUDA_CHECK(cudaMemset(p.v.data(), 0, p.v.bytes()));
  return p;
}

std::vector<Parameter*> Model::Parameters() {
  std::vector<Parameter*> all = {&tokens_, &positions_};
  for (LayerParameters& p : layers_) {
    for (Parameter* q : {&p.norm1_gain, &p.norm1_bias, &p.qkv_weight, &p.qkv_bias,
                         &p.projection_weight, &p.projection_bias, &p.norm2_gain, &p.norm2_bias,
                         &p.up_weight, &p.up_bias, &p.down_weight, &p.down_bias}) {
      all.push_back(q);
    }
  }
  for (Parameter* q : {&norm_gain_, &norm_bias_, &head_weight_, &head_bias_}) all.push_back(q);
  return all;
}

size_t Model::parameter_count() const {
  size_t count = 0;
  for (const Parameter* p : const_cast<Model*>(this)->Parameters()) count += p->value.count();
  return count;
}

uint64_t Model::DropoutOffset(int step, int layer, int place) const {
  const auto index = (static_cast<uint64_t>(step) * config_.layers + layer) * 2 + place;
  return index * rows_ * config_.channels;
}

Tensor Model::LayerForward(LayerParameters& p, LayerActivations& a, Tensor input, int layer,
                           int step) {
  const int c = config_.channels, r = rows_;
  const size_t size = static_cast<size_t>(r) * c;
  a.input = std::move(input);
  a.norm1 = Tensor(size);
  a.mean1 = Tensor(r);
  a.rstd1 = Tensor(r);
  LayerNormForward(a.norm1.data(), a.mean1.data(), a.rstd1.data(), a.input.data(),
                   p.norm1_gain.value.data(), p.norm1_bias.value.data(), r, c);
  a.qkv = Tensor(3 * size);
  LinearForward(a.qkv.data(), a.norm1.data(), p.qkv_weight.value.data(), p.qkv_bias.value.data(), r,
                c, 3 * c);
  a.scores = Tensor(static_cast<size_t>(config_.batch) * config_.heads * config_.sequence *
                    config_.sequence);
  a.attention = Tensor(size);
  AttentionForward(a.attention.data(), a.scores.data(), a.qkv.data(), config_.batch,
                   config_.sequence, c, config_.heads);
  Tensor projected(size);
  LinearForward(projected.data(), a.attention.data(), p.projection_weight.value.data(),
                p.projection_bias.value.data(), r, c, c);
  Tensor dropped(size);
  Dropout(dropped.data(), projected.data(), static_cast<int>(size), config_.dropout, config_.seed,
          DropoutOffset(step, layer, 0));
  projected.Release();
  a.middle = Tensor(size);
  AddForward(a.middle.data(), a.input.data(), dropped.data(), static_cast<int>(size));
  dropped.Release();

  a.norm2 = Tensor(size);
  a.mean2 = Tensor(r);
  a.rstd2 = Tensor(r);
  LayerNormForward(a.norm2.data(), a.mean2.data(), a.rstd2.data(), a.middle.data(),
                   p.norm2_gain.value.data(), p.norm2_bias.value.data(), r, c);
  a.up = Tensor(4 * size);
  LinearForward(a.up.data(), a.norm2.data(), p.up_weight.value.data(), p.up_bias.value.data(), r, c,
                4 * c);
  a.gelu = Tensor(4 * size);
  GeluForward(a.gelu.data(), a.up.data(), static_cast<int>(4 * size));
  Tensor down(size);
  LinearForward(down.data(), a.gelu.data(), p.down_weight.value.data(), p.down_bias.value.data(), r,
                4 * c, c);
  Tensor out(size);
  Dropout(out.data(), down.data(), static_cast<int>(size), config_.dropout, config_.seed,
          DropoutOffset(step, layer, 1));
  AddInPlace(out.data(), a.middle.data(), static_cast<int>(size));
  return out;
}

Tensor Model::LayerBackward(LayerParameters& p, LayerActivations& a, Tensor d_out, int layer,
                            int step) {
  const int c = config_.channels, r = rows_;
  const size_t size = static_cast<size_t>(r) * c;
  const int count = static_cast<int>(size);

  Tensor d_down(size);
  Dropout(d_down.data(), d_out.data(), count, config_.dropout, config_.seed,
          DropoutOffset(step, layer, 1));
  Tensor d_gelu(4 * size);
  LinearBackward(d_gelu.data(), p.down_weight.gradient.data(), p.down_bias.gradient.data(),
                 d_down.data(), a.gelu.data(), p.down_weight.value.data(), r, 4 * c, c);
  a.gelu.Release();
  d_down.Release();
  Tensor d_up(4 * size);
  GeluBackward(d_up.data(), d_gelu.data(), a.up.data(), 4 * count);
  a.up.Release();
  d_gelu.Release();
  Tensor d_norm2(size);
  LinearBackward(d_norm2.data(), p.up_weight.gradient.data(), p.up_bias.gradient.data(),
                 d_up.data(), a.norm2.data(), p.up_weight.value.data(), r, c, 4 * c);
  d_up.Release();
  a.norm2.Release();
  Tensor d_middle(size);
  LayerNormBackward(d_middle.data(), p.norm2_gain.gradient.data(), p.norm2_bias.gradient.data(),
                    d_norm2.data(), a.middle.data(), a.mean2.data(), a.rstd2.data(),
                    p.norm2_gain.value.data(), r, c);
  d_norm2.Release();
  a.middle.Release();
  a.mean2.Release();
  a.rstd2.Release();
  AddInPlace(d_middle.data(), d_out.data(), count);  // the residual branch
  d_out.Release();

  Tensor d_projected(size);
  Dropout(d_projected.data(), d_middle.data(), count, config_.dropout, config_.seed,
          DropoutOffset(step, layer, 0));
  Tensor d_attention(size);
  LinearBackward(d_attention.data(), p.projection_weight.gradient.data(),
                 p.projection_bias.gradient.data(), d_projected.data(), a.attention.data(),
                 p.projection_weight.value.data(), r, c, c);
  d_projected.Release();
  a.attention.Release();
  Tensor d_qkv(3 * size);
  Tensor d_scores(a.scores.count());
  AttentionBackward(d_qkv.data(), d_scores.data(), d_attention.data(), a.qkv.data(),
                    a.scores.data(), config_.batch, config_.sequence, c, config_.heads);
  d_scores.Release();
  d_attention.Release();
  a.qkv.Release();
  a.scores.Release();
  Tensor d_norm1(size);
  LinearBackward(d_norm1.data(), p.qkv_weight.gradient.data(), p.qkv_bias.gradient.data(),
                 d_qkv.data(), a.norm1.data(), p.qkv_weight.value.data(), r, c, 3 * c);
  d_qkv.Release();
  a.norm1.Release();
  Tensor d_input(size);
  LayerNormBackward(d_input.data(), p.norm1_gain.gradient.data(), p.norm1_bias.gradient.data(),
                    d_norm1.data(), a.input.data(), a.mean1.data(), a.rstd1.data(),
                    p.norm1_gain.value.data(), r, c);
  d_norm1.Release();
  a.input.Release();
  a.mean1.Release();
  a.rstd1.Release();
  AddInPlace(d_input.data(), d_middle.data(), count);
  return d_input;
}

float Model::Step(const std::vector<int>& tokens, const std::vector<int>& targets, int step) {
  const int c = config_.channels, r = rows_, v = vocabulary_;
  const size_t size = static_cast<size_t>(r) * c;
  CUDA_CHECK(cudaMemcpy(input_.data(), tokens.data(), input_.bytes(), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(targets_.data(), targets.data(), targets_.bytes(), cudaMemcpyHostToDevice));

  // Forward.
  Tensor hidden(size);
  EmbeddingForward(hidden.data(), input_.data(), tokens_.value.data(), positions_.value.data(), r,
                   config_.sequence, c);
  std::vector<LayerActivations> activations(config_.layers);
  for (int i = 0; i < config_.layers; ++i) {
    hidden = LayerForward(layers_[i], activations[i], std::move(hidden), i, step);
  }
  Tensor norm(size), mean(r), rstd(r);
  LayerNormForward(norm.data(), mean.data(), rstd.data(), hidden.data(), norm_gain_.value.data(),
                   norm_bias_.value.data(), r, c);
  Tensor logits(static_cast<size_t>(r) * v);
  LinearForward(logits.data(), norm.data(), head_weight_.value.data(), head_bias_.value.data(), r,
                c, v);
  Tensor losses(r), d_logits(logits.count()), loss(1);
  CrossEntropy(losses.data(), d_logits.data(), logits.data(), targets_.data(), r, v);
  logits.Release();
  Mean(loss.data(), losses.data(), r);

  // Backward.
  Tensor d_norm(size);
  LinearBackward(d_norm.data(), head_weight_.gradient.data(), head_bias_.gradient.data(),
                 d_logits.data(), norm.data(), head_weight_.value.data(), r, c, v);
  d_logits.Release();
  norm.Release();
  Tensor d_hidden(size);
  LayerNormBackward(d_hidden.data(), norm_gain_.gradient.data(), norm_bias_.gradient.data(),
                    d_norm.data(), hidden.data(), mean.data(), rstd.data(), norm_gain_.value.data(),
                    r, c);
  d_norm.Release();
  hidden.Release();
  for (int i = config_.layers - 1; i >= 0; --i) {
    d_hidden = LayerBackward(layers_[i], activations[i], std::move(d_hidden), i, step);
  }
  EmbeddingBackward(tokens_.gradient.data(), positions_.gradient.data(), d_hidden.data(),
                    input_.data(), r, config_.sequence, c, v);
  d_hidden.Release();

  for (Parameter* p : Parameters()) {
    AdamW(p->value.data(), p->m.data(), p->v.data(), p->gradient.data(),
          static_cast<int>(p->value.count()), config_.rate, 0.9f, 0.95f, 1e-8f, 0.01f, step + 1);
  }
  float result = 0;
  CUDA_CHECK(cudaMemcpy(&result, loss.data(), sizeof(float), cudaMemcpyDeviceToHost));
  return result;
}

uint64_t Model::Digest(bool gradients) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (Parameter* p : Parameters()) {
    const Tensor& tensor = gradients ? p->gradient : p->value;
    std::vector<float> host(tensor.count());
    CUDA_CHECK(cudaMemcpy(host.data(), tensor.data(), tensor.bytes(), cudaMemcpyDeviceToHost));
    hash = Fnv(host, hash);
  }
  return hash;
}

uint64_t Model::ParameterDigest() { return Digest(false); }
uint64_t Model::GradientDigest() { return Digest(true); }
