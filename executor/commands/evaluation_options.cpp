// Validation data is a source of its own, or the end of the training data, which training then leaves alone.
#include "executor/commands/evaluation_options.h"

#include "executor/commands/train_options.h"
#include "sim/cli/contradiction.h"

namespace shard::commands {
namespace {

/// Random data of the run's seed would be trained on: that of evaluations has another.
constexpr std::uint64_t kEvaluationSeed = 0x6576616c75617465;

}  // namespace

void add_evaluation_options(cli::Command& command, EvaluationOptions& o) {
  cli::Group group = command.group("Evaluation");
  group.add("eval-every", &o.every, "N", "mean loss of validation data after every Nth step and the last")
      .common()
      .default_text("never")
      .least(1);
  group.add("eval-data", &o.data, "random|text:FILE|FILE.bin", "the validation data")
      .common()
      .reads_file(files_of_data);
  group.add("eval-split", &o.split, "F", "in its place: this share of --data, its end, which is not trained on")
      .default_text("0")
      .least(0)
      .most(0.99);
  group.add("eval-steps", &o.steps, "N", "of as many sequences as a training step has, the same in every evaluation")
      .least(1)
      .most(1e9);
}

Result<void> check_evaluation(const cli::Command& command, const TrainOptions& o) {
  const EvaluationOptions& e = o.evaluation;
  if (e.every == 0) {
    for (const char* const option : {"eval-data", "eval-split", "eval-steps"})
      if (command.has(option) && command.given(option))
        return cli::contradiction(command.describe(option) + " is of evaluations, and there are none",
                                  "--eval-every N");
    return {};
  }
  if (!e.data.empty() && e.split > 0)
    return cli::contradiction(
        command.describe("eval-data") + " and " + command.describe("eval-split") + " both say what is evaluated",
        "one of them");
  if (e.data.empty() && e.split <= 0)
    return cli::contradiction(command.describe("eval-every") + " lacks data to evaluate",
                              "--eval-data FILE, or --eval-split 0.1 for the last tenth of --data");
  if (e.split > 0 && o.data == "random")
    return cli::contradiction(command.describe("eval-split") + " is the end of a file, and random data has none",
                              "--eval-data random, which has a seed of its own");
  return {};
}

Result<RunData> open_run_data(const TrainOptions& o, const model::Model& model, const plan::Strategy& s) {
  const EvaluationOptions& e = o.evaluation;
  BatchShape shape{.batch = s.micro_batch, .sequence = s.sequence, .seed = o.seed, .order = o.data_order};
  if (e.every > 0 && e.split > 0) shape.end = 1 - e.split;
  Result<std::unique_ptr<DataSource>> training = open_data(o.data, model, shape);
  if (!training) return training.error();
  if (e.every == 0) return RunData{.source = std::move(*training), .validation_text = {}};
  shape.begin = e.split > 0 ? 1 - e.split : 0;
  shape.end = 1;
  shape.seed ^= kEvaluationSeed;
  // In turn: the same windows every time.
  if (shape.order == DataOrder::shuffled) shape.order = DataOrder::sequential;
  if (e.data == "random") shape.order = DataOrder::random;
  Result<std::unique_ptr<DataSource>> validation = open_data(e.split > 0 ? o.data : e.data, model, shape);
  if (!validation) {
    Error error = validation.error();
    if (error.where == "--data") error.where = "--eval-data";
    return error;
  }
  std::string text = (*validation)->describe();
  auto both = std::make_unique<TrainingAndValidation>(std::move(*training), std::move(*validation));
  TrainingAndValidation* const validated = both.get();
  return RunData{.source = std::move(both), .validation = validated, .validation_text = std::move(text)};
}

}  // namespace shard::commands
