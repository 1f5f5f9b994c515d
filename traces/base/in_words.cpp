// An underscore is a space.
#include "traces/base/in_words.h"

#include <algorithm>

namespace shard {

std::string in_words(std::string_view identifier) {
  std::string words(identifier);
  std::ranges::replace(words, '_', ' ');
  return words;
}

}  // namespace shard
