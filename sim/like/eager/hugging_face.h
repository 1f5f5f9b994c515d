// What transformers' causal models have in common: the batch, masks, the cache, attention's interface, the loss.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "sim/like/eager/operators.h"
#include "sim/like/eager/programs.h"
#include "sim/like/eager/sharding.h"

namespace shard::like::eager {

/// transformers 5: integrations/sdpa_attention.py, masking_utils.py, cache_utils.py, loss_utils.py.
class HuggingFace : public Program {
 public:
  HuggingFace(Runtime& runtime, const model::Model& model, const ProgramOptions& options)
      : r_(runtime), model_(model), options_(options) {}

  void create() override {
    make_parameters();
    for (std::int64_t l = 0; l < model_.layers; ++l)
      names_.push_back(r_.tape().keep(block_prefix() + std::to_string(l)));
    tokens_ = named("input", Category::input, {options_.batch, options_.sequence}, Scalar::i64);
  }

  Tensor loss() override {
    r_.tape().set_part(Part::forward, Category::activation);
    r_.begin_autocast(options_.autocast);
    Tensor loss = forward();
    r_.end_autocast();
    return loss;
  }

  void end_step() override {}

 protected:
  /// Of `before` the module's own buffers, which lie before the parameter of that number.
  virtual void make_buffers_before(std::size_t parameter) = 0;
  [[nodiscard]] virtual std::string block_prefix() const = 0;
  /// The last hidden state.
  virtual Tensor decoder() = 0;
  [[nodiscard]] virtual const Tensor& head() const = 0;
  /// A layer's forward().
  virtual Tensor block(std::int64_t l, const Tensor& x) = 0;
  /// The same, holding what the layer is called with beside x.
  [[nodiscard]] virtual std::function<Tensor(const Tensor&)> with_arguments(std::int64_t l) = 0;

  /// What the model calls: GradientCheckpointingLayer.
  Tensor layer(std::int64_t l, const Tensor& x) {
    const auto named = [this, l, run = options_.checkpoint ? with_arguments(l) : nullptr](const Tensor& input) {
      r_.tape().set_module(names_[static_cast<std::size_t>(l)], static_cast<std::int32_t>(l));
      return run ? run(input) : block(l, input);
    };
    return options_.checkpoint ? r_.checkpoint(x, named) : named(x);
  }

  Tensor named(std::string_view name, Category category, const Dims& sizes, Scalar scalar) {
    r_.tape().set_module("", -1);
    r_.tape().begin_op(r_.tape().keep(name));
    Tensor t = r_.empty(sizes, scalar);
    r_.tape().set_category(t.storage().buffer(), category);
    return t;
  }

  /// past_key_values.update(): the first keys, and values, are put behind nothing of the keys' type, which copies them.
  Tensor cached(const Tensor& x, Scalar of_keys) {
    if (options_.checkpoint) return x;  // off then
    Tensor copy = cat(r_, {x}, 2, of_keys);
    cache_.push_back(copy);
    return copy;
  }

  /// sdpa_attention_forward, and the reshape behind it.
  Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v) {
    if (options_.attention == Attention::eager) return attend_eagerly(q, k, v);
    Tensor y = attention(r_, q, k, v);
    y = contiguous(r_, transpose(r_, y, 1, 2));
    return reshape(r_, y, {options_.batch, options_.sequence, model_.heads * model_.head_dim});
  }

  /// eager_attention_forward, the same in all of them, and the reshape behind it.
  Tensor attend_eagerly(const Tensor& q, const Tensor& few_keys, const Tensor& few_values) {
    const Tensor keys = repeated(few_keys), values = repeated(few_values);
    Tensor weights = matmul(r_, q, transpose(r_, keys, 2, 3));
    weights = mul_number(r_, weights);
    weights = add(r_, weights, mask_);
    weights = softmax(r_, weights, softmax_type());
    weights = to(r_, weights, r_.autocast ? weights.scalar() : q.scalar());
    Tensor y = matmul(r_, weights, values);
    y = contiguous(r_, transpose(r_, y, 1, 2));
    return reshape(r_, y, {options_.batch, options_.sequence, model_.heads * model_.head_dim});
  }
  /// What the family asks softmax for.
  [[nodiscard]] virtual Scalar softmax_type() const = 0;
  Tensor repeated(const Tensor& x) {
    if (model_.kv_heads == model_.heads) return x;
    const Dims& s = x.sizes();
    const Tensor apart = reshape(r_, x, {s[0], s[1], 1, s[2], s[3]});
    const Tensor wide = expand(r_, apart, {s[0], s[1], model_.heads / s[1], s[2], s[3]});
    return reshape(r_, wide, {s[0], model_.heads, s[2], s[3]});
  }

