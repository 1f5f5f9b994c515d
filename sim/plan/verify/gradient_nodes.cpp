// The gradient tree as terms.
#include "sim/plan/verify/gradient_nodes.h"

#include <algorithm>
#include <bit>

namespace shard::plan::verification {

Node GradientNodes::intern(const Term& term) {
  const auto [it, is_new] = known_.try_emplace(term, terms_.size());
  if (is_new) terms_.push_back(term);
  return it->second;
}

std::optional<GradientNodes::Open> GradientNodes::open(Node n) const {
  const auto& [kind, step, a, b] = terms_[n];
  if (kind == Kind::partial) return Open{.step = step, .history = a, .base = {}};
  if (kind != Kind::add) return std::nullopt;
  for (const auto& [part, base] : {std::pair{a, b}, std::pair{b, a}})
    if (std::get<0>(terms_[part]) == Kind::partial)
      return Open{.step = std::get<1>(terms_[part]), .history = std::get<2>(terms_[part]), .base = base};
  return std::nullopt;
}

bool GradientNodes::has_partial(Node n) const {
  const auto& [kind, step, a, b] = terms_[n];
  switch (kind) {
    case Kind::partial: return true;
    case Kind::leaf: return false;
    case Kind::add: return has_partial(a) || has_partial(b);
    case Kind::reduced: return has_partial(a);
  }
  return true;
}

bool GradientNodes::has_reduced(Node n) const {
  const auto& [kind, step, a, b] = terms_[n];
  switch (kind) {
    case Kind::partial:
    case Kind::leaf: return false;
    case Kind::add: return has_reduced(a) || has_reduced(b);
    case Kind::reduced: return true;
  }
  return false;
}

GradientNodes::Sum GradientNodes::joined(const Sum& a, const Sum& b) {
  Sum sum;
  sum.leaves.resize(a.leaves.size() + b.leaves.size());
  std::merge(a.leaves.begin(), a.leaves.end(), b.leaves.begin(), b.leaves.end(), sum.leaves.begin());
  // Siblings: equally large, neighbours, and together aligned to their size.
  const auto size = static_cast<std::int64_t>(sum.leaves.size());
  sum.canonical = a.canonical && b.canonical && a.leaves.size() == b.leaves.size() && sum.leaves.front() % size == 0 &&
                  sum.leaves.back() == sum.leaves.front() + size - 1;
  return sum;
}

GradientNodes::Sum GradientNodes::over_ranks(Node n, std::int32_t first, std::int32_t last) const {
  if (last - first == 1) return sum_of(n, first);
  // Communicator: the complete binary tree over the rank index, neighbours first.
  const auto left = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(last - first - 1)));
  return joined(over_ranks(n, first, first + left), over_ranks(n, first + left, last));
}

GradientNodes::Sum GradientNodes::sum_of(Node n, std::int32_t rank) const {
  const auto& [kind, step, a, b] = terms_[n];
  switch (kind) {
    case Kind::partial: break;
    case Kind::leaf:
      if (const auto it = dealt_.find(step); it != dealt_.end())
        return {.leaves = {it->second.first + rank * it->second.rank_stride}, .canonical = true};
      break;
    case Kind::add: return joined(sum_of(a, rank), sum_of(b, rank));
    case Kind::reduced: return over_ranks(a, 0, world_);
  }
  return {.leaves = {-1}, .canonical = false};
}

std::optional<std::string> GradientNodes::wrong_as_root(Node n, std::int32_t rank) {
  const auto [it, is_new] = judged_.try_emplace({n, rank});
  if (!is_new) return it->second;
  const Sum sum = sum_of(n, rank);
  std::optional<std::string>& verdict = it->second;
  for (std::size_t i = 0; i < sum.leaves.size() && !verdict; ++i)
    if (sum.leaves[i] != static_cast<std::int64_t>(i))
      verdict = i > 0 && sum.leaves[i] == sum.leaves[i - 1]
                    ? "micro-batch " + std::to_string(sum.leaves[i]) + " enters the gradient more than once"
                    : "micro-batch " + std::to_string(i) + " does not enter the gradient";
  if (!verdict && static_cast<std::int64_t>(sum.leaves.size()) != micro_batches_)
    verdict = "micro-batch " + std::to_string(sum.leaves.size()) + " does not enter the gradient";
  const bool power_of_two = std::has_single_bit(static_cast<std::uint64_t>(micro_batches_));
  if (!verdict && strict_ && power_of_two && !sum.canonical)
    verdict = "the gradient is not the sum along the complete binary tree over the micro-batches";
  return verdict;
}

}  // namespace shard::plan::verification
