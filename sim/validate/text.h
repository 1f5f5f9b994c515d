// Words of a table's cells, whatever their case.
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>
#include <string_view>

namespace shard::validate {

[[nodiscard]] inline std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return out;
}

/// `part`, in small letters, is somewhere in `text`.
[[nodiscard]] inline bool holds(std::string_view text, std::string_view part) {
  return lower(text).find(part) != std::string::npos;
}

[[nodiscard]] inline bool begins(std::string_view text, std::string_view part) {
  return lower(text).starts_with(part);
}

/// `word`, in small letters, is in `text` and no letter or digit touches it.
[[nodiscard]] inline bool has_word(std::string_view text, std::string_view word) {
  const std::string all = lower(text);
  const auto bound = [&](std::size_t i) {
    return i >= all.size() || std::isalnum(static_cast<unsigned char>(all[i])) == 0;
  };
  for (std::size_t at = all.find(word); at != std::string::npos; at = all.find(word, at + 1))
    if ((at == 0 || bound(at - 1)) && bound(at + word.size())) return true;
  return false;
}

/// The number that `text` begins with; 0 where it begins with none.
[[nodiscard]] inline double number(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace shard::validate
