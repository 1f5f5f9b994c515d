// `shardscope mcp`: the commands as tools for editors and agents.
#include <iostream>

#include "sim/cli/describe.h"
#include "sim/commands/commands.h"
#include "sim/commands/printing.h"
#include "sim/mcp/server.h"

namespace shard::commands {
namespace {

constexpr const char* kMcpDetails =
    R"(A server of the Model Context Protocol on stdin and stdout, a message a line, for programs that start it by themselves:
editors and agents. Its tools are commands (simulate, dryrun, inspect, search, sweep, validate, compare) with their
options, their answers those of --json. It ends when its input does. How an editor is told of it: docs/mcp.md.

Examples:
  shardscope mcp < /dev/null
)";

}  // namespace

int mcp_command(std::span<const std::string> arguments, const std::string& version) {
  cli::Command command("shardscope", "mcp", "serves the commands as tools to an editor or an agent", kMcpDetails);
  if (const auto code = parsed(command, arguments)) return *code;
  mcp::Server server(cli::own_path(), version, [](const std::string& line) {
    std::cout << line << '\n' << std::flush;
  });
  mcp::serve(server);
  return 0;
}

}  // namespace shard::commands
