// The one vocabulary of model and strategy options, shared by every command that plans: declared, read and resolved
// here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cli/command_line.h"
#include "sim/commands/placement_options.h"
#include "sim/commands/read_once.h"
#include "sim/commands/scaler_options.h"
#include "sim/model/config.h"
#include "sim/model/graph.h"
#include "sim/strategy/fields.h"
#include "sim/strategy/strategy.h"
#include "traces/base/result.h"

namespace shard::commands {

/// Values as given. Lives as long as the Command it was declared in.
struct StrategyOptions {
  std::string model{};
  plan::Strategy chosen{.global_batch = 0, .sequence = 0};  ///< 0: left open, for training_strategy()
  std::string chunk_size = "search";
  std::optional<Bytes> chunk_bytes{};
  std::optional<double> clip_norm{};
  bool device_of_cluster = false;  ///< without --device that of --cluster is taken (device_of_cluster.h)
  bool emulated = false;           ///< --device emulated-cuda: GPUs that are not there
  ScalerOptions scaler{};
  PlacementOptions placement{};
};

/// Declares --model, the options of the table of fields (sim/strategy/fields.h) and those that stand beside them:
/// --chunk-bytes, the loss scaler's and those of placement_options.h. A command that can do without a model says so and
/// calls require_model() where it cannot.
void add_strategy_options(cli::Command& command, StrategyOptions& options, bool model_required = true);
[[nodiscard]] Result<void> require_model(const cli::Command& command);

/// What one element of a parameter is stored in, which is what chunk sizes in bytes count.
[[nodiscard]] Bytes stored_element(const StrategyOptions& options);

/// Parts of the same, for commands that take some of them: all of a group of the table ("Training"), or one option of
/// it, with its own help where that is given.
void add_fields(cli::Command& command, std::string_view group, StrategyOptions& options);
void add_field(cli::Group& group, plan::FieldId id, StrategyOptions& options, std::string_view help = {});

/// The models that strategies are for, by --model's text: the part of each that is simulated.
struct Models : ReadOnce<model::ConfiguredModel> {
  Models();
};

/// A model and the strategy to train it with, all defaults filled in.
struct Planned {
  std::shared_ptr<const model::Model> model;
  plan::Strategy strategy;
  std::vector<std::string> notes;       ///< for stderr: what was read and not applied, which chunk size was found
  std::optional<Dtype> config_dtype{};  ///< ConfiguredModel::dtype
  std::vector<model::ConfiguredDropout> config_dropouts{};  ///< ConfiguredModel::dropouts
  std::string config{};                                     ///< ConfiguredModel::config
  std::string parent_plan_hash{};                           ///< --from-trace: of the plan that was measured
};

/// What options say apart from chunks and placement, with defaults that need the model filled in.
[[nodiscard]] plan::Strategy training_strategy(const StrategyOptions& options, const model::Model& model);

/// Reads the model and resolves the strategy; searches the chunk size, or chunks of their own sizes,
/// where the unit is chunk and --chunk-size asks for it.
/// Errors: as read_model; contradiction (78) naming both options and where each came from.
/// `cluster`: whose device placement auto fills, less what lies outside of the arena. `models`: where many strategies
/// are asked for.
[[nodiscard]] Result<Planned> resolve(const cli::Command& command, const StrategyOptions& options,
                                      const cluster::Cluster* cluster = nullptr, Models* models = nullptr);

}  // namespace shard::commands
