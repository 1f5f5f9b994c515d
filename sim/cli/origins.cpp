// Finds values of options in an error's text.
#include "sim/cli/origins.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>
#include <vector>

namespace shard::cli {
namespace {

/// Whether what begins at `end` goes on with the word before it: "--ranks 1" is no part of "--ranks 16".
bool goes_on(const std::string& text, std::size_t end) {
  if (end >= text.size()) return false;
  return std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '-' || text[end] == '.';
}

/// The value in force, and where it is several, or a list, each of them.
std::vector<std::string> values_of(const std::string& value) {
  std::vector<std::string> values{value};
  if (value.find_first_of(", ") == std::string::npos) return values;
  std::string apart = value;
  std::ranges::replace(apart, ',', ' ');
  values.push_back(apart);
  std::istringstream words(apart);
  for (std::string word; words >> word;) values.push_back(word);
  return values;
}

}  // namespace

Error with_origins(const Command& command, Error error) {
  for (const Effective& option : command.effective()) {
    for (const std::string& value : values_of(option.value)) {
      std::string mention = "--" + option.name;
      // A flag is named without a value.
      if (value != "true") mention += " " + value;
      const std::size_t at = error.what.find(mention);
      if (at == std::string::npos || goes_on(error.what, at + mention.size())) continue;
      error.what.replace(
          at, mention.size(),
          value == option.value ? command.describe(option.name) : mention + " (" + option.origin.where + ")");
      break;
    }
  }
  return error;
}

}  // namespace shard::cli
