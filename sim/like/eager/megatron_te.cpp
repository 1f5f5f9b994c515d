// Llamas of Megatron-LM core by Transformer Engine's layers (get_gpt_layer_with_transformer_engine_spec): gradients of
// weights are added to the buffer by the product itself, norms are one with the product behind them.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/like/eager/megatron.h"
#include "sim/like/eager/operators.h"

namespace shard::like::eager {
namespace {

/// Of a layer's parameters, in the order in which modules are registered.
enum InTeLayer : std::size_t { kTeProj, kTeQkvNorm, kTeQkv, kTeFc2, kTeFc1Norm, kTeFc1, kTePerLayer };

class MegatronTe final : public Program {
 public:
  MegatronTe(Runtime& runtime, const model::Model& model, const ProgramOptions& options,
             const MegatronOptions& megatron)
      : r_(runtime), model_(model), options_(options), megatron_(megatron) {}

  void create() override {
    const std::int64_t h = model_.hidden;
    add_parameter("embedding.word_embeddings.weight", {vocabulary(), h});
    for (std::int64_t l = 0; l < model_.layers; ++l) {
      const std::string layer = "decoder.layers." + std::to_string(l);
      names_.push_back(r_.tape().keep(layer));
      add_parameter(layer + ".self_attention.linear_proj.weight", {h, query()});
      add_parameter(layer + ".self_attention.linear_qkv.layer_norm_weight", {h});
      add_parameter(layer + ".self_attention.linear_qkv.weight", {query() + 2 * key(), h});
      add_parameter(layer + ".mlp.linear_fc2.weight", {h, ffn()});
      add_parameter(layer + ".mlp.linear_fc1.layer_norm_weight", {h});
      add_parameter(layer + ".mlp.linear_fc1.weight", {2 * ffn(), h});
    }
    add_parameter("decoder.final_layernorm.weight", {h});
    if (!model_.tied_embeddings) add_parameter("output_layer.weight", {vocabulary(), h});
  }

  Tensor loss() override {
    r_.tape().set_part(Part::forward, Category::activation);
    for (const char* name : {"tokens", "labels", "positions"})
      inputs_.push_back(model_tensor(r_, name, Category::input, {options_.batch, options_.sequence}, Scalar::i64));
    r_.tape().set_module("rotary_pos_emb", -1);
    const Tensor freqs = r_.empty({options_.sequence, 1, 1, model_.head_dim}, Scalar::f32);
    Tensor x = embed();
    for (std::int64_t l = 0; l < model_.layers; ++l) x = layer(l, x);
    r_.tape().set_module("decoder.final_layernorm", -1);
    const std::size_t after = 1 + kTePerLayer * static_cast<std::size_t>(model_.layers);
    x = rms_norm(r_, x, r_.parameters()[after]);
    r_.tape().set_module("output_layer", -1);
    return cross_entropy_of(output(x, model_.tied_embeddings ? r_.parameters()[0] : r_.parameters().back()));
  }

  void end_step() override { inputs_.clear(); }

 private:
  [[nodiscard]] std::int64_t query() const { return model_.heads * model_.head_dim / megatron_.tensor; }
  [[nodiscard]] std::int64_t key() const { return model_.kv_heads * model_.head_dim / megatron_.tensor; }
  [[nodiscard]] std::int64_t ffn() const { return model_.intermediate / megatron_.tensor; }
  /// As tokenizers are padded to 128 a rank.
  [[nodiscard]] std::int64_t vocabulary() const {
    const std::int64_t unit = 128 * megatron_.tensor;
    return (model_.vocabulary + unit - 1) / unit * 128;
  }
  [[nodiscard]] bool cut() const { return megatron_.sequence_parallel; }
  [[nodiscard]] std::int64_t part() const { return cut() ? options_.sequence / megatron_.tensor : options_.sequence; }
  Tensor stream(std::int64_t rows, std::int64_t width) { return r_.empty({rows, options_.batch, width}, Scalar::bf16); }
  Tensor whole(std::int64_t width) { return stream(options_.sequence, width); }
  Tensor own(std::int64_t width) { return stream(part(), width); }
  [[nodiscard]] const Tensor& of(InTeLayer which) const { return r_.parameters()[1 + kTePerLayer * layer_ + which]; }

  void add_parameter(std::string_view name, const Dims& sizes) {
    Tensor t = model_tensor(r_, name, Category::parameter, sizes, options_.precision);
    t.set_parameter(static_cast<std::int32_t>(r_.parameters().size()));
    r_.parameters().push_back(std::move(t));
  }

