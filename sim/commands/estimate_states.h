// `inspect --estimate deepspeed`: what DeepSpeed's estimators say of a model, beside what a plan of ours takes.
#pragma once

#include <cstdint>
#include <string>

#include "sim/cli/output.h"

namespace shard::commands {

struct EstimateFlags {
  std::string of{};  ///< "deepspeed"; empty: not asked
  std::int64_t gpus_per_node = 8;
  std::int64_t nodes = 1;
};

/// Prints the table and returns the exit code. `path`: as for inspect_model().
[[nodiscard]] int estimate_states(const std::string& path, const EstimateFlags& flags, cli::Format format);

}  // namespace shard::commands
