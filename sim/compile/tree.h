// The fixed binary tree over micro-batches: which slot each micro-step's gradient goes to, and which nodes close;
// whole, and folded to the few micro-steps that differ.
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

/// Few micro-steps in place of many: whatever slots of make_tree's steps ever hold gradients together hold them
/// together here, slots are first written in the same order, and each `times` says for how many of make_tree's
/// micro-steps one stands. Nodes and micro-steps, times counted, are as many as make_tree's. Its sum is not that of the
/// step: it is a tree to predict by, not to train by.
struct FoldedTree {
  Tree tree{};
  std::vector<std::int64_t> times{};  ///< by step of the tree
};

/// Whether a folded tree has fewer steps than the whole one: below, all are kept.
[[nodiscard]] bool is_foldable(std::int64_t micro_steps);

/// Of at most 3 log2(micro_steps)^2 steps if reproducible, else of eight. Needs is_foldable().
[[nodiscard]] FoldedTree make_folded_tree(std::int64_t micro_steps, bool reproducible, bool direct);

}  // namespace shard::plan
