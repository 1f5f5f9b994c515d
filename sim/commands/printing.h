// What every command does around its own work: parse, print errors, choose between text and JSON.
#pragma once

#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "sim/cli/command_line.h"
#include "sim/cli/output.h"
#include "sim/cli/table.h"

namespace shard::commands {

/// What --force says of itself, in every command that puts recordings together.
inline constexpr const char* kForceRunsHelp = "put recordings together whose clocks are more than a minute apart";

/// What --incomplete says of itself, in every command that reads recordings of other tools.
inline constexpr const char* kIncompleteHelp =
    "use what is complete of a recording that breaks off; a .sst is always read as far as it goes";

/// Parses; the exit code when that already ends the command (help, usage).
[[nodiscard]] std::optional<int> parsed(cli::Command& command, std::span<const std::string> arguments);

/// Prints the error on stderr and returns its exit code.
[[nodiscard]] int failed(const Error& error);

/// The chosen format where the result is several tables, which csv and markdown cannot hold: table or json, else
/// contradiction (78).
[[nodiscard]] Result<cli::Format> document_format(const cli::Command& command, const cli::OutputOptions& output);

/// The last line of a result made of words that not everybody has met.
inline constexpr const char* kWordsHint = "\n'shardscope help words' explains the words\n";

/// An option as it is typed, for a shell: "--stage 3", "--no-keep-gathered", "--freeze '*.wte.*'".
[[nodiscard]] std::string typed_option(const std::string& name, const std::string& value);

/// Notes on stderr, one line each.
void print_notes(const std::vector<std::string>& notes);

}  // namespace shard::commands
