// The user's choices: how a model is sharded, stepped and scheduled. Everything here is part of a plan's hash, and has
// a row in fields.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/split.h"
#include "sim/strategy/placement.h"
#include "sim/strategy/topology.h"
#include "sim/target/target.h"
#include "traces/base/dtype.h"
#include "traces/base/units.h"
#include "traces/base/word.h"

namespace shard::plan {

/// What is gathered, released and reduced in one call.
enum class UnitKind : std::uint8_t {
  tensor,  ///< each parameter by itself, padded to the world size
  bucket,  ///< the parameters that one operator owns, sharded singly, gathered in one call
  module,  ///< a transformer block (mlp: a layer) flattened; outside of blocks, a module's own parameters
  chunk,   ///< chunks over the parameters in order, of one size or each of its own
};

/// Who owns which optimizer state in stage 1.
enum class Partition : std::uint8_t {
  flat,       ///< every unit is cut into equal shards
  parameter,  ///< whole parameters, largest first to the least loaded rank (PyTorch's ZeroRedundancyOptimizer)
};

/// Where a unit rests in stage 3, its gradient from stage 2 on, and its optimizer state from stage 1 on.
enum class Ownership : std::uint8_t {
  split,  ///< every flat is cut into equal shards, one per rank
  rank,   ///< a whole unit lies on one rank of the shard group, which sends, sums and steps it alone
};

/// What backward makes again instead of reading what forward kept.
enum class Recompute : std::uint8_t {
  none,
  block,      ///< all of a block, from its input
  selective,  ///< norms, activations and rotations; results of products and attention are kept
};
enum class OptimizerKind : std::uint8_t { sgd, adam, adamw };
/// How parameters, activations and gradients are stored. 16 bits bring fp32 master parameters; arithmetic is fp32.
enum class Precision : std::uint8_t {
  fp32,
  bf16,
  fp16,
  tf32,  ///< fp32, and products on the tensor cores of GPUs that have them: elsewhere exactly fp32
};
/// How ranks of one run exchange data; messages need planned staging memory.
enum class Transport : std::uint8_t { shared, messages };

[[nodiscard]] constexpr Word word(UnitKind v) {
  switch (v) {
    case UnitKind::tensor: return {"tensor", "each parameter by itself"};
    case UnitKind::bucket: return {"bucket", "the parameters of one operator, sharded singly, gathered in one call"};
    case UnitKind::module: return {"module", "a transformer block (an mlp layer) flattened"};
    case UnitKind::chunk: return {"chunk", "chunks over the parameters in order"};
  }
  return {};
}
[[nodiscard]] constexpr const char* to_string(UnitKind v) {
  return word(v).text;
}
[[nodiscard]] constexpr Word word(Partition v) {
  switch (v) {
    case Partition::flat: return {"flat", "equal shards of every unit"};
    case Partition::parameter: return {"parameter", "stage 1: whole parameters, as PyTorch's ZeroRedundancyOptimizer"};
  }
  return {};
}
[[nodiscard]] constexpr const char* to_string(Partition v) {
  return word(v).text;
}
[[nodiscard]] constexpr Word word(Ownership v) {
  switch (v) {
    case Ownership::split: return {"split", "every rank has an equal part of each"};
    case Ownership::rank: return {"rank", "each lies whole on one rank, dealt in turn: broadcast and reduce"};
  }
  return {};
}
[[nodiscard]] constexpr const char* to_string(Ownership v) {
  return word(v).text;
}
[[nodiscard]] constexpr Word word(Recompute v) {
  switch (v) {
    case Recompute::none: return {"none", "keep what backward needs"};
    case Recompute::block: return {"block", "keep each block's input, make the rest again"};
    case Recompute::selective:
      return {"selective", "make norms, activations and rotations again, keep the costly rest"};
  }
  return {};
}
[[nodiscard]] constexpr const char* to_string(Recompute v) {
  return word(v).text;
}
[[nodiscard]] constexpr Word word(OptimizerKind v) {
  switch (v) {
    case OptimizerKind::sgd: return {"sgd"};
    case OptimizerKind::adam: return {"adam"};
    case OptimizerKind::adamw: return {"adamw"};
  }
  return {};
}
[[nodiscard]] constexpr const char* to_string(OptimizerKind v) {
  return word(v).text;
}
[[nodiscard]] constexpr Word word(Precision v) {
  switch (v) {
    case Precision::fp32: return {"fp32"};
    case Precision::bf16: return {"bf16", "16 bits, fp32 master parameters"};
    case Precision::fp16: return {"fp16", "16 bits, fp32 master parameters"};
    case Precision::tf32: return {"tf32", "fp32, products in TF32 on GPUs that have it"};
  }
  return {};
}
[[nodiscard]] constexpr const char* to_string(Precision v) {
  return word(v).text;
}
[[nodiscard]] constexpr Word word(Transport v) {
  switch (v) {
    case Transport::shared: return {"shared", "ranks of one host, through shared memory"};
    case Transport::messages: return {"messages", "across hosts, with planned staging"};
  }
  return {};
}
[[nodiscard]] constexpr const char* to_string(Transport v) {
  return word(v).text;
}

struct Strategy {
  std::int32_t world_size = 1;
  std::int32_t stage = 0;  ///< ZeRO stage 0..3
  UnitKind unit = UnitKind::module;
  Partition partition = Partition::flat;
  Elems chunk_elems{0};           ///< unit chunk: the size, a multiple of the ranks that a chunk is cut for;
                                  ///< with chunk_starts the size that they were chosen under, which no pass reads
  std::int64_t micro_batch = 1;   ///< sequences (mlp: samples) per rank and micro-step
  std::int64_t global_batch = 1;  ///< sequences per step; a multiple of micro_batch x data-parallel ranks
  std::int64_t sequence = 1;      ///< tokens per sequence (mlp: 1)
  Recompute recompute = Recompute::none;
  OptimizerKind optimizer = OptimizerKind::adamw;
  Precision precision = Precision::fp32;
  std::int32_t prefetch = 1;  ///< stage 3: how many gathers run ahead of their use
  std::int32_t threads = 1;   ///< compute threads per rank; sizes per-thread workspaces
  bool reproducible = true;   ///< gradients summed along one fixed tree over micro-batches
  Transport transport = Transport::shared;
  Device device = Device::cpu;       ///< what operators run on
  std::int32_t tensor_parallel = 1;  ///< ranks that split one model between them
  model::TensorLayout tensor_layout = model::TensorLayout::megatron;
  std::int32_t shard_group = 0;      ///< hybrid sharding: data-parallel ranks that share shards; 0: all of them
  bool fp32_reduce_scatter = false;  ///< 16-bit gradients become fp32 before they are summed
  bool clip_norm = false;            ///< gradients are clipped by their global norm; the threshold is a planned scalar
  bool loss_scaling = false;         ///< a dynamic loss scale also where precision is not fp16
  float predivide = 1.0f;            ///< f: gradients are divided by A f before they are summed over ranks, D / f after
  Placement placement{};             ///< which memory parameters, gradients and optimizer state rest in
  std::vector<std::string> freeze{};  ///< patterns of parameter names that keep their first values (sim/model/freeze.h)
  float dropout = 0;                  ///< model::Model::dropout
  bool chunk_per_tensor = false;      ///< unit chunk: every parameter is a chunk, and chunk_elems means nothing
  /// Unit chunk: the parameters, ascending, that begin a chunk as large as what it holds, padded; the first of those
  /// that are trained and the first of those that are frozen are among them. Empty: chunks of chunk_elems.
  std::vector<std::int32_t> chunk_starts{};
  Ownership ownership = Ownership::split;
  bool distributed = true;      ///< unit chunk; false: every rank keeps every chunk whole, whatever the stage
  bool keep_gathered = false;   ///< stage 3: a unit is gathered once a step and dropped after its last use
  bool reuse_shard = false;     ///< stage 3, 16 bits, no accumulation: gradients take their parameters' place
  std::int32_t bucket_mib = 0;  ///< stages 2 and 3: units are reduced together up to so many MiB; 0: one by one
  bool evaluates = false;       ///< the mean loss can be had without a step: there is a phase for it

