// The commands that a launch script comes to, without running any: variables, lists, conditions on them, functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/foreign/shell_text.h"
#include "traces/base/result.h"

namespace shard::foreign {

struct ShellCommand {
  std::vector<std::pair<std::string, ShellWord>> environment{};  ///< NAME=value before it
  std::vector<ShellWord> words{};                                ///< the first is the command
};

struct ShellScript {
  std::vector<ShellCommand> commands{};                     ///< in the order in which they would run
  std::vector<ShellMissing> missing{};                      ///< what words' `missing` are indices of
  std::vector<std::pair<std::string, ShellWord>> sbatch{};  ///< #SBATCH --name=value
};

/// Branches whose condition only a run knows are left out, files of tests are taken as absent, a loop goes over its
/// first value, `while` is skipped. SLURM's variables are as #SBATCH lines say.
/// Fails with Errc::malformed: quotes, brackets, `if`, `for`, `case` or functions that are never closed; growth beyond
/// what a launch script has.
[[nodiscard]] Result<ShellScript> read_shell(std::string_view source, std::string_view file);

}  // namespace shard::foreign
