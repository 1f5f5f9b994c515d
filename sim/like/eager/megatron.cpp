// Module by module; what is said behind a rule is the file of megatron/core that has it.
#include "sim/like/eager/megatron.h"

#include <array>
#include <string>
#include <utility>

#include "sim/like/eager/operators.h"

namespace shard::like::eager {
namespace {

/// utils.py, GlobalMemoryBuffer: one buffer that grows and stays; "mpu" has scores and gathered sequences.
class GlobalBuffer {
 public:
  explicit GlobalBuffer(Runtime& runtime) : r_(runtime) {}
  void need(std::int64_t elements, Scalar scalar) {
    if (buffer_ && buffer_.elements() >= elements) return;
    r_.tape().begin_op("global buffer");
    buffer_ = r_.empty({elements}, scalar);
    r_.tape().set_category(buffer_.storage().buffer(), Category::workspace);
  }

 private:
  Runtime& r_;
  Tensor buffer_;
};

/// Of a block's parameters, in the order in which modules are registered.
enum InBlock : std::size_t {
  kNorm1,
  kNorm1Bias,
  kProjection,
  kProjectionBias,
  kQkv,
  kQkvBias,
  kNorm2,
  kNorm2Bias,
  kUp,
  kUpBias,
  kDown,
  kDownBias,
  kPerBlock
};
constexpr std::size_t kBefore = 2;  ///< the embeddings'

class Megatron final : public Program {
 public:
  Megatron(Runtime& runtime, const model::Model& model, const ProgramOptions& options, const MegatronOptions& megatron)
      : r_(runtime), model_(model), options_(options), megatron_(megatron), global_(runtime) {}

  /// Parallel layers are made on the GPU in 16 bits; what is replicated comes from the host in fp32 (Module.cuda()),
  /// then is cast one by one (transformer/module.py, Float16Module).
  void create() override {
    const std::int64_t t = megatron_.tensor, h = model_.hidden, wide = model_.heads * model_.head_dim / t;
    const std::int64_t f = model_.intermediate / t;
    const std::size_t blocks = static_cast<std::size_t>(model_.layers);
    r_.parameters().resize(kBefore + kPerBlock * blocks + 2 + (model_.tied_embeddings ? 0 : 1));
    parallel(0, "embedding.word_embeddings.weight", {vocabulary(), h});
    for (std::size_t l = 0; l < blocks; ++l) {
      names_.push_back(r_.tape().keep("decoder.layers." + std::to_string(l)));
      const std::string layer = "decoder.layers." + std::to_string(l);
      const auto make = [&](InBlock which, const char* name, const Dims& sizes) {
        parallel(at(l, which), layer + name, sizes);
      };
      make(kProjection, ".self_attention.linear_proj.weight", {h, wide});
      make(kProjectionBias, ".self_attention.linear_proj.bias", {h});
      make(kQkv, ".self_attention.linear_qkv.weight", {3 * wide, h});
      make(kQkvBias, ".self_attention.linear_qkv.bias", {3 * wide});
      make(kUp, ".mlp.linear_fc1.weight", {f, h});
      make(kUpBias, ".mlp.linear_fc1.bias", {f});
      make(kDown, ".mlp.linear_fc2.weight", {h, f});
      make(kDownBias, ".mlp.linear_fc2.bias", {h});
    }
    if (!model_.tied_embeddings) parallel(r_.parameters().size() - 1, "output_layer.weight", {vocabulary(), h});
    replicate(blocks);
  }

  Tensor loss() override {
    r_.tape().set_part(Part::forward, Category::activation);
    const std::int64_t b = options_.batch, s = options_.sequence;
    inputs_.push_back(model_tensor(r_, "tokens", Category::input, {b, s}, Scalar::i64));
    inputs_.push_back(model_tensor(r_, "positions", Category::input, {b, s}, Scalar::i64));
    inputs_.push_back(model_tensor(r_, "attention mask", Category::input, {1, 1, s, s}, Scalar::boolean));
    Tensor x = embed();
    for (std::int64_t l = 0; l < model_.layers; ++l) x = layer(l, x);
    r_.tape().set_module("decoder.final_layernorm", -1);
    const std::size_t after = kBefore + kPerBlock * static_cast<std::size_t>(model_.layers);
    x = layer_norm(r_, x, r_.parameters()[after], r_.parameters()[after + 1]);
    r_.tape().set_module("output_layer", -1);
    return cross_entropy_of(column_linear(x, model_.tied_embeddings ? r_.parameters()[0] : r_.parameters().back(), {}));
  }

