// The gradient tree as terms.
#include "sim/check/gradient_nodes.h"

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

GradientNodes::Reach GradientNodes::reach(Node n) const {
  const auto& [kind, step, a, b] = terms_[n];
  switch (kind) {
    case Kind::partial:
    case Kind::leaf: return {};
    case Kind::add: {
      const Reach x = reach(a);
      const Reach y = reach(b);
      return {.shards = x.shards || y.shards, .replicas = x.replicas || y.replicas};
    }
    case Kind::reduced: {
      Reach r = reach(a);
      const auto group = static_cast<Group>(step);
      r.shards = r.shards || group != Group::replica;
      r.replicas = r.replicas || group != Group::shard || ranks_ == shards_;
      return r;
    }
  }
  return {};
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

GradientNodes::Sum GradientNodes::over_group(Node n, const RankGroup& group, std::int32_t first,
                                             std::int32_t last) const {
  if (last - first == 1) return sum_of(n, group.rank_of(first));
  // Communicator: the complete binary tree over the member number, neighbours first.
  const auto left = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(last - first - 1)));
  return joined(over_group(n, group, first, first + left), over_group(n, group, first + left, last));
}

/// In data ranks.
RankGroup GradientNodes::group_of(Group group, std::int32_t rank) const {
  switch (group) {
    case Group::shard: return {.first = rank / shards_ * shards_, .stride = 1, .count = shards_};
    case Group::replica: return {.first = rank % shards_, .stride = shards_, .count = ranks_ / shards_};
    case Group::data:
    case Group::tensor:
    case Group::world: break;
  }
  return {.first = 0, .stride = 1, .count = ranks_};
}

GradientNodes::Sum GradientNodes::sum_of(Node n, std::int32_t rank) const {
  const auto& [kind, step, a, b] = terms_[n];
  switch (kind) {
    case Kind::partial: break;
    case Kind::leaf:
      if (const auto it = dealt_.find(step); it != dealt_.end())
        return {.leaves = {it->second.micro_batch(rank % shards_, rank / shards_)}, .canonical = true};
      break;
    case Kind::add: return joined(sum_of(a, rank), sum_of(b, rank));
    case Kind::reduced: {
      const RankGroup group = group_of(static_cast<Group>(step), rank);
      return over_group(a, group, 0, group.count);
    }
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
