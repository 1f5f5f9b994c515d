// Llamas of Megatron-LM core by Transformer Engine's layers (get_gpt_layer_with_transformer_engine_spec): gradients of
// weights are added to the buffer by the product itself, norms are one with the product behind them.
#include <array>
#include <map>
#include <utility>

#include "sim/like/eager/megatron_decoder.h"

namespace shard::like::eager {
namespace {

using model::OperatorKind;

constexpr ClassRow kTe{.class_name = {},
                       .norm = Norm::fused,
                       .inputs = Inputs::none,
                       .together = {.norms = true},
                       .modules = kMegatronModules,
                       .caches = false};

constexpr std::array kTeRows{
    MegatronRow{"self_attention.linear_proj.weight", Cut::rows, {"self_attn.o_proj"}},
    MegatronRow{"self_attention.linear_qkv.layer_norm_weight", Cut::none, {"input_layernorm"}},
    MegatronRow{
        "self_attention.linear_qkv.weight", Cut::columns, {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
    MegatronRow{"mlp.linear_fc2.weight", Cut::rows, {"mlp.down_proj"}},
    MegatronRow{"mlp.linear_fc1.layer_norm_weight", Cut::none, {"post_attention_layernorm"}},
    MegatronRow{"mlp.linear_fc1.weight", Cut::columns, {"mlp.gate_proj", "mlp.up_proj"}},
};

class MegatronTe final : public MegatronDecoder {
 public:
  MegatronTe(Runtime& runtime, const model::Model& model, const ProgramOptions& options,
             const MegatronOptions& megatron)
      : MegatronDecoder(runtime, model, options, megatron, kTe, kTeRows) {}

  Tensor loss() override {
    r_.tape().set_part(Part::forward, Category::activation);
    const Dims ids{options_.batch, options_.sequence};
    tokens_ = input("tokens", ids);
    input("labels", ids);
    input("positions", ids);
    r_.tape().set_module("rotary_pos_emb", -1);
    const Tensor freqs = r_.empty({options_.sequence, 1, 1, model_.head_dim}, Scalar::f32);
    const Tensor x = decoder();
    return cross_entropy_of(scores(x));
  }

 private:
  [[nodiscard]] std::int64_t query() const { return model_.heads * model_.head_dim / megatron_.tensor; }
  [[nodiscard]] std::int64_t key() const { return model_.kv_heads * model_.head_dim / megatron_.tensor; }
  Tensor stream(std::int64_t rows, std::int64_t width) { return r_.empty({rows, options_.batch, width}, Scalar::bf16); }
  Tensor whole(std::int64_t width) { return stream(options_.sequence, width); }
  Tensor own(std::int64_t width) { return stream(part(), width); }

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
  Tensor embedded(const LoweredStep& step, const Values& values) override {
    const Tensor words = embedding(r_, weight(step.op()), values[step.inputs[0]]);
    const Tensor x = contiguous(r_, transpose(r_, words, 0, 1));
    return cut_sequence() ? parted(x, "reduce-scatter") : x;
  }

  /// module/layernorm_linear.py.
  Tensor norm_linear(const Tensor& x, const Tensor& norm, const Tensor& weight) {
    r_.tape().begin_op("layernorm_linear");
    Tensor normed = own(model_.hidden);
    const Tensor deviation = r_.empty({part() * options_.batch}, Scalar::f32);
    use_workspace();
    Tensor y;
    {
      const Tensor gathered = cut_sequence() ? whole(model_.hidden) : Tensor{};
      y = whole(weight.size(0));
    }
    r_.graph().record(y, {r_.graph().edge(x), r_.graph().edge(norm), r_.graph().edge(weight)},
                      [this, x = x.saved(), normed = normed.saved(), deviation, norm = norm.saved(),
                       sizes = weight.sizes()](const Tensors&) -> Tensors {
                        r_.tape().begin_op("layernorm_linear");
                        Tensor gathered = cut_sequence() ? whole(model_.hidden) : Tensor{};
                        Tensor to_normed = whole(model_.hidden);
                        if (cut_sequence()) to_normed = own(model_.hidden);
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
    if (cut_sequence()) y = own(model_.hidden);
    r_.graph().record(y, {r_.graph().edge(x), r_.graph().edge(weight)},
                      [this, x = x.saved(), sizes = weight.sizes()](const Tensors&) -> Tensors {
                        r_.tape().begin_op("linear");
                        const Tensor gathered = cut_sequence() ? whole(model_.hidden) : Tensor{};
                        Tensor dx = r_.empty(x.sizes(), Scalar::bf16);
                        return {std::move(dx), handed_over(sizes)};
                      });
    return y;
  }

  Tensor product(const model::Operator& op, const Tensor& x) override {
    return cut_of(op) == Cut::rows ? row_linear(x, weight(op)) : output(x, weight(op));
  }
  /// transformer/attention.py.
  Tensor attention_of(const LoweredStep& step, const Values& values) override {
    const Tensor context = core_attention(norm_linear(step, values[step.inputs[0]]));
    return product(step.op(), context);
  }
  Tensor norm_linear(const LoweredStep& step, const Tensor& x) {
    return norm_linear(x, weight(*step.find(OperatorKind::rms_norm)), weight(*step.find(OperatorKind::linear)));
  }

  /// Queries are copied out where heads are grouped, both are turned by a fused kernel,
  /// values are made contiguous; then attention. Backward puts the three gradients into one.
  Tensor core_attention(const Tensor& mixed) {
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
  Tensor gated(const LoweredStep& step, const Values& values) override {
    const Tensor x = norm_linear(step, values[step.inputs[0]]);
    r_.tape().begin_op("swiglu");
    Tensor y = whole(x.sizes().back(0) / 2);
    r_.graph().record(y, {r_.graph().edge(x)}, [this, x = x.saved()](const Tensors&) -> Tensors {
      r_.tape().begin_op("swiglu");
      return {r_.empty(x.sizes(), Scalar::bf16)};
    });
    return y;
  }

  /// tensor_parallel/layers.py, ColumnParallelLinear: the sequence is gathered into a buffer that stays.
  Tensor output(const Tensor& x, const Tensor& weight) {
    if (cut_sequence() && !buffer_) buffer_ = whole(model_.hidden);
    r_.tape().begin_op("mm");
    const Tensor& rows = cut_sequence() ? buffer_ : x;
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
                        if (cut_sequence()) dx = own(model_.hidden);
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

  Tensor workspace_, buffer_;
  std::map<std::pair<std::int64_t, std::int64_t>, Tensor> handed_over_;
};

}  // namespace

std::unique_ptr<Program> megatron_te_program(Runtime& runtime, const model::Model& model, const ProgramOptions& options,
                                             const MegatronOptions& megatron) {
  return std::make_unique<MegatronTe>(runtime, model, options, megatron);
}

}  // namespace shard::like::eager
