// shardscope-train: the commands that run ranks, and what is said of the devices that they run on.
#include <algorithm>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "executor/commands/calibrate_command.h"
#include "executor/commands/checkpoint_command.h"
#include "executor/commands/device_command.h"
#include "executor/commands/inspect_recorders.h"
#include "executor/commands/train_command.h"
#include "executor/commands/verify_command.h"
#include "sim/cli/program.h"

int main(int argc, char** argv) {
  using namespace shard;
  cli::Program program("shardscope-train", SHARDSCOPE_VERSION);
  program.add("train", commands::train_command);
  program.add("verify", commands::verify_command);
  program.add("checkpoint", commands::checkpoint_command);
  // Of GPUs, unless recorders are named.
  program.add("inspect", [](std::span<const std::string> arguments) {
    const bool of_recorder = std::ranges::any_of(
        arguments, [](const std::string& word) { return word == "--recorder" || word.starts_with("--recorder="); });
    return of_recorder ? commands::inspect_recorders_command(arguments) : commands::device_command(arguments);
  });
  program.add("calibrate", commands::calibrate_command);
  return cli::run_program(program, std::vector<std::string>(argv + 1, argv + argc), std::cout, std::cerr);
}
