// Commands as tools: what a command declares becomes a tool's schema, a call's arguments its command line, and what it
// printed the answer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cli/describe.h"
#include "sim/mcp/json_rpc.h"
#include "traces/base/result.h"

namespace shard::mcp {

/// The commands that are offered.
[[nodiscard]] std::span<const std::string_view> offered_commands();

/// An entry of tools/list. Of options its schema has those that --help shows, positional arguments by their names in
/// small letters, and "help" for the rest, which a call may give too.
[[nodiscard]] Json tool_of(const cli::CommandDescription& command);

/// What stands behind the program's name for a call with these arguments. What only the command can tell (a value, an
/// unknown option) is left to it. Errc::usage for what cannot be put on a command line.
[[nodiscard]] Result<std::vector<std::string>> words_of(const cli::CommandDescription& command, const Json& arguments);

/// What a command printed, and how it ended.
struct Finished {
  int exit_code = 0;
  std::string out;
  std::string err;
};

/// The result of tools/call. An answer is also one that does not fit (3), or a check that found a difference (1).
[[nodiscard]] Json answer_of(const Finished& finished);
/// The same for an error that is known before a command runs.
[[nodiscard]] Json answer_of(const Error& error);

}  // namespace shard::mcp
