// Attention over tiles of query rows: two products around a row-wise softmax, five for the gradient.
#include "executor/cpu/kernels/attention.h"

#include <cassert>
#include <cmath>

#include "executor/cpu/kernels/gemm.h"
#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"
#include "executor/cpu/kernels/vector_math.h"
#include "sim/plan/workspace.h"

namespace shard::cpu {
namespace {

using plan::kAttentionTileRows;

// Row stride of a tile of scores, in floats: rows begin on cache lines.
std::int64_t tile_stride(std::int64_t sequence) {
  return ceil_div(sequence, 16) * 16;
}

float* tile_of(std::span<std::byte> workspace, std::int64_t sequence, std::int64_t index) {
  return reinterpret_cast<float*>(workspace.data() + index * plan::attention_tile_bytes(sequence).count());
}

// Unnormalised probabilities e^(s - max) of the first `valid` scores in place, zeros up to `width`; returns their sum
// and sets `peak` to max.
SHARD_CLONES float exponentials(std::int64_t valid, std::int64_t width, float* s, float* peak) {
  const float top = lane_max(valid, s);
  SHARD_INDEPENDENT
  for (std::int64_t j = 0; j < valid; ++j) s[j] = exp_f32(s[j] - top);
  for (std::int64_t j = valid; j < width; ++j) s[j] = 0.0F;
  *peak = top;
  return lane_sum<float>(valid, [s](std::int64_t j) SHARD_LAMBDA { return s[j]; });
}

SHARD_CLONES void scale_row(std::int64_t n, float factor, float* y) {
  SHARD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = y[i] * factor;
}

// p = e^(s - lse) in place, zeros up to `width`.
SHARD_CLONES void probabilities(std::int64_t valid, std::int64_t width, float lse, float* s) {
  SHARD_INDEPENDENT
  for (std::int64_t j = 0; j < valid; ++j) s[j] = exp_f32(s[j] - lse);
  for (std::int64_t j = valid; j < width; ++j) s[j] = 0.0F;
}

// ds = p (dp - sum p dp) scale in place of dp, zeros up to `width`.
SHARD_CLONES void score_gradient(std::int64_t valid, std::int64_t width, float scale, const float* p, float* dp) {
  const float dot = lane_sum<float>(valid, [p, dp](std::int64_t j) SHARD_LAMBDA { return p[j] * dp[j]; });
  SHARD_INDEPENDENT
  for (std::int64_t j = 0; j < valid; ++j) dp[j] = p[j] * (dp[j] - dot) * scale;
  for (std::int64_t j = valid; j < width; ++j) dp[j] = 0.0F;
}

}  // namespace

void attention_forward(ThreadPool& pool, const AttentionShape& shape, HeadsView q, HeadsView k, HeadsView v, HeadsOut y,
                       float* lse, std::span<std::byte> workspace) {
  const std::int64_t s = shape.sequence;
  const std::int64_t d = shape.head_dim;
  const std::int64_t group = shape.heads / shape.kv_heads;
  const std::int64_t tiles = ceil_div(s, kAttentionTileRows);
  const std::int64_t stride = tile_stride(s);
  const float score_scale = 1.0F / std::sqrt(static_cast<float>(d));
  assert(static_cast<std::int64_t>(workspace.size()) >= plan::attention_forward_workspace(s, pool.threads()).count());
  pool.run(shape.batch * shape.heads * tiles, [&](std::int64_t task, int worker) {
    // Long tiles (late rows) first, so that the last tasks are short.
    const std::int64_t tile = tiles - 1 - task / (shape.batch * shape.heads);
    const std::int64_t b = task % (shape.batch * shape.heads) / shape.heads;
    const std::int64_t h = task % shape.heads;
    const std::int64_t first = tile * kAttentionTileRows;
    const std::int64_t rows = std::min(kAttentionTileRows, s - first);
    const std::int64_t width = first + rows;  // keys that the tile's last row sees
    const float* qh = q.data + (b * s + first) * q.row_stride + h * d;
    const float* kh = k.data + b * s * k.row_stride + h / group * d;
    const float* vh = v.data + b * s * v.row_stride + h / group * d;
    float* yh = y.data + (b * s + first) * y.row_stride + h * d;
    float* lse_h = lse + (b * shape.heads + h) * s + first;
    float* p = tile_of(workspace, s, worker);

    gemm_tile(rows, width, d, score_scale, {qh, q.row_stride, false}, {kh, k.row_stride, true}, 0.0F, p, stride);
    float sums[kAttentionTileRows];
    for (std::int64_t i = 0; i < rows; ++i) {
      float peak = 0;
      sums[i] = exponentials(first + i + 1, width, p + i * stride, &peak);
      lse_h[i] = peak + static_cast<float>(std::log(static_cast<double>(sums[i])));
    }
    gemm_tile(rows, d, width, 1.0F, {p, stride, false}, {vh, v.row_stride, false}, 0.0F, yh, y.row_stride);
    for (std::int64_t i = 0; i < rows; ++i) scale_row(d, 1.0F / sums[i], yh + i * y.row_stride);
  });
}

void attention_backward(ThreadPool& pool, const AttentionShape& shape, HeadsView q, HeadsView k, HeadsView v,
                        const float* lse, HeadsView dy, HeadsOut dq, HeadsOut dk, HeadsOut dv,
                        std::span<std::byte> workspace) {
  const std::int64_t s = shape.sequence;
  const std::int64_t d = shape.head_dim;
  const std::int64_t group = shape.heads / shape.kv_heads;
  const std::int64_t tiles = ceil_div(s, kAttentionTileRows);
  const std::int64_t stride = tile_stride(s);
  const float score_scale = 1.0F / std::sqrt(static_cast<float>(d));
  assert(static_cast<std::int64_t>(workspace.size()) >= plan::attention_backward_workspace(s, pool.threads()).count());
  pool.run(shape.batch * shape.kv_heads, [&](std::int64_t task, int worker) {
    const std::int64_t b = task / shape.kv_heads;
    const std::int64_t kv = task % shape.kv_heads;
    const float* kh = k.data + b * s * k.row_stride + kv * d;
    const float* vh = v.data + b * s * v.row_stride + kv * d;
    float* dkh = dk.data + b * s * dk.row_stride + kv * d;
    float* dvh = dv.data + b * s * dv.row_stride + kv * d;
    float* p = tile_of(workspace, s, 2 * worker);
    float* ds = tile_of(workspace, s, 2 * worker + 1);
    float beta = 0.0F;  // the first tile, of the first head's last rows, sees all keys and so writes all of dk and dv
    for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
      const float* lse_h = lse + (b * shape.heads + h) * s;
      for (std::int64_t tile = tiles - 1; tile >= 0; --tile) {
        const std::int64_t first = tile * kAttentionTileRows;
        const std::int64_t rows = std::min(kAttentionTileRows, s - first);
        const std::int64_t width = first + rows;
        const float* qh = q.data + (b * s + first) * q.row_stride + h * d;
        const float* dyh = dy.data + (b * s + first) * dy.row_stride + h * d;
        float* dqh = dq.data + (b * s + first) * dq.row_stride + h * d;

        gemm_tile(rows, width, d, score_scale, {qh, q.row_stride, false}, {kh, k.row_stride, true}, 0.0F, p, stride);
        for (std::int64_t i = 0; i < rows; ++i) probabilities(first + i + 1, width, lse_h[first + i], p + i * stride);
        gemm_tile(width, d, rows, 1.0F, {p, stride, true}, {dyh, dy.row_stride, false}, beta, dvh, dv.row_stride);
        gemm_tile(rows, width, d, 1.0F, {dyh, dy.row_stride, false}, {vh, v.row_stride, true}, 0.0F, ds, stride);
        for (std::int64_t i = 0; i < rows; ++i) {
          score_gradient(first + i + 1, width, score_scale, p + i * stride, ds + i * stride);
        }
        gemm_tile(rows, d, width, 1.0F, {ds, stride, false}, {kh, k.row_stride, false}, 0.0F, dqh, dq.row_stride);
        gemm_tile(width, d, rows, 1.0F, {ds, stride, true}, {qh, q.row_stride, false}, beta, dkh, dk.row_stride);
        beta = 1.0F;
      }
    }
  });
}

}  // namespace shard::cpu
