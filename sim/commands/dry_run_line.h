// The command that asks the framework itself for what a rule answered, or could not.
#pragma once

#include <string>

#include "sim/commands/foreign_files.h"
#include "sim/commands/simulate_strategy.h"

namespace shard::commands {

/// "shardscope dryrun --cluster h100-80gb-x8 --world-size 8 --recipe fsdp2 --model llama-3.1-8b ...": a recipe that
/// runs `framework` (NAME@VERSION) as the options and files say; with a program of the user's ("-- python train.py")
/// where no recipe does, or none is told of an option that was given. Paths as they were given.
[[nodiscard]] std::string dry_run_line(const std::string& framework, const cli::Command& command,
                                       const SimulateOptions& options, const ForeignFiles& files,
                                       const Simulated& simulated);
/// Whether that is a recipe, so that the line can be run as it stands.
[[nodiscard]] bool is_recipe(const std::string& line);

}  // namespace shard::commands
