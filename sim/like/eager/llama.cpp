// transformers 5: modeling_llama.py, and modeling_mistral.py, modeling_qwen2.py and modeling_qwen3.py, which are made
// of it.
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/like/eager/families.h"
#include "sim/like/eager/hugging_face.h"

namespace shard::like::eager {
namespace {

constexpr const char* kBlocks = "model.layers.";

/// Numbers of parameters in a block.
struct Projection {
  std::size_t weight = 0;
  std::optional<std::size_t> bias{};
};

/// Where a block's parameters are, found by their names; nowhere in a model without blocks.
struct BlockParameters {
  explicit BlockParameters(const model::Model& model) : model_(model) {
    while (1 + parameters < model.parameters.size() &&
           model.parameters[1 + parameters].name.starts_with(std::string(kBlocks) + "0."))
      ++parameters;
    q = projection("self_attn.q_proj"), k = projection("self_attn.k_proj");
    v = projection("self_attn.v_proj"), o = projection("self_attn.o_proj");
    gate = projection("mlp.gate_proj"), up = projection("mlp.up_proj"), down = projection("mlp.down_proj");
    q_norm = find("self_attn.q_norm.weight"), k_norm = find("self_attn.k_norm.weight");
    input_norm = find("input_layernorm.weight").value_or(0);
    second_norm = find("post_attention_layernorm.weight").value_or(0);
  }

  std::size_t parameters = 0;  ///< of a block
  Projection q, k, v, o, gate, up, down;
  std::optional<std::size_t> q_norm, k_norm;
  std::size_t input_norm = 0, second_norm = 0;

 private:
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const {
    for (std::size_t at = 0; at < parameters; ++at)
      if (model_.parameters[1 + at].name == std::string(kBlocks) + "0." + std::string(name)) return at;
    return std::nullopt;
  }
  [[nodiscard]] Projection projection(const std::string& name) const {
    return {.weight = find(name + ".weight").value_or(0), .bias = find(name + ".bias")};
  }

  const model::Model& model_;
};

class Llama final : public HuggingFace {
 public:
  Llama(Runtime& runtime, const model::Model& model, const ProgramOptions& options)
      : HuggingFace(runtime, model, options), in_block_(model) {}

 protected:
  [[nodiscard]] std::string block_prefix() const override { return kBlocks; }
  [[nodiscard]] Scalar softmax_type() const override { return Scalar::f32; }
  [[nodiscard]] std::size_t final_norm() const {
    return 1 + in_block_.parameters * static_cast<std::size_t>(model_.layers);
  }
  [[nodiscard]] const Tensor& head() const override { return parameter(model_.tied_embeddings ? 0 : final_norm() + 1); }

  void make_buffers_before(std::size_t at) override {
    if (at != final_norm() + 1) return;
    for (const char* name : {"model.rotary_emb.inv_freq", "model.rotary_emb.original_inv_freq"})
      buffers_.push_back(named(name, Category::not_known, {model_.head_dim / 2}, Scalar::f32));
  }

  Tensor decoder() override {
    r_.tape().set_module("model.embed_tokens", -1);
    const Tensor embedded = embedding(r_, parameter(0), tokens_);
    r_.tape().set_module("model", -1);
    ids_ = positions();
    make_mask();
    r_.tape().set_module("model.rotary_emb", -1);
    rotary();
    Tensor x = embedded;
    for (std::int64_t l = 0; l < model_.layers; ++l) {
      r_.tape().set_module(names_[static_cast<std::size_t>(l)], static_cast<std::int32_t>(l));
      x = in_unit(r_, l, x, [&](const Tensor& entered) { return layer(l, entered); });
    }
    r_.tape().set_module("model.norm", -1);
    x = norm(x, parameter(final_norm()));
    mask_ = cosine_ = sine_ = ids_ = {};
    return x;
  }

 private:
  [[nodiscard]] std::function<Tensor(const Tensor&)> with_arguments(std::int64_t l) override {
    return [this, l, mask = mask_, cosine = cosine_, sine = sine_, ids = ids_](const Tensor& x) {
      const std::array<Tensor, 3> before{mask_, cosine_, sine_};
      mask_ = mask;
      cosine_ = cosine;
      sine_ = sine;
      Tensor y = block(l, x);
      mask_ = before[0];
      cosine_ = before[1];
      sine_ = before[2];
      return y;
    };
  }

