// transformers 5: forward() of attention modules, from the projections to the product behind attention.
#include <utility>

#include "sim/like/eager/lowering.h"

namespace shard::like::eager {

using model::OperatorKind;

Tensor LoweredDecoder::attention_of(const LoweredStep& step, const Values& given) {
  Heads heads = projected(step, given[step.inputs[0]]);
  turn(heads);
  // codegen turns keys in fp32, and casts them for the cache alone.
  const Scalar type = row_.rotation == Rotation::pairs_by_index ? heads.v.scalar() : heads.k.scalar();
  const bool cast = asks_for_cache() && heads.k.scalar() != type;
  const Tensor keys = cached(cast ? to(r_, heads.k, type) : heads.k, type), values = cached(heads.v, type);
  heads.k = heads.v = {};
  const Tensor y = attended(heads.q, keys, values);
  Tensor result = product(step.op(), y);
  if (row_.sums_within)
    names_of_attention_.insert(names_of_attention_.end(), {heads.names[0], y});
  else
    names_of_attention_.clear();
  return result;
}

Heads LoweredDecoder::projected(const LoweredStep& step, const Tensor& x) {
  const std::int64_t h = model_.heads, k = model_.kv_heads;
  const model::Operator& first = *step.ops[0];
  switch (row_.projections) {
    case Projections::apart: {
      Tensor q = product(first, x);
      if (row_.scaled_queries) q = mul_number(r_, q);
      const Tensor key = product(*step.ops[1], x), value = product(*step.ops[2], x);
      if (turns_pairs()) return {.q = apart(q, h), .k = apart(key, k), .v = heads_of(value, k), .names = {}};
      return {.q = heads_of(q, h), .k = heads_of(key, k), .v = heads_of(value, k), .names = {}};
    }
    case Projections::all_first: return all_first(step, x);
    case Projections::apart_by_turns: return by_turns(step, x);
    case Projections::apart_then_norms: {
      Heads heads = by_turns(step, x);
      heads.q = norm(*step.ops[3], heads.q);
      heads.k = norm(*step.ops[4], heads.k);
      return heads;
    }
    case Projections::packed: return packed(first, x);
    case Projections::split: {
      const Tensors parts = split_last(r_, product(first, x), 3);
      return {.q = heads_of(parts[0], h), .k = heads_of(parts[1], h), .v = heads_of(parts[2], h), .names = parts};
    }
    case Projections::chunked_by_head: {
      const Tensor each = reshape(r_, product(first, x), {options_.batch, options_.sequence, h, 3 * model_.head_dim});
      const Tensor together = transpose(r_, each, 1, 2);
      const Tensors parts = split_last(r_, together, 3);
      return {.q = parts[0], .k = parts[1], .v = parts[2], .names = {together}};
    }
    case Projections::indexed_by_head: return by_index(first, x);
    case Projections::falcon: return of_falcon(first, x);
    case Projections::in_four: return in_four(first, x);
    case Projections::multi_query: return multi_query(first, x);
  }
  return {};
}

Heads LoweredDecoder::by_turns(const LoweredStep& step, const Tensor& x) {
  const bool normed = row_.projections == Projections::apart_by_turns && step.find(OperatorKind::rms_norm) != nullptr;
  const auto part = [&](std::size_t i, std::int64_t count) {
    Tensor each = apart(product(*step.ops[i], x), count);
    if (normed && i < 2) each = norm(*step.ops[3 + i], each);
    return transpose(r_, each, 1, 2);
  };
  Heads heads;
  heads.q = part(0, model_.heads);
  heads.k = part(1, model_.kv_heads);
  heads.v = part(2, model_.kv_heads);
  return heads;
}

Heads LoweredDecoder::all_first(const LoweredStep& step, const Tensor& x) {
  Heads heads;
  heads.q = product(*step.ops[0], x);
  heads.k = product(*step.ops[1], x);
  heads.v = product(*step.ops[2], x);
  heads.q = apart(heads.q, model_.heads);
  heads.k = apart(heads.k, model_.kv_heads);
  heads.v = apart(heads.v, model_.kv_heads);
  if (step.find(OperatorKind::rms_norm) == nullptr) return heads;
  heads.q = norm(*step.ops[3], heads.q);
  heads.k = norm(*step.ops[4], heads.k);
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

/// bloom.
Heads LoweredDecoder::by_index(const model::Operator& op, const Tensor& x) {
  const Tensor together = product(op, x);
  const Tensor each = reshape(r_, together, {options_.batch, options_.sequence, model_.heads, 3, model_.head_dim});
  const auto part = [&] { return transpose(r_, select(r_, each, 3), 1, 2); };
  Heads heads;
  heads.q = part();
  heads.k = part();
  heads.v = part();
  heads.names = {together};
  return heads;
}

Heads LoweredDecoder::of_falcon(const model::Operator& op, const Tensor& x) {
  const std::int64_t b = options_.batch, s = options_.sequence, d = model_.head_dim;
  const std::int64_t h = model_.heads, k = model_.kv_heads;
  const bool groups = described_value(model_, "new_decoder_architecture", 0) != 0;
  if (!groups && described_value(model_, "multi_query", 0) == 0) return by_index(op, x);
  const Tensor together = product(op, x);
  Heads heads;
  if (groups) {
    const Tensor each = reshape(r_, together, {b, s, k, h / k + 2, d});
    const Tensor q = slice(r_, each, 3, h / k), key = index_one(r_, each, 3), value = index_one(r_, each, 3);
    const Tensor wide_key = expand(r_, key, q.sizes()), wide_value = expand(r_, value, q.sizes());
    heads.q = reshape(r_, q, {b, s, h, d});
    heads.k = reshape(r_, wide_key, {b, s, h, d});
    heads.v = reshape(r_, wide_value, {b, s, h, d});
  } else {
    const Tensor each = apart(together, h + 2);
    heads.q = slice(r_, each, 2, h);
    heads.k = index_one(r_, each, 2);
    heads.v = index_one(r_, each, 2);
  }
  heads.q = transpose(r_, heads.q, 1, 2);
  heads.k = transpose(r_, heads.k, 1, 2);
  heads.v = transpose(r_, heads.v, 1, 2);
  heads.names = {together};
  return heads;
}

/// codegen.
Heads LoweredDecoder::in_four(const model::Operator& op, const Tensor& x) {
  constexpr std::int64_t kGroups = 4;
  const std::int64_t b = options_.batch, s = options_.sequence, h = model_.heads, d = model_.head_dim;
  const Tensor together = product(op, x);
  Tensors parts = split_last(r_, reshape(r_, together, {b, s, kGroups, 3 * h * d / kGroups}), 3);
  const auto part = [&](std::size_t i) {
    const Tensor grouped = reshape(r_, parts[i], {b, s, kGroups, h / kGroups, d});
    return reshape(r_, grouped, {b, s, h, d});
  };
  Heads heads;
  heads.q = part(0);
  heads.k = part(2);
  heads.v = transpose(r_, part(1), 1, 2);
  heads.names = {together};
  return heads;
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

}  // namespace shard::like::eager
