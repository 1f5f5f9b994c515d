// Model operators to kernels.
#include <array>
#include <cassert>

#include "executor/cpu/backend.h"
#include "executor/cpu/call.h"
#include "executor/cpu/kernels/activation.h"
#include "executor/cpu/kernels/attention.h"
#include "executor/cpu/kernels/dropout.h"
#include "executor/cpu/kernels/elementwise.h"
#include "executor/cpu/kernels/embedding.h"
#include "executor/cpu/kernels/linear.h"
#include "executor/cpu/kernels/loss.h"
#include "executor/cpu/kernels/norm.h"
#include "executor/cpu/kernels/rotary.h"
#include "executor/rank/shapes_of.h"

namespace shard::cpu {
namespace {

using executor::split_heads;
using model::Attributes;
using model::OperatorKind;
using plan::Direction;

void compute_embedding(const Call& o) {
  const Attributes& a = o.attributes();
  const EmbeddingShape shape =
      executor::embedding_shape(o.op.kind, a, o.count(o.forward() ? Role::p : Role::dp), o.tensor_rank);
  if (o.forward())
    embedding_forward(o.pool, shape, o.indices(Role::x), o(Role::p), o(Role::y));
  else
    embedding_backward(o.pool, shape, o(Role::dy), o.indices(Role::x), o(Role::dp), o.into_weight(), o.workspace());
}

void compute_position(const Call& o) {
  const Attributes& a = o.attributes();
  const PositionShape shape = executor::position_shape(a, o.count(o.forward() ? Role::p : Role::dp));
  if (o.forward())
    add_position_forward(o.pool, shape, o(Role::x), o(Role::p), o(Role::y));
  else
    add_position_backward(o.pool, shape, o(Role::dy), o(Role::dp), o.into_weight());
}

void compute_layer_norm(const Call& o) {
  const Attributes& a = o.attributes();
  const NormShape shape = executor::norm_shape(a);
  float* mean = o.floats(Role::statistic, 0);
  float* rstd = o.floats(Role::statistic, 1);
  if (o.forward())
    layer_norm_forward(o.pool, shape, a.epsilon, o(Role::x), o(Role::p, 0), o(Role::p, 1), o(Role::y), mean, rstd);
  else
    layer_norm_backward(o.pool, shape, o(Role::x), o(Role::p), mean, rstd, o(Role::dy), o.optional(Role::dx),
                        o.into_input(), o.optional(Role::dp, 0), o.optional(Role::dp, 1), o.into_weight());
}

void compute_rms_norm(const Call& o) {
  const Attributes& a = o.attributes();
  const NormShape shape = executor::norm_shape(a);
  float* rstd = o.floats(Role::statistic);
  if (o.forward())
    rms_norm_forward(o.pool, shape, a.epsilon, o(Role::x), o(Role::p), o(Role::y), rstd);
  else
    rms_norm_backward(o.pool, shape, o(Role::x), o(Role::p), rstd, o(Role::dy), o.optional(Role::dx), o.into_input(),
                      o.optional(Role::dp), o.into_weight());
}

void compute_linear(const Call& o) {
  const LinearShape shape = executor::linear_shape(o.attributes());
  switch (o.op.direction) {
    case Direction::forward:
      linear_forward(o.pool, shape, o(Role::x), o(Role::p, 0), o.optional(Role::p, 1), o(Role::y), o.workspace());
      return;
    case Direction::backward_input:
      linear_backward_input(o.pool, shape, o(Role::dy), o(Role::p), o(Role::dx), o.into_input(), o.workspace());
      return;
    case Direction::backward_weight:
      if (!o.slots.has(Role::dp, 0))
        bias_gradient(o.pool, shape.rows, shape.out, o(Role::dy), o(Role::dp, 1), o.into_weight());
      else
        linear_backward_weight(o.pool, shape, o(Role::x), o(Role::dy), o(Role::dp, 0), o.optional(Role::dp, 1),
                               o.into_weight(), o.workspace());
      return;
    case Direction::backward: assert(false && "a linear operator has two backward ops"); return;
  }
}

void compute_attention(const Call& o) {
  const Attributes& a = o.attributes();
  const AttentionShape shape = executor::attention_shape(a);
  const auto inputs = static_cast<std::size_t>(model::inputs_of(o.op.kind, a));
  HeadsView q, k, v;
  std::array<ConstElements, 3> in{};
  for (std::size_t i = 0; i < inputs; ++i) in[i] = o(Role::x, static_cast<int>(i));
  split_heads(a, std::span<const ConstElements>(in).first(inputs), q, k, v);
  const std::int64_t out_stride = a.heads * a.head_dim;
  AttentionDropout drop = executor::attention_dropout(o.op, o.tensor_rank);
  drop.key = o.mask;
  float* lse = o.floats(Role::statistic);
  if (o.forward()) {
    attention_forward(o.pool, shape, q, k, v, {o(Role::y), out_stride}, lse, o.workspace(), drop);
    return;
  }
  HeadsOut dq, dk, dv;
  std::array<Elements, 3> out{};
  for (std::size_t i = 0; i < inputs; ++i) out[i] = o(Role::dx, static_cast<int>(i));
  split_heads(a, std::span<const Elements>(out).first(inputs), dq, dk, dv);
  attention_backward(o.pool, shape, q, k, v, lse, {o(Role::dy), out_stride}, dq, dk, dv, o.workspace(), drop);
}

void compute_loss(const Call& o) {
  const Attributes& a = o.attributes();
  if (o.op.kind == OperatorKind::mse) {
    if (o.forward())
      mse_forward(o.pool, o.count(Role::x), o(Role::x, 0), o(Role::x, 1), o.floats(Role::y));
    else
      mse_backward(o.pool, o.count(Role::x), o(Role::x, 0), o(Role::x, 1), o.scale(), o(Role::dx));
    return;
  }
  const CrossEntropyShape shape = executor::cross_entropy_shape(a);
  if (o.forward())
    cross_entropy_forward(o.pool, shape, o(Role::x), o.indices(Role::x, 1), o.floats(Role::y),
                          o.floats(Role::statistic));
  else
    cross_entropy_backward(o.pool, shape, o(Role::x), o.indices(Role::x, 1), o.floats(Role::statistic), o.scale(),
                           o(Role::dx));
}

void compute_dropout(const Call& o) {
  const float probability = o.op.drop_probability();
  if (o.forward())
    dropout(o.pool, o.mask, probability, 0, o.count(Role::x), o(Role::x), o(Role::y));
  else
    dropout(o.pool, o.mask, probability, 0, o.count(Role::dy), o(Role::dy), o(Role::dx));
}

void compute_rotary(const Call& o) {
  if (o.forward())
    rotary_forward(o.pool, executor::rotary_shape(o.attributes()), o(Role::x), o(Role::y));
  else
    rotary_backward(o.pool, executor::rotary_shape(o.attributes()), o(Role::dy), o(Role::dx));
}

void compute_gelu(const Call& o) {
  if (o.forward())
    gelu_forward(o.pool, o.count(Role::x), o(Role::x), o(Role::y));
  else
    gelu_backward(o.pool, o.count(Role::x), o(Role::x), o(Role::dy), o(Role::dx));
}

void compute_split_groups(const Call& o) {
  if (o.forward())
    split_groups(o.pool, executor::group_shape(o.attributes()), o(Role::x), o(Role::y));
  else
    join_groups(o.pool, executor::group_shape(o.attributes()), o(Role::dy), o(Role::dx));
}

void compute_scale(const Call& o) {
  const Role from = o.forward() ? Role::x : Role::dy;
  scale(o.pool, o.count(from), o.attributes().factor, o(from), o(o.forward() ? Role::y : Role::dx));
}

void compute_relu(const Call& o) {
  if (o.forward())
    relu_forward(o.pool, o.count(Role::x), o(Role::x), o(Role::y));
  else
    relu_backward(o.pool, o.count(Role::x), o(Role::x), o(Role::dy), o(Role::dx));
}

void compute_gelu_erf(const Call& o) {
  if (o.forward())
    gelu_erf_forward(o.pool, o.count(Role::x), o(Role::x), o(Role::y));
  else
    gelu_erf_backward(o.pool, o.count(Role::x), o(Role::x), o(Role::dy), o(Role::dx));
}

void compute_geglu(const Call& o) {
  if (o.forward())
    geglu_forward(o.pool, o.count(Role::x), o(Role::x, 0), o(Role::x, 1), o(Role::y));
  else
    geglu_backward(o.pool, o.count(Role::x), o(Role::x, 0), o(Role::x, 1), o(Role::dy), o(Role::dx, 0), o(Role::dx, 1));
}

void compute_swiglu(const Call& o) {
  const Attributes& a = o.attributes();
  if (model::inputs_of(o.op.kind, a) == 1) {
    if (o.forward())
      swiglu_packed_forward(o.pool, a.rows, a.out_columns, o(Role::x), o(Role::y));
    else
      swiglu_packed_backward(o.pool, a.rows, a.out_columns, o(Role::x), o(Role::dy), o(Role::dx));
    return;
  }
  if (o.forward())
    swiglu_forward(o.pool, o.count(Role::x), o(Role::x, 0), o(Role::x, 1), o(Role::y));
  else
    swiglu_backward(o.pool, o.count(Role::x), o(Role::x, 0), o(Role::x, 1), o(Role::dy), o(Role::dx, 0),
                    o(Role::dx, 1));
}

void call(const Call& o) {
  switch (o.op.kind) {
    case OperatorKind::embedding:
    case OperatorKind::embedding_part: return compute_embedding(o);
    case OperatorKind::add_position: return compute_position(o);
    case OperatorKind::layer_norm: return compute_layer_norm(o);
    case OperatorKind::rms_norm: return compute_rms_norm(o);
    case OperatorKind::linear: return compute_linear(o);
    case OperatorKind::rotary: return compute_rotary(o);
    case OperatorKind::attention: return compute_attention(o);
    case OperatorKind::gelu: return compute_gelu(o);
    case OperatorKind::swiglu: return compute_swiglu(o);
    case OperatorKind::add: return add(o.pool, o.count(Role::y), o(Role::x, 0), o(Role::x, 1), o(Role::y));
    case OperatorKind::dropout: return compute_dropout(o);
    case OperatorKind::cross_entropy:
    case OperatorKind::mse: return compute_loss(o);
    case OperatorKind::join_columns:
    case OperatorKind::take_columns:
    case OperatorKind::add_bias:
    case OperatorKind::vocabulary_statistics:
    case OperatorKind::cross_entropy_part: return compute_part(o);
    case OperatorKind::scale: return compute_scale(o);
    case OperatorKind::relu: return compute_relu(o);
    case OperatorKind::gelu_erf: return compute_gelu_erf(o);
    case OperatorKind::geglu: return compute_geglu(o);
    case OperatorKind::split_groups: return compute_split_groups(o);
    case OperatorKind::tensor_sum:
    case OperatorKind::tensor_input:
    case OperatorKind::tensor_gather:
    case OperatorKind::tensor_part: assert(false && "these are collectives"); return;
  }
}

}  // namespace

void Backend::compute(const plan::Op& op, const plan::Compute& c) {
  const Attributes& a = *c.attributes;
  Call o{.pool = pool_, .op = c, .slots = signature(c), .tensor_rank = position_.tensor};
  assert(o.slots.size() == op.operands.size());
  for (std::size_t i = 0; i < op.operands.size(); ++i)
    o.bound[i] = {.elements = elements(op.operands[i]), .bytes = op.operands[i].bytes};
  if (c.drop_probability() > 0) {
    // Belongs to the micro-batch, whoever computes it and whenever.
    const std::int64_t micro_batch =
        step_ * plan_.micro_batches + plan_.dealing.micro_batch(op.micro_step, position_.shard, position_.replica);
    o.mask = dropout_key(seed_, micro_batch, a.mask);
  }
  call(o);
}

}  // namespace shard::cpu
