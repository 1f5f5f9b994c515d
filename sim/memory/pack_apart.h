// Offsets that leave what was just given back alone for a while, for no more memory than a packing that does not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/memory/pack.h"

namespace shard {

/// A packing, and what would be better apart from one another. Items 0 to n - 1 are those packed; the others are times
/// for which one of them would better stay alone after it was released: they live when nobody should take its bytes.
struct PackApart {
  std::span<const Bytes> items;              ///< n sizes
  std::span<const PackEvent> events;         ///< of the items and of the times after them
  std::span<const std::int32_t> after;       ///< per item: the number of the time after it, -1: none
  std::span<const std::uint8_t> may_move;    ///< per item
  std::span<const Bytes> offsets;            ///< per item, of the packing
  Bytes limit{0};                            ///< the highest end that an item which moves may reach
  std::int64_t alignment = kArenaAlignment;  ///< as the packing's
};

/// Offsets for the items: where memory is scarce those of the packing, elsewhere such that as many items as find room
/// below the limit stay alone for the time after them, the largest first. No two items that are ever live at once
/// overlap. Nothing where no attempt keeps to the limit; the packing holds then.
/// Time: up to four times that of one order of pack().
[[nodiscard]] std::optional<std::vector<Bytes>> pack_apart(const PackApart& request);

}  // namespace shard
