// The curve of chunk sizes: what every size costs, told by the sizes at which something changes.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/search/search_model.h"
#include "traces/base/units.h"

namespace shard {

/// One uniform chunk size and the layout it makes (NextFit, Oversize::round_up, all parameters).
struct CurvePoint {
  Elems chunk;
  std::int64_t chunk_count = 0;
  Elems waste;
  Elems gather_working_set;
  /// Chunks of this size, oversize ones not counted: by how much the waste grows per element up to the next point.
  std::int64_t uniform_chunks = 0;
};

[[nodiscard]] CurvePoint curve_point(const SearchModel& model, std::int64_t world_size, Elems chunk,
                                     Oversize oversize = Oversize::round_up);

/// A curve with more layout changes than this is sampled instead: so many sizes at most, evenly spaced.
inline constexpr std::size_t kMaxCurvePoints = 1024;

/// The multiples of `world_size` in [first, last] (both multiples) at which the layout changes, ascending, `first`
/// included. Up to the next point every parameter stays in its chunk.
[[nodiscard]] std::vector<CurvePoint> chunk_curve(const SearchModel& model, std::int64_t world_size, Elems first,
                                                  Elems last);

}  // namespace shard
