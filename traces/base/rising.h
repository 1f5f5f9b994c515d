// The longest rising part of a list: what two orders of the same things agree on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace shard {

/// Positions, in order, of a longest strictly rising subsequence of `items` by `key`. Costs n log n.
template <class Item, class Key = std::identity>
[[nodiscard]] std::vector<std::size_t> longest_rising(const std::vector<Item>& items, Key key = {}) {
  const auto key_at = [&](std::size_t at) { return std::invoke(key, items[at]); };
  std::vector<std::size_t> tails;  // of the best part of each length: its last position
  std::vector<std::size_t> before(items.size(), items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto at = std::ranges::lower_bound(tails, key_at(i), {}, key_at);
    if (at != tails.begin()) before[i] = *std::prev(at);
    if (at == tails.end()) {
      tails.push_back(i);
    } else {
      *at = i;
    }
  }
  std::vector<std::size_t> kept;
  for (std::size_t i = tails.empty() ? items.size() : tails.back(); i < items.size(); i = before[i]) kept.push_back(i);
  std::ranges::reverse(kept);
  return kept;
}

}  // namespace shard
