// The one way a process of the family runs and ends.
#include "sim/cli/program.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <ostream>
#include <sstream>
#include <string_view>

#include "sim/cli/output.h"
#include "sim/cli/screen.h"
#include "sim/cli/uncaught.h"
#include "traces/base/stop.h"

namespace shard::cli {
namespace {

/// Past std::cerr, which another thread may be printing to; not into a pipe that nobody reads.
void say_stopped(const Error& error) {
  std::ostringstream text;
  print_error(text, error, style_of(STDERR_FILENO));
  pollfd errors{STDERR_FILENO, POLLOUT, 0};
  constexpr int kMilliseconds = 200;
  if (::poll(&errors, 1, kMilliseconds) != 1) return;
  const std::string message = text.str();
  static_cast<void>(!write(STDERR_FILENO, message.data(), message.size()));
}

/// A write beyond the limit on the size of files (ulimit -f) then fails with EFBIG, as one on a full disk fails, and is
/// said with its path. Not SIG_IGN, which the programs that we start would inherit; a handler they do not. It runs in
/// the thread that writes only, within the call.
void survive_size_limit() {
  struct sigaction action {};
  if (::sigaction(SIGXFSZ, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGXFSZ, &action, nullptr);
}

/// --json or --format json among the command's own arguments. Of ranks of one run only the first has a result.
bool asks_for_json(std::span<const std::string> arguments) {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}) {
    const char* const rank = std::getenv(variable);
    if (rank != nullptr && std::string_view(rank) != "0") return false;
  }
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (arguments[i] == "--json" || arguments[i] == "--format=json") return true;
    if (arguments[i] == "--format" && i + 1 < arguments.size() && arguments[i + 1] == "json") return true;
  }
  return false;
}

int run(const Program& program, std::span<const std::string> arguments, std::ostream& out, std::ostream& errors) {
  if (asks_for_json(arguments)) say_errors_in_json();
  const stop::SignalThread signals(say_stopped);
  if (!signals.started()) return print_error(errors, signals.started().error(), style_of(2));
  const Result<Decision> decision = program.decide(arguments);
  if (!decision) return print_error(errors, decision.error(), style_of(2));
  switch (decision->kind) {
    case Decision::Kind::run: return finish(out, errors, decision->run(decision->arguments));
    case Decision::Kind::hand_over: {
      out.flush();              // the other program does not have what is buffered here
      const stop::NotNow hold;  // a signal waits for the other program's thread
      return print_error(errors, hand_over(decision->program, decision->command, decision->arguments), style_of(2));
    }
    case Decision::Kind::print: out << decision->text; return finish(out, errors, 0);
  }
  return exit_code(Errc::internal);
}

}  // namespace

int run_program(const Program& program, std::span<const std::string> arguments, std::ostream& out,
                std::ostream& errors) {
  install_terminate_handler();
  survive_size_limit();
  const Screen results(out);
  const Screen messages(errors);
  try {
    return run(program, arguments, out, errors);
  } catch (...) {
    return finish(out, errors, print_error(errors, uncaught_error(), style_of(2)));
  }
}

}  // namespace shard::cli
