// shardscope: the commands that need no ranks, and the door to those that do.
#include <iostream>
#include <string>
#include <vector>

#include "sim/cli/dispatch.h"
#include "sim/cli/output.h"
#include "sim/commands/commands.h"

int main(int argc, char** argv) {
  using namespace shard;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  cli::Program program("shardscope", SHARDSCOPE_VERSION);
  program.add("search", commands::search_command);
  program.add("simulate", commands::simulate_command);
  program.add("plan", commands::plan_command);
  program.add("compare", commands::compare_command);
  program.add("inspect", commands::inspect_command);
  program.add("convert", commands::convert_command);
  const Result<cli::Decision> decision = program.decide(arguments);
  if (!decision) return cli::print_error(std::cerr, decision.error(), cli::style_of(2));
  switch (decision->kind) {
    case cli::Decision::Kind::run: return cli::finish(std::cout, std::cerr, decision->run(decision->arguments));
    case cli::Decision::Kind::hand_over:
      std::cout << std::flush;
      return cli::print_error(std::cerr, cli::hand_over(decision->program, decision->command, decision->arguments),
                              cli::style_of(2));
    case cli::Decision::Kind::print: std::cout << decision->text; return cli::finish(std::cout, std::cerr, 0);
  }
  return 70;
}
