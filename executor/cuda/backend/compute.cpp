// Model operators to kernels and products.
#include <cassert>
#include <span>

#include "executor/cuda/backend/call.h"
#include "executor/rank/shapes_of.h"

namespace shard::cuda {
namespace {

using model::Attributes;
using model::OperatorKind;
using plan::Direction;

void run_embedding(const Call& o) {
  const Attributes& a = o.attributes();
  const EmbeddingShape shape =
      executor::embedding_shape(o.op.kind, a, o.count(o.forward() ? Role::p : Role::dp), o.tensor_rank);
  if (o.forward())
    o.kernels.embedding_forward(o.stream, shape, o.indices(Role::x), o(Role::p), o(Role::y));
  else
    o.kernels.embedding_backward(o.stream, shape, o(Role::dy), o.indices(Role::x), o(Role::dp), o.into_weight());
}

void run_position(const Call& o) {
  const Attributes& a = o.attributes();
  const PositionShape shape = executor::position_shape(a, o.count(o.forward() ? Role::p : Role::dp));
  if (o.forward())
    o.kernels.add_position_forward(o.stream, shape, o(Role::x), o(Role::p), o(Role::y));
  else
    o.kernels.add_position_backward(o.stream, shape, o(Role::dy), o(Role::dp), o.into_weight());
}

void run_layer_norm(const Call& o) {
  const Attributes& a = o.attributes();
  const NormShape shape = executor::norm_shape(a);
  float* mean = o.floats(Role::statistic, 0);
  float* rstd = o.floats(Role::statistic, 1);
  if (o.forward())
    o.kernels.layer_norm_forward(o.stream, shape, a.epsilon, o(Role::x), o(Role::p, 0), o(Role::p, 1), o(Role::y), mean,
                                 rstd);
  else
    o.kernels.layer_norm_backward(o.stream, shape, o(Role::x), o(Role::p), mean, rstd, o(Role::dy),
                                  o.optional(Role::dx), o.into_input(), o.optional(Role::dp, 0),
                                  o.optional(Role::dp, 1), o.into_weight());
}

void run_rms_norm(const Call& o) {
  const Attributes& a = o.attributes();
  const NormShape shape = executor::norm_shape(a);
  float* rstd = o.floats(Role::statistic);
  if (o.forward())
    o.kernels.rms_norm_forward(o.stream, shape, a.epsilon, o(Role::x), o(Role::p), o(Role::y), rstd);
  else
    o.kernels.rms_norm_backward(o.stream, shape, o(Role::x), o(Role::p), rstd, o(Role::dy), o.optional(Role::dx),
                                o.into_input(), o.optional(Role::dp), o.into_weight());
}

/// Alone, or with the norm of the sum.
void run_add(const Call& o) {
  if (!o.op.then.present()) {
    o.kernels.add(o.stream, o.count(Role::y), o(Role::x, 0), o(Role::x, 1), o(Role::y));
    return;
  }
  const Attributes& a = *o.op.then.attributes;
  const NormShape shape = executor::norm_shape(a);
  const auto statistic = [&](int i) { return reinterpret_cast<float*>(o.then(Role::statistic, i).bytes()); };
  if (o.op.then.kind == OperatorKind::layer_norm)
    o.kernels.add_layer_norm_forward(o.stream, shape, a.epsilon, o(Role::x, 0), o(Role::x, 1), o.then(Role::p, 0),
                                     o.then(Role::p, 1), o(Role::y), o.then(Role::y), statistic(0), statistic(1));
  else
    o.kernels.add_rms_norm_forward(o.stream, shape, a.epsilon, o(Role::x, 0), o(Role::x, 1), o.then(Role::p),
                                   o(Role::y), o.then(Role::y), statistic(0));
}

/// The product of the op's operands; the bias, where there is one, is part of it.
Result<void> multiply(const Call& o, ProductShape shape, Elements a, Elements b, Elements bias, Elements c) {
  shape.bias = bias.present();
  shape.dtype = c.dtype();
  shape.tensor_float = o.tensor_float;
  shape.alignment = o.product_alignment;
  const std::span<std::byte> workspace = o.workspace();
  const Result<Product> product = o.api.prepare_product(shape, Bytes{std::ssize(workspace)});
  if (!product) return product.error();
  return o.api.multiply(o.stream, *product,
                        {.a = a.bytes(), .b = b.bytes(), .bias = bias.bytes(), .c = c.bytes(), .workspace = workspace});
}

Result<void> run_linear(const Call& o) {
  const Attributes& a = o.attributes();
  const bool in_out = a.weight_in_out;
  const std::int64_t rows = a.rows;
  const std::int64_t in = a.columns;
  const std::int64_t out = a.out_columns;
  switch (o.op.direction) {
    case Direction::forward:
      return multiply(o, {.m = rows, .n = out, .k = in, .transpose_b = !in_out}, o(Role::x), o(Role::p, 0),
                      o.optional(Role::p, 1), o(Role::y));
    case Direction::backward_input:
      return multiply(o, {.m = rows, .n = in, .k = out, .transpose_b = in_out, .accumulate = o.op.accumulate_input},
                      o(Role::dy), o(Role::p), {}, o(Role::dx));
    case Direction::backward_weight: break;
    case Direction::backward: assert(false && "a linear operator has two backward ops"); return {};
  }
  if (const Elements dbias = o.optional(Role::dp, 1); dbias.present())
    o.kernels.bias_gradient(o.stream, rows, out, o(Role::dy), dbias, o.into_weight());
  if (!o.slots.has(Role::dp, 0)) return {};
  const bool accumulate = o.op.accumulate_weight;
  if (in_out)
    return multiply(o, {.m = in, .n = out, .k = rows, .transpose_a = true, .accumulate = accumulate}, o(Role::x),
                    o(Role::dy), {}, o(Role::dp, 0));
  return multiply(o, {.m = out, .n = in, .k = rows, .transpose_a = true, .accumulate = accumulate}, o(Role::dy),
                  o(Role::x), {}, o(Role::dp, 0));
}

void run_attention(const Call& o) {
  const Attributes& a = o.attributes();
  const AttentionShape shape = executor::attention_shape(a);
  const auto inputs = static_cast<std::size_t>(model::inputs_of(o.op.kind, a));
  HeadsView q, k, v;
  std::array<ConstElements, 3> in{};
  for (std::size_t i = 0; i < inputs; ++i) in[i] = o(Role::x, static_cast<int>(i));
  executor::split_heads(a, std::span<const ConstElements>(in).first(inputs), q, k, v);
  const std::int64_t out_stride = a.heads * a.head_dim;
  const AttentionDropout drop = executor::attention_dropout(o.op, o.tensor_rank);
  float* lse = o.floats(Role::statistic);
  if (o.forward()) {
    o.kernels.attention_forward(o.stream, shape, q, k, v, {o(Role::y), out_stride}, lse, drop, o.mask, o.step);
    return;
  }
  HeadsOut dq, dk, dv;
  std::array<Elements, 3> out{};
  for (std::size_t i = 0; i < inputs; ++i) out[i] = o(Role::dx, static_cast<int>(i));
  executor::split_heads(a, std::span<const Elements>(out).first(inputs), dq, dk, dv);
  o.kernels.attention_backward(o.stream, shape, q, k, v, lse, {o(Role::dy), out_stride}, dq, dk, dv,
                               o.workspace().data(), drop, o.mask, o.step);
}

void run_loss(const Call& o) {
  const Attributes& a = o.attributes();
  if (o.op.kind == OperatorKind::mse) {
    if (o.forward())
      o.kernels.mse_forward(o.stream, o.count(Role::x), o(Role::x, 0), o(Role::x, 1), o.floats(Role::y));
    else
      o.kernels.mse_backward(o.stream, o.count(Role::x), o(Role::x, 0), o(Role::x, 1), o.op.scale, o.loss_scale(),
                             o(Role::dx));
    return;
  }
  const CrossEntropyShape shape = executor::cross_entropy_shape(a);
  if (o.forward())
    o.kernels.cross_entropy_forward(o.stream, shape, o(Role::x), o.indices(Role::x, 1), o.floats(Role::y),
                                    o.floats(Role::statistic));
  else
    o.kernels.cross_entropy_backward(o.stream, shape, o(Role::x), o.indices(Role::x, 1), o.floats(Role::statistic),
                                     o.op.scale, o.loss_scale(), o(Role::dx));
}

void run_dropout(const Call& o) {
  const Role from = o.forward() ? Role::x : Role::dy;
  o.kernels.dropout(o.stream, o.mask, o.step, o.op.drop_probability(), o.count(from), o(from),
                    o(o.forward() ? Role::y : Role::dx));
}

void run_rotary(const Call& o) {
  const RotaryShape shape = executor::rotary_shape(o.attributes());
  if (o.forward())
    o.kernels.rotary_forward(o.stream, shape, o(Role::x), o(Role::y));
  else
    o.kernels.rotary_backward(o.stream, shape, o(Role::dy), o(Role::dx));
}

void run_gelu(const Call& o) {
  if (o.forward())
    o.kernels.gelu_forward(o.stream, o.count(Role::x), o(Role::x), o(Role::y));
  else
    o.kernels.gelu_backward(o.stream, o.count(Role::x), o(Role::x), o(Role::dy), o(Role::dx));
}

void run_split_groups(const Call& o) {
  if (o.forward())
    o.kernels.split_groups(o.stream, executor::group_shape(o.attributes()), o(Role::x), o(Role::y));
  else
    o.kernels.join_groups(o.stream, executor::group_shape(o.attributes()), o(Role::dy), o(Role::dx));
}

void run_scale(const Call& o) {
  const Role from = o.forward() ? Role::x : Role::dy;
  o.kernels.scale(o.stream, o.count(from), o.attributes().factor, o(from), o(o.forward() ? Role::y : Role::dx));
}

void run_relu(const Call& o) {
  if (o.forward())
    o.kernels.relu_forward(o.stream, o.count(Role::x), o(Role::x), o(Role::y));
  else
    o.kernels.relu_backward(o.stream, o.count(Role::x), o(Role::x), o(Role::dy), o(Role::dx));
}

void run_gelu_erf(const Call& o) {
  if (o.forward())
    o.kernels.gelu_erf_forward(o.stream, o.count(Role::x), o(Role::x), o(Role::y));
  else
    o.kernels.gelu_erf_backward(o.stream, o.count(Role::x), o(Role::x), o(Role::dy), o(Role::dx));
}

void run_geglu(const Call& o) {
  if (o.forward())
    o.kernels.geglu_forward(o.stream, o.count(Role::x), o(Role::x, 0), o(Role::x, 1), o(Role::y));
  else
    o.kernels.geglu_backward(o.stream, o.count(Role::x), o(Role::x, 0), o(Role::x, 1), o(Role::dy), o(Role::dx, 0),
                             o(Role::dx, 1));
}

void run_swiglu(const Call& o) {
  const Attributes& a = o.attributes();
  if (model::inputs_of(o.op.kind, a) == 1) {
    if (o.forward())
      o.kernels.swiglu_packed_forward(o.stream, a.rows, a.out_columns, o(Role::x), o(Role::y));
    else
      o.kernels.swiglu_packed_backward(o.stream, a.rows, a.out_columns, o(Role::x), o(Role::dy), o(Role::dx));
    return;
  }
  if (o.forward())
    o.kernels.swiglu_forward(o.stream, o.count(Role::x), o(Role::x, 0), o(Role::x, 1), o(Role::y));
  else
    o.kernels.swiglu_backward(o.stream, o.count(Role::x), o(Role::x, 0), o(Role::x, 1), o(Role::dy), o(Role::dx, 0),
                              o(Role::dx, 1));
}

/// Of ranks that share a model: which columns and rows are this rank's is decided here.
void run_columns(const Call& o) {
  const bool joins = o.op.kind == OperatorKind::join_columns;
  const ColumnParts shape = executor::column_parts(o.op.kind, o.attributes());
  const Role from = o.forward() ? Role::x : Role::dy;
  const Role to = o.forward() ? Role::y : Role::dx;
  if (joins == o.forward())
    o.kernels.join_columns(o.stream, shape, o(from), o(to));
  else
    o.kernels.take_columns(o.stream, shape, o.tensor_rank, o(from), o(to));
}

void run_bias(const Call& o) {
  const Attributes& a = o.attributes();
  if (o.forward())
    o.kernels.add_bias(o.stream, a.rows, a.columns, o(Role::p), o(Role::y));
  else
    o.kernels.bias_gradient(o.stream, a.rows, a.columns, o(Role::dy), o(Role::dp), o.into_weight());
}

void run_vocabulary_part(const Call& o) {
  const Attributes& a = o.attributes();
  const VocabularyPart part = executor::vocabulary_part(a, o.tensor_rank);
  if (o.op.kind == OperatorKind::vocabulary_statistics)
    o.kernels.vocabulary_statistics(o.stream, part, o(Role::x), o.indices(Role::x, 1), o.floats(Role::y));
  else if (o.forward())
    o.kernels.cross_entropy_from_statistics(o.stream, a.parts, a.rows, o.floats(Role::x, 2), o.floats(Role::y),
                                            o.floats(Role::statistic));
  else
    o.kernels.cross_entropy_part_backward(o.stream, part, o(Role::x), o.indices(Role::x, 1), o.floats(Role::statistic),
                                          o.op.scale, o.loss_scale(), o(Role::dx));
}

}  // namespace

Result<void> compute(const Call& o) {
  switch (o.op.kind) {
    case OperatorKind::linear: return run_linear(o);
    case OperatorKind::embedding:
    case OperatorKind::embedding_part: run_embedding(o); break;
    case OperatorKind::add_position: run_position(o); break;
    case OperatorKind::layer_norm: run_layer_norm(o); break;
    case OperatorKind::rms_norm: run_rms_norm(o); break;
    case OperatorKind::rotary: run_rotary(o); break;
    case OperatorKind::attention: run_attention(o); break;
    case OperatorKind::gelu: run_gelu(o); break;
    case OperatorKind::swiglu: run_swiglu(o); break;
    case OperatorKind::add: run_add(o); break;
    case OperatorKind::dropout: run_dropout(o); break;
    case OperatorKind::cross_entropy:
    case OperatorKind::mse: run_loss(o); break;
    case OperatorKind::join_columns:
    case OperatorKind::take_columns: run_columns(o); break;
    case OperatorKind::add_bias: run_bias(o); break;
    case OperatorKind::vocabulary_statistics:
    case OperatorKind::cross_entropy_part: run_vocabulary_part(o); break;
    case OperatorKind::scale: run_scale(o); break;
    case OperatorKind::relu: run_relu(o); break;
    case OperatorKind::gelu_erf: run_gelu_erf(o); break;
    case OperatorKind::geglu: run_geglu(o); break;
    case OperatorKind::split_groups: run_split_groups(o); break;
    case OperatorKind::tensor_sum:
    case OperatorKind::tensor_input:
    case OperatorKind::tensor_gather:
    case OperatorKind::tensor_part: assert(false && "these are collectives"); break;
  }
  return {};
}

}  // namespace shard::cuda
