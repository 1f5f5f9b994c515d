// Strategies of two ranks or few, each with what its name says.
#include "tests/check/planted_strategies.h"

#include <utility>

namespace shard::plan {

Strategy zero(std::int32_t stage, std::int32_t world, std::int64_t accumulation) {
  return {.world_size = world,
          .stage = stage,
          .unit = UnitKind::module,
          .micro_batch = 1,
          .global_batch = world * accumulation,
          .sequence = 4,
          .prefetch = 1};
}

Strategy freezing(std::int32_t stage, std::vector<std::string> patterns, Precision precision) {
  Strategy s = zero(stage);
  s.freeze = std::move(patterns);
  s.precision = precision;
  return s;
}

Strategy by_parameter() {
  Strategy s = zero(1);
  s.partition = Partition::parameter;
  return s;
}

Strategy for_gpus(Strategy s) {
  s.device = Device::cuda;
  return s;
}

Strategy for_gpus() {
  Strategy s = zero(3);
  s.device = Device::cuda;
  return s;
}

Strategy by_messages(std::int32_t stage) {
  Strategy s = zero(stage);
  s.transport = Transport::messages;
  return s;
}

Strategy split_in_two(std::int32_t stage, model::TensorLayout layout) {
  Strategy s = zero(stage, 2);
  s.world_size = 4;
  s.tensor_parallel = 2;
  s.tensor_layout = layout;
  return s;
}

Strategy split_and_clipped(std::int32_t stage) {
  Strategy s = split_in_two(stage);
  s.clip_norm = true;
  return s;
}

Strategy dropping(Strategy s) {
  s.dropout = 0.1F;
  return s;
}

Strategy recomputed() {
  Strategy s = zero(3);
  s.recompute = Recompute::block;
  return s;
}

Strategy in_order_of_arrival() {
  Strategy s = zero(0, 1, 4);
  s.reproducible = false;
  return s;
}

Strategy clipped(std::int32_t stage) {
  Strategy s = zero(stage);
  s.clip_norm = true;
  return s;
}

Strategy scaled(std::int32_t stage, std::int32_t world) {
  Strategy s = zero(stage, world);
  s.loss_scaling = true;
  return s;
}

Strategy clipped_sgd() {
  Strategy s = clipped(2);
  s.optimizer = OptimizerKind::sgd;
  return s;
}

Strategy on_host(std::int32_t stage) {
  Strategy s = zero(stage);
  s.placement.policy = PlacementPolicy::host;
  return s;
}

Strategy optimizer_on(Share share, Precision precision) {
  Strategy s = zero(2);
  s.placement = {.policy = PlacementPolicy::fixed, .optimizer = share};
  s.precision = precision;
  return s;
}

Strategy gradients_on_host(std::int32_t stage) {
  Strategy s = zero(stage);
  s.placement = {.policy = PlacementPolicy::fixed, .gradients = kOnHost};
  return s;
}

Strategy clipped_gradients_on_host() {
  Strategy s = gradients_on_host(2);
  s.clip_norm = true;
  return s;
}

Strategy optimizer_clipped_on_host() {
  Strategy s = optimizer_on(kOnHost);
  s.clip_norm = true;
  return s;
}

Strategy owned(std::int32_t stage) {
  Strategy s = zero(stage);
  s.ownership = Ownership::rank;
  return s;
}

Strategy chunked(std::vector<std::int32_t> starts) {
  Strategy s = zero(3);
  s.unit = UnitKind::chunk;
  s.chunk_elems = Elems{600};
  s.chunk_starts = std::move(starts);
  return s;
}

Strategy kept() {
  Strategy s = zero(3);
  s.keep_gathered = true;
  return s;
}

Strategy reused(Ownership ownership) {
  Strategy s = zero(3, 2, 1);
  s.precision = Precision::bf16;
  s.reuse_shard = true;
  s.prefetch = 0;
  s.ownership = ownership;
  return s;
}

Strategy owned_on_host(std::int32_t stage) {
  Strategy s = owned(stage);
  s.placement.policy = PlacementPolicy::host;
  return s;
}

Strategy reused_on_host(Ownership ownership) {
  Strategy s = reused(ownership);
  s.placement.policy = PlacementPolicy::host;
  return s;
}

Strategy in_buckets() {
  Strategy s = zero(3);
  s.bucket_mib = 1;
  return s;
}

}  // namespace shard::plan