  /// module/base.py: one workspace of cuBLASLt for all products, made with the first.
  void use_workspace() {
    if (workspace_) return;
    const bool large = r_.machine().compute_capability >= 90;
    workspace_ = r_.empty({large ? 33'554'432 : 4'194'304}, Scalar::boolean);
    r_.tape().set_category(workspace_.storage().buffer(), Category::workspace);
  }
  /// module/base.py, get_dummy_wgrad: what autograd is handed in place of a gradient that was added to the buffer, one
  /// a shape, kept for ever.
  Tensor handed_over(const Dims& sizes) {
    Tensor& kept = handed_over_[{sizes[0], sizes[1]}];
    if (!kept) kept = r_.empty(sizes, Scalar::bf16);
    return kept;
  }

  /// tensor_parallel/layers.py, VocabParallelEmbedding, summed and cut over ranks where the sequence is.
  Tensor embed() {
    r_.tape().set_module("embedding", -1);
    const Tensor words = embedding(r_, r_.parameters()[0], inputs_[0]);
    Tensor x = contiguous(r_, transpose(r_, words, 0, 1));
    if (!cut()) return x;
    r_.tape().begin_op("reduce-scatter");
    Tensor mine = own(model_.hidden);
    r_.graph().record(mine, {r_.graph().edge(x)}, [this](const Tensors&) -> Tensors {
      r_.tape().begin_op("all-gather");
      return {whole(model_.hidden)};
    });
    return mine;
  }

  /// module/layernorm_linear.py.
  Tensor norm_linear(const Tensor& x, const Tensor& norm, const Tensor& weight) {
    r_.tape().begin_op("layernorm_linear");
    Tensor normed = own(model_.hidden);
    const Tensor deviation = r_.empty({part() * options_.batch}, Scalar::f32);
    use_workspace();
    Tensor y;
    {
      const Tensor gathered = cut() ? whole(model_.hidden) : Tensor{};
      y = whole(weight.size(0));
    }
    r_.graph().record(y, {r_.graph().edge(x), r_.graph().edge(norm), r_.graph().edge(weight)},
                      [this, x = x.saved(), normed = normed.saved(), deviation, norm = norm.saved(),
                       sizes = weight.sizes()](const Tensors&) -> Tensors {
                        r_.tape().begin_op("layernorm_linear");
                        Tensor gathered = cut() ? whole(model_.hidden) : Tensor{};
                        Tensor to_normed = whole(model_.hidden);
                        if (cut()) to_normed = own(model_.hidden);
                        Tensor given = handed_over(sizes);
                        gathered = {};
                        Tensor dx = own(model_.hidden);
                        return {std::move(dx), r_.empty(norm.sizes(), Scalar::bf16), std::move(given)};
                      });
    return y;
  }

  /// module/linear.py, row-parallel.
  Tensor row_linear(const Tensor& x, const Tensor& weight) {
    r_.tape().begin_op("linear");
    use_workspace();
    Tensor y = whole(model_.hidden);
    if (cut()) y = own(model_.hidden);
    r_.graph().record(y, {r_.graph().edge(x), r_.graph().edge(weight)},
                      [this, x = x.saved(), sizes = weight.sizes()](const Tensors&) -> Tensors {
                        r_.tape().begin_op("linear");
                        const Tensor gathered = cut() ? whole(model_.hidden) : Tensor{};
                        Tensor dx = r_.empty(x.sizes(), Scalar::bf16);
                        return {std::move(dx), handed_over(sizes)};
                      });
    return y;
  }

  /// transformer/transformer_layer.py.
  Tensor layer(std::int64_t l, const Tensor& input) {
    layer_ = static_cast<std::size_t>(l);
    r_.tape().set_module(names_[layer_], static_cast<std::int32_t>(l));
    Tensor x = input;
    {
      const Tensor context = attend(norm_linear(x, of(kTeQkvNorm), of(kTeQkv)));
      const Tensor projected = row_linear(context, of(kTeProj));
      x = add(r_, projected, x);
    }
    const Tensor gated = gate(norm_linear(x, of(kTeFc1Norm), of(kTeFc1)));
    return add(r_, row_linear(gated, of(kTeFc2)), x);
  }

