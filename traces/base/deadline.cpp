// Deadlines and their words.
#include "traces/base/deadline.h"

#include <algorithm>

namespace shard {

std::chrono::milliseconds deadline_of(std::int64_t seconds) {
  constexpr std::chrono::seconds kLongest = std::chrono::years(10);
  return std::min(std::chrono::seconds(seconds), kLongest);
}

std::string in_seconds(std::chrono::milliseconds time) {
  std::string text = std::to_string(std::chrono::duration<double>(time).count());
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

std::string ranks_have(const std::vector<int>& ranks) {
  if (ranks.empty()) return "another rank has";
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text + (ranks.size() == 1 ? " has" : " have");
}

}  // namespace shard
