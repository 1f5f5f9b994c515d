// The CS336 course's transformer: cs336_basics/model.py, nn_utils.py and cs336_systems/benchmark_nvtx.py of
// LINYUNLinYun/CS336-assignment2-systems at d7b9b89129.
#include <string>

#include "sim/like/eager/operators.h"
#include "sim/like/eager/programs.h"

namespace shard::like::eager {
namespace {

class Course final : public Program {
 public:
  Course(Runtime& runtime, const model::Model& model, const ProgramOptions& options)
      : r_(runtime), model_(model), options_(options) {}

  void create() override {
    // module.to(device): a module's parameters, then its buffers, modules in order. The rotary table is the second
    // module's only tensor.
    for (std::size_t p = 0; p < order_size(); ++p) {
      const std::size_t at = registration(p);
      const Parameter& parameter = model_.parameters[at];
      Dims sizes;
      for (const std::int64_t s : parameter.shape) sizes.push(s);
      Tensor t = r_.named(parameter.name, Category::parameter, sizes, options_.precision);
      t.set_parameter(static_cast<std::int32_t>(p));
      r_.parameters().push_back(t);
      if (p == 0)
        table_ =
            r_.named("rotary table", Category::not_known, {2, model_.max_sequence, model_.head_dim / 2}, Scalar::f32);
    }
    for (std::int64_t l = 0; l < model_.layers; ++l) names_.push_back(block_name(l));
    inputs_ = r_.named("input", Category::input, {options_.batch, options_.sequence}, Scalar::i64);
    targets_ = r_.named("targets", Category::input, {options_.batch, options_.sequence}, Scalar::i64);
  }

  Tensor loss() override {
    r_.tape().set_part(Part::forward, Category::activation);
    r_.begin_autocast(options_.autocast);
    logits_ = forward(inputs_);
    r_.end_autocast();
    r_.tape().set_module("loss", -1);
    const Tensor scores = to(r_, logits_, Scalar::f32);
    const Tensor rows = reshape(r_, scores, {inputs_.elements(), model_.vocabulary});
    return cross_entropy(r_, rows, targets_);
  }

  void end_step() override { logits_ = {}; }

 private:
  // The course registers a block's projections, its feed-forward part, then its norms: as a llama does.
  [[nodiscard]] std::size_t order_size() const { return model_.parameters.size(); }
  /// w1, w2, w3 of the course are gate, down and up.
  [[nodiscard]] std::size_t registration(std::size_t p) const {
    constexpr std::size_t kPerBlock = 9, kUp = 5, kDown = 6;
    if (p == 0 || p > kPerBlock * static_cast<std::size_t>(model_.layers)) return p;
    const std::size_t in_block = (p - 1) % kPerBlock;
    return in_block == kUp ? p + 1 : in_block == kDown ? p - 1 : p;
  }
  [[nodiscard]] std::string_view block_name(std::int64_t l) { return r_.tape().keep("layers." + std::to_string(l)); }
  [[nodiscard]] const Tensor& weight(std::size_t in_block) const { return r_.parameters()[1 + 9 * block_ + in_block]; }

  Tensor forward(const Tensor& tokens) {
    r_.tape().set_module("token_embeddings", -1);
    const Tensor embedded = index_rows(r_, r_.parameters()[0], tokens);
    Tensor x = embedded;
    for (std::int64_t l = 0; l < model_.layers; ++l) {
      block_ = static_cast<std::size_t>(l);
      r_.tape().set_module(names_[block_], static_cast<std::int32_t>(l));
      x = block(x);
    }
    r_.tape().set_module("ln_final", -1);
    x = rms_norm(x, r_.parameters()[r_.parameters().size() - 2]);
    r_.tape().set_module("lm_head", -1);
    return project(x, r_.parameters().back());
  }

  Tensor project(const Tensor& x, const Tensor& w) { return einsum(r_, "abi,oi->abo", x, w); }

