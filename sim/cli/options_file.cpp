// Reads one command's options from a file of `name = value` lines.
#include <algorithm>
#include <sstream>

#include "sim/cli/command_line.h"
#include "traces/base/read_file.h"

namespace shard::cli {
namespace {

/// Of options; nobody writes more.
constexpr Bytes kLargestFile{1 << 20};

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

/// Cuts a comment: '#' at the line's beginning or after a blank, outside double quotes.
std::string_view without_comment(std::string_view line) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] == '#' && !quoted && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) return line.substr(0, i);
  }
  return line;
}

std::string without_dashes(const std::string& key) {
  return key.substr(std::min(key.find_first_not_of('-'), key.size()));
}

}  // namespace

Result<void> Command::parse_file(const std::string& path) {
  const Result<std::string> read = read_file(path, "file of options", kLargestFile);
  if (!read) return read.error();
  std::istringstream in(*read);
  bool ours = true;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const Origin origin{Source::file, path + ":" + std::to_string(number)};
    const std::string text = trimmed(without_comment(line));
    if (text.empty()) continue;
    if (text.front() == '[') {
      if (text.back() != ']') return Error{Errc::malformed, "'[' without ']'", origin.where, "[" + name_ + "]"};
      ours = trimmed(std::string_view(text).substr(1, text.size() - 2)) == name_;
      continue;
    }
    if (!ours) continue;
    const std::size_t equals = text.find('=');
    std::string key = without_dashes(trimmed(std::string_view(text).substr(0, equals)));
    if (const std::string named = own_name(key); named.find(' ') == std::string::npos) key = named;
    if (key.empty() || key.find_first_of(" \t") != std::string::npos) {
      return Error{Errc::malformed, "'" + text + "' is not a 'name = value' line", origin.where, "name = value"};
    }
    bool negated = false;
    OptionState* state = lookup(key, negated);
    if (state == nullptr || state->name == "config" || state->name == "help") {
      return Error{Errc::usage, "unknown option '" + key + "'", origin.where, suggested(key) + see_help()};
    }
    std::string value = equals == std::string::npos ? "" : trimmed(std::string_view(text).substr(equals + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    if (equals == std::string::npos) {
      if (!state->value_name.empty()) {
        return Error{Errc::usage, "'" + key + "' needs a value", origin.where, key + " = " + state->value_name};
      }
      value = "true";
    }
    if (negated) {
      bool on = false;
      if (auto done = read_value(value, origin.where + " (" + key + ")", {}, on); !done) return done;
      value = on ? "false" : "true";
    }
    if (state->is_changed || state->origin.source == Source::command_line) continue;
    if (auto done = set(*state, value, origin); !done) return done;
  }
  return {};
}

}  // namespace shard::cli
