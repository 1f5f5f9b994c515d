// How sure a step's time is: the errors of the laws that it rests on, put together.
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
  const double card = cost::doubt_of_card(c);
  const double tensor = s.spread.tensor > 1 ? 0.3 : 0;
  const double pipeline = s.spread.pipeline > 1 ? 0.15 : 0;  // stages are not alike, and wait for one another
  const double compiled = s.compiled ? 0.15 : 0;
  const double few_bits = s.float8 != Float8::none ? 0.15 : 0;
  const double wide = s.values != Values::bits_16 ? 0.35 : 0;  // no published run in fp32 or TF32 was compared
  const double hosts = cost::doubt_of_network(c, static_cast<double>(s.spread.ranks));
  const double small = launch_bound(s) ? 0.2 : 0;
  const double x = hypot_of({cost::kLawError, card, tensor, pipeline, compiled, few_bits, wide, hosts, small});
  return {.below = x / (1 + x), .above = x};
}

}  // namespace shard::step
