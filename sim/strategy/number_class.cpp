// Which strategies train to the same bits.
#include "sim/strategy/number_class.h"

#include <bit>

namespace shard::plan {

Strategy in_number_class(Strategy s, const Strategy& of) {
  s.micro_batch = of.micro_batch;
  s.global_batch = of.global_batch;
  s.sequence = of.sequence;
  s.precision = of.precision;
  s.fp32_reduce_scatter = of.fp32_reduce_scatter;
  s.predivide = of.predivide;
  s.optimizer = of.optimizer;
  s.clip_norm = of.clip_norm;
  s.loss_scaling = of.loss_scaling;
  s.freeze = of.freeze;
  s.dropout = of.dropout;
  s.tensor_parallel = of.tensor_parallel;
  s.tensor_layout = of.tensor_layout;
  s.reproducible = true;
  return s;
}

Strategy unsharded(const Strategy& s) {
  const Strategy plain{
      .world_size = s.predivide == 1 ? s.tensor_parallel : s.world_size, .threads = s.threads, .device = s.device};
  return in_number_class(plain, s);
}

bool has_bits_of_class(const Strategy& s) {
  const auto is_power_of_two = [](std::int64_t n) { return std::has_single_bit(static_cast<std::uint64_t>(n)); };
  return s.reproducible && is_power_of_two(s.data_parallel()) && is_power_of_two(s.micro_batches());
}

}  // namespace shard::plan
