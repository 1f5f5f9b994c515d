// `dryrun --rank`: which ranks run, and of which the answer is.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "profiler/commands/recipe.h"
#include "traces/base/result.h"

namespace shard::dryrun {

/// With one of them it runs alone, with several all ranks of the world run.
struct WantedRanks {
  bool all = false;
  bool stages = false;  ///< one of each stage of a pipeline
  bool apart = false;   ///< each of those named runs as if alone
  std::vector<std::int64_t> named{0};
  [[nodiscard]] bool alone() const { return !all && named.size() == 1; }
  [[nodiscard]] bool has(int rank) const;
};

/// "all", "stages", "3", "0,3,7".
[[nodiscard]] Result<void> read_ranks(std::string_view text, WantedRanks& ranks);

/// Names the first rank of each stage of the recipe's pipeline, as its own program reads that out of its file.
/// Errc::contradiction where nobody can know of stages, or the world has no so many.
[[nodiscard]] Result<void> find_stages(const Recipe& recipe, std::int64_t world_size, WantedRanks& ranks);

/// Those that run.
[[nodiscard]] Result<std::vector<int>> running_ranks(const WantedRanks& wanted, std::int64_t world_size);

}  // namespace shard::dryrun
