// shardscope-train: the commands that run ranks.
#include <iostream>
#include <string>
#include <vector>

#include "executor/commands/train_command.h"
#include "sim/cli/dispatch.h"
#include "sim/cli/output.h"

int main(int argc, char** argv) {
  using namespace shard;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  cli::Program program("shardscope-train", SHARDSCOPE_VERSION);
  program.add("train", commands::train_command);
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
