// Causal attention with grouped key and value heads, forward and backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/cpu/kernels/elements.h"
#include "executor/cpu/kernels/init.h"
#include "executor/cpu/kernels/threads.h"

namespace shard::cpu {

struct AttentionShape {
  std::int64_t batch = 0;     ///< B
  std::int64_t sequence = 0;  ///< S
  std::int64_t heads = 0;     ///< H query heads
  std::int64_t kv_heads = 0;  ///< K key and value heads; divides H; query head h reads key head h / (H / K)
  std::int64_t head_dim = 0;  ///< D
};

/// Heads of all tokens: element (token t, head h, d) is data[t * row_stride + h * D + d], t = b * S + s.
/// For packed qkv [T,3C]: q = {qkv, 3C}, k = {qkv + C, 3C}, v = {qkv + 2C, 3C}.
struct HeadsView {
  ConstElements data;
  std::int64_t row_stride = 0;
};
struct HeadsOut {
  Elements data;
  std::int64_t row_stride = 0;
};

/// Dropout of the probabilities: each becomes 0 with `probability`, else itself / (1 - probability). That of query i
/// and key j, for sequence b and head h, is 0 where element (b H + h) R + place(j) of the key's sequence in row i is
/// below probability x 2^32, R = S rounded up to 64: the mask knows no tile, thread or rank. B H R <= 2^34, S <= 2^24.
struct AttentionDropout {
  float probability = 0;        ///< 0 <= probability < 1; 0: nothing is dropped or drawn
  RandomKey key{};              ///< dropout_key(); row 0
  std::int64_t heads = 0;       ///< H of the whole model, of which the shape's are some
  std::int64_t first_head = 0;  ///< h of the shape's head 0
  /// The key of row i, and the first of its elements for sequence b and the shape's head h.
  [[nodiscard]] constexpr RandomKey row_key(std::int64_t i) const {
    return {key.seed, key.stream, key.index, static_cast<std::uint32_t>(i)};
  }
  [[nodiscard]] constexpr std::int64_t first_element(std::int64_t b, std::int64_t h, std::int64_t sequence) const {
    return (b * heads + first_head + h) * ((sequence + kBlock - 1) / kBlock * kBlock);
  }
  /// Of 64 keys the first 16 take the first words of 16 counters, the next the second ones, as vectors do best.
  static constexpr int kBlock = 64;
  [[nodiscard]] static constexpr std::int64_t place(std::int64_t j) {
    return j / kBlock * kBlock + j % 16 * 4 + j % kBlock / 16;
  }
};

// lse is fp32, whatever the type of the rest. In 16 bits q, k, v, dy are widened and y, dq, dk, dv summed up in fp32 by
// tiles in the workspace; the result is that of the fp32 kernel, rounded, wherever the matrix library computes alike
// for the strides of the operands and of the widened tiles.

/// y = drop(softmax(causal(q k^T / sqrt(D)))) v; lse [B,H,S] = log of the sum of exponentials of each row of scores.
/// workspace: at least plan::attention_forward_workspace() bytes for this pool's threads, 64-byte aligned.
void attention_forward(ThreadPool& pool, const AttentionShape& shape, HeadsView q, HeadsView k, HeadsView v, HeadsOut y,
                       float* lse, std::span<std::byte> workspace, const AttentionDropout& dropout = {});

/// Recomputes the probabilities from q, k and lse (y is not needed), draws their mask again, and writes dq, dk, dv,
/// which overlap no input.
/// Gradients of a shared key head sum over its query heads in order of h, and over query tiles in order of rows.
/// workspace: at least plan::attention_backward_workspace() bytes for this pool's threads, 64-byte aligned.
void attention_backward(ThreadPool& pool, const AttentionShape& shape, HeadsView q, HeadsView k, HeadsView v,
                        const float* lse, HeadsView dy, HeadsOut dq, HeadsOut dk, HeadsOut dv,
                        std::span<std::byte> workspace, const AttentionDropout& dropout = {});

}  // namespace shard::cpu
