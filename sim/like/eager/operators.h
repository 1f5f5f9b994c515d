// Operators of PyTorch as forward calls them: what they allocate, what they keep for backward, what backward allocates.
// The rules and where each was seen: docs/eager.md.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/like/eager/runtime.h"

namespace shard::like::eager {

// Views, and copies where a view is impossible.
[[nodiscard]] Tensor reshape(Runtime& r, const Tensor& x, const Dims& sizes);
[[nodiscard]] Tensor transpose(Runtime& r, const Tensor& x, std::size_t a, std::size_t b);
[[nodiscard]] Tensor permute(Runtime& r, const Tensor& x, const std::vector<std::size_t>& order);
[[nodiscard]] Tensor expand(Runtime& r, const Tensor& x, const Dims& sizes);
[[nodiscard]] Tensor slice(Runtime& r, const Tensor& x, std::size_t dimension, std::int64_t elements);
/// x[..., ::2].
[[nodiscard]] Tensor every_other(Runtime& r, const Tensor& x);
/// x.select(dimension, i), of any i.
[[nodiscard]] Tensor select(Runtime& r, const Tensor& x, std::size_t dimension);
/// x[..., [i], ...] along a dimension, by a list.
[[nodiscard]] Tensor index_one(Runtime& r, const Tensor& x, std::size_t dimension);
/// torch.stack((a, b), -1).
[[nodiscard]] Tensor stack_last(Runtime& r, const Tensor& a, const Tensor& b);
[[nodiscard]] Tensors unbind_first(Runtime& r, const Tensor& x);
/// Of equal parts along the last dimension.
[[nodiscard]] Tensors split_last(Runtime& r, const Tensor& x, std::int64_t parts);
/// Of these sizes.
[[nodiscard]] Tensors split_last(Runtime& r, const Tensor& x, const std::vector<std::int64_t>& parts);
[[nodiscard]] Tensor contiguous(Runtime& r, const Tensor& x);
/// Of `scalar`, or of the parts' own type.
[[nodiscard]] Tensor cat(Runtime& r, const Tensors& parts, std::size_t dimension,
                         std::optional<Scalar> scalar = std::nullopt);
[[nodiscard]] Tensor to(Runtime& r, const Tensor& x, Scalar scalar);

/// For an operator that autocast runs in 16 bits: a copy where it is fp32, one a leaf until autocast ends.
[[nodiscard]] Tensor lowered(Runtime& r, const Tensor& x);
/// For one that it runs in fp32.
[[nodiscard]] Tensor raised(Runtime& r, const Tensor& x);

// Element by element.
[[nodiscard]] Tensor add(Runtime& r, const Tensor& a, const Tensor& b);
/// a += b.
[[nodiscard]] Tensor add_into(Runtime& r, const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor sub(Runtime& r, const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor mul(Runtime& r, const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor div(Runtime& r, const Tensor& a, const Tensor& b);
/// x + c, of any c.
[[nodiscard]] Tensor add_number(Runtime& r, const Tensor& x);
[[nodiscard]] Tensor mul_number(Runtime& r, const Tensor& x);
[[nodiscard]] Tensor div_number(Runtime& r, const Tensor& x);
[[nodiscard]] Tensor pow_number(Runtime& r, const Tensor& x);
[[nodiscard]] Tensor rsqrt(Runtime& r, const Tensor& x);
[[nodiscard]] Tensor neg(Runtime& r, const Tensor& x);
[[nodiscard]] Tensor exp(Runtime& r, const Tensor& x);
/// One tensor saved, one allocated in backward: silu, gelu (the input), sigmoid, tanh (the result).
enum class Kept : std::uint8_t { input, result };
[[nodiscard]] Tensor activation(Runtime& r, const Tensor& x, const char* name, Kept kept);
/// torch.where(mask, x, number).
[[nodiscard]] Tensor where_number(Runtime& r, const Tensor& mask, const Tensor& x);
/// torch.where(mask, x, other), of an other without a gradient.
[[nodiscard]] Tensor where(Runtime& r, const Tensor& mask, const Tensor& x, const Tensor& other);
/// x.masked_fill(mask, number).
[[nodiscard]] Tensor masked_fill(Runtime& r, const Tensor& x, const Tensor& mask);
[[nodiscard]] Tensor dropout(Runtime& r, const Tensor& x, float probability);

// Along the last dimension, which stays with one element.
[[nodiscard]] Tensor mean_last(Runtime& r, const Tensor& x);
[[nodiscard]] Tensor sum_last(Runtime& r, const Tensor& x);
/// torch.max(x, -1, keepdim=True)[0].
[[nodiscard]] Tensor max_last(Runtime& r, const Tensor& x);
/// With dtype=`result`; autocast asks for fp32.
[[nodiscard]] Tensor softmax(Runtime& r, const Tensor& x, Scalar result);
/// `bias` may be none.
[[nodiscard]] Tensor layer_norm(Runtime& r, const Tensor& x, const Tensor& weight, const Tensor& bias);
/// _fused_rms_norm.
[[nodiscard]] Tensor rms_norm(Runtime& r, const Tensor& x, const Tensor& weight);
/// Mean over (n, V) scores of n targets.
[[nodiscard]] Tensor cross_entropy(Runtime& r, const Tensor& scores, const Tensor& targets);

// Products. Weights of linear() are (out, in), those of addmm() (in, out).
[[nodiscard]] Tensor linear(Runtime& r, const Tensor& x, const Tensor& weight, const Tensor& bias);
[[nodiscard]] Tensor addmm(Runtime& r, const Tensor& bias, const Tensor& x, const Tensor& weight);
[[nodiscard]] Tensor bmm(Runtime& r, const Tensor& a, const Tensor& b);
/// x.baddbmm(a, b, alpha=number), of an x without a gradient.
[[nodiscard]] Tensor baddbmm(Runtime& r, const Tensor& x, const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor matmul(Runtime& r, const Tensor& a, const Tensor& b);
/// Of two operands; letters name dimensions, each at most once in an operand: "abi,oi->abo".
[[nodiscard]] Tensor einsum(Runtime& r, const char* pattern, const Tensor& a, const Tensor& b);

// torch.nn.functional.scaled_dot_product_attention(is_causal=True), of (B, h, S, d) queries and (B, k, S, d) keys and
// values: the kernel that PyTorch takes for them. What is dropped of the shares is drawn again in backward.
[[nodiscard]] Tensor attention(Runtime& r, const Tensor& query, const Tensor& key, const Tensor& value,
                               bool dropped = false);

/// The same with a mask of booleans, of (B, k, S, d) keys and values without enable_gqa.
[[nodiscard]] Tensor attention_with_mask(Runtime& r, const Tensor& query, const Tensor& key, const Tensor& value);

// Rows of a table.
[[nodiscard]] Tensor embedding(Runtime& r, const Tensor& weight, const Tensor& ids);
/// weight[ids].
[[nodiscard]] Tensor index_rows(Runtime& r, const Tensor& weight, const Tensor& ids);

/// Whether what is made of them has a gradient.
[[nodiscard]] bool recorded(const Runtime& r, std::initializer_list<const Tensor*> inputs);

}  // namespace shard::like::eager
