// How sure a step's time is: the errors of the laws that it rests on, put together.
#include <algorithm>
#include <cmath>

#include "sim/step/step_time.h"

namespace shard::step {
namespace {

double hypot_of(std::initializer_list<double> parts) {
  double sum = 0;
  for (const double part : parts) sum += part * part;
  return std::sqrt(sum);
}

}  // namespace

bool launch_bound(const TrainingStep& s) {
  return s.model.hidden * s.tokens() < (std::int64_t{1} << 23);
}

Doubt doubt_of(const TrainingStep& s, const cluster::Cluster& c) {
  const cluster::KernelLaws& laws = *c.kernel_laws;
  const double card = laws.measured ? laws.spread : std::max(laws.spread, 0.3);
  const double tensor = s.spread.tensor > 1 ? 0.3 : 0;
  const double pipeline = s.spread.pipeline > 1 ? 0.15 : 0;  // stages are not alike, and wait for one another
  const double compiled = s.compiled ? 0.15 : 0;
  const double few_bits = s.float8 != Float8::none ? 0.15 : 0;
  // Networks differ, and how many wait for the slowest: with every doubling of the hosts.
  const double over = static_cast<double>(s.spread.ranks) / c.devices_per_host;
  const double hosts = over > 1 ? 0.03 * std::log2(over) : 0;
  const double small = launch_bound(s) ? 0.2 : 0;
  const double x = hypot_of({kLawError, card, tensor, pipeline, compiled, few_bits, hosts, small});
  return {.below = x / (1 + x), .above = x};
}

}  // namespace shard::step
