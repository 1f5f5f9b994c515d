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

/// Reads the arguments that were given, with changes, into a line of its own: a class with a `command` and the
/// `simulate` options declared in it.
template <class Line>
using ReadLine = std::function<Result<std::unique_ptr<Line>>(std::span<const cli::Change> changes)>;

/// simulate_strategy() of `line`, which `read` made with the changes. Where the framework was not asked for and
/// refuses, they are read again for our own executor, so that a configuration's settings become that one's: `line` is
/// that line then, and Simulated::instead says why. Errors: those of the line that was read last.
template <class Line>
Result<Simulated> simulate_line(std::span<const cli::Change> changes, const ReadLine<Line>& read,
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
  std::vector<cli::Change> own(changes.begin(), changes.end());
  own.push_back({"like", std::string(like::kOwnName)});
  Result<std::unique_ptr<Line>> second = read(own);
  if (!second) return second.error();
  line = std::move(*second);
  simulated = simulate_strategy(line->command, line->simulate, request);
  if (!simulated) return simulated;
  simulated->instead = instead;
  simulated->taken.memory_origin = "derived";
  return simulated;
}

}  // namespace shard::commands
