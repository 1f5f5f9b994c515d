// shardscope: the commands that need no ranks, and the door to those that do.
#include <malloc.h>

#include <iostream>
#include <string>
#include <vector>

#include "sim/cli/program.h"
#include "sim/commands/commands.h"

int main(int argc, char** argv) {
  using namespace shard;
  // A search compiles plan after plan of hundreds of megabytes: what one gives back the next asks for at once, and
  // fetching its pages anew took a quarter of the processor time.
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  cli::Program program("shardscope", SHARDSCOPE_VERSION);
  program.add("search", commands::search_command);
  program.add("simulate", commands::simulate_command);
  program.add("sweep", commands::sweep_command);
  program.add("plan", commands::plan_command);
  program.add("compare", commands::compare_command);
  program.add("inspect", commands::inspect_command);
  program.add("convert", commands::convert_command);
  program.add("completion", commands::completion_command);
  program.add("man", commands::man_command);
  program.add("mcp", [](std::span<const std::string> arguments) {
    return commands::mcp_command(arguments, SHARDSCOPE_VERSION);
  });
  program.add("validate", commands::validate_command);
  return cli::run_program(program, std::vector<std::string>(argv + 1, argv + argc), std::cout, std::cerr);
}