  /// transformer/attention.py: queries are copied out where heads are grouped, both are turned by a fused kernel,
  /// values are made contiguous; then attention. Backward puts the three gradients into one.
  Tensor attend(const Tensor& mixed) {
    r_.tape().begin_op("attention");
    Tensor q, k;
    {
      const Tensor copy = model_.kv_heads == model_.heads ? Tensor{} : whole(query());
      q = whole(query());
    }
    k = whole(key());
    Tensor v = whole(key());
    Tensor y = whole(query());
    const Tensor sums = r_.empty({options_.batch, model_.heads / megatron_.tensor, options_.sequence}, Scalar::f32);
    r_.graph().record(y, {r_.graph().edge(mixed)},
                      [this, q = q.saved(), k = k.saved(), v = v.saved(), y = y.saved(), sums](const Tensors&) {
                        r_.tape().begin_op("attention");
                        Tensor dq = whole(query());
                        const Tensor dk = whole(key()), dv = whole(key());
                        {
                          const Tensor row_sums = r_.empty(sums.sizes(), Scalar::f32);
                          const Tensor sum = r_.empty(dq.sizes(), Scalar::f32);
                        }
                        dq = whole(query());
                        const Tensor turned = whole(key());
                        return Tensors{whole(query() + 2 * key())};
                      });
    return y;
  }

  /// fusions/fused_bias_swiglu.py.
  Tensor gate(const Tensor& x) {
    r_.tape().begin_op("swiglu");
    Tensor y = whole(ffn());
    r_.graph().record(y, {r_.graph().edge(x)}, [this, x = x.saved()](const Tensors&) -> Tensors {
      r_.tape().begin_op("swiglu");
      return {r_.empty(x.sizes(), Scalar::bf16)};
    });
    return y;
  }

  /// tensor_parallel/layers.py, ColumnParallelLinear: the sequence is gathered into a buffer that stays.
  Tensor output(const Tensor& x, const Tensor& weight) {
    if (cut() && !buffer_) buffer_ = whole(model_.hidden);
    r_.tape().begin_op("mm");
    const Tensor& rows = cut() ? buffer_ : x;
    const std::int64_t n = options_.sequence * options_.batch;
    const Dims flat{n, model_.hidden};
    const Tensor made = r_.mm(rows.view(flat, contiguous_strides(flat)), transposed(weight, 0, 1));
    Tensor y = made.view({options_.sequence, options_.batch, vocabulary()},
                         contiguous_strides({options_.sequence, options_.batch, vocabulary()}));
    r_.graph().record(y, {r_.graph().edge(x), r_.graph().edge(weight)},
                      [this, x = x.saved(), weight = weight.saved(), n](const Tensors& g) -> Tensors {
                        r_.tape().begin_op("mm");
                        const Dims of_gradient{n, vocabulary()};
                        Tensor dx = r_.mm(g[0].view(of_gradient, contiguous_strides(of_gradient)), weight);
                        if (cut()) dx = own(model_.hidden);
                        dx = dx.view(x.sizes(), x.strides());
                        return {std::move(dx), r_.empty(weight.sizes(), Scalar::bf16)};
                      });
    return y;
  }

  /// fusions/fused_cross_entropy.py: shares in fp32 in place of a copy of the logits; their gradient in place, then in
  /// 16 bits.
  Tensor cross_entropy_of(const Tensor& logits) {
    r_.tape().set_module("loss", -1);
    r_.tape().begin_op("cross entropy");
    const Tensor shares = r_.clone(logits, Scalar::f32);
    const std::int64_t n = options_.batch * options_.sequence;
    Tensor losses = r_.empty({n}, Scalar::f32);
    const Tensor elsewhere = r_.empty({n}, Scalar::boolean), target = r_.empty({n}, Scalar::i64);
    r_.graph().record(losses, {r_.graph().edge(logits)},
                      [this, shares, elsewhere, target, sizes = logits.sizes()](const Tensors&) -> Tensors {
                        r_.tape().begin_op("cross entropy");
                        return {r_.empty(sizes, Scalar::bf16)};
                      });
    Tensor mean = r_.empty({}, Scalar::f32);
    r_.graph().record(mean, {r_.graph().edge(losses)}, [this, n](const Tensors&) -> Tensors {
      r_.tape().begin_op("mean");
      return {r_.empty({n}, Scalar::f32)};
    });
    return mean;
  }

  Runtime& r_;
  const model::Model& model_;
  ProgramOptions options_;
  MegatronOptions megatron_;
  std::vector<std::string_view> names_;
  std::size_t layer_ = 0;
  Tensors inputs_;
  Tensor workspace_, buffer_;
  std::map<std::pair<std::int64_t, std::int64_t>, Tensor> handed_over_;
};

}  // namespace

std::unique_ptr<Program> megatron_te_program(Runtime& runtime, const model::Model& model, const ProgramOptions& options,
                                             const MegatronOptions& megatron) {
  return std::make_unique<MegatronTe>(runtime, model, options, megatron);
}

}  // namespace shard::like::eager
