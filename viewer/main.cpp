// shardscope-view: the commands that draw.
#include <iostream>
#include <string>
#include <vector>

#include "sim/cli/dispatch.h"
#include "sim/cli/output.h"
#include "viewer/commands/commands.h"

int main(int argc, char** argv) {
  using namespace shard;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  cli::Program program("shardscope-view", SHARDSCOPE_VERSION);
  program.add("view", view::view_command);
  program.add("report", view::report_command);
  const Result<cli::Decision> decision = program.decide(arguments);
  if (!decision) return cli::print_error(std::cerr, decision.error(), cli::style_of(2));
  switch (decision->kind) {
    case cli::Decision::Kind::run: return cli::finish(std::cout, std::cerr, decision->run(decision->arguments));
    case cli::Decision::Kind::hand_over:
      return cli::print_error(std::cerr, cli::hand_over(decision->program, decision->command, decision->arguments),
                              cli::style_of(2));
    case cli::Decision::Kind::print: std::cout << decision->text; return cli::finish(std::cout, std::cerr, 0);
  }
  return 70;
}
