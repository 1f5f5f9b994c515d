// torchtitan's decoders: torchtitan/models/llama3/model.py and qwen3/model.py, distributed/activation_checkpoint.py,
// components/loss.py, train.py.
#include <cassert>
#include <string>
#include <utility>
#include <vector>

#include "sim/like/eager/compiled_block.h"
#include "sim/like/eager/operators.h"
#include "sim/like/eager/programs.h"
#include "sim/like/eager/sharding.h"

namespace shard::like::eager {
namespace {

class TorchtitanDecoder final : public Program {
 public:
  TorchtitanDecoder(Runtime& runtime, const model::Model& model, const ProgramOptions& options)
      : r_(runtime), model_(model), options_(options) {
    const std::string first = "model.layers.0.";
    const auto weight = [&](const std::string& name) { return place(first + name + ".weight"); };
    q_ = weight("self_attn.q_proj");
    k_ = weight("self_attn.k_proj");
    v_ = weight("self_attn.v_proj");
    o_ = weight("self_attn.o_proj");
    w1_ = weight("mlp.gate_proj");
    w3_ = weight("mlp.up_proj");
    w2_ = weight("mlp.down_proj");
    attention_norm_ = weight("input_layernorm");
    ffn_norm_ = weight("post_attention_layernorm");
    head_norms_ = model.class_name == "Qwen3ForCausalLM";
    if (head_norms_) {
      q_norm_ = weight("self_attn.q_norm");
      k_norm_ = weight("self_attn.k_norm");
    }
    final_norm_ = place("model.norm.weight");
    per_block_ = (final_norm_ - 1) / static_cast<std::size_t>(model.layers);
  }

  void create() override {
    const auto make_buffers = [this] {
      freqs_ =
          model_tensor(r_, "freqs_cis", Category::not_known, {1, options_.sequence, 1, model_.head_dim}, Scalar::f32);
    };
    if (r_.sharding != nullptr) {
      r_.sharding->create(model_, make_buffers);
    } else {
      for (std::size_t p = 0; p < model_.parameters.size(); ++p) {
        Dims sizes;
        for (const std::int64_t s : model_.parameters[p].shape) sizes.push(s);
        Tensor t = model_tensor(r_, model_.parameters[p].name, Category::parameter, sizes, options_.precision);
        t.set_parameter(static_cast<std::int32_t>(p));
        r_.parameters().push_back(t);
      }
      make_buffers();
    }
    for (std::int64_t l = 0; l < model_.layers; ++l) names_.push_back(r_.tape().keep("layers." + std::to_string(l)));
    tokens_ = model_tensor(r_, "input", Category::input, {options_.batch, options_.sequence}, Scalar::i64);
    labels_ = model_tensor(r_, "labels", Category::input, {options_.batch, options_.sequence}, Scalar::i64);
  }

  Tensor loss() override {
    r_.tape().set_part(Part::forward, Category::activation);
    const Tensor pred = forward();
    r_.tape().set_module("loss", -1);
    const Tensor rows = reshape(r_, pred, {tokens_.elements(), model_.vocabulary});
    if (options_.torchtitan.compiled_loss) return compiled_cross_entropy(r_, rows);
    return cross_entropy(r_, to(r_, rows, Scalar::f32), labels_);  // pred is deleted before backward
  }

  void end_step() override {}

 private:
  [[nodiscard]] std::size_t place(const std::string& name) const {
    std::size_t at = 0;
    while (at < model_.parameters.size() && model_.parameters[at].name != name) ++at;
    assert(at < model_.parameters.size());
    return at;
  }
  [[nodiscard]] const Tensor& parameter(std::size_t at) const { return r_.parameters()[at]; }
  [[nodiscard]] const Tensor& own(std::size_t of_first) const { return parameter(of_first + from_first_); }

  Tensor forward() {
    enter_model(r_);
    r_.tape().set_module("tok_embeddings", -1);
    const bool apart = ends_apart(r_);
    const auto embed = [this](const Tensor& ids) { return embedding(r_, parameter(0), ids); };
    Tensor h = apart ? in_unit(r_, model_.layers, tokens_, embed) : embed(tokens_);
    for (std::int64_t l = 0; l < model_.layers; ++l) {
      r_.tape().set_module(names_[static_cast<std::size_t>(l)], static_cast<std::int32_t>(l));
      h = in_unit(r_, l, h, [&](const Tensor& entered) { return layer(l, entered); });
    }
    const auto end = [this](const Tensor& x) {
      r_.tape().set_module("norm", -1);
      const Tensor normed = norm(x, parameter(final_norm_));
      r_.tape().set_module("output", -1);
      return linear(r_, normed, parameter(model_.tied_embeddings ? 0 : final_norm_ + 1), {});
    };
    const Tensor output = apart ? in_unit(r_, model_.layers + 1, std::exchange(h, {}), end) : end(std::exchange(h, {}));
    leave_model(r_, output, output);
    return output;
  }

  Tensor layer(std::int64_t l, const Tensor& x) {
    const auto part = [this, l](const Tensor& input) {
      r_.tape().set_module(names_[static_cast<std::size_t>(l)], static_cast<std::int32_t>(l));
      from_first_ = static_cast<std::size_t>(l) * per_block_;
      if (options_.torchtitan.compiled) return compiled(input);
      const Tensor h = add(r_, input, attention_of(norm(input, own(attention_norm_))));
      return add(r_, h, feed_forward(norm(h, own(ffn_norm_))));
    };
    if (!options_.checkpoint || options_.torchtitan.compiled) return part(x);
    if (!options_.selective) return r_.checkpoint(x, part);
    return r_.checkpoint_selectively(x, part, options_.torchtitan.keeps_attention);
  }

