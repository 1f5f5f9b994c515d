// transformers 5: modeling_gpt2.py.
#include <string>
#include <utility>

#include "sim/like/eager/families.h"
#include "sim/like/eager/hugging_face.h"

namespace shard::like::eager {
namespace {

class Gpt2 final : public HuggingFace {
 public:
  using HuggingFace::HuggingFace;

 protected:
  static constexpr std::size_t kPerBlock = 12;
  [[nodiscard]] std::string block_prefix() const override { return "transformer.h."; }
  [[nodiscard]] Scalar softmax_type() const override { return options_.precision; }
  [[nodiscard]] const Tensor& head() const override {
    return parameter(model_.tied_embeddings ? 0 : r_.parameters().size() - 1);
  }
  void make_buffers_before(std::size_t) override {}

  Tensor decoder() override {
    r_.tape().set_module("transformer", -1);
    const Tensor embedded = embedding(r_, parameter(0), tokens_);
    ids_ = positions();
    const Tensor position = embedding(r_, parameter(1), ids_);
    Tensor x = add(r_, embedded, position);
    make_mask();
    x = dropout(r_, x, model_.dropout);
    for (std::int64_t l = 0; l < model_.layers; ++l) {
      r_.tape().set_module(names_[static_cast<std::size_t>(l)], static_cast<std::int32_t>(l));
      x = in_unit(r_, l, x, [&](const Tensor& entered) { return layer(l, entered); });
    }
    r_.tape().set_module("transformer.ln_f", -1);
    first_ = 2 + kPerBlock * static_cast<std::size_t>(model_.layers);
    x = layer_norm(r_, x, parameter(first_), parameter(first_ + 1));
    mask_ = ids_ = {};
    return x;
  }

 private:
  [[nodiscard]] const Tensor& own(std::size_t at) const { return parameter(first_ + at); }
  Tensor conv1d(const Tensor& x, std::size_t weight) { return addmm(r_, own(weight + 1), x, own(weight)); }

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
    Tensor x = layer_norm(r_, residual, own(0), own(1));
    const Tensor attended = self_attention(x);
    x = add(r_, attended, residual);
    return second_half(std::move(x));
  }
  Tensor second_half(Tensor x) {
    const Tensor residual = x;
    x = layer_norm(r_, x, own(6), own(7));
    const Tensor y = feed_forward(x);
    return add(r_, residual, y);
  }

  Tensor self_attention(const Tensor& x) {
    const Tensors parts = split_last(r_, conv1d(x, 2), 3);
    const Tensor q = heads_of(parts[0], model_.heads);
    const Scalar type = parts[0].scalar();
    const Tensor k = cached(heads_of(parts[1], model_.heads), type), v = cached(heads_of(parts[2], model_.heads), type);
    Tensor y = attend(q, k, v);
    y = conv1d(y, 4);
    return dropout(r_, y, model_.dropout);
  }

  Tensor feed_forward(const Tensor& input) {
    Tensor x = conv1d(input, 8);
    x = new_gelu(x);
    x = conv1d(x, 10);
    return dropout(r_, x, model_.dropout);
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

  std::size_t first_ = 0;
};

}  // namespace

std::unique_ptr<Program> gpt2_program(Runtime& runtime, const model::Model& model, const ProgramOptions& options) {
  return std::make_unique<Gpt2>(runtime, model, options);
}

}  // namespace shard::like::eager
