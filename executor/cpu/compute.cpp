// Model operators to kernels: the operand order of each is that of sim/ir/SPEC.md.
#include <array>
#include <cassert>

#include "executor/cpu/backend.h"
#include "executor/cpu/kernels/activation.h"
#include "executor/cpu/kernels/attention.h"
#include "executor/cpu/kernels/dropout.h"
#include "executor/cpu/kernels/elementwise.h"
#include "executor/cpu/kernels/embedding.h"
#include "executor/cpu/kernels/linear.h"
#include "executor/cpu/kernels/loss.h"
#include "executor/cpu/kernels/norm.h"
#include "executor/cpu/kernels/rotary.h"
#include "sim/ir/dealing.h"

namespace shard::cpu {
namespace {

using model::Attributes;
using model::OperatorKind;
using plan::Direction;

Store store(bool accumulate) {
  return accumulate ? Store::add : Store::write;
}

AttentionShape attention_shape(const Attributes& a) {
  return {.batch = a.batch, .sequence = a.sequence, .heads = a.heads, .kv_heads = a.kv_heads, .head_dim = a.head_dim};
}
LinearShape linear_shape(const Attributes& a) {
  return {.rows = a.rows, .in = a.columns, .out = a.out_columns, .weight_in_out = a.weight_in_out};
}
RotaryShape rotary_shape(const Attributes& a) {
  return {.batch = a.batch, .sequence = a.sequence, .heads = a.heads, .head_dim = a.head_dim, .base = a.rotary_base};
}

/// Row strides and starts of q, k and v: three tensors, or one packed q|k|v.
template <class View, class Pointer>
void split(const Attributes& a, std::span<const Pointer> tensors, View& q, View& k, View& v) {
  const std::int64_t qc = a.heads * a.head_dim;
  const std::int64_t kc = a.kv_heads * a.head_dim;
  if (tensors.size() == 1) {
    const std::int64_t stride = qc + 2 * kc;
    q = {tensors[0], stride};
    k = {tensors[0].from(qc), stride};
    v = {tensors[0].from(qc + kc), stride};
  } else {
    q = {tensors[0], qc};
    k = {tensors[1], kc};
    v = {tensors[2], kc};
  }
}

/// What a norm's backward makes, behind the `read` operands that it reads; null where that is frozen, or nothing under
/// the input is trained.
struct NormGradients {
  Elements input, weight, bias;
};
template <class E>
NormGradients norm_gradients(const plan::Op& op, const Attributes& a, std::size_t read, std::size_t parameters,
                             const E& elements) {
  std::size_t trained = 0;
  for (std::size_t i = 0; i < parameters; ++i) trained += a.freezes(i) ? 0U : 1U;
  std::size_t next = read;
  const auto take = [&](bool present) { return present ? elements(next++) : Elements(nullptr); };
  NormGradients d;
  d.input = take(op.operands.size() == read + 1 + trained);
  d.weight = take(!a.freezes(0));
  d.bias = take(parameters > 1 && !a.freezes(1));
  return d;
}

}  // namespace

void Backend::compute(const plan::Op& op, const plan::Compute& c) {
  const Attributes& a = c.attributes;
  const bool forward = c.direction == Direction::forward;
  // Statistics and losses are fp32; the rest is what its buffer says.
  const auto e = [&](std::size_t i) { return elements(op.operands[i]); };
  const auto f = [&](std::size_t i) {
    assert(plan_.buffer(op.operands[i].buffer).dtype == Dtype::f32);
    return floats(op.operands[i]);
  };
  const auto tokens = [&](std::size_t i) { return reinterpret_cast<const std::int32_t*>(at(op.operands[i])); };
  const auto n = [&](std::size_t i) { return count(op.operands[i]); };
  // The operands behind the listed ones, where there are any: the loss scale, then the workspace.
  const auto scale = [&](std::size_t listed) { return c.scaled ? c.scale * *f(listed) : c.scale; };
  const auto workspace = [&](std::size_t listed) {
    if (listed == op.operands.size()) return std::span<std::byte>{};
    return std::span<std::byte>(at(op.operands[listed]), static_cast<std::size_t>(op.operands[listed].bytes));
  };
  // Belongs to the micro-batch, whoever computes it and whenever.
  const auto mask_key = [&] {
    const plan::LoadBatch dealt = plan::dealt(plan_.strategy, op.micro_step);
    const std::int64_t micro_batch =
        step_ * plan_.strategy.micro_batches() + dealt.micro_batch(position_.shard, position_.replica);
    return dropout_key(options_.seed, micro_batch, a.mask);
  };
  const Store into_input = store(c.accumulate_input);
  const Store into_weight = store(c.accumulate_weight);
  switch (c.kind) {
    case OperatorKind::embedding:
    case OperatorKind::embedding_part: {
      const std::int64_t rows = n(forward ? 1 : 2) / a.out_columns;
      const bool whole = c.kind == OperatorKind::embedding;
      const EmbeddingShape shape{
          .tokens = a.rows, .vocabulary = rows, .columns = a.out_columns, .first = whole ? 0 : position_.tensor * rows};
      if (forward)
        embedding_forward(pool_, shape, tokens(0), e(1), e(2));
      else
        embedding_backward(pool_, shape, e(1), tokens(0), e(2), into_weight, workspace(3));
      return;
    }
    case OperatorKind::add_position: {
      const PositionShape shape{
          .batch = a.batch, .sequence = a.sequence, .positions = n(1) / a.columns, .columns = a.columns};
      if (forward)
        add_position_forward(pool_, shape, e(0), e(1), e(2));
      else
        add_position_backward(pool_, shape, e(0), e(1), into_weight);
      return;
    }
    case OperatorKind::layer_norm: {
      const NormShape shape{.rows = a.rows, .columns = a.columns};
      if (forward) {
        layer_norm_forward(pool_, shape, a.epsilon, e(0), e(1), e(2), e(3), f(4), f(5));
      } else {
        const NormGradients d = norm_gradients(op, a, 5, 2, e);
        layer_norm_backward(pool_, shape, e(0), e(1), f(2), f(3), e(4), d.input, into_input, d.weight, d.bias,
                            into_weight);
      }
      return;
    }
    case OperatorKind::rms_norm: {
      const NormShape shape{.rows = a.rows, .columns = a.columns};
      if (forward) {
        rms_norm_forward(pool_, shape, a.epsilon, e(0), e(1), e(2), f(3));
      } else {
        const NormGradients d = norm_gradients(op, a, 4, 1, e);
        rms_norm_backward(pool_, shape, e(0), e(1), f(2), e(3), d.input, into_input, d.weight, into_weight);
      }
      return;
    }
    case OperatorKind::linear: {
      const LinearShape shape = linear_shape(a);
      const std::size_t bias = a.has_bias ? 1 : 0;
      switch (c.direction) {
        case Direction::forward:
          linear_forward(pool_, shape, e(0), e(1), a.has_bias ? e(2) : nullptr, e(2 + bias), workspace(3 + bias));
          return;
        case Direction::backward_input:
          linear_backward_input(pool_, shape, e(0), e(1), e(2), into_input, workspace(3));
          return;
        case Direction::backward_weight: {
          const bool with_bias = a.has_bias && !a.freezes(1);
          if (a.freezes(0))
            bias_gradient(pool_, shape.rows, shape.out, e(0), e(1), into_weight);
          else
            linear_backward_weight(pool_, shape, e(0), e(1), e(2), with_bias ? e(3) : nullptr, into_weight,
                                   workspace(with_bias ? 4 : 3));
          return;
        }
        case Direction::backward: assert(false && "a linear operator has two backward ops"); return;
      }
      return;
    }
    case OperatorKind::rotary:
      if (forward)
        rotary_forward(pool_, rotary_shape(a), e(0), e(1));
      else
        rotary_backward(pool_, rotary_shape(a), e(0), e(op.operands.size() - 1));
      return;
    case OperatorKind::attention: {
      const AttentionShape shape = attention_shape(a);
      const std::size_t inputs = forward ? op.operands.size() - 3 : (op.operands.size() - 3) / 2;
      HeadsView q, k, v;
      std::array<ConstElements, 3> in{};
      for (std::size_t i = 0; i < inputs; ++i) in[i] = e(i);
      split(a, std::span<const ConstElements>(in).first(inputs), q, k, v);
      const std::int64_t out_stride = a.heads * a.head_dim;
      AttentionDropout drop{.probability = a.probability};
      if (a.probability > 0) {
        const bool some = a.parts > 0;  // heads [rank x heads, (rank + 1) x heads) of the whole model's
        drop.key = mask_key();
        drop.heads = some ? a.parts * a.heads : a.heads;
        drop.first_head = some ? position_.tensor * a.heads : 0;
      }
      if (forward) {
        attention_forward(pool_, shape, q, k, v, {e(inputs), out_stride}, f(inputs + 1), workspace(inputs + 2), drop);
        return;
      }
      HeadsOut dq, dk, dv;
      std::array<Elements, 3> out{};
      for (std::size_t i = 0; i < inputs; ++i) out[i] = e(inputs + 2 + i);
      split(a, std::span<const Elements>(out).first(inputs), dq, dk, dv);
      attention_backward(pool_, shape, q, k, v, f(inputs), {e(inputs + 1), out_stride}, dq, dk, dv,
                         workspace(2 * inputs + 2), drop);
      return;
    }
    case OperatorKind::gelu:
      if (forward)
        gelu_forward(pool_, n(0), e(0), e(1));
      else
        gelu_backward(pool_, n(0), e(0), e(1), e(op.operands.size() - 1));
      return;
    case OperatorKind::swiglu:
      if (forward)
        swiglu_forward(pool_, n(0), e(0), e(1), e(2));
      else
        swiglu_backward(pool_, n(0), e(0), e(1), e(2), e(3), e(4));
      return;
    case OperatorKind::dropout:
      dropout(pool_, mask_key(), a.probability, 0, n(0), e(0), e(op.operands.size() - 1));
      return;
    case OperatorKind::add: add(pool_, n(0), e(0), e(1), e(2)); return;
    case OperatorKind::cross_entropy: {
      const CrossEntropyShape shape{.rows = a.rows, .vocabulary = a.columns};
      if (forward)
        cross_entropy_forward(pool_, shape, e(0), tokens(1), f(2), f(3));
      else
        cross_entropy_backward(pool_, shape, e(0), tokens(2), f(1), scale(3), e(0));
      return;
    }
    case OperatorKind::mse:
      if (forward)
        mse_forward(pool_, n(0), e(0), e(1), f(2));
      else
        mse_backward(pool_, n(0), e(0), e(1), scale(3), e(2));
      return;
    case OperatorKind::join_columns:
    case OperatorKind::take_columns:
    case OperatorKind::add_bias:
    case OperatorKind::vocabulary_statistics:
    case OperatorKind::cross_entropy_part: compute_part(op, c); return;
    case OperatorKind::tensor_sum:
    case OperatorKind::tensor_input:
    case OperatorKind::tensor_gather:
    case OperatorKind::tensor_part: assert(false && "these are collectives"); return;
  }
}

}  // namespace shard::cpu
