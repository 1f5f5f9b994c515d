// Which ranks work together: data, shard, replica and tensor groups, as arithmetic progressions of ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "traces/base/rank_group.h"

namespace shard::plan {

/// Who takes part in a collective. T tensor-parallel ranks hold one copy of the model between them, D = W / T data
/// ranks work on different micro-batches, S of them share the shards of a flat and D / S replicas of such a shard group
/// exist.
///   rank = data_rank * T + tensor_rank,  data_rank = replica * S + shard_rank
enum class Group : std::uint8_t {
  shard,    ///< the S ranks that hold the shards of one flat, in shard order
  replica,  ///< the D / S ranks that hold the same shard
  data,     ///< the D ranks that hold the same part of the model
  tensor,   ///< the T ranks that split one model
  world,    ///< all ranks
};
inline constexpr std::size_t kGroupCount = 5;

[[nodiscard]] constexpr const char* to_string(Group v) {
  switch (v) {
    case Group::shard: return "shard";
    case Group::replica: return "replica";
    case Group::data: return "data";
    case Group::tensor: return "tensor";
    case Group::world: return "world";
  }
  return "?";
}

/// How many ranks there are and how they divide the work: all that an interpreter of a plan needs to know of it.
struct Topology {
  std::int32_t world_size = 1;       ///< W
  std::int32_t tensor_parallel = 1;  ///< T
  std::int32_t shard_degree = 1;     ///< S
  [[nodiscard]] constexpr std::int32_t data_parallel() const { return world_size / tensor_parallel; }
  [[nodiscard]] constexpr std::int32_t replicas() const { return data_parallel() / shard_degree; }
  friend bool operator==(const Topology&, const Topology&) = default;
};

/// Where a rank stands.
struct Position {
  std::int32_t tensor = 0;
  std::int32_t data = 0;
  std::int32_t shard = 0;
  std::int32_t replica = 0;
};

[[nodiscard]] constexpr Position position(const Topology& s, std::int32_t rank) {
  const std::int32_t data = rank / s.tensor_parallel;
  return {.tensor = rank % s.tensor_parallel,
          .data = data,
          .shard = data % s.shard_degree,
          .replica = data / s.shard_degree};
}

/// The group of that kind which `rank` is in.
[[nodiscard]] constexpr RankGroup members(const Topology& s, Group group, std::int32_t rank) {
  const Position at = position(s, rank);
  const std::int32_t t = s.tensor_parallel;
  const std::int32_t shards = s.shard_degree;
  switch (group) {
    case Group::shard: return {.first = at.replica * shards * t + at.tensor, .stride = t, .count = shards};
    case Group::replica: return {.first = at.shard * t + at.tensor, .stride = shards * t, .count = s.replicas()};
    case Group::data: return {.first = at.tensor, .stride = t, .count = s.data_parallel()};
    case Group::tensor: return {.first = at.data * t, .stride = 1, .count = t};
    case Group::world: break;
  }
  return {.first = 0, .stride = 1, .count = s.world_size};
}

/// How many ranks are in a group of that kind.
[[nodiscard]] constexpr std::int32_t size_of(const Topology& s, Group group) {
  return members(s, group, 0).count;
}

}  // namespace shard::plan
