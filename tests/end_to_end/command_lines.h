// Commands written in a text for people: found, and run in a directory that holds the files they name.
#pragma once

#include <string>
#include <vector>

#include "tests/end_to_end/program.h"

namespace shard::test {

struct CommandLine {
  std::string text;   ///< on one line, without the remark
  int exit_code = 0;  ///< as a remark "(exit 3...)" or "# exit 3..." promises
};

/// Lines that begin with "shardscope ", after spaces or "$ ", with the lines that a backslash continues.
[[nodiscard]] std::vector<CommandLine> command_lines(const std::string& text);

/// predicted.sst, measured.sst (of one plan), before.sst, after.sst, recording.csv, params.json, config.json,
/// ds_config.json and the like.
void make_inputs(const ScratchDirectory& directory);

/// Whether python3 has a PyTorch for CUDA, which dry runs need.
[[nodiscard]] bool has_pytorch();

/// Runs it in a shell in that directory with this build's programs on PATH.
[[nodiscard]] Outcome run_line(const CommandLine& line, const ScratchDirectory& directory);

}  // namespace shard::test
