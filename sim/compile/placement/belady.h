// What stays where it is between two uses, when memory is short: the farthest next use goes first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shard::plan {

/// Between two uses of something that takes `bytes`: moments [begin, end) of the step. To keep it saves a fetch at
/// `end`.
struct Gap {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::int64_t bytes = 0;
};

/// Belady's rule: at every moment at which what is kept exceeds what is free, the gap that ends last is given up, the
/// larger one among equals. Returns which gaps are kept and takes what they need out of `free` (bytes by moment). With
/// equal sizes and constant room no choice keeps more (Belady, IBM Systems Journal 5(2), 1966).
[[nodiscard]] std::vector<bool> keep_nearest(std::span<const Gap> gaps, std::vector<std::int64_t>& free);

}  // namespace shard::plan