  Tensor compiled(const Tensor& x) {
    const CompiledKeep selected =
        options_.torchtitan.keeps_attention ? CompiledKeep::selected : CompiledKeep::selected_alone;
    const CompiledBlock shape{.tokens = options_.batch * options_.sequence,
                              .hidden = x.sizes().back(0),
                              .heads = model_.heads,
                              .kv_heads = model_.kv_heads,
                              .head_dim = model_.head_dim,
                              .ffn = own(w1_).size(0),
                              .keep = !options_.checkpoint ? CompiledKeep::all
                                      : options_.selective ? selected
                                                           : CompiledKeep::input};
    BlockWeights weights{.q = own(q_),
                         .k = own(k_),
                         .v = own(v_),
                         .o = own(o_),
                         .gate = own(w1_),
                         .up = own(w3_),
                         .down = own(w2_),
                         .norms = {own(attention_norm_), own(ffn_norm_)}};
    if (head_norms_) weights.norms.insert(weights.norms.end(), {own(q_norm_), own(k_norm_)});
    return compiled_block(r_, shape, weights, x);
  }

  Tensor norm(const Tensor& x, const Tensor& weight) {
    if (options_.torchtitan.fused_norms) return rms_norm(r_, x, weight);
    Tensor output;
    {
      const Tensor wide = to(r_, x, Scalar::f32);
      const Tensor root = rsqrt(r_, add_number(r_, mean_last(r_, mul(r_, wide, wide))));
      output = mul(r_, wide, root);
    }
    output = to(r_, std::exchange(output, {}), x.scalar());
    return mul(r_, output, weight);
  }

  Tensor heads_of(const Tensor& x, std::int64_t heads) {
    return reshape(r_, x, {options_.batch, options_.sequence, heads, model_.head_dim});
  }

  /// Pairs as complex numbers, which take what their two parts do.
  Tensor rotated(const Tensor& x) {
    if (head_norms_) return rotated_by_halves(x);
    return to(r_, mul(r_, to(r_, x, Scalar::f32), freqs_), x.scalar());
  }
  Tensor rotated_by_halves(const Tensor& x) {
    r_.tape().begin_op("rope cache");
    const Dims sizes{1, options_.sequence, 1, model_.head_dim};
    const Tensor cosine = r_.empty(sizes, x.scalar()), sine = r_.empty(sizes, x.scalar());
    const Tensor straight = mul(r_, x, cosine);
    const Tensor x1 = slice(r_, x, 3, model_.head_dim / 2), x2 = slice(r_, x, 3, model_.head_dim / 2);
    const Tensor turned = mul(r_, cat(r_, {neg(r_, x2), x1}, 3), sine);
    return add(r_, straight, turned);
  }

  Tensor repeated(const Tensor& x) {
    if (model_.kv_heads == model_.heads) return x;
    const Dims& s = x.sizes();
    const Tensor apart = reshape(r_, x, {s[0], s[1], s[2], 1, s[3]});
    const Tensor wide = expand(r_, apart, {s[0], s[1], s[2], model_.heads / s[2], s[3]});
    return reshape(r_, wide, {s[0], s[1], model_.heads, s[3]});
  }

  Tensor attention_of(const Tensor& x) {
    Tensor xq = linear(r_, x, own(q_), {}), xk = linear(r_, x, own(k_), {}), xv = linear(r_, x, own(v_), {});
    xq = heads_of(xq, model_.heads);
    xk = heads_of(xk, model_.kv_heads);
    xv = heads_of(xv, model_.kv_heads);
    if (head_norms_) {
      xq = norm(xq, own(q_norm_));
      xk = norm(xk, own(k_norm_));
    }
    Tensor q_turned = rotated(xq), k_turned = rotated(xk);
    xq = std::move(q_turned);
    xk = std::move(k_turned);
    const Tensor keys = repeated(xk), values = repeated(xv);
    xq = transpose(r_, xq, 1, 2);
    xk = transpose(r_, keys, 1, 2);
    xv = transpose(r_, values, 1, 2);
    Tensor output = attention(r_, xq, xk, xv);
    output = contiguous(r_, transpose(r_, output, 1, 2));
    output = reshape(r_, output, {options_.batch, options_.sequence, model_.heads * model_.head_dim});
    return linear(r_, output, own(o_), {});
  }

  Tensor feed_forward(const Tensor& x) {
    Tensor gate = activation(r_, linear(r_, x, own(w1_), {}), "silu", Kept::input);
    gate = mul(r_, std::exchange(gate, {}), linear(r_, x, own(w3_), {}));
    return linear(r_, gate, own(w2_), {});
  }

  Runtime& r_;
  const model::Model& model_;
  ProgramOptions options_;
  std::vector<std::string_view> names_;
  Tensor freqs_, tokens_, labels_;
  // In the first block; a block's parameters are per_block_ behind those of the one before.
  std::size_t q_ = 0, k_ = 0, v_ = 0, o_ = 0, w1_ = 0, w2_ = 0, w3_ = 0;
  std::size_t attention_norm_ = 0, ffn_norm_ = 0, q_norm_ = 0, k_norm_ = 0, final_norm_ = 0;
  bool head_norms_ = false;
  std::size_t per_block_ = 0, from_first_ = 0;
};

}  // namespace

std::unique_ptr<Program> torchtitan_program(Runtime& runtime, const model::Model& model,
                                            const ProgramOptions& options) {
  return std::make_unique<TorchtitanDecoder>(runtime, model, options);
}

}  // namespace shard::like::eager
