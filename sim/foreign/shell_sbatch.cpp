// Reads #SBATCH lines.
#include "sim/foreign/shell_sbatch.h"

#include <algorithm>

namespace shard::foreign {

std::vector<std::pair<std::string, ShellWord>> sbatch_lines(std::string_view source) {
  std::vector<std::pair<std::string, ShellWord>> all;
  int line = 1;
  for (std::size_t at = 0; at < source.size() && all.size() < 100; ++line) {
    const std::size_t end = std::min(source.find('\n', at), source.size());
    std::string_view text = source.substr(at, end - at);
    at = end + 1;
    if (!text.starts_with("#SBATCH ")) continue;
    text.remove_prefix(std::min(text.find('-'), text.size()));
    while (text.starts_with('-')) text.remove_prefix(1);
    const std::size_t split = std::min(text.find_first_of("= \t"), text.size());
    std::string value(text.substr(std::min(split + 1, text.size())));
    value.erase(std::min(value.find_first_of(" \t\r#"), value.size()));
    std::string name(text.substr(0, split));
    if (name == "N") name = "nodes";
    if (!name.empty()) all.emplace_back(std::move(name), ShellWord{.text = std::move(value), .line = line});
  }
  return all;
}

}  // namespace shard::foreign
