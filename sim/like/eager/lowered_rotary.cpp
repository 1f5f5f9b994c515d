// apply_rotary_pos_emb of transformers 5 and torchtitan, and what classes do around it.
#include <utility>

#include "sim/like/eager/lowering.h"

namespace shard::like::eager {

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
  if (turns_pairs()) return turn_pairs(heads);
  if (row_.rotation == Rotation::pairs_taken_apart) {
    heads.q = turned_apart(heads.q);
    heads.k = turned_apart(heads.k);
    return;
  }
  if (row_.rotation == Rotation::pairs_as_complex || row_.rotation == Rotation::whole_by_new_table)
    return turn_untransposed(heads);
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

/// gptj and codegen, whose queries and keys are not transposed yet.
void LoweredDecoder::turn_pairs(Heads& heads) {
  const std::int64_t s = options_.sequence, columns = rotary_columns(), rest = model_.head_dim - columns;
  r_.tape().begin_op("rotary tables");
  Tensor table;
  if (row_.rotation == Rotation::pairs_by_gather) {
    heads.names = {r_.empty({1, model_.max_sequence, columns}, Scalar::f32), r_.empty({1, s, columns}, Scalar::i64)};
    const Tensor gathered = r_.empty({1, s, columns}, Scalar::f32);
    table = to(r_, gathered, heads.k.scalar());
  } else {
    table = r_.empty({1, s, columns}, Scalar::f32);
  }
  Tensor k = slice(r_, heads.k, 3, columns);
  const Tensor k_rest = slice(r_, heads.k, 3, rest);
  Tensor q = slice(r_, heads.q, 3, columns);
  const Tensor q_rest = slice(r_, heads.q, 3, rest);
  k = turned_pairs(k, table.scalar());
  q = turned_pairs(q, table.scalar());
  heads.k = transpose(r_, cat(r_, {k, k_rest}, 3, k.scalar()), 1, 2);
  heads.q = transpose(r_, cat(r_, {q, q_rest}, 3, q.scalar()), 1, 2);
  heads.names.insert(heads.names.end(), {table, k, q, k_rest, q_rest});
}

/// tensor * cos + rotate_every_two(tensor) * sin.
Tensor LoweredDecoder::turned_pairs(const Tensor& x, Scalar table) {
  const std::int64_t columns = x.sizes().back(0);
  const Tensor sine = r_.empty({1, options_.sequence, 1, columns}, table);
  const Tensor cosine = r_.empty({1, options_.sequence, 1, columns}, table);
  const Tensor straight = mul(r_, x, cosine);
  Tensor pairs;
  {
    const Tensor even = every_other(r_, x), odd = every_other(r_, x);
    pairs = stack_last(r_, neg(r_, odd), even);
  }
  const Tensor across = mul(r_, reshape(r_, pairs, x.sizes()), sine);
  return add(r_, straight, across);
}

/// The course's, by the model's buffer.
Tensor LoweredDecoder::turned_apart(const Tensor& x) {
  const Dims& s = x.sizes();
  const std::int64_t half = s.back(0) / 2;
  const Tensor pairs = reshape(r_, x, {s[0], s[1], s[2], half, 2});
  const Tensors parts = unbind_first(r_, permute(r_, pairs, {4, 0, 1, 2, 3}));
  const Tensor cosine = r_.buffers()[0].view({options_.sequence, half}, {half, 1});
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

/// torchtitan, which repeats keys and values of a group before it transposes heads.
void LoweredDecoder::turn_untransposed(Heads& heads) {
  row_.rotation == Rotation::pairs_as_complex ? turn_as_complex(heads) : turn_by_new_table(heads);
  const Tensor keys = repeated(heads.k, 2), values = repeated(heads.v, 2);
  heads.q = transpose(r_, heads.q, 1, 2);
  heads.k = transpose(r_, keys, 1, 2);
  heads.v = transpose(r_, values, 1, 2);
}

/// Complex numbers take what their two parts do. All of it has names until both are turned.
void LoweredDecoder::turn_as_complex(Heads& heads) {
  const Tensor q = to(r_, heads.q, Scalar::f32), k = to(r_, heads.k, Scalar::f32);
  const Tensor q_out = mul(r_, q, r_.buffers()[0]), k_out = mul(r_, k, r_.buffers()[0]);
  Tensor q_cast = to(r_, q_out, heads.q.scalar()), k_cast = to(r_, k_out, heads.k.scalar());
  heads.q = std::move(q_cast);
  heads.k = std::move(k_cast);
}

void LoweredDecoder::turn_by_new_table(Heads& heads) {
  r_.tape().begin_op("rope cache");
  const Dims sizes{1, options_.sequence, 1, model_.head_dim};
  arguments_.cosine = r_.empty(sizes, heads.q.scalar());
  arguments_.sine = r_.empty(sizes, heads.q.scalar());
  Tensor q = turned(heads.q), k = turned(heads.k);
  heads.q = std::move(q);
  heads.k = std::move(k);
  arguments_ = {};
}

}  // namespace shard::like::eager
