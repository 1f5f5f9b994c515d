// A word of a command line that is shown to be typed again.
#pragma once

#include <string>

namespace shard::cli {

/// As a shell takes it for one word: between quotes where it has other characters than letters, digits and -_./=:,+@%.
[[nodiscard]] std::string shell_word(const std::string& word);

}  // namespace shard::cli
