// The fixed binary tree over micro-batches, as a binary counter.
#include "sim/compile/tree.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace shard::plan {
namespace {

/// Below this many micro-steps a folded step is hardly shorter than the step.
constexpr std::int64_t kFoldFrom = 16;

/// Steps of a tree of whatever shape, by which slots wait.
class Waiting {
 public:
  explicit Waiting(Tree& tree) : tree_(tree) {}
  /// A leaf that waits where it was written.
  void leaf(std::int32_t slot) { tree_.steps.push_back({.slot = slot, .in_place = false, .merges = {}}); }
  /// A leaf to which all slots below it are added.
  void closing_leaf(std::int32_t slot) {
    leaf(slot);
    for (std::int32_t k = 0; k < slot; ++k) tree_.steps.back().merges.emplace_back(slot, k);
  }
  /// Leaves into the slots below `from`, the highest first, then one into `slot` to which all below it are added.
  void descend(std::int32_t from, std::int32_t slot) {
    for (std::int32_t k = from - 1; k >= 0; --k) leaf(k);
    closing_leaf(slot);
  }

 private:
  Tree& tree_;
};

/// What waits in the end of so many leaves, added from the smallest up.
void add_what_waits(Tree& tree, std::int64_t micro_steps) {
  std::int32_t waiting = -1;
  for (std::int32_t k = 0; (micro_steps >> k) != 0; ++k) {
    if (((micro_steps >> k) & 1) == 0) continue;
    if (waiting >= 0) tree.steps.back().merges.emplace_back(k, waiting);
    waiting = k;
  }
  tree.root = waiting;
}

}  // namespace

Tree make_tree(std::int64_t micro_steps, bool reproducible, bool direct) {
  Tree tree;
  if (!reproducible) {
    for (std::int64_t j = 0; j < micro_steps; ++j) {
      if (j == 0)
        tree.steps.push_back({});
      else if (direct)
        tree.steps.push_back({.slot = 0, .in_place = true, .merges = {}});
      else
        tree.steps.push_back({.slot = 1, .in_place = false, .merges = {{0, 1}}});
    }
    tree.slots = !direct && micro_steps > 1 ? 2 : 1;
    return tree;
  }
  for (std::int64_t j = 0; j < micro_steps; ++j) {
    TreeStep step;
    while ((j >> step.slot) & 1) ++step.slot;
    for (std::int32_t k = 0; k < step.slot; ++k) step.merges.emplace_back(step.slot, k);
    tree.slots = std::max(tree.slots, step.slot + 1);
    tree.steps.push_back(std::move(step));
  }
  add_what_waits(tree, micro_steps);
  return tree;
}

bool is_foldable(std::int64_t micro_steps) {
  return micro_steps >= kFoldFrom;
}

FoldedTree make_folded_tree(std::int64_t micro_steps, bool reproducible, bool direct) {
  assert(is_foldable(micro_steps));
  FoldedTree folded;
  Tree& tree = folded.tree;
  if (!reproducible) {
    // The fifth and the sixth stand for most: collectives that computation waits for have settled, two buffers in turn.
    tree = make_tree(8, false, direct);
    const std::int64_t left_out = micro_steps - 8;
    folded.times = {1, 1, 1, 1, 1 + left_out / 2, 1 + left_out - left_out / 2, 1, 1};
    return folded;
  }
  // Slot s is written while the slots of a set wait, and the sets that count are the largest: all slots below s, beside
  // the higher ones that are in no later set without. Both "s is written while k waits" and "k is written while s
  // waits" happen in the whole tree, and here: packing goes by them.
  const auto top = static_cast<std::int32_t>(std::bit_width(static_cast<std::uint64_t>(micro_steps))) - 1;
  Waiting waiting(tree);
  for (const std::int32_t slot : {0, 1, 0, 2, 0, 1, 0, 3}) waiting.closing_leaf(slot);
  if (top > 4) {
    for (const std::int32_t slot : {0, 1, 2}) waiting.leaf(slot);
    for (std::int32_t slot = 4; slot + 1 < top; ++slot) waiting.leaf(slot);
    waiting.closing_leaf(top - 1);
  }
  waiting.descend(top - 1, top);
  for (std::int32_t slot = top - 1; slot >= 0; --slot)
    if (((micro_steps >> slot) & 1) != 0) waiting.descend(slot, slot);
  tree.slots = top + 1;
  add_what_waits(tree, micro_steps);
  // A tree of n leaves has n - 1 nodes, so what is left out has as many nodes as leaves. So have the second four
  // leaves, two of the first four, and one alone.
  std::vector<std::int64_t>& times = folded.times;
  times.assign(tree.steps.size(), 1);
  const std::int64_t left_out = micro_steps - static_cast<std::int64_t>(tree.steps.size());
  for (const std::size_t step : {4U, 5U, 6U, 7U}) times[step] += left_out / 4;
  for (const std::size_t step : {2U, 3U}) times[step] += left_out % 4 / 2;
  times[5] += left_out % 2;
  return folded;
}

}  // namespace shard::plan
