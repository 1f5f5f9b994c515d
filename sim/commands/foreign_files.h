// Configurations of other tools as a source of options: --ds-config and its like, --config where the file is one of
// them, and --print-config.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cli/command_line.h"
#include "sim/cli/output.h"
#include "sim/foreign/foreign_config.h"

namespace shard::commands {

/// Files as given, and what they turned out to say. Lives as long as the Command it was declared in.
struct ForeignFiles {
  struct Read {
    std::string file;
    foreign::ForeignConfig config;
  };
  std::map<std::string, std::string, std::less<>> paths{};  ///< by option
  bool print_config = false;
  std::vector<Read> read{};  ///< after Command::parse()
};

/// Whose run configurations describe: the last of them that says so.
struct ConfiguredFramework {
  std::string name{};  ///< as --like takes it; empty: none says so
  std::string file{};
};
[[nodiscard]] ConfiguredFramework configured_framework(const ForeignFiles& files);

/// Declares an option for every tool whose files are read, and --print-config; parse() then takes from the files what
/// the command line leaves open. Errors of parse(): as foreign::read_as(); a file of another tool is a contradiction
/// (78) that names it. Call it last: what a file says of options that the command does not have is left out.
void add_foreign_files(cli::Command& command, ForeignFiles& files);

/// Errc::contradiction where a file describes a run that cannot be predicted (ForeignConfig::not_predicted), naming
/// file, line and key.
[[nodiscard]] Result<void> check_predictable(const ForeignFiles& files);
/// Whether the file holds what --config takes: lines of `name = value`, or a configuration of a tool that is known.
[[nodiscard]] bool holds_options(const std::string& path);

/// Whether `option` takes another tool's file.
[[nodiscard]] bool takes_foreign_file(std::string_view option);

/// --print-config: prints every option with its value and origin, and what became of the files' keys; the exit code
/// then. Nothing where it is not asked for.
[[nodiscard]] std::optional<int> printed_config(const cli::Command& command, const ForeignFiles& files,
                                                cli::Format format);

/// A line for each file: its tool, how many keys were left out, and the first reasons. Empty without files.
[[nodiscard]] std::string foreign_lines(const ForeignFiles& files);
/// The same where people read it.
void print_foreign_files(cli::Format format, const ForeignFiles& files);
/// [{"file", "tool", "understood", "left_out": [{"key", "reason"}]}]
[[nodiscard]] nlohmann::ordered_json to_json(const ForeignFiles& files);

}  // namespace shard::commands
