// Text of a shell script that remembers where each letter stands and what is not known about it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shard::foreign {

struct ShellChar {
  char letter = '\0';
  bool splits = false;  ///< a blank here ends a word: it came out of an expansion without quotes
  std::int32_t line = 0;
  std::int32_t missing = 0;  ///< 1 + the index of what would have to be known, 0: known
};
using ShellText = std::vector<ShellChar>;

/// What a script does not say.
struct ShellMissing {
  std::string what;    ///< as it is written: "${VOCAB_PATH}", "$(date)"
  bool unset = false;  ///< a variable that nothing sets: empty, to a shell
};

/// A word that a command is given.
struct ShellWord {
  std::string text;                     ///< what is missing stands in it as it is written
  std::vector<std::int32_t> missing{};  ///< indices, each once
  int line = 0;
};

[[nodiscard]] inline ShellText shell_text(std::string_view text, int line, std::int32_t missing = 0) {
  ShellText result;
  result.reserve(text.size());
  for (const char c : text) result.push_back({.letter = c, .splits = false, .line = line, .missing = missing});
  return result;
}

[[nodiscard]] inline std::string letters(const ShellText& text) {
  std::string result;
  result.reserve(text.size());
  for (const ShellChar& c : text) result += c.letter;
  return result;
}

/// NAME=value or NAME+=value: where the value begins; 0 for none.
[[nodiscard]] inline std::size_t assigned_at(const ShellText& raw) {
  const auto in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::size_t at = 0;
  while (at < raw.size() && in_name(raw[at].letter)) ++at;
  if (at == 0 || at >= raw.size() || (raw[0].letter >= '0' && raw[0].letter <= '9')) return 0;
  if (raw[at].letter == '+' && at + 1 < raw.size() && raw[at + 1].letter == '=') return at + 2;
  return raw[at].letter == '=' ? at + 1 : 0;
}

}  // namespace shard::foreign
