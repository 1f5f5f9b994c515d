// How many workspace bytes a collective needs when ranks speak by messages: plans size buffers with it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "traces/base/ids.h"
#include "traces/base/units.h"

namespace shard {

/// What one message of a reduction carries at most. 256 KiB: past the rendezvous overhead of a network (tens of
/// microseconds at 10 GB/s is about as much), small enough that two per peer stay cheap.
inline constexpr Bytes kCommTile{256 * 1024};
/// Tiles in flight per peer: one is summed while the next is on its way.
inline constexpr std::int64_t kCommTilesInFlight = 2;
/// Pieces that a reduction is cut into begin at multiples of this.
inline constexpr Bytes kCommPartAlignment{64};

/// Segments that one planned call has at most.
inline constexpr std::size_t kCallSegments = 64;

/// Bytes of staging that the message transport needs for a call of `kind` whose largest segment has `full` bytes of any
/// element type, among the `members` ranks of its group. Segments of one call use the same workspace one after another.
/// Gathers and broadcasts land in place: 0. A reduction receives tiles of its own part from every other member:
///   min(2, tiles of a part) * (members - 1) * min(part, kCommTile),  part = round_up(full / members, 64)
/// The shared-memory, in-process and single-rank transports read and write in place and need 0 for every kind.
[[nodiscard]] constexpr Bytes comm_workspace_bytes(Collective kind, Bytes full, std::int64_t members) {
  if (members <= 1 || kind == Collective::all_gather || kind == Collective::broadcast) return Bytes{0};
  const Bytes part = round_up(Bytes{(full.count() + members - 1) / members}, kCommPartAlignment.count());
  const Bytes tile = std::min(part, kCommTile);
  if (tile.count() == 0) return Bytes{0};
  const std::int64_t tiles = (part.count() + tile.count() - 1) / tile.count();
  return std::min(tiles, kCommTilesInFlight) * (members - 1) * tile;
}

}  // namespace shard