  void rotary() {
    const std::int64_t s = options_.sequence, d = model_.head_dim;
    r_.tape().begin_op("rotary tables");
    Tensor numbers = r_.empty({1, s, 1}, Scalar::f32);
    const Tensor freqs = r_.empty({1, s, d / 2}, Scalar::f32);
    numbers = {};
    const Tensor both = r_.empty({1, s, d}, Scalar::f32);
    const auto table = [&] {
      const Tensor plain = r_.empty({1, s, d}, Scalar::f32);
      return r_.empty({1, s, d}, Scalar::f32);
    };
    const Tensor cosine = table(), sine = table();
    const Tensor cosine_cast = to(r_, cosine, options_.precision), sine_cast = to(r_, sine, options_.precision);
    cosine_ = cosine_cast.view({1, 1, s, d}, {s * d, s * d, d, 1});
    sine_ = sine_cast.view({1, 1, s, d}, {s * d, s * d, d, 1});
  }

  Tensor norm(const Tensor& input, const Tensor& weight) {
    Tensor x = to(r_, input, Scalar::f32);
    Tensor variance = pow_number(r_, x);
    variance = mean_last(r_, variance);
    Tensor root = add_number(r_, variance);
    root = rsqrt(r_, root);
    x = mul(r_, x, root);
    root = {};
    return mul(r_, weight, to(r_, x, input.scalar()));
  }

  Tensor rotate_half(const Tensor& x) {
    const std::int64_t half = model_.head_dim / 2;
    const Tensor x1 = slice(r_, x, 3, half), x2 = slice(r_, x, 3, half);
    return cat(r_, {neg(r_, x2), x1}, 3);
  }
  Tensor rotated(const Tensor& x) {
    const Tensor straight = mul(r_, x, cosine_);
    const Tensor turned = mul(r_, rotate_half(x), sine_);
    return add(r_, straight, turned);
  }

  [[nodiscard]] const Tensor& own(std::size_t at) const { return parameter(first_ + at); }
  Tensor project(const Tensor& x, const Projection& p) {
    return linear(r_, x, own(p.weight), p.bias ? own(*p.bias) : Tensor{});
  }

  Tensor block(std::int64_t l, const Tensor& input) override {
    first_ = 1 + in_block_.parameters * static_cast<std::size_t>(l);
    Tensor residual = input;
    Tensor x = norm(residual, own(in_block_.input_norm));
    x = self_attention(x);
    x = add(r_, residual, x);
    residual = x;
    x = norm(x, own(in_block_.second_norm));
    x = feed_forward(x);
    return add(r_, residual, x);
  }

  /// Queries, or keys, by heads; some families normalise each head.
  Tensor turned_heads(const Tensor& x, const Projection& p, std::int64_t heads, std::optional<std::size_t> head_norm) {
    const Tensor projected = project(x, p);
    if (!head_norm) return heads_of(projected, heads);
    const Tensor apart = reshape(r_, projected, {options_.batch, options_.sequence, heads, model_.head_dim});
    return transpose(r_, norm(apart, own(*head_norm)), 1, 2);
  }

  Tensor self_attention(const Tensor& x) {
    Tensor q = turned_heads(x, in_block_.q, model_.heads, in_block_.q_norm);
    Tensor k = turned_heads(x, in_block_.k, model_.kv_heads, in_block_.k_norm);
    Tensor v = heads_of(project(x, in_block_.v), model_.kv_heads);
    Tensor q_turned = rotated(q), k_turned = rotated(k);
    q = std::move(q_turned);
    k = std::move(k_turned);
    return project_out(q, k, v);
  }
  Tensor project_out(const Tensor& q, Tensor& k, Tensor& v) {
    const Tensor keys = cached(k, k.scalar()), values = cached(v, k.scalar());
    k = v = {};
    const Tensor y = attend(q, keys, values);
    return project(y, in_block_.o);
  }

  Tensor feed_forward(const Tensor& x) {
    Tensor gate = activation(r_, project(x, in_block_.gate), "silu", Kept::input);
    gate = mul(r_, std::exchange(gate, {}), project(x, in_block_.up));
    return project(gate, in_block_.down);
  }

  BlockParameters in_block_;
  Tensors buffers_;
  Tensor cosine_, sine_;
  std::size_t first_ = 0;
};

}  // namespace

std::unique_ptr<Program> llama_program(Runtime& runtime, const model::Model& model, const ProgramOptions& options) {
  return std::make_unique<Llama>(runtime, model, options);
}

}  // namespace shard::like::eager
