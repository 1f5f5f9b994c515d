// What stands beside the template: the line for another name of --like.
#include "sim/commands/simulate_line.h"

namespace shard::commands {

std::vector<std::string> with_like(std::span<const std::string> arguments, std::string_view name) {
  std::vector<std::string> more(arguments.begin(), arguments.end());
  more.push_back("--like=" + std::string(name));
  return more;
}

}  // namespace shard::commands
