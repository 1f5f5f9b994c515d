// The user's choices: how a model is sharded, stepped and scheduled. Everything here is part of a plan's hash.
#pragma once

#include <cstdint>
#include <string>

#include "traces/base/units.h"

namespace shard::plan {

/// What is gathered, released and reduced in one call.
enum class UnitKind : std::uint8_t {
  tensor,  ///< each parameter by itself, padded to the world size
  bucket,  ///< the parameters that one operator owns, sharded singly, gathered in one call
  module,  ///< a transformer block (mlp: a layer) flattened; outside of blocks, a module's own parameters
  chunk,   ///< fixed-size chunks over the parameters in order
};

/// Who owns which optimizer state in stage 1.
enum class Partition : std::uint8_t {
  flat,       ///< every unit is cut into equal shards
  parameter,  ///< whole parameters, largest first to the least loaded rank (PyTorch's ZeroRedundancyOptimizer)
};

enum class Recompute : std::uint8_t { none, block };
enum class OptimizerKind : std::uint8_t { sgd, adam, adamw };
enum class Precision : std::uint8_t { fp32 };
/// How ranks of one run exchange data; messages need planned staging memory.
enum class Transport : std::uint8_t { shared, messages };

[[nodiscard]] constexpr const char* to_string(UnitKind v) {
  switch (v) {
    case UnitKind::tensor: return "tensor";
    case UnitKind::bucket: return "bucket";
    case UnitKind::module: return "module";
    case UnitKind::chunk: return "chunk";
  }
  return "?";
}
[[nodiscard]] constexpr const char* to_string(Partition v) {
  switch (v) {
    case Partition::flat: return "flat";
    case Partition::parameter: return "parameter";
  }
  return "?";
}
[[nodiscard]] constexpr const char* to_string(Recompute v) {
  switch (v) {
    case Recompute::none: return "none";
    case Recompute::block: return "block";
  }
  return "?";
}
[[nodiscard]] constexpr const char* to_string(OptimizerKind v) {
  switch (v) {
    case OptimizerKind::sgd: return "sgd";
    case OptimizerKind::adam: return "adam";
    case OptimizerKind::adamw: return "adamw";
  }
  return "?";
}
[[nodiscard]] constexpr const char* to_string(Precision v) {
  switch (v) {
    case Precision::fp32: return "fp32";
  }
  return "?";
}
[[nodiscard]] constexpr const char* to_string(Transport v) {
  switch (v) {
    case Transport::shared: return "shared";
    case Transport::messages: return "messages";
  }
  return "?";
}

struct Strategy {
  std::int32_t world_size = 1;
  std::int32_t stage = 0;  ///< ZeRO stage 0..3
  UnitKind unit = UnitKind::module;
  Partition partition = Partition::flat;
  Elems chunk_elems{0};           ///< unit chunk: the size, a multiple of world_size
  std::int64_t micro_batch = 1;   ///< sequences (mlp: samples) per rank and micro-step
  std::int64_t global_batch = 1;  ///< sequences per step; a multiple of micro_batch x world_size
  std::int64_t sequence = 1;      ///< tokens per sequence (mlp: 1)
  Recompute recompute = Recompute::none;
  OptimizerKind optimizer = OptimizerKind::adamw;
  Precision precision = Precision::fp32;
  std::int32_t prefetch = 1;  ///< stage 3: how many gathers run ahead of their use
  std::int32_t threads = 1;   ///< compute threads per rank; sizes per-thread workspaces
  bool reproducible = true;   ///< gradients summed along one fixed tree over micro-batches
  Transport transport = Transport::shared;

  /// Micro-steps per rank and step.
  [[nodiscard]] std::int64_t accumulation() const { return global_batch / (micro_batch * world_size); }
  /// M, the micro-batches of the global batch.
  [[nodiscard]] std::int64_t micro_batches() const { return global_batch / micro_batch; }
  /// Sharding needs more than one rank: with one, every stage is stage 0 without collectives.
  [[nodiscard]] std::int32_t effective_stage() const { return world_size == 1 ? 0 : stage; }
  /// Gradients leave the rank after every micro-step (stages 2 and 3), so micro-batches are dealt in turn.
  [[nodiscard]] bool reduces_every_micro_step() const { return effective_stage() >= 2; }
};

/// One line that identifies a strategy to a reader and to the hash.
[[nodiscard]] std::string to_string(const Strategy& strategy);

}  // namespace shard::plan
