// shardscope-profile: the commands that look at somebody else's program.
#include <iostream>
#include <string>
#include <vector>

#include "profiler/commands/commands.h"
#include "sim/cli/program.h"

int main(int argc, char** argv) {
  using namespace shard;
  cli::Program program("shardscope-profile", SHARDSCOPE_VERSION);
  program.add("dryrun", dryrun::dryrun_command);
  program.add("profile", profiler::profile_command);
  return cli::run_program(program, std::vector<std::string>(argv + 1, argv + argc), std::cout, std::cerr);
}
