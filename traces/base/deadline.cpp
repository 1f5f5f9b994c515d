// Deadlines and their words.
#include "traces/base/deadline.h"

namespace shard {
namespace {

constexpr std::chrono::seconds kLongestDeadline = std::chrono::years(10);

}  // namespace

std::chrono::milliseconds deadline_of(double seconds) {
  const std::chrono::duration<double> wait(seconds);
  return wait <= kLongestDeadline ? std::chrono::duration_cast<std::chrono::milliseconds>(wait) : kLongestDeadline;
}

std::optional<std::chrono::steady_clock::time_point> deadline_after(std::chrono::steady_clock::time_point begin,
                                                                    double seconds) {
  const std::chrono::duration<double> wait(seconds);
  if (!(wait <= kLongestDeadline)) return std::nullopt;
  return begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(wait);
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
