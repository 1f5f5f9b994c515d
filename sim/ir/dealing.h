// Which micro-batch of a step a rank's micro-step works on.
#pragma once

#include <cstdint>

namespace shard::plan {

/// Micro-step j of member i of shard group g works on micro-batch j x micro_stride + i x shard_stride +
/// g x replica_stride. With A micro-steps and S members the strides are 1, A and A S (one run of micro-batches after
/// another), or S, 1 and A S (in turn over the members of a group), so every micro-batch is dealt once.
struct Dealing {
  std::int64_t micro_stride = 1;
  std::int64_t shard_stride = 0;
  std::int64_t replica_stride = 0;
  /// Over the members of a group: neighbours work on neighbouring micro-batches.
  [[nodiscard]] constexpr bool in_turn() const { return shard_stride < micro_stride; }
  [[nodiscard]] constexpr std::int64_t micro_batch(std::int64_t micro_step, std::int32_t shard_rank,
                                                   std::int32_t replica) const {
    return micro_step * micro_stride + shard_rank * shard_stride + replica * replica_stride;
  }
  /// Where micro-batch m's loss lies among those of all ranks, [rank][micro-step], with A micro-steps and S members.
  [[nodiscard]] constexpr std::int64_t place(std::int64_t m, std::int64_t micro_steps, std::int64_t shards) const {
    const std::int64_t member = in_turn() ? m % shards : m / micro_steps % shards;
    const std::int64_t micro_step = in_turn() ? m / shards % micro_steps : m % micro_steps;
    return (m / shards / micro_steps * shards + member) * micro_steps + micro_step;
  }
  friend bool operator==(const Dealing&, const Dealing&) = default;
};

}  // namespace shard::plan
