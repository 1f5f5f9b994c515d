// transformers 5: forward() of attention modules, from the projections to the product behind attention.
#include <utility>

#include "sim/like/eager/lowering.h"

namespace shard::like::eager {

using model::OperatorKind;

Tensor LoweredDecoder::attention_of(const LoweredStep& step, const Values& given) {
  Heads heads = projected(step, given[step.inputs[0]]);
  turn(heads);
  const Scalar type = heads.k.scalar();
  const Tensor keys = cached(heads.k, type), values = cached(heads.v, type);
  heads.k = heads.v = {};
  const Tensor y = attend(heads.q, keys, values);
  return product(step.op(), y);
}

Heads LoweredDecoder::projected(const LoweredStep& step, const Tensor& x) {
  const std::int64_t h = model_.heads, k = model_.kv_heads;
  const model::Operator& first = *step.ops[0];
  switch (row_.projections) {
    case Projections::apart: {
      const Tensor q = product(first, x), key = product(*step.ops[1], x), value = product(*step.ops[2], x);
      return {.q = heads_of(q, h), .k = heads_of(key, k), .v = heads_of(value, k), .names = {}};
    }
    case Projections::apart_by_turns: return by_turns(step, x);
    case Projections::packed: return packed(first, x);
    case Projections::split: {
      const Tensors parts = split_last(r_, product(first, x), 3);
      return {.q = heads_of(parts[0], h), .k = heads_of(parts[1], h), .v = heads_of(parts[2], h), .names = parts};
    }
    case Projections::chunked_by_head: {
      const Tensor apart = reshape(r_, product(first, x), {options_.batch, options_.sequence, h, 3 * model_.head_dim});
      const Tensor together = transpose(r_, apart, 1, 2);
      const Tensors parts = split_last(r_, together, 3);
      return {.q = parts[0], .k = parts[1], .v = parts[2], .names = {together}};
    }
    case Projections::multi_query: return multi_query(first, x);
  }
  return {};
}

Heads LoweredDecoder::by_turns(const LoweredStep& step, const Tensor& x) {
  const bool normed = step.find(OperatorKind::rms_norm) != nullptr;
  const auto part = [&](std::size_t i, std::int64_t count) {
    Tensor apart = reshape(r_, product(*step.ops[i], x), {options_.batch, options_.sequence, count, model_.head_dim});
    if (normed && i < 2) apart = norm(*step.ops[3 + i], apart);
    return transpose(r_, apart, 1, 2);
  };
  Heads heads;
  heads.q = part(0, model_.heads);
  heads.k = part(1, model_.kv_heads);
  heads.v = part(2, model_.kv_heads);
  return heads;
}

/// phi3: slices of one product.
Heads LoweredDecoder::packed(const model::Operator& op, const Tensor& x) {
  const std::int64_t h = model_.heads, k = model_.kv_heads, d = model_.head_dim;
  const Tensor together = product(op, x);
  const Tensor q = slice(r_, together, 2, h * d), key = slice(r_, together, 2, k * d);
  const Tensor value = slice(r_, together, 2, k * d);
  return {.q = heads_of(q, h), .k = heads_of(key, k), .v = heads_of(value, k), .names = {together}};
}

/// gpt_bigcode.
Heads LoweredDecoder::multi_query(const model::Operator& op, const Tensor& x) {
  const std::int64_t b = options_.batch, s = options_.sequence, d = model_.head_dim;
  Tensor together = product(op, x);
  Tensors parts;
  if (model_.kv_heads == 1) {
    together = reshape(r_, together, {b, 1, s, model_.hidden + 2 * d});
    parts = split_last(r_, std::exchange(together, {}), {model_.hidden, d, d});
    parts[0] = heads_of(parts[0], model_.heads);
  } else {
    together = transpose(r_, reshape(r_, together, {b, s, model_.heads, 3 * d}), 1, 2);
    parts = split_last(r_, std::exchange(together, {}), 3);
  }
  return {.q = parts[0], .k = parts[1], .v = parts[2], .names = {}};
}

Tensor LoweredDecoder::rotate_half(const Tensor& x) {
  const std::int64_t half = x.sizes().back(0) / 2;
  const Tensor x1 = slice(r_, x, 3, half), x2 = slice(r_, x, 3, half);
  return cat(r_, {neg(r_, x2), x1}, 3);
}

Tensor LoweredDecoder::turned(const Tensor& x) {
  const Tensor straight = mul(r_, x, arguments_.cosine);
  const Tensor across = mul(r_, rotate_half(x), arguments_.sine);
  return add(r_, straight, across);
}

void LoweredDecoder::turn(Heads& heads) {
  if (row_.rotation == Rotation::none) return;
  if (row_.rotation != Rotation::whole) return turn_parts(heads);
  Tensor q = turned(heads.q), k = turned(heads.k);
  heads.q = std::move(q);
  heads.k = std::move(k);
}

void LoweredDecoder::turn_parts(Heads& heads) {
  const std::int64_t columns = rotary_columns(), rest = model_.head_dim - columns;
  Tensor q = slice(r_, heads.q, 3, columns);
  const Tensor q_rest = slice(r_, heads.q, 3, rest);
  Tensor k = slice(r_, heads.k, 3, columns);
  const Tensor k_rest = slice(r_, heads.k, 3, rest);
  const auto joined = [&](const Tensor& turning, const Tensor& resting) { return cat(r_, {turning, resting}, 3); };
  if (row_.rotation == Rotation::part_at_once) {
    Tensor q_turned = joined(turned(q), q_rest), k_turned = joined(turned(k), k_rest);
    heads.q = std::move(q_turned);
    heads.k = std::move(k_turned);
    return;
  }
  Tensor q_turned = turned(q), k_turned = turned(k);
  if (row_.rotation == Rotation::part_by_names) {
    q = std::move(q_turned);
    k = std::move(k_turned);
    heads.q = joined(q, q_rest);
    heads.k = joined(k, k_rest);
    heads.names = {q, k, q_rest, k_rest};
    return;
  }
  q_turned = joined(q_turned, q_rest);
  k_turned = joined(k_turned, k_rest);
  heads.q = std::move(q_turned);
  heads.k = std::move(k_turned);
}

}  // namespace shard::like::eager
