// Bytes of workspace that an operator's CPU kernel needs, as pure functions of its shape: plans size buffers with them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "traces/base/units.h"

namespace shard::plan {

// Only attention needs a workspace. All other operators, forward, backward and optimizer, need none: sums over rows are
// cut by columns, and sums over everything end in a few doubles on the stack.

/// Query rows that attention handles at once. A tile holds their scores against every earlier position.
inline constexpr std::int64_t kAttentionTileRows = 64;

/// One tile of scores, [min(S, kAttentionTileRows), S] fp32, its rows padded to 64 bytes.
[[nodiscard]] constexpr Bytes attention_tile_bytes(std::int64_t sequence) {
  const std::int64_t rows = std::min(sequence, kAttentionTileRows);
  return rows * round_up(Bytes{sequence * 4}, 64);
}

/// Forward: one tile (probabilities) per thread.
[[nodiscard]] constexpr Bytes attention_forward_workspace(std::int64_t sequence, std::int64_t threads) {
  return threads * attention_tile_bytes(sequence);
}

/// Backward: two tiles (probabilities, and their gradient) per thread.
[[nodiscard]] constexpr Bytes attention_backward_workspace(std::int64_t sequence, std::int64_t threads) {
  return 2 * threads * attention_tile_bytes(sequence);
}

/// The planned buffer that holds a step's learning rate and other hyperparameters (cpu::OptimizerScalars).
inline constexpr Bytes kOptimizerScalarsBytes{48};

}  // namespace shard::plan
