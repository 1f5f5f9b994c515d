// The fixed binary tree over micro-batches, as a binary counter.
#include "sim/compile/tree.h"

#include <algorithm>

namespace shard::plan {

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
  std::int32_t waiting = -1;
  for (std::int32_t k = 0; (micro_steps >> k) != 0; ++k) {
    if (((micro_steps >> k) & 1) == 0) continue;
    if (waiting >= 0) tree.steps.back().merges.emplace_back(k, waiting);
    waiting = k;
  }
  tree.root = waiting;
  return tree;
}

}  // namespace shard::plan
