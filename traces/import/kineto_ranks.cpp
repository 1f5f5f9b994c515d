// Words before a number, whatever their case.
#include "traces/import/kineto_ranks.h"

#include <array>
#include <string>

namespace shard::import {

std::optional<std::int32_t> rank_in(std::string_view text) {
  std::string lower;
  for (const char c : text.substr(0, 256)) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (const std::string_view word : std::array<std::string_view, 2>{"rank", "[tp"}) {
    for (std::size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
      const char before = at == 0 ? ' ' : lower[at - 1];
      if ((before >= 'a' && before <= 'z') || before == '_') continue;  // local_rank is not the rank
      std::size_t i = at + word.size();
      if (i < lower.size() && std::string_view(" _:=#-").find(lower[i]) != std::string_view::npos) ++i;
      std::int64_t rank = 0;
      const std::size_t first = i;
      for (; i < lower.size() && is_digit(lower[i]) && rank < (1 << 20); ++i) rank = rank * 10 + (lower[i] - '0');
      if (i > first && rank < (1 << 20)) return static_cast<std::int32_t>(rank);
    }
  }
  return std::nullopt;
}

}  // namespace shard::import
