// Bytes of workspace that an operator's CPU kernel needs, as pure functions of its shape: plans size buffers with them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/model/direction.h"
#include "sim/model/graph.h"
#include "traces/base/dtype.h"
#include "traces/base/units.h"

namespace shard::plan {

using model::Direction;

// compute_workspace(), at the end, is what plans call; the functions above it say what it is made of, for the kernels.
// In fp32 only attention needs a workspace: sums over rows are cut by columns, and sums over everything end in a few
// doubles on the stack. In 16 bits what the matrix library multiplies is widened tile by tile, and the gradient of an
// embedding, whose sums may not be rounded on the way, needs the tokens in order. The bytes of attention and linear
// grow with the threads (plans hold for one number of them); the bits of the results do not.

/// Query rows that attention handles at once. A tile holds their scores against every earlier position.
inline constexpr std::int64_t kAttentionTileRows = 64;

/// One tile of scores, [min(S, kAttentionTileRows), S] fp32, its rows padded to 64 bytes.
[[nodiscard]] constexpr Bytes attention_tile_bytes(std::int64_t sequence) {
  const std::int64_t rows = std::min(sequence, kAttentionTileRows);
  return rows * round_up(Bytes{sequence * 4}, 64);
}

/// `rows` rows of one head in fp32.
[[nodiscard]] constexpr Bytes attention_panel_bytes(std::int64_t rows, std::int64_t head_dim) {
  return round_up(Bytes{rows * head_dim * 4}, 64);
}

/// Forward: one tile (probabilities) per thread; in 16 bits also q and y of a tile's rows, and one head's k and v.
/// `head_dim` is read in 16 bits only.
[[nodiscard]] constexpr Bytes attention_forward_workspace(std::int64_t sequence, std::int64_t threads,
                                                          Dtype storage = Dtype::f32, std::int64_t head_dim = 0) {
  Bytes bytes = attention_tile_bytes(sequence);
  if (is_half(storage)) {
    bytes += 2 * attention_panel_bytes(std::min(sequence, kAttentionTileRows), head_dim);
    bytes += 2 * attention_panel_bytes(sequence, head_dim);
  }
  return threads * bytes;
}

/// Backward: two tiles (probabilities, and their gradient) per thread; in 16 bits also q, dy and dq of a tile's rows,
/// and one head's k, v, dk and dv.
[[nodiscard]] constexpr Bytes attention_backward_workspace(std::int64_t sequence, std::int64_t threads,
                                                           Dtype storage = Dtype::f32, std::int64_t head_dim = 0) {
  Bytes bytes = 2 * attention_tile_bytes(sequence);
  if (is_half(storage)) {
    bytes += 3 * attention_panel_bytes(std::min(sequence, kAttentionTileRows), head_dim);
    bytes += 4 * attention_panel_bytes(sequence, head_dim);
  }
  return threads * bytes;
}

/// How a matrix product is cut into tiles of its result [M,N]; no edge depends on the inner dimension or on threads.
struct GemmGrid {
  std::int64_t rows;  ///< edges of a tile
  std::int64_t columns;
  std::int64_t tall;  ///< tiles along M and N
  std::int64_t wide;
};

[[nodiscard]] constexpr GemmGrid gemm_grid(std::int64_t m, std::int64_t n) {
  // Tiles of at most 512 x 768 cost 2 % against one call (packing is repeated); 512 columns would cost 10 % more where
  // the inner dimension is short, as in the gradient of a vocabulary's weights: the library's blocks are 384 wide. At
  // least four, so that a few threads share the work, unless they would be narrower than 128; an even number, for two.
  constexpr std::int64_t kTallest = 512;
  constexpr std::int64_t kWidest = 768;
  constexpr std::int64_t kSmallestEdge = 128;
  constexpr std::int64_t kFewestTiles = 4;
  constexpr std::int64_t kManyTiles = 16;  // from here on an odd number does not matter
  const auto cuts = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  std::int64_t tall = cuts(m, kTallest);
  std::int64_t wide = cuts(n, kWidest);
  const auto cut_longer = [&](auto change) { m* wide > n* tall ? change(tall) : change(wide); };
  while (tall * wide < kFewestTiles && std::max(m / tall, n / wide) >= 2 * kSmallestEdge)
    cut_longer([](std::int64_t& edge) { edge *= 2; });
  if (tall * wide > 1 && tall * wide < kManyTiles && tall * wide % 2 != 0)
    cut_longer([](std::int64_t& edge) { edge += 1; });
  // Edges in multiples of 16, a vector of the library's kernels.
  const std::int64_t rows = cuts(cuts(m, tall), 16) * 16;
  const std::int64_t columns = cuts(cuts(n, wide), 16) * 16;
  return {rows, columns, cuts(m, rows), cuts(n, columns)};
}

/// Inner elements of a product of 16-bit operands that are widened, and multiplied, at once.
inline constexpr std::int64_t kGemmInner = 768;

/// What one thread widens of a product of 16-bit operands: a block of A, one of B, and a tile of the result. Offsets
/// into its part of the workspace.
struct GemmPanels {
  Bytes a;  ///< offset of the block [rows, inner] of A
  Bytes b;  ///< offset of the block [inner, columns] of B
  Bytes c;  ///< offset of the tile [rows, columns]
  Bytes bytes;
};

[[nodiscard]] constexpr GemmPanels gemm_panels(std::int64_t m, std::int64_t n, std::int64_t k) {
  const GemmGrid grid = gemm_grid(m, n);
  const std::int64_t rows = std::min(grid.rows, m);
  const std::int64_t columns = std::min(grid.columns, n);
  const std::int64_t inner = std::min(k, kGemmInner);
  const auto panel = [](std::int64_t elements) { return round_up(Bytes{4 * elements}, 64); };
  const Bytes b = panel(rows * inner);
  const Bytes c = b + panel(inner * columns);
  return {Bytes{0}, b, c, c + panel(rows * columns)};
}

/// A product [M,K] x [K,N]: none in fp32; the panels of as many threads as get a tile, at most 5.3 MiB each.
[[nodiscard]] constexpr Bytes gemm_workspace(std::int64_t m, std::int64_t n, std::int64_t k, Dtype storage,
                                             std::int64_t threads) {
  if (!is_half(storage)) return Bytes{0};
  const GemmGrid grid = gemm_grid(m, n);
  return std::min(threads, grid.tall * grid.wide) * gemm_panels(m, n, k).bytes;
}

/// The gradient of an embedding in 16 bits: one word per token.
[[nodiscard]] constexpr Bytes embedding_backward_workspace(std::int64_t tokens, Dtype storage) {
  return is_half(storage) ? Bytes{8 * tokens} : Bytes{0};
}

/// Bytes of the workspace operand, the last of the op (written, dead before and after): that of an operator's op in one
/// direction, for parameters, activations and gradients stored as `storage`. Where it is 0 there is no such operand:
/// always, except for
///   attention  forward and backward, in any type;
///   linear     forward, backward_input and backward_weight of a weight that is not frozen, in 16 bits;
///   embedding  backward, in 16 bits.
[[nodiscard]] constexpr Bytes compute_workspace(model::OperatorKind kind, Direction direction,
                                                const model::Attributes& a, Dtype storage, std::int64_t threads) {
  const bool forward = direction == Direction::forward;
  switch (model::row(kind).workspace) {
    case model::WorkspaceKind::none: return Bytes{0};
    case model::WorkspaceKind::table_gradient:
      return forward ? Bytes{0} : embedding_backward_workspace(a.rows, storage);
    case model::WorkspaceKind::attention:
      return forward ? attention_forward_workspace(a.sequence, threads, storage, a.head_dim)
                     : attention_backward_workspace(a.sequence, threads, storage, a.head_dim);
    case model::WorkspaceKind::product: break;
  }
  switch (direction) {
    case Direction::forward: return gemm_workspace(a.rows, a.out_columns, a.columns, storage, threads);
    case Direction::backward_input: return gemm_workspace(a.rows, a.columns, a.out_columns, storage, threads);
    case Direction::backward_weight:
      if (a.freezes(0)) return Bytes{0};  // the bias alone
      return a.weight_in_out ? gemm_workspace(a.columns, a.out_columns, a.rows, storage, threads)
                             : gemm_workspace(a.out_columns, a.columns, a.rows, storage, threads);
    case Direction::backward: break;
  }
  return Bytes{0};
}

}  // namespace shard::plan
