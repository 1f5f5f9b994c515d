// Attention over tiles of query rows: two products around a row-wise softmax, five for the gradient.
#include "executor/cpu/kernels/attention.h"

#include <cassert>
#include <cmath>
#include <cstring>

#include "executor/cpu/kernels/gemm.h"
#include "executor/cpu/kernels/ranges.h"
#include "executor/cpu/kernels/simd.h"
#include "executor/kernels/philox.h"
#include "executor/kernels/vector_math.h"
#include "sim/target/workspace.h"

namespace shard::cpu {
namespace {

using plan::kAttentionTileRows;

// Row stride of a tile of scores, in floats: rows begin on cache lines.
std::int64_t tile_stride(std::int64_t sequence) {
  return ceil_div(sequence, 16) * 16;
}

// One thread's part of the workspace, handed out in order.
class Scratch {
 public:
  explicit Scratch(std::byte* begin) : next_(begin) {}
  float* tile(std::int64_t sequence) { return take(plan::attention_tile_bytes(sequence)); }
  float* panel(std::int64_t rows, std::int64_t head_dim) { return take(plan::attention_panel_bytes(rows, head_dim)); }

 private:
  float* take(Bytes bytes) {
    auto* begin = reinterpret_cast<float*>(next_);
    next_ += bytes.count();
    return begin;
  }
  std::byte* next_;
};

// fp32 rows of one head.
struct Rows {
  float* data;
  std::int64_t stride;
};

// Rows of one head as the products read them: where they are if fp32, else widened into `panel`.
template <class T>
MatrixView widened(std::int64_t rows, std::int64_t d, const T* x, std::int64_t stride, float* panel) {
  if constexpr (kDtypeOf<T> == Dtype::f32) {
    return {x, stride, false};
  } else {
    for (std::int64_t i = 0; i < rows; ++i) widen(x + i * stride, panel + i * d, d);
    return {panel, d, false};
  }
}

// Where results are summed up: in place if fp32, else in `panel`, which round_into() stores.
template <class T>
Rows summed(T* y, std::int64_t stride, std::int64_t d, float* panel) {
  if constexpr (kDtypeOf<T> == Dtype::f32) {
    return {y, stride};
  } else {
    return {panel, d};
  }
}
template <class T>
void round_into(std::int64_t rows, std::int64_t d, const Rows& from, T* y, std::int64_t stride) {
  if constexpr (kDtypeOf<T> != Dtype::f32) {
    for (std::int64_t i = 0; i < rows; ++i) narrow(from.data + i * from.stride, y + i * stride, d);
  }
}

MatrixView transposed(MatrixView view) {
  return {view.data, view.stride, true};
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

// What a mask is drawn with.
struct Drop {
  std::uint32_t threshold;  // an element whose draw is below it is dropped
  float factor;             // of what is kept
};
Drop drop_of([[maybe_unused]] const AttentionShape& shape, const AttentionDropout& dropout) {
  const auto p = static_cast<double>(dropout.probability);
  assert(p >= 0 && p < 1 && shape.sequence <= std::int64_t{1} << 24);
  assert(p == 0 || dropout.first_head + shape.heads <= dropout.heads);
  assert(dropout.first_element(shape.batch, -dropout.first_head, shape.sequence) <= std::int64_t{1} << 34);
  return {static_cast<std::uint32_t>(p * 0x1p32), static_cast<float>(1.0 / (1.0 - p))};
}

// What 64 keys of a row are compared with, from element `first` on: all first words, then all second ones.
constexpr int kRowBlock = AttentionDropout::kBlock;
constexpr int kRowCounters = kRowBlock / 4;
SHARD_INLINE void draw(const RandomKey& key, std::int64_t first, std::uint32_t* drawn) {
  PhiloxWordsOf<kRowCounters> words;
  philox(key, static_cast<std::uint32_t>(first / 4), words);
  std::memcpy(drawn, words.w, sizeof words.w);
}

// What is dropped of a row becomes 0; `first`: of its elements in the key's sequence.
SHARD_CLONES void drop_row(const RandomKey& key, std::int64_t first, std::uint32_t threshold, std::int64_t valid,
                           float* p) {
  alignas(64) std::uint32_t drawn[kRowBlock];
  for (std::int64_t begin = 0; begin < valid; begin += kRowBlock) {
    draw(key, first + begin, drawn);
    const std::int64_t n = std::min<std::int64_t>(kRowBlock, valid - begin);
    float* at = p + begin;
    SHARD_INDEPENDENT
    for (std::int64_t j = 0; j < n; ++j) at[j] = drawn[j] >= threshold ? at[j] : 0.0F;
  }
}

// score_gradient() of a row that was dropped from; p becomes what v was weighted with. From the first pass to the
// second the sign of p keeps the mask.
SHARD_CLONES void dropped_score_gradient(const RandomKey& key, std::int64_t first, const Drop& drop, std::int64_t valid,
                                         std::int64_t width, float scale, float* p, float* dp) {
  alignas(64) std::uint32_t drawn[kRowBlock];
  const std::uint32_t threshold = drop.threshold;
  const float factor = drop.factor;
  for (std::int64_t begin = 0; begin < valid; begin += kRowBlock) {
    draw(key, first + begin, drawn);
    const std::int64_t n = std::min<std::int64_t>(kRowBlock, valid - begin);
    float* pb = p + begin;
    float* db = dp + begin;
    SHARD_INDEPENDENT
    for (std::int64_t j = 0; j < n; ++j) {
      const bool kept = drawn[j] >= threshold;
      pb[j] = kept ? pb[j] : -pb[j];
      db[j] = kept ? db[j] * factor : 0.0F;
    }
  }
  const float dot = lane_sum<float>(valid, [p, dp](std::int64_t j) SHARD_LAMBDA { return p[j] * dp[j]; });
  SHARD_INDEPENDENT
  for (std::int64_t j = 0; j < valid; ++j) {
    const float kept = p[j] < 0.0F ? 0.0F : p[j] * factor;
    dp[j] = std::fabs(p[j]) * (dp[j] - dot) * scale;
    p[j] = kept;
  }
  for (std::int64_t j = valid; j < width; ++j) dp[j] = 0.0F;
}

/// How attention is cut into tiles of query rows.
struct Tiling {
  explicit Tiling(const AttentionShape& shape)
      : group(shape.heads / shape.kv_heads),
        count(ceil_div(shape.sequence, kAttentionTileRows)),
        most_rows(std::min(shape.sequence, kAttentionTileRows)),
        stride(tile_stride(shape.sequence)),
        score_scale(1.0F / std::sqrt(static_cast<float>(shape.head_dim))) {}
  std::int64_t group;  ///< query heads of one key head
  std::int64_t count, most_rows, stride;
  float score_scale;
};

template <class T>
void forward(ThreadPool& pool, const AttentionShape& shape, HeadsView q, HeadsView k, HeadsView v, HeadsOut y,
             float* lse, std::span<std::byte> workspace, const AttentionDropout& dropout) {
  const Drop drop = drop_of(shape, dropout);
  const std::int64_t s = shape.sequence;
  const std::int64_t d = shape.head_dim;
  const Tiling tiles(shape);
  const std::int64_t per_thread = plan::attention_forward_workspace(s, 1, kDtypeOf<T>, d).count();
  assert(static_cast<std::int64_t>(workspace.size()) >= per_thread * pool.threads());
  pool.run(shape.batch * shape.heads * tiles.count, [&](std::int64_t task, int worker) {
    // Long tiles (late rows) first, so that the last tasks are short.
    const std::int64_t tile = tiles.count - 1 - task / (shape.batch * shape.heads);
    const std::int64_t b = task % (shape.batch * shape.heads) / shape.heads;
    const std::int64_t h = task % shape.heads;
    const std::int64_t first = tile * kAttentionTileRows;
    const std::int64_t rows = std::min(kAttentionTileRows, s - first);
    const std::int64_t width = first + rows;  // keys that the tile's last row sees
    const T* qh = q.data.as<T>() + (b * s + first) * q.row_stride + h * d;
    const T* kh = k.data.as<T>() + b * s * k.row_stride + h / tiles.group * d;
    const T* vh = v.data.as<T>() + b * s * v.row_stride + h / tiles.group * d;
    T* yh = y.data.as<T>() + (b * s + first) * y.row_stride + h * d;
    float* lse_h = lse + (b * shape.heads + h) * s + first;
    Scratch scratch(workspace.data() + worker * per_thread);
    float* p = scratch.tile(s);
    const MatrixView q32 = widened(rows, d, qh, q.row_stride, scratch.panel(tiles.most_rows, d));
    const MatrixView k32 = widened(width, d, kh, k.row_stride, scratch.panel(s, d));
    const MatrixView v32 = widened(width, d, vh, v.row_stride, scratch.panel(s, d));
    const Rows y32 = summed(yh, y.row_stride, d, scratch.panel(tiles.most_rows, d));

    gemm_tile(rows, width, d, tiles.score_scale, q32, transposed(k32), 0.0F, p, tiles.stride);
    float sums[kAttentionTileRows];
    for (std::int64_t i = 0; i < rows; ++i) {
      float peak = 0;
      sums[i] = exponentials(first + i + 1, width, p + i * tiles.stride, &peak);
      lse_h[i] = peak + static_cast<float>(std::log(static_cast<double>(sums[i])));
    }
    if (dropout.probability > 0) {
      const std::int64_t element = dropout.first_element(b, h, s);
      for (std::int64_t i = 0; i < rows; ++i)
        drop_row(dropout.row_key(first + i), element, drop.threshold, first + i + 1, p + i * tiles.stride);
    }
    gemm_tile(rows, d, width, 1.0F, {p, tiles.stride, false}, v32, 0.0F, y32.data, y32.stride);
    for (std::int64_t i = 0; i < rows; ++i) scale_row(d, drop.factor / sums[i], y32.data + i * y32.stride);
    round_into(rows, d, y32, yh, y.row_stride);
  });
}

template <class T>
void backward(ThreadPool& pool, const AttentionShape& shape, HeadsView q, HeadsView k, HeadsView v, const float* lse,
              HeadsView dy, HeadsOut dq, HeadsOut dk, HeadsOut dv, std::span<std::byte> workspace,
              const AttentionDropout& dropout) {
  const Drop drop = drop_of(shape, dropout);
  const std::int64_t s = shape.sequence;
  const std::int64_t d = shape.head_dim;
  const Tiling tiles(shape);
  const std::int64_t per_thread = plan::attention_backward_workspace(s, 1, kDtypeOf<T>, d).count();
  assert(static_cast<std::int64_t>(workspace.size()) >= per_thread * pool.threads());
  pool.run(shape.batch * shape.kv_heads, [&](std::int64_t task, int worker) {
    const std::int64_t b = task / shape.kv_heads;
    const std::int64_t kv = task % shape.kv_heads;
    const T* kh = k.data.as<T>() + b * s * k.row_stride + kv * d;
    const T* vh = v.data.as<T>() + b * s * v.row_stride + kv * d;
    T* dkh = dk.data.as<T>() + b * s * dk.row_stride + kv * d;
    T* dvh = dv.data.as<T>() + b * s * dv.row_stride + kv * d;
    Scratch scratch(workspace.data() + worker * per_thread);
    float* p = scratch.tile(s);
    float* ds = scratch.tile(s);
    const MatrixView k32 = widened(s, d, kh, k.row_stride, scratch.panel(s, d));
    const MatrixView v32 = widened(s, d, vh, v.row_stride, scratch.panel(s, d));
    const Rows dk32 = summed(dkh, dk.row_stride, d, scratch.panel(s, d));
    const Rows dv32 = summed(dvh, dv.row_stride, d, scratch.panel(s, d));
    float* q_panel = scratch.panel(tiles.most_rows, d);
    float* dy_panel = scratch.panel(tiles.most_rows, d);
    float* dq_panel = scratch.panel(tiles.most_rows, d);
    float beta = 0.0F;  // the first tile, of the first head's last rows, sees all keys and so writes all of dk and dv
    for (std::int64_t h = kv * tiles.group; h < (kv + 1) * tiles.group; ++h) {
      const float* lse_h = lse + (b * shape.heads + h) * s;
      const std::int64_t element = dropout.first_element(b, h, s);
      for (std::int64_t tile = tiles.count - 1; tile >= 0; --tile) {
        const std::int64_t first = tile * kAttentionTileRows;
        const std::int64_t rows = std::min(kAttentionTileRows, s - first);
        const std::int64_t width = first + rows;
        T* dqh = dq.data.as<T>() + (b * s + first) * dq.row_stride + h * d;
        const MatrixView q32 =
            widened(rows, d, q.data.as<T>() + (b * s + first) * q.row_stride + h * d, q.row_stride, q_panel);
        const MatrixView dy32 =
            widened(rows, d, dy.data.as<T>() + (b * s + first) * dy.row_stride + h * d, dy.row_stride, dy_panel);
        const Rows dq32 = summed(dqh, dq.row_stride, d, dq_panel);

        gemm_tile(rows, width, d, tiles.score_scale, q32, transposed(k32), 0.0F, p, tiles.stride);
        for (std::int64_t i = 0; i < rows; ++i)
          probabilities(first + i + 1, width, lse_h[first + i], p + i * tiles.stride);
        gemm_tile(rows, width, d, 1.0F, dy32, transposed(v32), 0.0F, ds, tiles.stride);
        for (std::int64_t i = 0; i < rows; ++i) {
          float* p_row = p + i * tiles.stride;
          float* ds_row = ds + i * tiles.stride;
          if (dropout.probability > 0)
            dropped_score_gradient(dropout.row_key(first + i), element, drop, first + i + 1, width, tiles.score_scale,
                                   p_row, ds_row);
          else
            score_gradient(first + i + 1, width, tiles.score_scale, p_row, ds_row);
        }
        gemm_tile(width, d, rows, 1.0F, {p, tiles.stride, true}, dy32, beta, dv32.data, dv32.stride);
        gemm_tile(rows, d, width, 1.0F, {ds, tiles.stride, false}, k32, 0.0F, dq32.data, dq32.stride);
        gemm_tile(width, d, rows, 1.0F, {ds, tiles.stride, true}, q32, beta, dk32.data, dk32.stride);
        round_into(rows, d, dq32, dqh, dq.row_stride);
        beta = 1.0F;
      }
    }
    round_into(s, d, dk32, dkh, dk.row_stride);
    round_into(s, d, dv32, dvh, dv.row_stride);
  });
}

}  // namespace

void attention_forward(ThreadPool& pool, const AttentionShape& shape, HeadsView q, HeadsView k, HeadsView v, HeadsOut y,
                       float* lse, std::span<std::byte> workspace, const AttentionDropout& dropout) {
  with_type(q.data.dtype(), [&]<class T>(T) { forward<T>(pool, shape, q, k, v, y, lse, workspace, dropout); });
}

void attention_backward(ThreadPool& pool, const AttentionShape& shape, HeadsView q, HeadsView k, HeadsView v,
                        const float* lse, HeadsView dy, HeadsOut dq, HeadsOut dk, HeadsOut dv,
                        std::span<std::byte> workspace, const AttentionDropout& dropout) {
  with_type(q.data.dtype(),
            [&]<class T>(T) { backward<T>(pool, shape, q, k, v, lse, dy, dq, dk, dv, workspace, dropout); });
}

}  // namespace shard::cpu
