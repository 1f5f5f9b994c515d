// Measures by indentation, not by braces: those stand in literals too.
#include "tests/lint/sizes.h"

#include <algorithm>
#include <string_view>

namespace shard::lint {
namespace {

struct Line {
  int number = 0;
  std::size_t indent = 0;
  std::string_view text;  // without the indentation
};

/// Lines that say how deep the code is: no blank ones, no directives, nothing inside a raw string.
std::vector<Line> indented(std::string_view text) {
  std::vector<Line> lines;
  std::string raw_end;  // of the raw string that the line is in
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const bool inside = !raw_end.empty();
    if (inside && line.find(raw_end) != std::string_view::npos) raw_end.clear();
    if (inside) continue;
    if (const std::size_t raw = line.find("R\""); raw != std::string_view::npos) {
      const std::size_t open = line.find('(', raw);
      const std::string end = ")" + std::string(line.substr(raw + 2, open - raw - 2)) + "\"";
      if (open != std::string_view::npos && line.find(end, open) == std::string_view::npos) raw_end = end;
    }
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent != std::string_view::npos && line[indent] != '#') lines.push_back({number, indent, line.substr(indent)});
  }
  return lines;
}

bool is_lambda(std::string_view first_line) {
  return first_line.ends_with('{') &&
         (first_line.find("](") != std::string_view::npos || first_line.find("] {") != std::string_view::npos);
}

}  // namespace

std::vector<std::string> size_faults(const SourceFile& file) {
  std::vector<std::string> faults;
  const std::vector<Line> lines = indented(file.text);
  const auto whole = static_cast<int>(std::ranges::count(file.text, '\n'));
  if (whole > kMostLinesOfAFile)
    faults.push_back(file.path + ":1: has " + std::to_string(whole) + " lines: which second concept moved in?");
  for (std::size_t last = 0; last < lines.size(); ++last) {
    if (!lines[last].text.starts_with('}')) continue;
    std::size_t first = last;
    while (first > 0 && lines[--first].indent > lines[last].indent) {
    }
    const int length = lines[last].number - lines[first].number + 1;
    if (length <= kMostLinesOfAFunction || (lines[last].text != "}" && !is_lambda(lines[first].text))) continue;
    faults.push_back(file.path + ":" + std::to_string(lines[first].number) + ": a function of " +
                     std::to_string(length) + " lines");
  }
  return faults;
}

}  // namespace shard::lint
