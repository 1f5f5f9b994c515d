// Finds values of options in an error's text.
#include "sim/cli/origins.h"

#include <cctype>
#include <string>

namespace shard::cli {
namespace {

/// Whether what begins at `end` goes on with the word before it: "--ranks 1" is no part of "--ranks 16".
bool goes_on(const std::string& text, std::size_t end) {
  if (end >= text.size()) return false;
  return std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '-' || text[end] == '.';
}

}  // namespace

Error with_origins(const Command& command, Error error) {
  for (const Effective& option : command.effective()) {
    std::string mention = "--" + option.name;
    // A flag is named without a value.
    if (option.value != "true") mention += " " + option.value;
    const std::size_t at = error.what.find(mention);
    if (at == std::string::npos || goes_on(error.what, at + mention.size())) continue;
    error.what.replace(at, mention.size(), command.describe(option.name));
  }
  return error;
}

}  // namespace shard::cli
