// Which of many answers no other one beats.
#pragma once

#include <span>
#include <vector>

namespace shard {

/// What an answer takes, and what it brings: less of the one and more of the other is better.
struct Tradeoff {
  double cost = 0;
  double gain = 0;
};

/// True for those that no other one beats: none has at most the cost and at least the gain, and is better in one of the
/// two. Equals stand or fall together. Numbers are finite. O(n log n).
[[nodiscard]] std::vector<bool> pareto_front(std::span<const Tradeoff> answers);

}  // namespace shard
