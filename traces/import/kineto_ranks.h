// Which rank a process of a profiler's recording is: what the file says, and no number that it does not.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shard::import {

/// The rank in "rank 3", "[rank3] 0", "Rank_3" or "[TP03] 0": what tools write that put several recordings into one
/// file. Nothing in "rankings 3".
[[nodiscard]] std::optional<std::int32_t> rank_in(std::string_view text);

}  // namespace shard::import
