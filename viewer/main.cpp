// shardscope-view: the commands that draw.
#include <iostream>
#include <string>
#include <vector>

#include "sim/cli/program.h"
#include "viewer/commands/commands.h"

int main(int argc, char** argv) {
  using namespace shard;
  cli::Program program("shardscope-view", SHARDSCOPE_VERSION);
  program.add("view", view::view_command);
  program.add("report", view::report_command);
  program.add("convert", view::convert_picture_command);
  return cli::run_program(program, std::vector<std::string>(argv + 1, argv + argc), std::cout, std::cerr);
}
