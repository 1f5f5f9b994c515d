// transformers 5: modeling_llama.py, modeling_mistral.py, modeling_qwen2.py, modeling_qwen3.py.
#include <array>
#include <functional>
#include <string>
#include <utility>

#include "sim/like/eager/hugging_face.h"
#include "sim/like/eager/sharding.h"

namespace shard::like::eager {
namespace {

class RotaryDecoder final : public HuggingFace {
 public:
  RotaryDecoder(Runtime& runtime, const model::Model& model, const ProgramOptions& options)
      : HuggingFace(runtime, model, options) {
    if (model.layers < 1) return;
    q_ = projection("self_attn.q_proj");
    k_ = projection("self_attn.k_proj");
    v_ = projection("self_attn.v_proj");
    o_ = projection("self_attn.o_proj");
    gate_ = projection("mlp.gate_proj");
    up_ = projection("mlp.up_proj");
    down_ = projection("mlp.down_proj");
    const std::string first = block_prefix() + "0.";
    input_norm_ = place(first + "input_layernorm.weight");
    second_norm_ = place(first + "post_attention_layernorm.weight");
    head_norms_ = has(first + "self_attn.q_norm.weight");
    if (head_norms_) {
      q_norm_ = place(first + "self_attn.q_norm.weight");
      k_norm_ = place(first + "self_attn.k_norm.weight");
    }
    per_block_ = (final_norm() - 1) / static_cast<std::size_t>(model.layers);
  }

 protected:
  [[nodiscard]] std::string block_prefix() const override { return "model.layers."; }
  [[nodiscard]] Scalar softmax_type() const override { return Scalar::f32; }
  [[nodiscard]] std::size_t final_norm() const { return model_.parameters.size() - (model_.tied_embeddings ? 1 : 2); }
  [[nodiscard]] const Tensor& head() const override { return parameter(model_.tied_embeddings ? 0 : final_norm() + 1); }

  void make_buffers_before(std::size_t at) override {
    if (at != final_norm() + 1) return;
    for (const char* name : {"model.rotary_emb.inv_freq", "model.rotary_emb.original_inv_freq"})
      buffers_.push_back(named(name, Category::not_known, {model_.head_dim / 2}, Scalar::f32));
  }

  Tensor decoder() override {
    r_.tape().set_module("model.embed_tokens", -1);
    const Tensor embedded = in_module(r_, module_of("embed_tokens", parameter(0)), tokens_,
                                      [&](const Tensor& tokens) { return embedding(r_, parameter(0), tokens); });
    r_.tape().set_module("model", -1);
    ids_ = positions();
    make_mask();
    r_.tape().set_module("model.rotary_emb", -1);
    (void)in_module(r_, {.name = "rotary_emb", .positional = false}, ids_, [&](const Tensor& ids) {
      rotary();
      return ids;
    });
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
    return in_module(r_, module_of("norm", weight), input, [&](const Tensor& x) { return rms_norm(x, weight); });
  }
  Tensor rms_norm(const Tensor& input, const Tensor& weight) {
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

  /// A projection of the block, with its bias where it has one. All blocks have the first one's parameters.
  struct Projection {
    std::size_t weight = 0;
    bool biased = false;
  };
  [[nodiscard]] Projection projection(const char* name) const {
    const std::string whole = block_prefix() + "0." + name;
    return {place(whole + ".weight"), has(whole + ".bias")};
  }
  Tensor project(const Tensor& x, Projection by) {
    const std::size_t weight = by.weight + from_first_;
    return in_module(r_, module_of("projection", parameter(weight), by.biased ? 2 : 1), x, [&](const Tensor& rows) {
      return linear(r_, rows, parameter(weight), by.biased ? parameter(weight + 1) : Tensor{});
    });
  }
  [[nodiscard]] const Tensor& own(std::size_t of_first) const { return parameter(of_first + from_first_); }

  Tensor block(std::int64_t l, const Tensor& input) override {
    from_first_ = static_cast<std::size_t>(l) * per_block_;
    Tensor residual = input;
    Tensor x = norm(residual, own(input_norm_));
    x = in_module(r_, {.name = "self_attn", .positional = false}, x,
                  [this](const Tensor& normed) { return self_attention(normed); });
    x = add(r_, residual, x);
    residual = x;
    x = norm(x, own(second_norm_));
    x = in_module(r_, {.name = "mlp"}, x, [this](const Tensor& normed) { return feed_forward(normed); });
    return add(r_, residual, x);
  }

  /// Heads of queries or keys, each normalized by itself where the family does so.
  Tensor heads_of_projection(const Tensor& x, Projection by, std::int64_t heads, std::size_t head_norm) {
    const Tensor projected = project(x, by);
    Tensor apart = reshape(r_, projected, {options_.batch, options_.sequence, heads, model_.head_dim});
    if (head_norms_) apart = norm(apart, own(head_norm));
    return transpose(r_, apart, 1, 2);
  }

  Tensor self_attention(const Tensor& x) {
    Tensor q = heads_of_projection(x, q_, model_.heads, q_norm_);
    Tensor k = heads_of_projection(x, k_, model_.kv_heads, k_norm_);
    Tensor v = heads_of(project(x, v_), model_.kv_heads);
    Tensor q_turned = rotated(q), k_turned = rotated(k);
    q = std::move(q_turned);
    k = std::move(k_turned);
    return project_out(q, k, v);
  }
  Tensor project_out(const Tensor& q, Tensor& k, Tensor& v) {
    const Tensor keys = cached(k, k.scalar()), values = cached(v, k.scalar());
    k = v = {};
    const Tensor y = attend(q, keys, values);
    return project(y, o_);
  }

  Tensor feed_forward(const Tensor& x) {
    Tensor gate = in_module(r_, {.name = "act_fn"}, project(x, gate_),
                            [this](const Tensor& in) { return activation(r_, in, "silu", Kept::input); });
    gate = mul(r_, std::exchange(gate, {}), project(x, up_));
    return project(gate, down_);
  }

  Tensors buffers_;
  Tensor cosine_, sine_;
  // In the first block; a block's parameters are per_block_ behind those of the one before.
  Projection q_, k_, v_, o_, gate_, up_, down_;
  std::size_t input_norm_ = 0, second_norm_ = 0, q_norm_ = 0, k_norm_ = 0;
  bool head_norms_ = false;
  std::size_t per_block_ = 0, from_first_ = 0;
};

}  // namespace

std::unique_ptr<Program> rotary_decoder(Runtime& runtime, const model::Model& model, const ProgramOptions& options) {
  return std::make_unique<RotaryDecoder>(runtime, model, options);
}

}  // namespace shard::like::eager
