// Rule `exact`: the uniform chunk size whose layout, as really built, wastes least.
#pragma once

#include <cstdint>

#include "sim/search/search_model.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

struct ExactOptions {
  std::int64_t world_size = 1;
  Elems min_chunk{32 << 20};
  Elems max_chunk{64 << 20};
};

struct ExactAnswer {
  Elems chunk;
  bool one_chunk = false;            ///< the model has fewer elements than min_chunk
  std::int64_t layouts_counted = 0;  ///< how many sizes were looked at to decide
};

/// Over every multiple of the world size from min_chunk to max_chunk: the least waste of next-fit over all parameters
/// in order (NextFit, Oversize::round_up); on ties the smaller gather working set, then the smaller size. A model of
/// fewer elements than min_chunk is one chunk, its total rounded up to the world size.
///
/// Only sizes at which the number of uniform or of oversize chunks falls can win: between two of them the waste,
/// uniform_chunks * size + oversize_elems - total, rises with the size, or stays (with the same partition) where every
/// chunk is oversize. least_capacity.h finds the best of them.
/// Errc::contradiction for a world size below 1, min_chunk > max_chunk, or no multiple of the world size between them.
[[nodiscard]] Result<ExactAnswer> search_exact(const SearchModel& model, const ExactOptions& options);

/// The multiples of the world size in [min_chunk, max_chunk] as (first, last); the same errors.
struct SizeRange {
  Elems first;
  Elems last;
};
[[nodiscard]] Result<SizeRange> admissible_sizes(const ExactOptions& options);

}  // namespace shard
