// In order of cost, who gains more than all before.
#include "sim/search/pareto.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

namespace shard {

std::vector<bool> pareto_front(std::span<const Tradeoff> answers) {
  std::vector<std::size_t> order(answers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    if (answers[a].cost != answers[b].cost) return answers[a].cost < answers[b].cost;
    return answers[a].gain > answers[b].gain;
  });
  std::vector<bool> front(answers.size(), false);
  double most = -std::numeric_limits<double>::infinity();
  Tradeoff last;
  bool last_is_on = false;
  for (const std::size_t i : order) {
    const Tradeoff& each = answers[i];
    const bool equal = last_is_on && each.cost == last.cost && each.gain == last.gain;
    if (!equal && each.gain <= most) continue;
    front[i] = true;
    most = each.gain;
    last = each;
    last_is_on = true;
  }
  return front;
}

}  // namespace shard
