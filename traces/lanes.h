// Puts spans that cross each other on lanes of their own, so that on one lane spans are only nested or disjoint.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/reader.h"

namespace shard {

/// Lanes of every track, numbered from 0 within the track.
struct Lanes {
  std::vector<std::uint32_t> order;          ///< span indices by track, begin, then longest first
  std::vector<std::int32_t> lane;            ///< of each span, by span index
  std::vector<std::int32_t> lanes_of_track;  ///< by track; 0 for a track without spans

  [[nodiscard]] std::int64_t count() const;  ///< over all tracks
};

/// First fit: a span goes on the first lane where it is disjoint from every open span or lies inside the innermost.
/// A span that ends where the next begins is disjoint from it. At most 2^32 spans.
[[nodiscard]] Lanes assign_lanes(const Trace& trace);

}  // namespace shard
