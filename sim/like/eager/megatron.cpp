// Module by module; what is said behind a rule is the file of megatron/core that has it.
#include "sim/like/eager/megatron_decoder.h"

#include <array>
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

/// torch.nn.functional.gelu().
Tensor torch_gelu(Runtime& r, const Tensor& x) {
  return activation(r, x, "gelu", Kept::input);
}

/// transformer/transformer_layer.py and mlp.py, without fusion.
constexpr ClassRow kLocal{.class_name = {},
                          .inputs = Inputs::none,
                          .together = {.embeddings = true, .sums = true},
                          .modules = kMegatronModules,
                          .function = torch_gelu,
                          .caches = false};

constexpr std::array kLocalRows{
    MegatronRow{"input_layernorm.weight", Cut::none, {"ln_1"}},
    MegatronRow{"self_attention.linear_proj.weight", Cut::rows, {"attn.c_proj"}},
    MegatronRow{"self_attention.linear_qkv.weight", Cut::columns, {"attn.c_attn"}},
    MegatronRow{"pre_mlp_layernorm.weight", Cut::none, {"ln_2"}},
    MegatronRow{"mlp.linear_fc1.weight", Cut::columns, {"mlp.c_fc"}},
    MegatronRow{"mlp.linear_fc2.weight", Cut::rows, {"mlp.c_proj"}},
};

class Megatron final : public MegatronDecoder {
 public:
  Megatron(Runtime& runtime, const model::Model& model, const ProgramOptions& options, const MegatronOptions& megatron)
      : MegatronDecoder(runtime, model, options, megatron, kLocal, kLocalRows), global_(runtime) {}

  Tensor loss() override {
    r_.tape().set_part(Part::forward, Category::activation);
    const std::int64_t b = options_.batch, s = options_.sequence;
    tokens_ = input("tokens", {b, s});
    input("positions", {b, s});
    input("attention mask", {1, 1, s, s}, Scalar::boolean);
    const Tensor x = decoder();
    return cross_entropy_of(scores(x));
  }

 private:
  /// Parallel layers are made on the GPU in 16 bits; what is replicated comes from the host in fp32 (Module.cuda()),
  /// then is cast one by one (transformer/module.py, Float16Module).
  void make_all() override {
    std::vector<std::size_t> whole;
    for (std::size_t p = 0; p < listed().size(); ++p) {
      if (listed()[p].cut == Cut::none)
        whole.push_back(p);
      else
        make(p);
    }
    Tensors full;
    for (const std::size_t p : whole)
      full.push_back(named("replicated, fp32", Category::parameter, listed()[p].sizes, Scalar::f32));
    for (std::size_t i = 0; i < whole.size(); ++i) {
      make(whole[i]);
      full[i] = {};
    }
  }

  /// tensor_parallel/layers.py, VocabParallelEmbedding; models/common/embeddings/language_model_embedding.py.
  Tensor embedded(const LoweredStep& step, const Values& values) override {
    Tensor words = masked_embedding(weight(*step.ops[0]), values[step.inputs[0]]);
    Tensor places = embedding(r_, weight(*step.ops[1]), inputs_[1]);
    Tensor sum = add(r_, words, places);
    Tensor x = contiguous(r_, transpose(r_, sum, 0, 1));
    sum = words = places = {};
    return cut_sequence() ? parted(x, "scatter") : x;
  }
  /// Rows that another rank has are asked for as the first, and become zeros in place.
  Tensor masked_embedding(const Tensor& table, const Tensor& tokens) {
    if (megatron_.tensor == 1) return embedding(r_, table, tokens);
    r_.tape().begin_op("mask");
    const std::int64_t n = tokens.elements();
    Tensor mask;
    {
      const Tensor below = flags(n), above = flags(n);
      mask = flags(n);
    }
    Tensor ids;
    {
      const Tensor copy = r_.empty(tokens.sizes(), Scalar::i64);
      ids = r_.empty(tokens.sizes(), Scalar::i64);
    }
    Tensor rows = embedding(r_, table, ids);
    Tensor y = rows.view(rows.sizes(), rows.strides());
    r_.graph().record(y, {r_.graph().edge(rows)}, [this, mask = mask.saved()](const Tensors& g) -> Tensors {
      r_.tape().begin_op("index_put");
      return {r_.clone(g[0])};
    });
    return y;
  }

  /// layers.py, LinearWithGradAccumulationAndAsyncCommunication without fusion: a bias is added by a kernel of its own.
  /// A sequence that is cut is gathered into the global buffer, in backward again.
  Tensor column_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    const bool cut = cut_sequence();
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
    return cut_sequence() ? parted(y, "reduce-scatter") : y;
  }

  /// Behind a row-parallel product its bias is left to the sum (skip_bias_add), behind mlp's first one to mlp.
  Tensor product(const model::Operator& op, const Tensor& x) override {
    const Tensor bias = op.params.size() > 1 ? weight(op, 1) : Tensor{};
    if (cut_of(op) == Cut::rows) {
      bias_ = bias;
      return row_linear(x, weight(op));
    }
    const Tensor y = column_linear(x, weight(op), {});
    return bias ? add(r_, y, bias) : y;
  }
  /// fusions/fused_bias_dropout.py, bias_dropout_add_unfused.
  Tensor summed(const LoweredStep& step, const Values& values) override {
    const model::Operator* drops = step.find(model::OperatorKind::dropout);
    const Tensor &residual = values[step.inputs[drops ? 1 : 0]], &x = values[step.inputs[drops ? 0 : 1]];
    const Tensor biased = add(r_, x, bias_);
    return add(r_, residual, dropout(r_, biased, model_.dropout));
  }

  /// transformer/attention.py.
  Tensor attention_of(const LoweredStep& step, const Values& values) override {
    const model::Operator& qkv = *step.ops[0];
    const Tensor mixed = column_linear(values[step.inputs[0]], weight(qkv), weight(qkv, 1));
    return product(step.op(), core_attention(mixed));
  }
  /// transformer/dot_product_attention.py.
  Tensor core_attention(const Tensor& mixed) {
    const std::int64_t s = options_.sequence, b = options_.batch, heads = model_.heads / megatron_.tensor,
                       d = model_.head_dim;
    const Tensors parts = split_last(r_, reshape(r_, mixed, {s, b, heads, 3 * d}), 3);
    const Tensor q = reshape(r_, parts[0], {s, b * heads, d}), k = reshape(r_, parts[1], {s, b * heads, d});
    global_.need(b * heads * s * s, mixed.scalar());
    const Tensor scores = scores_of(transpose(r_, q, 0, 1), transpose(r_, transpose(r_, k, 0, 1), 1, 2));
    Tensor shares = softmax(r_, masked(scores), scores.scalar() == Scalar::bf16 ? Scalar::bf16 : scores.scalar());
    shares = dropout(r_, shares, model_.dropout);
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

  GlobalBuffer global_;
  Tensor bias_;  ///< of the last row-parallel product
};

}  // namespace

std::unique_ptr<Program> megatron_program(Runtime& runtime, const model::Model& model, const ProgramOptions& options,
                                          const MegatronOptions& megatron) {
  return std::make_unique<Megatron>(runtime, model, options, megatron);
}

}  // namespace shard::like::eager