  void end_step() override { inputs_.clear(); }

 private:
  /// As tokenizers are padded to 128 a rank.
  [[nodiscard]] std::int64_t vocabulary() const {
    const std::int64_t unit = 128 * megatron_.tensor;
    return (model_.vocabulary + unit - 1) / unit * 128;
  }
  [[nodiscard]] static std::size_t at(std::size_t layer, InBlock which) { return kBefore + kPerBlock * layer + which; }
  [[nodiscard]] const Tensor& of(InBlock which) const { return r_.parameters()[at(layer_, which)]; }
  /// Of a sequence on this rank, outside of products.
  [[nodiscard]] std::int64_t part() const {
    return megatron_.sequence_parallel ? options_.sequence / megatron_.tensor : options_.sequence;
  }

  void parallel(std::size_t number, std::string_view name, const Dims& sizes) {
    Tensor t = model_tensor(r_, name, Category::parameter, sizes, options_.precision);
    t.set_parameter(static_cast<std::int32_t>(number));
    r_.parameters()[number] = std::move(t);
  }

  void replicate(std::size_t blocks) {
    const std::int64_t h = model_.hidden;
    std::vector<std::pair<std::size_t, Dims>> whole{{1, {model_.max_sequence, h}}};
    for (std::size_t l = 0; l < blocks; ++l)
      for (const InBlock which : {kNorm1, kNorm1Bias, kNorm2, kNorm2Bias}) whole.push_back({at(l, which), {h}});
    const std::size_t after = kBefore + kPerBlock * blocks;
    whole.push_back({after, {h}});
    whole.push_back({after + 1, {h}});
    Tensors full;
    for (const auto& [number, sizes] : whole)
      full.push_back(model_tensor(r_, "replicated, fp32", Category::parameter, sizes, Scalar::f32));
    for (std::size_t i = 0; i < whole.size(); ++i) {
      parallel(whole[i].first, i == 0 ? "embedding.position_embeddings.weight" : "norm", whole[i].second);
      full[i] = {};
    }
  }

  /// tensor_parallel/layers.py, VocabParallelEmbedding; models/common/embeddings/language_model_embedding.py.
  Tensor embed() {
    r_.tape().set_module("embedding", -1);
    Tensor words = masked_embedding();
    Tensor places = embedding(r_, r_.parameters()[1], inputs_[1]);
    Tensor sum = add(r_, words, places);
    Tensor x = contiguous(r_, transpose(r_, sum, 0, 1));
    sum = words = places = {};
    if (megatron_.sequence_parallel) x = scattered(x);
    return dropout(r_, x, static_cast<float>(megatron_.dropout));
  }
  /// Rows that another rank has are asked for as the first, and become zeros in place.
  Tensor masked_embedding() {
    if (megatron_.tensor == 1) return embedding(r_, r_.parameters()[0], inputs_[0]);
    r_.tape().begin_op("mask");
    const std::int64_t n = inputs_[0].elements();
    Tensor mask;
    {
      const Tensor below = flags(n), above = flags(n);
      mask = flags(n);
    }
    Tensor ids;
    {
      const Tensor copy = r_.empty(inputs_[0].sizes(), Scalar::i64);
      ids = r_.empty(inputs_[0].sizes(), Scalar::i64);
    }
    Tensor rows = embedding(r_, r_.parameters()[0], ids);
    Tensor y = rows.view(rows.sizes(), rows.strides());
    r_.graph().record(y, {r_.graph().edge(rows)}, [this, mask = mask.saved()](const Tensors& g) -> Tensors {
      r_.tape().begin_op("index_put");
      return {r_.clone(g[0])};
    });
    return y;
  }

