// Causal attention, forward: a block takes a tile of queries and goes over the keys, keeping a running softmax.
#include <limits>

#include "executor/cuda/kernels/attention_tiles.h"
#include "executor/cuda/kernels/log_sum.h"

namespace shard::cuda {
namespace {

/// Shared memory of a block.
template <class Tiles>
struct Shared {
  float* q;        // [D][query]
  float* kv;       // k as [D][key], then v as [key][D]
  float* p;        // [key][query]
  float* parts;    // [kParts][query]
  float* factors;  // [query]
  std::uint16_t* kept;
  SHARD_DEVICE explicit Shared(const AttentionSizes& z)
      : q(shared<float>()),
        kv(q + Tiles::panel(z.width)),
        p(kv + Tiles::panel(z.width)),
        parts(p + Tiles::kSquare),
        factors(parts + Tiles::kThreads),
        kept(reinterpret_cast<std::uint16_t*>(factors + Tiles::kTile)) {}
};

/// What a thread knows of the row of scores that it shares with kParts - 1 others.
struct RunningRow {
  float peak = -std::numeric_limits<float>::infinity();
  float sum = 0.0F;  // of this thread's keys: e^(score - peak)
};

/// p = scores of the tile's queries and keys, where any of this thread's keys is before any of its queries.
template <class Tiles>
SHARD_DEVICE void score(const AttentionSizes& z, const Shared<Tiles>& s, int rows, int keys, std::int64_t ahead) {
  const int row = static_cast<int>(threadIdx.x) / Tiles::kSide * 4;
  const int key = static_cast<int>(threadIdx.x) % Tiles::kSide * 4;
  if (row >= rows || key >= keys || key > row + 3 + ahead) return;
  float sums[4][4];
  multiply<Tiles>(z.dim, s.q + row, s.kv + key, sums);
  SHARD_UNROLL
  for (int j = 0; j < 4; ++j) {
    Four column;
    SHARD_UNROLL
    for (int i = 0; i < 4; ++i) column.at[i] = sums[i][j] * z.scale;
    *reinterpret_cast<Four*>(s.p + (key + j) * Tiles::kStride + row) = column;
  }
}

/// The largest of this thread's share of a row's `valid` scores.
template <class Tiles>
SHARD_DEVICE float largest(const Shared<Tiles>& s, int row, int part, int valid) {
  float top = -std::numeric_limits<float>::infinity();
  for (int key = part; key < valid; key += Tiles::kParts) {
    const float score = s.p[key * Tiles::kStride + row];
    top = score > top ? score : top;
  }
  return top;
}

/// Scores become e^(score - peak), 0 behind the `valid` ones and where they are dropped.
template <class Tiles>
SHARD_DEVICE void soften(const Shared<Tiles>& s, const AttentionMask& mask, int row, int part, int valid,
                         std::int64_t first_key, RunningRow& running) {
  float peak = running.peak;
  for (int other = 0; other < Tiles::kParts; ++other) {
    const float top = s.parts[other * Tiles::kTile + row];
    peak = top > peak ? top : peak;
  }
  const float factor = exp_f32(running.peak - peak);
  float sum = 0.0F;
  for (int key = part; key < Tiles::kTile; key += Tiles::kParts) {
    float p = 0.0F;
    if (key < valid) {
      p = exp_f32(s.p[key * Tiles::kStride + row] - peak);
      sum = sum + p;
      if (mask.threshold > 0 && !is_kept(s.kept, row, first_key + key)) p = 0.0F;
    }
    s.p[key * Tiles::kStride + row] = p;
  }
  running.sum = running.sum * factor + sum;
  running.peak = peak;
  if (part == 0) s.factors[row] = factor;
}

template <class Tiles, class T>
SHARD_KERNEL attention_forward_kernel(AttentionSizes z, AttentionMask mask, const T* q, const T* k, const T* v, T* y,
                                      float* lse, const std::int64_t* step) {
  const Shared<Tiles> s(z);
  const std::int64_t all = z.batch * z.heads;
  // The longest tiles first, so that the last blocks are short.
  const std::int64_t first = (gridDim.x / all - 1 - blockIdx.x / all) * Tiles::kTile;
  const std::int64_t b = blockIdx.x % all / z.heads;
  const std::int64_t h = blockIdx.x % z.heads;
  const std::int64_t kv_head = h / (z.heads / z.kv_heads);
  const int rows = smaller(Tiles::kTile, z.sequence - first);
  const int row = static_cast<int>(threadIdx.x) % Tiles::kTile;  // of the running softmax
  const int part = static_cast<int>(threadIdx.x) / Tiles::kTile;
  const int own_row = static_cast<int>(threadIdx.x) / Tiles::kSide * 4;  // of the products
  const int column = static_cast<int>(threadIdx.x) % Tiles::kSide * 4;
  RunningRow running;
  float sums[Tiles::kGroups][4][4] = {};
  load_across<Tiles>(z, q + (b * z.sequence + first) * z.q_stride + h * z.dim, z.q_stride, rows, s.q);
  for (std::int64_t first_key = 0; first_key < first + rows; first_key += Tiles::kTile) {
    const int keys = smaller(Tiles::kTile, z.sequence - first_key);
    const std::int64_t token = b * z.sequence + first_key;
    const int valid = row < rows ? smaller(keys, first + row + 1 - first_key) : 0;
    load_across<Tiles>(z, k + token * z.k_stride + kv_head * z.dim, z.k_stride, keys, s.kv);
    if (mask.threshold > 0) draw_mask<Tiles>(z, mask, step, b, h, first, first_key, rows, s.kept);
    __syncthreads();
    score(z, s, rows, keys, first - first_key);
    __syncthreads();
    s.parts[threadIdx.x] = largest(s, row, part, valid);
    load_along<Tiles>(z, v + token * z.v_stride + kv_head * z.dim, z.v_stride, keys, s.kv);
    __syncthreads();
    if (valid > 0) soften(s, mask, row, part, valid, first_key, running);
    __syncthreads();
    if (own_row < rows) {
      SHARD_UNROLL
      for (int g = 0; g < Tiles::kGroups; ++g)
        for_4x4([&](int i, int j) { sums[g][i][j] = sums[g][i][j] * s.factors[own_row + i]; });
      multiply_add<Tiles>(z, 0, smaller(keys, first + own_row + 4 - first_key), s.p + own_row, s.kv, column, sums);
    }
    __syncthreads();
  }
  s.parts[threadIdx.x] = running.sum;
  __syncthreads();
  if (part == 0 && row < rows) {
    float sum = running.sum;
    for (int other = 1; other < Tiles::kParts; ++other) sum = sum + s.parts[other * Tiles::kTile + row];
    lse[(b * z.heads + h) * z.sequence + first + row] = running.peak + log_of_sum(sum);
    s.factors[row] = mask.factor / sum;
  }
  __syncthreads();
  if (own_row >= rows) return;
  float factors[4];
  SHARD_UNROLL
  for (int i = 0; i < 4; ++i) factors[i] = s.factors[own_row + i];
  store_rows<Tiles>(z, sums, factors, own_row, column, rows, y + (b * z.sequence + first) * z.y_stride + h * z.dim,
                    z.y_stride);
}

}  // namespace

void attention_forward(Stream stream, const AttentionShape& shape, HeadsView q, HeadsView k, HeadsView v, HeadsOut y,
                       float* lse, const AttentionDropout& drop, const MaskSource& source, const std::int64_t* step) {
  if (shape.batch * shape.sequence * shape.heads <= 0) return;
  AttentionSizes z = attention_sizes(shape);
  z.q_stride = q.row_stride;
  z.k_stride = k.row_stride;
  z.v_stride = v.row_stride;
  z.y_stride = y.row_stride;
  const AttentionMask mask = attention_mask(drop, source);
  with_type(q.data.dtype(), [&]<class T>(T) {
    with_tiling(shape, [&]<class Tiles>(Tiles) {
      const std::int64_t tiles = (shape.sequence + Tiles::kTile - 1) / Tiles::kTile;
      launch(stream,
             {.blocks_x = static_cast<std::uint32_t>(tiles * shape.batch * shape.heads),
              .threads = Tiles::kThreads,
              .shared_bytes = static_cast<std::uint32_t>(attention_forward_shared(shape))},
             attention_forward_kernel<Tiles, T>, z, mask, q.data.as<T>(), k.data.as<T>(), v.data.as<T>(),
             y.data.as<T>(), lse, step);
    });
  });
}

}  // namespace shard::cuda
