// transformers 5: modeling_llama.py, modeling_gpt2.py, integrations/sdpa_attention.py, cache_utils.py, loss_utils.py.
#include <array>
#include <functional>
#include <string>
#include <utility>

#include "sim/like/eager/operators.h"
#include "sim/like/eager/programs.h"
#include "sim/like/eager/sharding.h"

namespace shard::like::eager {
namespace {

/// What both families have in common: the batch, the cache, the loss.
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

  /// eager_attention_forward of both families, and the reshape behind it.
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

class Llama final : public HuggingFace {
 public:
  using HuggingFace::HuggingFace;

 protected:
  [[nodiscard]] std::string block_prefix() const override { return "model.layers."; }
  [[nodiscard]] Scalar softmax_type() const override { return Scalar::f32; }
  [[nodiscard]] std::size_t per_block() const {
    return 9U + (model_.attention_bias ? 4U : 0U) + (model_.mlp_bias ? 3U : 0U);
  }
  [[nodiscard]] std::size_t final_norm() const { return 1 + per_block() * static_cast<std::size_t>(model_.layers); }
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

  /// The next of the block's weights, and its bias.
  Tensor project(const Tensor& x, bool biased) {
    const std::size_t weight = next_;
    next_ += biased ? 2 : 1;
    return linear(r_, x, parameter(weight), biased ? parameter(weight + 1) : Tensor{});
  }

  Tensor block(std::int64_t l, const Tensor& input) override {
    next_ = 1 + per_block() * static_cast<std::size_t>(l);
    const std::size_t first_norm = next_ + per_block() - 2;
    Tensor residual = input;
    Tensor x = norm(residual, parameter(first_norm));
    x = self_attention(x);
    x = add(r_, residual, x);
    residual = x;
    x = norm(x, parameter(first_norm + 1));
    x = feed_forward(x);
    return add(r_, residual, x);
  }

  Tensor self_attention(const Tensor& x) {
    const bool biased = model_.attention_bias;
    Tensor q = heads_of(project(x, biased), model_.heads);
    Tensor k = heads_of(project(x, biased), model_.kv_heads);
    Tensor v = heads_of(project(x, biased), model_.kv_heads);
    Tensor q_turned = rotated(q), k_turned = rotated(k);
    q = std::move(q_turned);
    k = std::move(k_turned);
    return project_out(q, k, v);
  }
  Tensor project_out(const Tensor& q, Tensor& k, Tensor& v) {
    const Tensor keys = cached(k, k.scalar()), values = cached(v, k.scalar());
    k = v = {};
    const Tensor y = attend(q, keys, values);
    return project(y, model_.attention_bias);
  }

  Tensor feed_forward(const Tensor& x) {
    const bool biased = model_.mlp_bias;
    Tensor gate = activation(r_, project(x, biased), "silu", Kept::input);
    gate = mul(r_, std::exchange(gate, {}), project(x, biased));
    return project(gate, biased);
  }

  Tensors buffers_;
  Tensor cosine_, sine_;
  std::size_t next_ = 0;
};

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

std::unique_ptr<Program> hugging_face_program(Runtime& runtime, const model::Model& model,
                                              const ProgramOptions& options) {
  if (model.family == model::Family::gpt2) return std::make_unique<Gpt2>(runtime, model, options);
  return std::make_unique<Llama>(runtime, model, options);
}

}  // namespace shard::like::eager
