// What a training run is evaluated on, and when: the options, and the data that they name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "executor/data/validation.h"
#include "sim/cli/command_line.h"
#include "sim/model/graph.h"
#include "sim/strategy/strategy.h"

namespace shard::commands {

struct TrainOptions;

struct EvaluationOptions {
  std::int64_t every = 0;   ///< steps; 0: never
  std::int64_t steps = 20;  ///< global batches of one evaluation
  std::string data;         ///< as --data; empty: none of its own
  double split = 0;         ///< of --data, its end, which is not trained on; 0: none
};

/// Declares --eval-every, --eval-data, --eval-split, --eval-steps.
void add_evaluation_options(cli::Command& command, EvaluationOptions& options);

/// Do they go together: a contradiction (78) else.
[[nodiscard]] Result<void> check_evaluation(const cli::Command& command, const TrainOptions& options);

/// What a run of these options reads.
struct RunData {
  std::unique_ptr<DataSource> source;
  TrainingAndValidation* validation = nullptr;  ///< the source, where the run is evaluated
  std::string validation_text;                  ///< for people; empty where it is not
};

/// Errors: those of open_data(); where= names the option.
[[nodiscard]] Result<RunData> open_run_data(const TrainOptions& options, const model::Model& model,
                                            const plan::Strategy& strategy);

}  // namespace shard::commands
