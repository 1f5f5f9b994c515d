// Tiles of attention in shared memory and their products, of which each thread makes 4 x 4 elements; for its kernels.
#pragma once

#include <cassert>
#include <cmath>
#include <cstdint>

#include "executor/cuda/kernels/attention_shared.h"
#include "executor/cuda/kernels/device.h"
#include "executor/cuda/kernels/kernels.h"
#include "executor/kernels/philox.h"
#include "executor/kernels/vector_math.h"

// Before loops over what a thread keeps in registers, which have no addresses.
#if defined(__CUDACC__) || defined(__clang__)
#define SHARD_UNROLL _Pragma("unroll")
#else
#define SHARD_UNROLL _Pragma("GCC unroll 8")
#endif

namespace shard::cuda {

/// Tiles of kTile queries by kTile keys. A block has kSide x kSide threads: the one at (down, along) makes the elements
/// [4 down, 4 down + 4) x [4 along, 4 along + 4) of a tile of scores, and of a result [kTile, D] the same rows and, for
/// each g < kGroups, the columns [4 along + kSpan g, 4 along + kSpan g + 4).
template <int kTile_, int kGroups_>
struct Tiling {
  static constexpr int kTile = kTile_;
  static constexpr int kGroups = kGroups_;
  static constexpr int kSide = kTile / 4;
  static constexpr int kThreads = kSide * kSide;
  static constexpr int kSpan = 4 * kSide;
  static constexpr int kStride = kTile + 4;         ///< from one line of a tile to the next: rows of 16 bytes
  static constexpr int kParts = kThreads / kTile;   ///< threads that share a row of scores
  static constexpr int kSquare = kTile * kStride;   ///< floats of a tile of scores
  static constexpr int kMaskBytes = kTile * 4 * 2;  ///< see draw_mask()
  static constexpr int panel(int width) { return width * kStride; }  ///< floats of kTile rows of a head, either way
};

/// fn(Tiling): the one of attention_tile() that holds `head_dim` columns.
template <class F>
void with_tiling(const AttentionShape& shape, const F& fn) {
  assert(shape.head_dim >= 1 && shape.head_dim <= 256);
  if (shape.head_dim > 128) return fn(Tiling<32, 8>{});
  if (shape.head_dim > 64) return fn(Tiling<64, 2>{});
  if (attention_tile(shape) == 64) return fn(Tiling<64, 1>{});
  return fn(Tiling<32, 2>{});
}

/// What attention's kernels are told of sizes.
struct AttentionSizes {
  std::int64_t sequence = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t batch = 0;
  int dim = 0;
  int width = 0;  ///< dim rounded up to 4
  float scale = 1.0F;
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0, y_stride = 0;  ///< y: or dy
  std::int64_t dq_stride = 0, dk_stride = 0, dv_stride = 0;
};

inline AttentionSizes attention_sizes(const AttentionShape& shape) {
  AttentionSizes z;
  z.sequence = shape.sequence;
  z.heads = shape.heads;
  z.kv_heads = shape.kv_heads;
  z.batch = shape.batch;
  z.dim = static_cast<int>(shape.head_dim);
  z.width = (z.dim + 3) / 4 * 4;
  z.scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  return z;
}

/// What a mask is drawn with.
struct AttentionMask {
  AttentionDropout dropout{};
  MaskSource source{};
  std::uint32_t threshold = 0;  ///< an element whose draw is below it is dropped
  float factor = 1.0F;          ///< of what is kept
};

inline AttentionMask attention_mask(const AttentionDropout& dropout, const MaskSource& source) {
  const auto p = static_cast<double>(dropout.probability);
  assert(p >= 0 && p < 1);
  return {dropout, source, static_cast<std::uint32_t>(p * 0x1p32), static_cast<float>(1.0 / (1.0 - p))};
}

/// 16 bytes, which a card moves at once.
struct alignas(16) Four {
  float at[4];
};
SHARD_DEVICE Four four_at(const float* x) {
  return *reinterpret_cast<const Four*>(x);
}

/// fn(i, j) of all that a thread has of a tile.
template <class F>
SHARD_DEVICE void for_4x4(const F& fn) {
  SHARD_UNROLL
  for (int i = 0; i < 4; ++i) {
    SHARD_UNROLL
    for (int j = 0; j < 4; ++j) fn(i, j);
  }
}

SHARD_DEVICE int smaller(std::int64_t a, std::int64_t b) {
  return static_cast<int>(a < b ? a : b);
}

/// panel[d][r] = x[r][d] for `rows` rows of a head, zeros in rows up to the next multiple of 4.
template <class Tiles, class T>
SHARD_DEVICE void load_across(const AttentionSizes& z, const T* x, std::int64_t stride, int rows, float* panel) {
  // Of 32 threads, 8 take neighbouring elements of a row, 4 neighbouring rows: no two of them meet in a bank.
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int end = (rows + 3) / 4 * 4;
  for (int r = static_cast<int>(threadIdx.x) / kWarp * 4 + lane / 8; r < end; r += Tiles::kThreads / 8)
    for (int d = lane % 8; d < z.dim; d += 8)
      panel[d * Tiles::kStride + r] = r < rows ? to_f32(x[r * stride + d]) : 0.0F;
}

/// panel[r][d] = x[r][d], rows of z.width.
template <class Tiles, class T>
SHARD_DEVICE void load_along(const AttentionSizes& z, const T* x, std::int64_t stride, int rows, float* panel) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int r = static_cast<int>(threadIdx.x) / kWarp; r < rows; r += Tiles::kThreads / kWarp)
    for (int d = lane; d < z.width; d += kWarp) panel[r * z.width + d] = d < z.dim ? to_f32(x[r * stride + d]) : 0.0F;
}

