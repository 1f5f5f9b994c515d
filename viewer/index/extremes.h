// Which element of a range is the largest, or the smallest, without looking at all of them: a peak is never lost.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shard::view {

/// Positions of extremes over blocks of 16, 16^2, ... values. The values stay with their owner and must not change.
template <class T>
class Extremes {
 public:
  Extremes() = default;
  explicit Extremes(std::span<const T> values) {
    std::size_t count = (values.size() + kBlock - 1) / kBlock;
    for (std::size_t level = 0; count > 0; ++level) {
      Level blocks;
      blocks.highest.resize(count);
      blocks.lowest.resize(count);
      for (std::size_t b = 0; b < count; ++b) {
        if (level == 0) {
          const std::size_t last = std::min(values.size(), (b + 1) * kBlock);
          std::size_t high = b * kBlock, low = high;
          for (std::size_t i = high + 1; i < last; ++i) {
            if (values[i] > values[high]) high = i;
            if (values[i] < values[low]) low = i;
          }
          blocks.highest[b] = static_cast<std::uint32_t>(high);
          blocks.lowest[b] = static_cast<std::uint32_t>(low);
        } else {
          const Level& below = levels_.back();
          const std::size_t last = std::min(below.highest.size(), (b + 1) * kBlock);
          std::uint32_t high = below.highest[b * kBlock], low = below.lowest[b * kBlock];
          for (std::size_t i = b * kBlock + 1; i < last; ++i) {
            if (values[below.highest[i]] > values[high]) high = below.highest[i];
            if (values[below.lowest[i]] < values[low]) low = below.lowest[i];
          }
          blocks.highest[b] = high;
          blocks.lowest[b] = low;
        }
      }
      levels_.push_back(std::move(blocks));
      if (count == 1) break;
      count = (count + kBlock - 1) / kBlock;
    }
  }

  /// The first position of the largest value in [first, last), which must not be empty.
  [[nodiscard]] std::size_t highest(std::span<const T> values, std::size_t first, std::size_t last) const {
    return find(
        values, first, last, [](const Level& level) -> const auto& { return level.highest; },
        [](const T& a, const T& b) { return a > b; });
  }
  /// The first position of the smallest.
  [[nodiscard]] std::size_t lowest(std::span<const T> values, std::size_t first, std::size_t last) const {
    return find(
        values, first, last, [](const Level& level) -> const auto& { return level.lowest; },
        [](const T& a, const T& b) { return a < b; });
  }

 private:
  static constexpr std::size_t kBlock = 16;
  struct Level {
    std::vector<std::uint32_t> highest, lowest;
  };

  template <class Column, class Better>
  std::size_t find(std::span<const T> values, std::size_t first, std::size_t last, Column column, Better better) const {
    std::size_t best = first;
    const auto offer = [&](std::size_t i) {
      if (better(values[i], values[best])) best = i;
    };
    std::size_t at = first;
    while (at < last) {
      // The largest aligned block that begins here and lies inside.
      std::size_t size = 1;
      const std::vector<std::uint32_t>* blocks = nullptr;
      for (const Level& level : levels_) {
        const std::size_t next = size * kBlock;
        if (at % next != 0 || last - at < next) break;
        size = next;
        blocks = &column(level);
      }
      offer(blocks == nullptr ? at : (*blocks)[at / size]);
      at += size;
    }
    return best;
  }

  std::vector<Level> levels_;
};

}  // namespace shard::view
