// The one way a process of the family runs and ends.
#include "sim/cli/program.h"

#include <ostream>

#include "sim/cli/output.h"

namespace shard::cli {

int run_program(const Program& program, std::span<const std::string> arguments, std::ostream& out,
                std::ostream& errors) {
  const Result<Decision> decision = program.decide(arguments);
  if (!decision) return print_error(errors, decision.error(), style_of(2));
  switch (decision->kind) {
    case Decision::Kind::run: return finish(out, errors, decision->run(decision->arguments));
    case Decision::Kind::hand_over:
      out.flush();  // the other program does not have what is buffered here
      return print_error(errors, hand_over(decision->program, decision->command, decision->arguments), style_of(2));
    case Decision::Kind::print: out << decision->text; return finish(out, errors, 0);
  }
  return exit_code(Errc::internal);
}

}  // namespace shard::cli
