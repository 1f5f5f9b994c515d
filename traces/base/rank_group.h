// The ranks that take part in one collective: an arithmetic progression of ranks.
#pragma once

#include <cstdint>

namespace shard {

/// Ranks first, first + stride, ..., count of them. Members are numbered 0..count-1 in that order: shards of a gather,
/// parts of a reduction and leaves of its tree follow the member number, not the rank.
struct RankGroup {
  std::int32_t first = 0;
  std::int32_t stride = 1;
  std::int32_t count = 0;  ///< 0: all ranks of the run
  [[nodiscard]] constexpr std::int32_t rank_of(std::int32_t member) const { return first + member * stride; }
  /// The member number of a rank, -1 when it is not in the group.
  [[nodiscard]] constexpr std::int32_t member_of(std::int32_t rank) const {
    const std::int32_t distance = rank - first;
    if (distance < 0 || distance % stride != 0 || distance / stride >= count) return -1;
    return distance / stride;
  }
  [[nodiscard]] constexpr bool contains(std::int32_t rank) const { return member_of(rank) >= 0; }
  friend constexpr bool operator==(const RankGroup&, const RankGroup&) = default;
};

}  // namespace shard
