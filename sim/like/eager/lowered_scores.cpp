// transformers 5: attention between its operands and its result, by interface or as a class writes it out.
#include "sim/like/eager/lowering.h"

namespace shard::like::eager {

Tensor LoweredDecoder::attended(const Tensor& q, const Tensor& k, const Tensor& v) {
  switch (row_.scores) {
    case Scores::interface: return options_.attention == Attention::eager ? written_out(q, k, v) : attend(q, k, v);
    case Scores::by_einsum: return by_einsum(q, k, v);
    case Scores::sdpa: return attend(q, k, v);
    case Scores::masked: return merged(attention_with_mask(r_, q, k, v));
    case Scores::divided_masked:
    case Scores::masked_divided:
    case Scores::masked_twice: return written_out_in_fp32(q, k, v);
    case Scores::alibi_first: return onto_alibi(q, k, v);
    case Scores::alibi_added: return with_alibi(q, k, v);
  }
  return {};
}

Tensor LoweredDecoder::merged(const Tensor& y) {
  return reshape(r_, contiguous(r_, transpose(r_, y, 1, 2)),
                 {options_.batch, options_.sequence, model_.heads * model_.head_dim});
}

/// eager_attention_forward.
Tensor LoweredDecoder::written_out(const Tensor& q, const Tensor& few_keys, const Tensor& few_values) {
  const Tensor keys = repeated(few_keys, 1), values = repeated(few_values, 1);
  Tensor weights = matmul(r_, q, transpose(r_, keys, 2, 3));
  weights = mul_number(r_, weights);
  if (described_value(model_, "attn_logit_softcapping", 0) != 0) {
    weights = div_number(r_, weights);
    weights = activation(r_, weights, "tanh", Kept::result);
    weights = mul_number(r_, weights);
  }
  weights = add(r_, weights, arguments_.mask);
  weights = softmax(r_, weights, row_.softmax_in_fp32 ? Scalar::f32 : options_.precision);
  weights = to(r_, weights, r_.autocast ? weights.scalar() : q.scalar());
  shares_ = weights;
  return merged(matmul(r_, weights, values));
}

/// repeat_kv, of heads in dimension `heads_at`.
Tensor LoweredDecoder::repeated(const Tensor& x, std::size_t heads_at) {
  if (model_.kv_heads == model_.heads) return x;
  Dims once, all = x.sizes();
  for (std::size_t i = 0; i < x.sizes().rank; ++i) {
    once.push(x.size(i));
    if (i == heads_at) once.push(1);
  }
  all[heads_at] = model_.heads;
  Dims each = once;
  each[heads_at + 1] = model_.heads / model_.kv_heads;
  const Tensor apart = reshape(r_, x, once);
  const Tensor wide = expand(r_, apart, each);
  return reshape(r_, wide, all);
}

/// _attn of gptj, codegen and gpt_neo, and _merge_heads.
Tensor LoweredDecoder::written_out_in_fp32(const Tensor& given_q, const Tensor& given_k, const Tensor& v) {
  Tensor y;
  {
    const Tensor q = to(r_, given_q, Scalar::f32), k = to(r_, given_k, Scalar::f32);
    Tensor weights = matmul(r_, q, transpose(r_, k, 2, 3));
    Tensor least;
    if (row_.scores == Scores::divided_masked) weights = div_number(r_, weights);
    if (row_.scores == Scores::masked_twice) {
      least = r_.empty({}, Scalar::f32);
      weights = where(r_, r_.buffers()[0], weights, least);
    }
    weights = add(r_, weights, arguments_.mask);
    if (row_.scores == Scores::masked_divided) weights = div_number(r_, weights);
    weights = softmax(r_, weights, Scalar::f32);
    weights = to(r_, weights, v.scalar());
    shares_ = weights;
    y = matmul(r_, weights, v);
  }
  return merged(y);
}

/// The course's scaled_dot_product_attention. Attention's forward() makes the mask.
Tensor LoweredDecoder::by_einsum(const Tensor& q, const Tensor& k, const Tensor& v) {
  const std::int64_t s = options_.sequence;
  r_.tape().begin_op("arange");
  names_of_attention_ = {r_.empty({s}, Scalar::i64)};
  r_.tape().begin_op("ge");
  const Tensor mask = r_.empty({1, s, s}, Scalar::boolean);
  names_of_attention_.push_back(mask);
  Tensor y;
  {
    Tensor weights = div_number(r_, einsum(r_, "bhqd,bhkd->bhqk", q, k));
    weights = where_number(r_, mask, weights);
    const Tensor shares = softmax_written_out(weights);
    y = einsum(r_, "bhqk,bhkd->bhqd", shares, v);
  }
  return reshape(r_, transpose(r_, y, 1, 2), {options_.batch, s, model_.heads * model_.head_dim});
}

Tensor LoweredDecoder::softmax_written_out(const Tensor& x) {
  const Tensor rescaled = sub(r_, x, max_last(r_, x));
  const Tensor powers = exp(r_, rescaled);
  return div(r_, powers, sum_last(r_, powers));
}

/// Bloom: the product of queries and keys is added to the positions' biases.
Tensor LoweredDecoder::onto_alibi(const Tensor& q, const Tensor& k, const Tensor& v) {
  const std::int64_t b = options_.batch, s = options_.sequence, d = model_.head_dim, h = model_.heads;
  const Tensor query = reshape(r_, q, {b * h, s, d}), key = transpose(r_, reshape(r_, k, {b * h, s, d}), 1, 2);
  const Tensor value = reshape(r_, v, {b * h, s, d});
  const Tensor scores = baddbmm(r_, arguments_.alibi, query, key);
  Tensor weights = reshape(r_, scores, {b, h, s, s});
  weights = add(r_, weights, arguments_.mask);
  Tensor shares = softmax(r_, weights, Scalar::f32);
  shares = to(r_, shares, query.scalar());
  shares_ = shares;
  names_of_attention_ = {scores, weights};
  const Tensor context = bmm(r_, reshape(r_, shares, {b * h, s, s}), value);
  return reshape(r_, transpose(r_, reshape(r_, context, {b, h, s, d}), 1, 2), {b, s, h * d});
}

/// mpt.
Tensor LoweredDecoder::with_alibi(const Tensor& q, const Tensor& k, const Tensor& v) {
  const std::int64_t s = options_.sequence, most = model_.max_sequence;
  Tensor scores = matmul(r_, q, transpose(r_, k, 2, 3));
  scores = mul_number(r_, scores);
  const Tensor bias = arguments_.alibi.view({model_.heads, 1, s}, {most, most, 1});
  scores = add(r_, scores, bias);
  scores = masked_fill(r_, scores, arguments_.mask);
  Tensor weights = to(r_, scores, Scalar::f32);
  weights = softmax(r_, weights, Scalar::f32);
  weights = to(r_, weights, v.scalar());
  shares_ = weights;
  return merged(matmul(r_, weights, v));
}

}  // namespace shard::like::eager
