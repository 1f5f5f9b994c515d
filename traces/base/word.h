// What an enumerator is called, and what it means: each enum has one list of these, a switch.
#pragma once

#include <cstdint>
#include <vector>

namespace shard {

struct Word {
  const char* text = "?";  ///< as options, plans and results spell it; "?" for what is no enumerator
  const char* help = "";   ///< one line, may be empty
};

/// The words of all enumerators of E, which count from 0, in order: `word(E)` is its switch.
template <class E>
[[nodiscard]] std::vector<Word> words_of() {
  std::vector<Word> all;
  for (std::uint8_t v = 0;; ++v) {
    const Word next = word(static_cast<E>(v));
    if (next.text[0] == '?') return all;
    all.push_back(next);
  }
}

}  // namespace shard
