// The answer for a command line: by the framework whose run it means, or by our own executor where nobody asked for
// that framework and its rules do not answer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/commands/simulate_strategy.h"

namespace shard::commands {

/// Reads arguments into a line of its own: a class with a `command` and the `simulate` options declared in it.
template <class Line>
using ReadLine = std::function<Result<std::unique_ptr<Line>>(std::span<const std::string> arguments)>;

/// --like with a name, for a line whose options leave it open.
[[nodiscard]] std::vector<std::string> with_like(std::span<const std::string> arguments, std::string_view name);

/// simulate_strategy() of `line`, which `read` made of the arguments. Where the framework was not asked for and
/// refuses, they are read again for our own executor, so that a configuration's settings become that one's: `line` is
/// that line then, and Simulated::instead says why. Errors: those of the line that was read last.
template <class Line>
Result<Simulated> simulate_line(std::span<const std::string> arguments, const ReadLine<Line>& read,
                                const SimulateRequest& request, std::unique_ptr<Line>& line) {
  // Of a line that is read again nothing is said twice.
  std::vector<std::string> notes;
  SimulateRequest quiet = request;
  quiet.note = [&notes](const std::vector<std::string>& more) { notes.insert(notes.end(), more.begin(), more.end()); };
  Result<Simulated> simulated = simulate_strategy(line->command, line->simulate, quiet);
  std::optional<Instead> instead;
  if (!simulated) instead = instead_of(line->command, line->simulate, request.inputs, simulated.error());
  if (!instead) {
    request.note(notes);
    return simulated;
  }
  Result<std::unique_ptr<Line>> second = read(with_like(arguments, like::kOwnName));
  if (!second) return second.error();
  line = std::move(*second);
  simulated = simulate_strategy(line->command, line->simulate, request);
  if (!simulated) return simulated;
  simulated->instead = instead;
  simulated->taken.memory_origin = "derived";
  return simulated;
}

}  // namespace shard::commands
