// The files of somebody's program that a command line names: what the command must not write over.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/cli/command_line.h"

namespace shard::profiler {

/// Of a program's words those that lead to files: the program itself (by PATH), words that are files, or have one
/// behind
/// '=' (--config=run.json), what Python runs of a directory or for -m MODULE. What the program reads beside is not
/// known.
[[nodiscard]] std::vector<std::filesystem::path> program_files(const std::vector<std::string>& program);

/// Tells the command of them: an output that is one of them is a contradiction (78). Call it ahead of parse().
void reads_program(cli::Command& command, const std::vector<std::string>& program);

}  // namespace shard::profiler
