// The command that asks the framework itself for what a rule answered, or could not.
#pragma once

#include <string>

#include "sim/commands/foreign_files.h"
#include "sim/commands/simulate_strategy.h"

namespace shard::commands {

struct DryRunLine {
  std::string text;        ///< paths as they were given
  bool is_recipe = false;  ///< it can be run as it stands; else it has a program of the user's: "-- python train.py"
};

/// "shardscope dryrun --cluster h100-80gb-x8 --world-size 8 --recipe fsdp2 --model llama-3.1-8b ...": a recipe that
/// runs `framework` (NAME@VERSION) as the options and files say; none where no recipe does, or none is told of an
/// option that was given.
[[nodiscard]] DryRunLine dry_run_line(const std::string& framework, const cli::Command& command,
                                      const SimulateOptions& options, const ForeignFiles& files,
                                      const Simulated& simulated);

}  // namespace shard::commands
