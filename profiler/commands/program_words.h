// Arguments of a command that runs somebody's program: its own options, then -- and the program's words.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "traces/base/result.h"

namespace shard::profiler {

struct ProgramWords {
  std::vector<std::string> own;
  std::vector<std::string> program;  ///< empty where there is no -- or nothing behind it
};

[[nodiscard]] inline ProgramWords program_words(std::span<const std::string> arguments) {
  const auto end = std::ranges::find(arguments, "--");
  return {{arguments.begin(), end}, {end == arguments.end() ? end : end + 1, arguments.end()}};
}

[[nodiscard]] inline Error no_program(const std::string& command) {
  return {Errc::usage, "no program to run", command, "-- and the program behind the options: -- python3 train.py"};
}

}  // namespace shard::profiler
