// Who takes part in a call, as one group of ranks has one writing only.
#pragma once

#include <cstdint>
#include <string>

#include "traces/base/rank_group.h"

namespace shard {

/// The group with its count: all of `world` ranks where it says 0, and stride 1 where the stride means nothing.
[[nodiscard]] constexpr RankGroup resolved(RankGroup group, int world) {
  if (group.count == 0) return {0, 1, world};
  if (group.count == 1) return {group.first, 1, 1};
  return group;
}

/// A nonzero number for a resolved group, another one for every other group of up to 2^21 ranks.
[[nodiscard]] constexpr std::uint64_t key_of(RankGroup group) {
  return static_cast<std::uint64_t>(group.first) << 42 | static_cast<std::uint64_t>(group.stride) << 21 |
         static_cast<std::uint64_t>(group.count);
}

/// "rank 3", or "ranks 0, 2, ..., 6", for messages.
[[nodiscard]] std::string describe(RankGroup group);

}  // namespace shard
