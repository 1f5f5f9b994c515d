// Character by character, with the depth of JSON objects.
#include "sim/cli/lists.h"

#include <cstddef>

namespace shard::cli {

std::vector<std::string> values_in(std::string_view text, char separator) {
  std::vector<std::string> values(1);
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool escapes = c == '\\' && i + 1 < text.size();
    if (depth == 0) {
      if (c == separator) {
        values.emplace_back();
        continue;
      }
      if (escapes && text[i + 1] == separator) {
        values.back() += text[++i];
        continue;
      }
      if (c == '{' && values.back().empty()) depth = 1;
    } else if (quoted) {
      if (escapes) values.back() += text[i++];
      quoted = text[i] != '"' || escapes;
    } else {
      quoted = c == '"';
      if (c == '{') ++depth;
      if (c == '}') --depth;
    }
    values.back() += text[i];
  }
  return values;
}

}  // namespace shard::cli
