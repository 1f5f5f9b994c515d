// The peers' filter of extra-large parameters: which sizes a chunk search leaves out of its score.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shard {

/// The sizes that are at most mean + 3 * (population standard deviation), in order: Colossal-AI's
/// _filter_exlarge_params (v0.1.9 to today). The bound is computed as numpy.mean and numpy.std compute it, rounding for
/// rounding (sums of squares pairwise in blocks of 128 with eight accumulators), because a size may lie on it: of ten
/// sizes, nine of them equal, the tenth lies exactly there.
[[nodiscard]] std::vector<std::int64_t> without_outliers(std::span<const std::int64_t> sizes);

/// That bound. sizes: at least one.
[[nodiscard]] double outlier_bound(std::span<const std::int64_t> sizes);

}  // namespace shard
