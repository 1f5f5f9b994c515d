// The one vocabulary of model and strategy options, shared by every command that plans: declared, read and resolved
// here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/command_line.h"
#include "sim/commands/placement_options.h"
#include "sim/commands/scaler_options.h"
#include "sim/commands/sharding_options.h"
#include "sim/model/graph.h"
#include "sim/strategy/strategy.h"
#include "traces/base/result.h"

namespace shard::commands {

/// Values as given; what may be left open is optional. Lives as long as the Command it was declared in.
struct StrategyOptions {
  std::string model{};
  int world_size = 1;
  int stage = 0;
  plan::UnitKind unit = plan::UnitKind::module;
  plan::Partition partition = plan::Partition::flat;
  std::string chunk_size = "search";
  std::optional<Bytes> chunk_bytes{};
  plan::Precision precision = plan::Precision::fp32;
  plan::Recompute recompute = plan::Recompute::none;
  std::int64_t micro_batch = 1;
  std::optional<std::int64_t> global_batch{};
  std::optional<std::int64_t> sequence{};
  plan::OptimizerKind optimizer = plan::OptimizerKind::adamw;
  int prefetch = 1;
  int threads = 1;
  bool reproducible = true;
  plan::Transport transport = plan::Transport::shared;
  int shard_group = 0;
  int tensor_parallel = 1;
  model::TensorLayout tensor_layout = model::TensorLayout::megatron;
  bool fp32_reduce_scatter = false;
  ShardingOptions sharding{};
  std::optional<double> clip_norm{};
  double gradient_predivide_factor = 1;
  ScalerOptions scaler{};
  PlacementOptions placement{};
  std::vector<std::string> freeze{};  ///< patterns, each option's separated by commas
  double dropout = 0;
};

/// Declares --model, --world-size (--ranks), --stage, --unit, --partition, --chunk-size, --chunk-bytes, --precision,
/// --recompute, --micro-batch, --global-batch, --sequence, --optimizer, --prefetch, --threads, --no-reproducible,
/// --transport, --shard-group, --tensor-parallel, --tensor-parallel-layout, --fp32-reduce-scatter, --clip-norm,
/// --gradient-predivide-factor, --freeze, --dropout, the options of the loss scaler and those of placement_options.h. A
/// command that can do without a model says so and calls require_model() where it cannot.
void add_strategy_options(cli::Command& command, StrategyOptions& options, bool model_required = true);
[[nodiscard]] Result<void> require_model(const cli::Command& command);

/// What one element of a parameter is stored in, which is what chunk sizes in bytes count.
[[nodiscard]] Bytes stored_element(const StrategyOptions& options);

/// Parts of the same, for commands that take some of them: micro-batch and what follows from it; the model's sequence.
void add_training_options(cli::Command& command, StrategyOptions& options);
void add_sequence_option(cli::Group& group, StrategyOptions& options);

/// --freeze A,B --freeze C: A, B and C.
[[nodiscard]] std::vector<std::string> frozen_patterns(const StrategyOptions& options);

/// A model and the strategy to train it with, all defaults filled in.
struct Planned {
  std::shared_ptr<const model::Model> model;
  plan::Strategy strategy;
  std::vector<std::string> notes;       ///< for stderr: what was read and not applied, which chunk size was found
  std::optional<Dtype> config_dtype{};  ///< ConfiguredModel::dtype
  std::string parent_plan_hash{};       ///< --from-trace: of the plan that was measured
};

/// What options say apart from world size, stage and unit, with defaults that need the model filled in.
[[nodiscard]] plan::Strategy training_strategy(const StrategyOptions& options, const model::Model& model);

/// Reads the model and resolves the strategy; searches the chunk size, or chunks of their own sizes,
/// where the unit is chunk and --chunk-size asks for it.
/// Errors: as read_model; contradiction (78) naming both options and where each came from.
/// `cluster_memory`: what placement auto fills without --device-capacity.
[[nodiscard]] Result<Planned> resolve(const cli::Command& command, const StrategyOptions& options,
                                      std::optional<Bytes> cluster_memory = std::nullopt);

}  // namespace shard::commands
