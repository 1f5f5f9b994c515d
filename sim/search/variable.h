// Rule `variable`: chunks of different sizes, cut where modules end, few and with almost no padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/search/search_model.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

/// Total padding may be at most this share of the model: waste * 1000 <= total.
inline constexpr std::int64_t kVariableWasteDivisor = 1000;

struct VariableOptions {
  std::int64_t world_size = 1;
  Elems max_chunk{32 << 20};
};

struct VariableAnswer {
  std::vector<std::size_t> chunk_starts;  ///< first parameter of each chunk; the first is 0 (see layout_variable)
  std::int64_t module_boundaries = 0;     ///< cuts between two chunks at which the module changes
  Elems largest_chunk;
  Elems waste;
};

/// A partition of the parameters, in order and none split, into chunks of their content rounded up to the world size.
/// A chunk has at most max_chunk elements, or is one parameter larger than that. Among all such partitions:
///   1. the fewest chunks with which a total waste of at most total / 1000 is possible;
///   2. of these (waste still within the limit) the most cuts at which the module name changes;
///   3. of these the smallest largest chunk.
/// Exact: dynamic programming over (chunks, parameters), with the waste as a third dimension where it can bind.
/// Errc::contradiction for a world size or max_chunk below 1, and where no partition keeps the waste within the limit
/// (tiny models on many ranks).
[[nodiscard]] Result<VariableAnswer> search_variable(const SearchModel& model, const VariableOptions& options);

}  // namespace shard
