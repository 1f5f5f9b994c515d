// What the rules of `simulate --like` say of the run that a recipe was: where they are wrong, a dry run shows it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "profiler/commands/dryrun_report.h"
#include "profiler/commands/recipe.h"

namespace shard::dryrun {

struct QuickRule {
  std::string command;
  std::int64_t peak_bytes = 0;  ///< allocated
  double difference = 0;        ///< of the dry run's peak, as a share
  double stated_error = 0;      ///< the rule's own word, as a share
  nlohmann::json step{};        ///< its time by laws of kernels, as `simulate --json` has it; null: not known
};

/// None where there is no rule, the rule refuses, or the run did not come to its end. Runs the `shardscope` beside this
/// program. `cluster`: as it was given.
[[nodiscard]] std::optional<QuickRule> quick_rule(const Recipe& recipe, const std::string& cluster,
                                                  std::int64_t world_size, const RankRun& rank);

[[nodiscard]] nlohmann::ordered_json to_json(const std::optional<QuickRule>& rule);

/// The step's time, where it is known; and a line where the difference is larger than the rule says that it may be.
[[nodiscard]] std::string to_text(const std::optional<QuickRule>& rule);

}  // namespace shard::dryrun