  /// mappings.py, scatter_to_sequence_parallel_region: a copy of this rank's part; backward gathers.
  Tensor scattered(const Tensor& x) {
    r_.tape().begin_op("scatter");
    Tensor y = r_.empty({part(), options_.batch, model_.hidden}, x.scalar());
    r_.graph().record(y, {r_.graph().edge(x)}, [this, from = x.sizes()](const Tensors& g) -> Tensors {
      r_.tape().begin_op("all-gather");
      return {r_.empty(from, g[0].scalar())};
    });
    return y;
  }

  /// layers.py, LinearWithGradAccumulationAndAsyncCommunication without fusion: a bias is added by a kernel of its own.
  /// A sequence that is cut is gathered into the global buffer, in backward again.
  Tensor column_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    const bool cut = megatron_.sequence_parallel;
    if (cut) gather(x);
    r_.tape().begin_op("mm");
    const std::int64_t s = options_.sequence, b = options_.batch, out = weight.size(0);
    Tensor product = r_.mm(whole_rows(x, s), transposed(weight, 0, 1));
    Tensor y = product.view({s, b, out}, contiguous_strides({s, b, out}));
    product = {};
    if (bias) {
      r_.tape().begin_op("add");
      y = r_.elementwise({y, bias}, y.scalar());
    }
    std::vector<Edge> edges{r_.graph().edge(x), r_.graph().edge(weight)};
    if (bias) edges.push_back(r_.graph().edge(bias));
    r_.graph().record(y, std::move(edges),
                      [this, x = x.saved(), weight = weight.saved(), cut, biased = bool(bias)](const Tensors& g) {
                        return column_backward(g[0], x, weight, cut, biased);
                      });
    return y;
  }

  Tensors column_backward(const Tensor& gradient, const Tensor& x, const Tensor& weight, bool cut, bool biased) {
    r_.tape().begin_op("mm");
    if (cut) gather(x);
    const std::int64_t rows = gradient.elements() / weight.size(0);
    const Tensor flat = r_.reshape(gradient, {rows, weight.size(0)});
    Tensor dx = r_.mm(flat, weight);
    dx = dx.view({gradient.size(0), gradient.size(1), weight.size(1)},
                 contiguous_strides({gradient.size(0), gradient.size(1), weight.size(1)}));
    Tensor own;
    if (cut) {
      r_.tape().begin_op("reduce-scatter");
      own = r_.empty(x.sizes(), x.scalar());
      r_.tape().begin_op("mm");
    }
    Tensor dw = r_.mm(transposed(flat, 0, 1), whole_rows(x, gradient.size(0)));
    Tensor db;
    if (biased) db = sum_of_rows(flat);
    Tensors all{cut ? std::move(own) : std::move(dx), std::move(dw)};
    if (biased) all.push_back(std::move(db));
    return all;
  }
  Tensor sum_of_rows(const Tensor& flat) {
    r_.tape().begin_op("sum");
    const Tensor row = r_.reduce(flat, 1, flat.scalar());
    return row.view({flat.size(1)}, {1});
  }
  void gather(const Tensor& x) { global_.need(x.elements() * megatron_.tensor, x.scalar()); }
  /// (s b, columns) of what a product reads: x, or what was gathered of it.
  Tensor whole_rows(const Tensor& x, std::int64_t s) {
    const std::int64_t columns = x.sizes().back(0), rows = s * x.size(1);
    return x.view({rows, columns}, {columns, 1});
  }

  /// layers.py, RowParallelLinear: summed over ranks in place, or summed and cut into a new tensor.
  Tensor row_linear(const Tensor& x, const Tensor& weight) {
    r_.tape().begin_op("mm");
    const std::int64_t s = x.size(0), b = x.size(1), h = weight.size(0);
    const Tensor product = r_.mm(whole_rows(x, s), transposed(weight, 0, 1));
    Tensor y = product.view({s, b, h}, contiguous_strides({s, b, h}));
    r_.graph().record(y, {r_.graph().edge(x), r_.graph().edge(weight)},
                      [this, x = x.saved(), weight = weight.saved()](const Tensors& g) {
                        return column_backward(g[0], x, weight, false, false);
                      });
    if (!megatron_.sequence_parallel) return y;
    r_.tape().begin_op("reduce-scatter");
    Tensor own = r_.empty({part(), b, h}, y.scalar());
    r_.graph().record(own, {r_.graph().edge(y)}, [this, from = y.sizes()](const Tensors& g) -> Tensors {
      r_.tape().begin_op("all-gather");
      return {r_.empty(from, g[0].scalar())};
    });
    return own;
  }