  Tensor rms_norm(const Tensor& input, const Tensor& w) {
    const Scalar in_dtype = input.scalar();
    Tensor x = to(r_, input, Scalar::f32);
    Tensor rms = pow_number(r_, x);
    rms = mean_last(r_, rms);
    rms = add_number(r_, rms);
    rms = rsqrt(r_, rms);
    x = mul(r_, x, rms);
    return to(r_, mul(r_, w, x), in_dtype);
  }

  Tensor block(const Tensor& x) {
    const Tensor x_attn = attention(rms_norm(x, weight(7)));
    const Tensor attn_sublayer_output = add(r_, x, x_attn);
    const Tensor x_ffn = feed_forward(rms_norm(attn_sublayer_output, weight(8)));
    return add(r_, attn_sublayer_output, x_ffn);
  }

  Tensor feed_forward(const Tensor& x) {
    const Tensor gate = silu(project(x, weight(4)));
    const Tensor product = mul(r_, gate, project(x, weight(6)));
    return project(product, weight(5));
  }
  Tensor silu(const Tensor& x) { return mul(r_, x, activation(r_, x, "sigmoid", Kept::result)); }

  Tensor heads(const Tensor& x) {
    const Tensor apart = reshape(r_, x, {options_.batch, options_.sequence, model_.heads, model_.head_dim});
    return permute(r_, apart, {0, 2, 1, 3});
  }

  Tensor rotate(const Tensor& x) {
    const std::int64_t half = model_.head_dim / 2;
    const Tensor pairs = reshape(r_, x, {options_.batch, model_.heads, options_.sequence, half, 2});
    const Tensors parts = unbind_first(r_, permute(r_, pairs, {4, 0, 1, 2, 3}));
    const Tensor cosine = table_.view({options_.sequence, half}, {half, 1});
    const Tensor& sine = cosine;
    Tensor first = mul(r_, cosine, parts[0]), second = mul(r_, sine, parts[1]);
    const Tensor x1 = sub(r_, first, second);
    first = second = {};
    first = mul(r_, sine, parts[0]);
    second = mul(r_, cosine, parts[1]);
    const Tensor x2 = add(r_, first, second);
    first = second = {};
    return cat(r_, {x1, x2}, 3);
  }

  Tensor attention(const Tensor& x) {
    Tensor q = project(x, weight(0)), k = project(x, weight(1)), v = project(x, weight(2));
    q = heads(q);
    k = heads(k);
    v = heads(v);
    q = rotate(q);
    k = rotate(k);
    r_.tape().begin_op("arange");
    const Tensor iota = r_.empty({options_.sequence}, Scalar::i64);
    r_.tape().begin_op("ge");
    const Tensor mask = r_.empty({1, options_.sequence, options_.sequence}, Scalar::boolean);
    Tensor output = scaled_dot_product(q, k, v, mask);
    const Dims sizes{options_.batch, options_.sequence, model_.heads * model_.head_dim};
    output = reshape(r_, permute(r_, output, {0, 2, 1, 3}), sizes);
    return project(output, weight(3));
  }

  Tensor scaled_dot_product(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
    Tensor scores = div_number(r_, einsum(r_, "bhqd,bhkd->bhqk", q, k));
    scores = where_number(r_, mask, scores);
    const Tensor weights = shares(scores);
    return einsum(r_, "bhqk,bhkd->bhqd", weights, v);
  }

  /// softmax() of nn_utils.py.
  Tensor shares(const Tensor& x) {
    const Tensor rescaled = sub(r_, x, max_last(r_, x));
    const Tensor exponentiated = exp(r_, rescaled);
    return div(r_, exponentiated, sum_last(r_, exponentiated));
  }

  Runtime& r_;
  const model::Model& model_;
  ProgramOptions options_;
  std::vector<std::string_view> names_;
  std::size_t block_ = 0;
  Tensor table_, inputs_, targets_, logits_;
};

}  // namespace

std::unique_ptr<Program> course_program(Runtime& runtime, const model::Model& model, const ProgramOptions& options) {
  return std::make_unique<Course>(runtime, model, options);
}

}  // namespace shard::like::eager