/// sums[i][j] = sum over d, in order, of a[d][i] b[d][j]; a and b: where this thread's rows and columns begin in
/// panels.
template <class Tiles>
SHARD_DEVICE void multiply(int dim, const float* a, const float* b, float (&sums)[4][4]) {
  for_4x4([&](int i, int j) { sums[i][j] = 0.0F; });
  for (int d = 0; d < dim; ++d) {
    const Four x = four_at(a + d * Tiles::kStride);
    const Four y = four_at(b + d * Tiles::kStride);
    for_4x4([&](int i, int j) { sums[i][j] = sums[i][j] + x.at[i] * y.at[j]; });
  }
}

/// sums[g][i][j] += sum over r in [begin, end), in order, of a[r][i] x[r][column + kSpan g + j]: `a` as above in a tile
/// of scores, x a panel along rows.
template <class Tiles>
SHARD_DEVICE void multiply_add(const AttentionSizes& z, int begin, int end, const float* a, const float* x, int column,
                               float (&sums)[Tiles::kGroups][4][4]) {
  for (int r = begin; r < end; ++r) {
    const Four p = four_at(a + r * Tiles::kStride);
    SHARD_UNROLL
    for (int g = 0; g < Tiles::kGroups; ++g) {
      const int c = column + Tiles::kSpan * g;
      if (c >= z.width) continue;
      const Four v = four_at(x + r * z.width + c);
      for_4x4([&](int i, int j) { sums[g][i][j] = sums[g][i][j] + p.at[i] * v.at[j]; });
    }
  }
}

/// Rows [row, row + 4) of this thread's sums, each times its factor, to `rows` rows of a head.
template <class Tiles, class T>
SHARD_DEVICE void store_rows(const AttentionSizes& z, const float (&sums)[Tiles::kGroups][4][4],
                             const float (&factors)[4], int row, int column, int rows, T* y, std::int64_t stride) {
  SHARD_UNROLL
  for (int g = 0; g < Tiles::kGroups; ++g)
    for_4x4([&](int i, int j) {
      const int c = column + Tiles::kSpan * g + j;
      if (row + i < rows && c < z.dim) y[(row + i) * stride + c] = from_f32<T>(sums[g][i][j] * factors[i]);
    });
}

/// Which of the 64 keys from the block of `first_key` on are kept in each of `rows` rows: 16 bits for every 4 keys
/// modulo 16, so that one thread's four draws fill them. Whoever reads waits for the block before.
template <class Tiles>
SHARD_DEVICE void draw_mask(const AttentionSizes& z, AttentionMask mask, const std::int64_t* step, std::int64_t b,
                            std::int64_t h, std::int64_t first_row, std::int64_t first_key, int rows,
                            std::uint16_t* kept) {
  const MaskSource& source = mask.source;
  mask.dropout.key = dropout_key(source.seed, *step * source.micro_batches + source.micro_batch, source.mask);
  constexpr std::int64_t kBlock = AttentionDropout::kBlock;
  const std::int64_t element = mask.dropout.first_element(b, h, z.sequence) + first_key / kBlock * kBlock;
  for (int task = static_cast<int>(threadIdx.x); task < 4 * rows; task += Tiles::kThreads) {
    const RandomKey key = mask.dropout.row_key(first_row + task / 4);
    std::uint32_t bits = 0;
    for (int c = 0; c < 4; ++c) {
      PhiloxWordsOf<1> words;
      philox(key, static_cast<std::uint32_t>(element / 4 + task % 4 * 4 + c), words);
      for (int w = 0; w < 4; ++w) bits |= (words.w[w][0] >= mask.threshold ? 1U : 0U) << (4 * c + w);
    }
    kept[task] = static_cast<std::uint16_t>(bits);
  }
}
/// `key`: of the whole sequence.
SHARD_DEVICE bool is_kept(const std::uint16_t* kept, int row, std::int64_t key) {
  const int j = static_cast<int>(key % AttentionDropout::kBlock);
  return (kept[4 * row + j % 16 / 4] >> (j % 4 * 4 + j / 16) & 1) != 0;
}

}  // namespace shard::cuda
