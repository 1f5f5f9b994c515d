// The file that a command writes: its last word, or -o FILE.
#pragma once

#include <string>

#include "sim/cli/command_line.h"

namespace shard::cli {

struct OutputPath {
  std::string last_word;
  std::string option;

  /// The one that was given. Errc::usage where there is none, or both.
  [[nodiscard]] Result<std::string> chosen() const;
};

/// Declares the last positional argument, as help calls it, and --output (-o) in the group.
void add_output_path(Command& command, Group& group, OutputPath& path, const std::string& called = "OUTPUT");

}  // namespace shard::cli
