// transformers 5: modeling_gpt2.py, modeling_gpt_bigcode.py.
#include <array>
#include <functional>
#include <string>
#include <utility>

#include "sim/like/eager/hugging_face.h"
#include "sim/like/eager/sharding.h"

namespace shard::like::eager {
namespace {

class Gpt2Decoder final : public HuggingFace {
 public:
  Gpt2Decoder(Runtime& runtime, const model::Model& model, const ProgramOptions& options)
      : HuggingFace(runtime, model, options), big_code_(model.class_name == "GPTBigCodeForCausalLM") {}

 protected:
  static constexpr std::size_t kPerBlock = 12;
  [[nodiscard]] std::string block_prefix() const override { return "transformer.h."; }
  [[nodiscard]] Scalar softmax_type() const override { return big_code_ ? Scalar::f32 : options_.precision; }
  [[nodiscard]] const Tensor& head() const override {
    return parameter(model_.tied_embeddings ? 0 : r_.parameters().size() - 1);
  }
  /// The module's mask, behind its parameters.
  void make_buffers_before(std::size_t at) override {
    if (!big_code_ || at != 4 + kPerBlock * static_cast<std::size_t>(model_.layers)) return;
    positions_mask_ =
        named("transformer.bias", Category::not_known, {model_.max_sequence, model_.max_sequence}, Scalar::boolean);
  }

  Tensor decoder() override {
    r_.tape().set_module("transformer", -1);
    const Tensor embedded = table("wte", 0, tokens_);
    ids_ = positions();
    if (big_code_) make_mask();
    const Tensor position = table("wpe", 1, ids_);
    Tensor x = add(r_, embedded, position);
    if (!big_code_) make_mask();
    x = drop(x);
    for (std::int64_t l = 0; l < model_.layers; ++l) {
      r_.tape().set_module(names_[static_cast<std::size_t>(l)], static_cast<std::int32_t>(l));
      x = in_unit(r_, l, x, [&](const Tensor& entered) { return layer(l, entered); });
    }
    r_.tape().set_module("transformer.ln_f", -1);
    first_ = 2 + kPerBlock * static_cast<std::size_t>(model_.layers);
    x = norm(x, 0);
    mask_ = ids_ = {};
    return x;
  }

 private:
  [[nodiscard]] const Tensor& own(std::size_t at) const { return parameter(first_ + at); }
  /// Conv1D of gpt2, Linear of gpt_bigcode.
  Tensor project(const Tensor& given, std::size_t weight) {
    return in_module(r_, module_of("projection", own(weight), 2), given, [&](const Tensor& x) {
      return big_code_ ? linear(r_, x, own(weight), own(weight + 1)) : addmm(r_, own(weight + 1), x, own(weight));
    });
  }
  Tensor norm(const Tensor& given, std::size_t weight) {
    return in_module(r_, module_of("norm", own(weight), 2), given,
                     [&](const Tensor& x) { return layer_norm(r_, x, own(weight), own(weight + 1)); });
  }
  Tensor drop(const Tensor& given) {
    return in_module(r_, {.name = "dropout"}, given,
                     [this](const Tensor& x) { return dropout(r_, x, model_.dropout); });
  }
  Tensor table(std::string_view name, std::size_t at, const Tensor& ids) {
    return in_module(r_, module_of(name, parameter(at)), ids,
                     [&](const Tensor& rows) { return embedding(r_, parameter(at), rows); });
  }

  [[nodiscard]] std::function<Tensor(const Tensor&)> with_arguments(std::int64_t l) override {
    return [this, l, mask = mask_, ids = ids_](const Tensor& x) {
      const Tensor before = mask_;
      mask_ = mask;
      Tensor y = block(l, x);
      mask_ = before;
      return y;
    };
  }
  Tensor block(std::int64_t l, const Tensor& residual) override {
    first_ = 2 + kPerBlock * static_cast<std::size_t>(l);
    Tensor x = norm(residual, 0);
    const Tensor attended =
        in_module(r_, {.name = "attn"}, x, [this](const Tensor& normed) { return self_attention(normed); });
    x = add(r_, attended, residual);
    return second_half(std::move(x));
  }
  Tensor second_half(Tensor x) {
    const Tensor residual = x;
    x = norm(x, 6);
    const Tensor y = in_module(r_, {.name = "mlp"}, x, [this](const Tensor& normed) { return feed_forward(normed); });
    return add(r_, residual, y);
  }

  Tensor self_attention(const Tensor& x) {
    if (big_code_) return big_code_attention(x);
    const Tensors parts = split_last(r_, project(x, 2), 3);
    const Tensor q = heads_of(parts[0], model_.heads);
    const Scalar type = parts[0].scalar();
    const Tensor k = cached(heads_of(parts[1], model_.heads), type), v = cached(heads_of(parts[2], model_.heads), type);
    Tensor y = attend(q, k, v);
    y = project(y, 4);
    return drop(y);
  }

  /// One key and value for all heads, behind the queries; or each head's query, key and value together.
  Tensor big_code_attention(const Tensor& x) {
    const std::int64_t b = options_.batch, s = options_.sequence, d = model_.head_dim;
    const bool one_key = own(3).elements() != 3 * model_.hidden || model_.heads == 1;
    Tensor q, k, v;
    {
      Tensor together = project(x, 2);
      if (one_key) {
        together = reshape(r_, together, {b, 1, s, model_.hidden + 2 * d});
        Tensors parts = split_last(r_, std::exchange(together, {}), {model_.hidden, d, d});
        q = heads_of(parts[0], model_.heads);
        k = parts[1];
        v = parts[2];
      } else {
        together = transpose(r_, reshape(r_, together, {b, s, model_.heads, 3 * d}), 1, 2);
        Tensors parts = split_last(r_, std::exchange(together, {}), 3);
        q = parts[0];
        k = parts[1];
        v = parts[2];
      }
    }
    const Scalar type = k.scalar();
    k = cached(k, type);
    v = cached(v, type);
    Tensor y = attend(q, k, v);
    y = project(y, 4);
    return drop(y);
  }

  Tensor feed_forward(const Tensor& input) {
    Tensor x = project(input, 8);
    x = in_module(r_, {.name = "act"}, x, [this](const Tensor& in) {
      return big_code_ ? activation(r_, in, "gelu", Kept::input) : new_gelu(in);
    });
    x = project(x, 10);
    return drop(x);
  }

  Tensor new_gelu(const Tensor& x) {
    const Tensor half = mul_number(r_, x);
    Tensor inner = pow_number(r_, x);
    inner = mul_number(r_, inner);
    inner = add(r_, x, inner);
    inner = mul_number(r_, inner);
    inner = activation(r_, inner, "tanh", Kept::result);
    inner = add_number(r_, inner);
    return mul(r_, half, inner);
  }

  bool big_code_;
  Tensor positions_mask_;
  std::size_t first_ = 0;
};

}  // namespace

std::unique_ptr<Program> gpt2_decoder(Runtime& runtime, const model::Model& model, const ProgramOptions& options) {
  return std::make_unique<Gpt2Decoder>(runtime, model, options);
}

}  // namespace shard::like::eager