  /// find_packed_sequence_indices: whether positions begin again, which is looked for where no cache is used.
  void look_for_packed_sequences() {
    const std::int64_t b = options_.batch, s = options_.sequence;
    r_.tape().begin_op("packed sequences");
    const Tensor before_first = r_.empty({b, 1}, Scalar::i64);
    Tensor prepended = r_.empty({b, s + 1}, Scalar::i64);
    const Tensor difference = r_.empty({b, s}, Scalar::i64);
    prepended = {};
    Tensor begins = r_.empty({b, s}, Scalar::boolean);
    const Tensor sum = r_.empty({b, s}, Scalar::i64);
    { const Tensor cast = r_.empty({b, s}, Scalar::i64); }
    begins = {};
    const Tensor none = r_.empty({b}, Scalar::boolean), all = r_.empty({}, Scalar::boolean);
  }

  /// create_causal_mask: none for sdpa.
  void make_mask() {
    if (options_.checkpoint) look_for_packed_sequences();
    if (options_.attention != Attention::eager) return;
    const std::int64_t b = options_.batch, s = options_.sequence;
    r_.tape().begin_op("causal mask");
    Tensor allowed;
    {
      const Tensor batch = r_.empty({b}, Scalar::i64), head = r_.empty({1}, Scalar::i64);
      Tensors ranges;
      for (int i = 0; i < 2; ++i) {
        const Tensor range = r_.empty({s}, Scalar::i64);
        ranges.push_back(r_.empty({s}, Scalar::i64));
      }
      allowed = r_.empty({1, 1, s, s}, Scalar::boolean);
    }
    const Tensor zero = r_.empty({}, options_.precision), least = r_.empty({}, options_.precision);
    mask_ = r_.empty({b, 1, s, s}, options_.precision);
  }

  Tensor heads_of(const Tensor& x, std::int64_t heads) {
    return transpose(r_, reshape(r_, x, {options_.batch, options_.sequence, heads, model_.head_dim}), 1, 2);
  }

  Tensor positions() {
    r_.tape().begin_op("positions");
    const Tensor range = r_.empty({options_.sequence}, Scalar::i64);
    return r_.empty({1, options_.sequence}, Scalar::i64);
  }

  [[nodiscard]] const Tensor& parameter(std::size_t at) const { return r_.parameters()[at]; }

  Runtime& r_;
  const model::Model& model_;
  ProgramOptions options_;
  std::vector<std::string_view> names_;
  Tensor tokens_;
  Tensor mask_, ids_;
  Tensors cache_;

 private:
  void make_parameters() {
    if (r_.sharding != nullptr) {
      r_.sharding->create(model_, [&] {
        for (std::size_t p = 0; p <= model_.parameters.size(); ++p) make_buffers_before(p);
      });
      return;
    }
    for (std::size_t p = 0; p < model_.parameters.size(); ++p) {
      make_buffers_before(p);
      Dims sizes;
      for (const std::int64_t s : model_.parameters[p].shape) sizes.push(s);
      Tensor t = named(model_.parameters[p].name, Category::parameter, sizes, options_.precision);
      t.set_parameter(static_cast<std::int32_t>(p));
      r_.parameters().push_back(t);
    }
    make_buffers_before(model_.parameters.size());
  }

  Tensor forward() {
    enter_model(r_);
    const Tensor hidden = decoder();
    r_.tape().set_module("lm_head", -1);
    const Tensor logits = linear(r_, hidden, head(), {});
    Tensor loss = causal_loss(logits);
    leave_model(r_, loss, logits);
    cache_.clear();  // the model's output ends with the statement
    return loss;
  }

  /// ForCausalLMLoss.
  Tensor causal_loss(const Tensor& logits) {
    r_.tape().set_module("loss", -1);
    const Tensor scores = to(r_, logits, Scalar::f32);
    r_.tape().begin_op("labels");
    const Tensor labels = r_.empty({options_.batch, options_.sequence + 1}, Scalar::i64);
    const Tensor shifted = r_.empty({options_.batch, options_.sequence}, Scalar::i64);
    const Tensor rows = reshape(r_, scores, {tokens_.elements(), model_.vocabulary});
    return cross_entropy(r_, rows, shifted);
  }
};

}  // namespace shard::like::eager