  /// transformer/transformer_layer.py.
  Tensor layer(std::int64_t l, const Tensor& input) {
    layer_ = static_cast<std::size_t>(l);
    r_.tape().set_module(names_[layer_], static_cast<std::int32_t>(l));
    Tensor x = input;
    {
      const Tensor normed = layer_norm(r_, x, of(kNorm1), of(kNorm1Bias));
      x = bias_dropout_add(attend(normed), of(kProjectionBias), x);
    }
    const Tensor normed = layer_norm(r_, x, of(kNorm2), of(kNorm2Bias));
    return bias_dropout_add(feed_forward(normed), of(kDownBias), x);
  }
  /// fusions/fused_bias_dropout.py, bias_dropout_add_unfused.
  Tensor bias_dropout_add(const Tensor& x, const Tensor& bias, const Tensor& residual) {
    const Tensor biased = add(r_, x, bias);
    return add(r_, residual, dropout(r_, biased, static_cast<float>(megatron_.dropout)));
  }
  /// transformer/mlp.py without fusion.
  Tensor feed_forward(const Tensor& x) {
    Tensor middle = column_linear(x, of(kUp), {});
    middle = add(r_, middle, of(kUpBias));
    middle = activation(r_, middle, "gelu", Kept::input);
    return row_linear(middle, of(kDown));
  }

  /// transformer/dot_product_attention.py.
  Tensor attend(const Tensor& x) {
    const Tensor mixed = column_linear(x, of(kQkv), of(kQkvBias));
    return row_linear(core_attention(mixed), of(kProjection));
  }
  Tensor core_attention(const Tensor& mixed) {
    const std::int64_t s = options_.sequence, b = options_.batch, heads = model_.heads / megatron_.tensor,
                       d = model_.head_dim;
    const Tensors parts = split_last(r_, reshape(r_, mixed, {s, b, heads, 3 * d}), 3);
    const Tensor q = reshape(r_, parts[0], {s, b * heads, d}), k = reshape(r_, parts[1], {s, b * heads, d});
    global_.need(b * heads * s * s, mixed.scalar());
    const Tensor scores = scores_of(transpose(r_, q, 0, 1), transpose(r_, transpose(r_, k, 0, 1), 1, 2));
    Tensor shares = softmax(r_, masked(scores), scores.scalar() == Scalar::bf16 ? Scalar::bf16 : scores.scalar());
    shares = dropout(r_, shares, static_cast<float>(megatron_.dropout));
    const Tensor v = reshape(r_, parts[2], {s, b * heads, d});
    const Tensor flat = reshape(r_, shares, {b * heads, s, s});
    Tensor context = reshape(r_, bmm(r_, flat, transpose(r_, v, 0, 1)), {b, heads, s, d});
    context = contiguous(r_, permute(r_, context, {2, 0, 1, 3}));
    return reshape(r_, context, {s, b, heads * d});
  }
  /// baddbmm with a scale: in backward each gradient is scaled into a tensor of its own.
  Tensor scores_of(const Tensor& q, const Tensor& k) {
    r_.tape().begin_op("baddbmm");
    Tensor y = r_.bmm(q, k);
    r_.graph().record(y, {r_.graph().edge(q), r_.graph().edge(k)},
                      [this, q = q.saved(), k = k.saved()](const Tensors& g) -> Tensors {
                        const auto scaled = [&](const Tensor& a, const Tensor& c) {
                          r_.tape().begin_op("baddbmm");
                          const Tensor product = r_.bmm(a, c);
                          return r_.elementwise({product}, product.scalar());
                        };
                        Tensor dq = scaled(g[0], transposed(k, 1, 2));
                        Tensor dk = scaled(transposed(q, 1, 2), g[0]);
                        return {std::move(dq), std::move(dk)};
                      });
    return y;
  }
  /// fusions/fused_softmax.py: masked_fill_ of a view of the scores. Backward makes the gradient of the view into one
  /// of what it is a view of (as_strided), then that into one where the mask is applied to a copy (CopySlices).
  Tensor masked(const Tensor& scores) {
    const std::int64_t s = options_.sequence;
    const Dims sizes{options_.batch, scores.size(0) / options_.batch, s, s};
    Tensor y = scores.view(scores.sizes(), scores.strides());
    r_.graph().record(y, {r_.graph().edge(scores)}, [this](const Tensors& g) -> Tensors {
      r_.tape().begin_op("masked_fill_");
      Tensor base = r_.clone(g[0]);
      const Tensor copy = r_.clone(g[0]), filled = r_.clone(g[0]);
      return {std::move(base)};
    });
    Tensor view = y.view(sizes, contiguous_strides(sizes));
    r_.graph().record(view, {r_.graph().edge(y)}, [this, from = y.sizes()](const Tensors& g) -> Tensors {
      r_.tape().begin_op("as_strided");
      return {r_.empty(from, g[0].scalar())};
    });
    return view;
  }

