// The kernels behind scaled_dot_product_attention: flash, memory-efficient, and products written out.
#include <algorithm>
#include <cmath>

#include "sim/like/eager/operators.h"
#include "traces/base/division.h"

namespace shard::like::eager {
namespace {

std::int64_t up_to(std::int64_t n, std::int64_t multiple) {
  return divide_up(n, multiple) * multiple;
}

/// B, heads, S, d of a tensor; memory as (B, S, heads, d).
Tensor rows_first(Runtime& r, const Dims& sizes, Scalar scalar) {
  return r.empty(sizes, {sizes[1] * sizes[2] * sizes[3], sizes[3], sizes[1] * sizes[3], 1}, scalar);
}

/// Parts of the keys that flash attention's forward gives to different blocks: num_splits_heuristic() of
/// transformers/cuda/flash_attn/flash_api.cpp.
std::int64_t flash_splits(const Dims& q, const Machine& machine) {
  const std::int64_t d = q[3], keys_a_block = d <= 64 ? 256 : d <= 128 ? 128 : 64;
  const std::int64_t blocks = q[0] * q[1] * divide_up(q[2], 64), key_blocks = divide_up(q[2], keys_a_block);
  const std::int64_t places = 2 * machine.multiprocessors;
  if (static_cast<double>(blocks) >= 0.8 * static_cast<double>(places)) return 1;
  const std::int64_t most = std::min<std::int64_t>({128, places, key_blocks});
  const auto eligible = [&](std::int64_t n) {
    return n == 1 || divide_up(key_blocks, n) != divide_up(key_blocks, n - 1);
  };
  const auto efficiency = [&](std::int64_t n) {
    const double waves = static_cast<double>(blocks * n) / static_cast<double>(places);
    return waves / std::ceil(waves);
  };
  double best = 0;
  for (std::int64_t n = 1; n <= most; ++n)
    if (eligible(n)) best = std::max(best, efficiency(n));
  for (std::int64_t n = 1; n <= most; ++n)
    if (eligible(n) && efficiency(n) >= 0.85 * best) return n;
  return 1;
}

std::int64_t flash_head(std::int64_t d) {
  return up_to(d, d <= 128 ? 32 : 64);
}

/// Keys are given to different blocks only where nothing is dropped.
Tensor flash(Runtime& r, const Tensor& q, const Tensor& k, const Tensor& v, bool dropped) {
  r.tape().begin_op("flash_attention");
  const Tensors results = r.kept_attention([&]() -> Tensors {
    const Dims s = q.sizes();
    Tensor made = r.clone(q);
    Tensor sums_made = r.empty({s[0], s[1], s[2]}, Scalar::f32);
    Tensor split_sums, split_results;
    if (const std::int64_t parts = dropped ? 1 : flash_splits(s, r.machine()); parts > 1) {
      split_sums = r.empty({parts, s[0], s[1], s[2]}, Scalar::f32);
      split_results = r.empty({parts, s[0], s[1], s[2], flash_head(s[3])}, Scalar::f32);
    }
    Tensor state_made = r.empty({2}, Scalar::i64), offset_made = r.empty({}, Scalar::i64);
    split_results = split_sums = {};
    return {std::move(made), std::move(sums_made), std::move(state_made), std::move(offset_made)};
  });
  Tensor y = results[0];
  const Tensor sums = results[1], state = results[2], offset = results[3];
  if (!recorded(r, {&q, &k, &v})) return y;
  r.graph().record(
      y, {r.graph().edge(q), r.graph().edge(k), r.graph().edge(v)},
      [&r, q = q.saved(), k = k.saved(), v = v.saved(), y = y.saved(), sums, state, offset](const Tensors&) -> Tensors {
        r.tape().begin_op("flash_attention");
        const Dims& size = q.sizes();
        const std::int64_t rows = up_to(size[2], 128);
        Tensor dq = r.clone(q), dk = r.clone(k), dv = r.clone(v);
        const Tensor row_sums = r.empty({size[0], size[1], rows}, Scalar::f32);
        const Tensor dq_sum = r.empty({size[0], size[1], rows, flash_head(size[3])}, Scalar::f32);
        if (k.size(1) != size[1]) {  // of every query head, summed over a group's behind it
          const Tensor dk_wide = r.empty(size, k.scalar()), dv_wide = r.empty(size, v.scalar());
        }
        return {std::move(dq), std::move(dk), std::move(dv)};
      });
  return y;
}

/// Tiles of the gradient of queries that blocks of keys add to, each with a lock: GradQTempStorage of
/// transformers/cuda/mem_eff_attention/kernel_backward.h.
std::int64_t efficient_workspace(const Dims& q) {
  const std::int64_t side = q[3] <= 64 ? 64 : 128;
  constexpr std::int64_t kLock = 16;
  return q[0] * q[1] * divide_up(q[2], side) * (kLock + 4 * side * side);
}

/// `bias` is what is added to scores, or none.
Tensor efficient(Runtime& r, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias) {
  r.tape().begin_op("efficient_attention");
  const Dims s = q.sizes();
  Tensor y = rows_first(r, s, q.scalar());
  const Tensor sums = r.empty({s[0], s[1], up_to(s[2], 32)}, Scalar::f32);
  if (!recorded(r, {&q, &k, &v})) return y;
  r.graph().record(
      y, {r.graph().edge(q), r.graph().edge(k), r.graph().edge(v)},
      [&r, q = q.saved(), k = k.saved(), v = v.saved(), y = y.saved(), sums, bias](const Tensors& g) -> Tensors {
        r.tape().begin_op("efficient_attention");
        const Dims& size = q.sizes();
        Tensor dq = rows_first(r, size, q.scalar()), dk = rows_first(r, size, k.scalar());
        Tensor dv = rows_first(r, size, v.scalar());
        Tensor delta;
        if (is_half(q.scalar())) {  // the kernel makes it itself
          delta = r.empty({size[0], size[1], size[2]}, Scalar::f32);
        } else {
          const Tensor product = r.elementwise({g[0], y}, Scalar::f32);
          const Tensor sum = r.reduce(product, 1U << 3, Scalar::f32);
          delta = r.empty({size[0], size[1], size[2]}, Scalar::f32);
        }
        const Tensor workspace = r.empty({efficient_workspace(size)}, Scalar::boolean);
        return {std::move(dq), std::move(dk), std::move(dv)};
      });
  return y;
}

/// at::_safe_softmax: what is -inf everywhere becomes 0.
Tensor safe_softmax(Runtime& r, const Tensor& x) {
  Tensor y = softmax(r, x, x.scalar());
  r.tape().begin_op("safe_softmax");
  const Tensor masked = r.empty(x.sizes(), Scalar::boolean);
  Dims rows = x.sizes();
  rows[3] = 1;
  const Tensor all = r.empty(rows, Scalar::boolean);
  const Tensor zero = r.empty({}, x.scalar());
  return y;
}

/// What a mask of booleans becomes: convert_boolean_attn_mask.
Tensor added_mask(Runtime& r, const Dims& q, Scalar scalar) {
  r.tape().begin_op("attention mask");
  const Tensor infinity = r.empty({}, scalar), zero = r.empty({}, scalar);
  return r.empty({q[0], 1, q[2], q[2]}, scalar);
}

/// _scaled_dot_product_attention_math with a mask, in fp32.
Tensor written_out_with_mask(Runtime& r, const Tensor& query, const Tensor& key, const Tensor& value) {
  const Scalar scalar = query.scalar();
  const Tensor q = to(r, query, Scalar::f32), k = to(r, key, Scalar::f32), v = to(r, value, Scalar::f32);
  const Tensor scaled = mul_number(r, q);
  Tensor scores = matmul(r, scaled, mul_number(r, transpose(r, k, 2, 3)));  // the mask is added in place
  scores = safe_softmax(r, scores);
  Tensor second;  // the other result, which nobody uses
  if (is_half(scalar)) second = r.clone(scores, scalar);
  return to(r, matmul(r, scores, v), scalar);
}

/// repeat_interleave of the heads.
Tensor spread_heads(Runtime& r, const Tensor& x, std::int64_t heads) {
  const Dims& s = x.sizes();
  const Tensor apart = reshape(r, x, {s[0], s[1], 1, s[2], s[3]});
  const Tensor wide = expand(r, apart, {s[0], s[1], heads / s[1], s[2], s[3]});
  return reshape(r, contiguous(r, wide), {s[0], heads, s[2], s[3]});
}

Tensor causal_mask(Runtime& r, const Dims& s, Scalar scalar) {
  r.tape().begin_op("causal mask");
  Tensor allowed = r.empty({s[2], s[2]}, Scalar::boolean);
  allowed = r.empty({s[2], s[2]}, Scalar::boolean);
  const Tensor zero = r.empty({}, scalar), infinity = r.empty({}, scalar);
  return r.empty({s[2], s[2]}, scalar);
}

/// _scaled_dot_product_attention_math.
Tensor written_out(Runtime& r, const Tensor& query, const Tensor& key, const Tensor& value) {
  const Dims s = query.sizes();
  const Tensor q = mul_number(r, query);
  const Tensor mask = causal_mask(r, s, q.scalar());
  Tensor k = key, v = value;
  if (s[1] != key.size(1)) {
    k = spread_heads(r, key, s[1]);
    v = spread_heads(r, value, s[1]);
  }
  Tensor scores = matmul(r, q, mul_number(r, transpose(r, k, 2, 3)));  // the mask is added in place
  scores = safe_softmax(r, scores);
  return matmul(r, scores, v);
}

}  // namespace

Tensor attention(Runtime& r, const Tensor& given_query, const Tensor& given_key, const Tensor& given_value,
                 bool dropped) {
  const Tensor value = lowered(r, given_value), key = lowered(r, given_key), query = lowered(r, given_query);
  if (is_half(query.scalar())) return flash(r, query, key, value, dropped);
  // The memory-efficient kernel knows no groups of heads.
  return query.size(1) == key.size(1) ? efficient(r, query, key, value, {}) : written_out(r, query, key, value);
}

Tensor attention_with_mask(Runtime& r, const Tensor& query, const Tensor& key, const Tensor& value) {
  Tensor mask = added_mask(r, query.sizes(), query.scalar());
  if (query.size(1) != key.size(1)) return written_out_with_mask(r, query, key, value);
  constexpr std::int64_t kAligned = 8;  // elements of a row of the mask, for the kernel
  const std::int64_t columns = up_to(mask.size(3), kAligned);
  if (columns != mask.size(3)) mask = r.empty({mask.size(0), 1, mask.size(2), columns}, mask.scalar());
  return efficient(r, query, key, value, mask);
}

}  // namespace shard::like::eager
