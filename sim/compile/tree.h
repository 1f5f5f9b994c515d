// The fixed binary tree over micro-batches: which slot each micro-step's gradient goes to, and which nodes close.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace shard::plan {

/// One micro-step: its leaf is written to `slot`, then slots are added, dst += src, in order.
struct TreeStep {
  std::int32_t slot = 0;
  bool in_place = false;                                        ///< the leaf is added to what the slot holds
  std::vector<std::pair<std::int32_t, std::int32_t>> merges{};  ///< dst, src
};

struct Tree {
  std::vector<TreeStep> steps{};  ///< one per micro-step
  std::int32_t slots = 1;
  std::int32_t root = 0;  ///< slot that holds the sum in the end
};

/// Reproducible: the complete binary tree over the micro-step index, as a binary counter: slot k holds the finished
/// subtree of 2^k neighbouring leaves that waits for its sibling. Without a power of two, what waits in the end is
/// added from the smallest up. Otherwise: `direct` adds leaves in place into one slot, else through slot 1.
[[nodiscard]] Tree make_tree(std::int64_t micro_steps, bool reproducible, bool direct);

}  // namespace shard::plan