  /// tensor_parallel/cross_entropy.py, and the mean of pretrain_gpt.py. The shares are computed in place of the copy in
  /// fp32, and their gradient in place of the shares.
  Tensor cross_entropy_of(Tensor logits) {
    r_.tape().set_module("loss", -1);
    const std::int64_t n = options_.batch * options_.sequence;
    Tensor labels = integers(n);
    Tensor shares = r_.clone(logits, Scalar::f32);
    r_.tape().begin_op("cross entropy");
    Tensor highest = floats(n);
    { const Tensor indices = integers(n); }
    Tensor elsewhere;
    {
      const Tensor below = flags(n), above = flags(n);
      elsewhere = flags(n);
    }
    Tensor target;
    {
      const Tensor copy = integers(n);
      target = integers(n);
    }
    Tensor predicted, sum;
    {
      const Tensor range = integers(n);
      {
        const Tensor picked = floats(n);
        predicted = floats(n);
      }
      sum = floats(n);
    }
    Tensor losses;
    {
      const Tensor logarithm = floats(n);
      losses = floats(n);
    }
    highest = predicted = sum = {};
    r_.graph().record(losses, {r_.graph().edge(logits)},
                      [this, target, elsewhere, shares, n](const Tensors&) -> Tensors {
                        r_.tape().begin_op("cross entropy");
                        const Tensor range = integers(n), update = floats(n);
                        return {shares.view(shares.sizes(), shares.strides())};
                      });
    shares = elsewhere = target = {};
    r_.tape().begin_op("clone");
    const Tensor turned = floats(n);
    Tensor through = turned;
    r_.graph().record(through, {r_.graph().edge(losses)}, [](const Tensors& g) -> Tensors { return {g[0]}; });
    losses = {};
    labels = {};
    logits = {};
    r_.tape().begin_op("mean");
    Tensor mean = r_.empty({}, Scalar::f32);
    r_.graph().record(mean, {r_.graph().edge(through)}, [this, n](const Tensors&) -> Tensors {
      r_.tape().begin_op("mean");
      return {floats(n)};
    });
    return mean;
  }
  Tensor floats(std::int64_t n) { return r_.empty({n}, Scalar::f32); }
  Tensor integers(std::int64_t n) { return r_.empty({n}, Scalar::i64); }
  Tensor flags(std::int64_t n) { return r_.empty({n}, Scalar::boolean); }

  Runtime& r_;
  const model::Model& model_;
  ProgramOptions options_;
  MegatronOptions megatron_;
  GlobalBuffer global_;
  std::vector<std::string_view> names_;
  std::size_t layer_ = 0;
  Tensors inputs_;
};

}  // namespace

std::unique_ptr<Program> megatron_program(Runtime& runtime, const model::Model& model, const ProgramOptions& options,
                                          const MegatronOptions& megatron) {
  return std::make_unique<Megatron>(runtime, model, options, megatron);
}

}  // namespace shard::like::eager