  friend bool operator==(const Strategy&, const Strategy&) = default;

  /// Ranks that work on different micro-batches.
  [[nodiscard]] constexpr std::int32_t data_parallel() const { return world_size / tensor_parallel; }
  /// Ranks that share the shards of a flat.
  [[nodiscard]] constexpr std::int32_t shard_degree() const { return shard_group > 0 ? shard_group : data_parallel(); }
  [[nodiscard]] constexpr Topology topology() const {
    return {.world_size = world_size, .tensor_parallel = tensor_parallel, .shard_degree = shard_degree()};
  }
  /// Shard groups that hold the same.
  [[nodiscard]] constexpr std::int32_t replicas() const { return topology().replicas(); }
  /// What parameters, activations and gradients are stored as.
  [[nodiscard]] constexpr Dtype storage() const {
    return precision == Precision::fp16 ? Dtype::f16 : precision == Precision::bf16 ? Dtype::bf16 : Dtype::f32;
  }
  /// What the plan is compiled for.
  [[nodiscard]] constexpr Target target() const {
    return {.device = device, .threads = threads, .storage = storage(), .tensor_float = precision == Precision::tf32};
  }
  /// What gradients are summed as, over micro-batches and ranks.
  [[nodiscard]] constexpr Dtype reduction() const { return fp32_reduce_scatter ? Dtype::f32 : storage(); }
  /// fp32 parameters beside the stored ones.
  [[nodiscard]] constexpr bool has_masters() const { return storage() != Dtype::f32; }
  /// The loss is scaled dynamically, and a step whose gradients overflow is skipped.
  [[nodiscard]] constexpr bool has_scaler() const { return loss_scaling || precision == Precision::fp16; }
  /// Step ops read what `decide` says of the whole gradient.
  [[nodiscard]] constexpr bool is_controlled() const { return clip_norm || has_scaler(); }
  /// What a micro-batch's loss is multiplied by, and what is left for the step to multiply gradients by. A factor of 1
  /// is the default class: all is divided in the leaves, by M, and nothing afterwards.
  [[nodiscard]] float leaf_scale() const {
    return predivide == 1.0f ? 1.0f / static_cast<float>(micro_batches())
                             : 1.0f / (static_cast<float>(accumulation()) * predivide);
  }
  [[nodiscard]] float gradient_factor() const {
    return predivide == 1.0f ? 1.0f : predivide / static_cast<float>(data_parallel());
  }
  /// Micro-steps per rank and step.
  [[nodiscard]] std::int64_t accumulation() const { return global_batch / (micro_batch * data_parallel()); }
  /// M, the micro-batches of the global batch.
  [[nodiscard]] std::int64_t micro_batches() const { return global_batch / micro_batch; }
  /// Every chunk has the size of what it holds.
  [[nodiscard]] bool has_variable_chunks() const { return !chunk_starts.empty(); }
  /// Sharding needs more than one rank: with one, every stage is stage 0 without collectives.
  [[nodiscard]] std::int32_t effective_stage() const { return data_parallel() == 1 || !distributed ? 0 : stage; }
  /// Whole units lie on one rank each.
  [[nodiscard]] bool has_owners() const { return ownership == Ownership::rank && effective_stage() > 0; }
  /// How many equal shards a flat is cut into.
  [[nodiscard]] std::int32_t cuts() const { return has_owners() ? 1 : shard_degree(); }
  /// A flat's reduced gradient lies where its parameters lay.
  [[nodiscard]] bool reuses_shards() const { return reuse_shard && effective_stage() == 3; }
  /// Gradients leave the rank after every micro-step (stages 2 and 3), so micro-batches are dealt in turn.
  [[nodiscard]] bool reduces_every_micro_step() const { return effective_stage() >= 2; }
  /// A micro-step's gradient has a buffer of its own, and is not a slot of the gradient tree.
  [[nodiscard]] bool has_leaves() const { return reduces_every_micro_step() || reduction() != storage(); }
};

/// One line that identifies a strategy to a reader and to the hash.
[[nodiscard]] std::string to_string(const Strategy& strategy);

}  // namespace shard::plan
