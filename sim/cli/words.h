// What the words in outputs mean: `shardscope help words`, and `help WORD` for one of them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shard::cli {

struct Word {
  std::string_view name;     ///< as outputs print it
  std::string_view meaning;  ///< one sentence without a full stop
  std::string_view also{};   ///< other spellings in outputs, separated by ", "
};

/// All of them, in alphabetical order.
[[nodiscard]] std::span<const Word> known_words();

/// By its name or another spelling, letter case, '-', '_' and spaces alike; null for none.
[[nodiscard]] const Word* find_word(std::string_view word);

/// One word and what it means; all of them.
[[nodiscard]] std::string explained(const Word& word);
[[nodiscard]] std::string words_help();

}  // namespace shard::cli
