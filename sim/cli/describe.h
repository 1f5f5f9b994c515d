// A command's options as data: what completion and manual pages are made of, whichever program runs the command.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"

namespace shard::cli {

struct OptionDescription {
  std::string name{};  ///< without dashes; of an argument that is no option what stands for it
  std::string letter{};
  std::vector<std::string> aliases{};
  std::string value_name{};  ///< empty: a flag
  std::string default_text{};
  std::string help{};
  std::vector<std::string> values{};  ///< words and known names that the value may be, of what it may be
  std::string list_separator{};       ///< between the values of a list; empty: takes one value
  std::string kind = "text";          ///< "flag", "integer", "number" or "text"
  std::optional<double> least{};
  std::optional<double> most{};
  bool is_common = false;  ///< one of those that --help shows
  bool is_file = false;    ///< the value may be a file or a directory
  bool is_required = false;
  bool several = false;
  bool negatable = false;
};

struct GroupDescription {
  std::string title;
  std::vector<OptionDescription> options;
};

struct CommandDescription {
  std::string program{};  ///< as it is called: "shardscope"
  std::string name{};
  std::string summary{};
  std::string details{};
  std::string followed_by{};  ///< what stands behind the options, as "-- PROGRAM [ARGUMENT...]"
  std::vector<OptionDescription> positionals{};
  std::vector<GroupDescription> groups{};
};

/// The words that a value's name says it may be: "tensor|module" and "N|search|none" have some, "0..3" its numbers,
/// "FILE" none.
[[nodiscard]] std::vector<std::string> words_of(std::string_view value_name);

[[nodiscard]] std::string to_json_text(const CommandDescription& command);
/// Errc::internal where it is not what to_json_text() writes.
[[nodiscard]] Result<CommandDescription> parse_description(std::string_view json);

/// Of all commands that are built, in the order of help, asked of `program` (a path), which hands over to the programs
/// beside it. Errc::unavailable where it cannot be run; a command that does not answer is left out.
[[nodiscard]] Result<std::vector<CommandDescription>> describe_commands(const std::string& program);
/// The same of one command. Errc::unavailable where it does not answer.
[[nodiscard]] Result<CommandDescription> describe_command(const std::string& program, const std::string& name);
/// The path of the running program.
[[nodiscard]] std::string own_path();

}  // namespace shard::cli
