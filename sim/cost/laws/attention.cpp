// Which law a kernel has, and what it comes to.
#include "sim/cost/laws/attention.h"

#include <algorithm>
#include <cmath>

#include "sim/cost/laws/card_figures.h"

namespace shard::cost {
namespace {

constexpr Seconds kFloor{8e-6};
constexpr double kQueriesOfABlock = 128;
constexpr double kShareOfSmallHeads = 0.85;
constexpr std::int64_t kSmallHead = 64;

cluster::AttentionLaw law_of(cluster::AttentionKernel kernel, const cluster::KernelLaws& laws) {
  cluster::AttentionLaw found{
      .kernel = kernel, .forward_share = 0.4, .forward_ramp = 400, .backward_share = 0.4, .backward_ramp = 400};
  for (const cluster::AttentionLaw& law : laws.attention)
    if (law.kernel == cluster::AttentionKernel::flash_2) found = law;
  for (const cluster::AttentionLaw& law : laws.attention)
    if (law.kernel == kernel) found = law;
  return found;
}

}  // namespace

Seconds attention_time(const AttentionShape& s, cluster::AttentionKernel kernel, const cluster::Cluster& card) {
  const cluster::KernelLaws& laws = *card.kernel_laws;
  const cluster::AttentionLaw law = law_of(kernel, laws);
  const double share = s.backward ? law.backward_share : law.forward_share;
  const double ramp = s.backward ? law.backward_ramp : law.forward_ramp;
  const double rows = static_cast<double>(s.batch) * static_cast<double>(s.heads);
  const auto queries = static_cast<double>(s.queries);
  if (rows * queries == 0) return Seconds{0};
  const double flops = 4 * rows * queries * static_cast<double>(s.keys) * static_cast<double>(s.head_size) *
                       (s.causal ? 0.5 : 1) * (s.backward ? 2.5 : 1);
  const double occupied = std::min(1.0, rows * std::ceil(queries / kQueriesOfABlock) / multiprocessors(card));
  const double reached = peak_of_16_bits(card) * laws.clock_share * share *
                         (s.head_size <= kSmallHead ? kShareOfSmallHeads : 1) / (1 + ramp / queries) * occupied;
  return Seconds{kFloor.count() + flops / reached};
}

}  // namespace shard::cost
