// Proportional set size from /proc.
#include "executor/train/resident.h"

#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace shard::train {
namespace {

/// The head of a mapping: "7f0a-7f0b rw-s 00000000 00:2e 17  /dev/shm/name".
struct Mapping {
  bool shared = false;
  bool of_file = false;
};

/// Takes the first word of `text` off it.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

std::int64_t number(std::string_view word) {
  std::int64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

}  // namespace

Bytes proportional_set_size() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  std::ifstream file("/proc/self/smaps");
  std::string line;
  Mapping mapping;
  std::int64_t kib = 0;
  // By hand: some thousand lines, and every rank reads them several times.
  while (std::getline(file, line)) {
    std::string_view rest = line;
    const std::string_view first = take_word(rest);
    if (!first.ends_with(':')) {
      mapping.shared = take_word(rest).ends_with('s');
      for (int skipped = 0; skipped < 2; ++skipped) take_word(rest);  // offset and device
      mapping.of_file = number(take_word(rest)) != 0;
    } else if (first == (mapping.of_file && !mapping.shared ? "Anonymous:" : "Pss:")) {
      kib += number(take_word(rest));
    }
  }
  return Bytes{kib * 1024};
}

}  // namespace shard::train
