// Which values two runs must have in common to have the same numbers is sim/strategy/number_class.h's of a strategy;
// here are those of data, schedule and optimizer.
#include "executor/commands/checkpoint_options.h"

#include <algorithm>
#include <filesystem>

#include "executor/commands/prepared.h"
#include "executor/commands/train_options.h"
#include "executor/cpu/kernels/gemm.h"
#include "executor/state/checkpoint/directory.h"
#include "executor/state/torch/open.h"
#include "sim/cli/contradiction.h"
#include "sim/strategy/fields.h"
#include "sim/strategy/number_class.h"
#include "traces/base/file_place.h"
#include "traces/base/numbers.h"
#include "traces/base/sha256.h"

namespace shard::commands {
namespace {

namespace fs = std::filesystem;

/// Names and shapes: what a parameter's number and first values go by.
std::string parameters_text(const model::Model& model) {
  std::string text;
  for (const Parameter& p : model.parameters) {
    text += p.name;
    for (const std::int64_t n : p.shape) text += ' ' + std::to_string(n);
    text += '\n';
  }
  return text;
}

/// A file's name stands for it, wherever it lies.
std::string data_text(const std::string& described) {
  const std::size_t slash = described.rfind('/');
  const std::size_t colon = described.find(':');
  if (slash == std::string::npos) return described;
  const std::string kind = colon == std::string::npos || colon > slash ? "" : described.substr(0, colon + 1);
  return kind + described.substr(slash + 1);
}

/// As few digits as tell it from any other.
std::string exactly(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string schedule_text(const ControlOptions& c, std::int64_t steps) {
  if (const rates::Schedule schedule = schedule_of(c, steps); schedule.torch != nullptr)
    return schedule.torch->text() + " of " + exactly(c.learning_rate);
  if (c.schedule == rates::ScheduleKind::constant)
    return "constant " + exactly(c.learning_rate) + ", warm-up " + std::to_string(c.warmup_steps);
  return std::string(c.schedule == rates::ScheduleKind::linear ? "linear " : "cosine ") + exactly(c.learning_rate) +
         " to " + exactly(c.min_learning_rate) + ", warm-up " + std::to_string(c.warmup_steps) + ", of " +
         std::to_string(steps) + " steps";
}

std::string scaler_text(const plan::ScalerKnobs& k) {
  return exactly(k.initial_scale) + ' ' + exactly(k.min_scale) + ' ' + exactly(k.max_scale) + ' ' +
         exactly(k.growth_factor) + ' ' + exactly(k.backoff_factor) + ' ' + std::to_string(k.growth_interval) + ' ' +
         std::to_string(k.hysteresis);
}

/// Behind the steps done so far and until the run's end, at most `keep` of them there at once, and one being made.
std::int64_t most_at_once(const CheckpointOptions& o, std::int64_t first, std::int64_t steps) {
  const std::int64_t by_interval = o.every > 0 ? steps / o.every - first / o.every : 0;
  const bool last = (o.every == 0 || o.at_exit) && (o.every == 0 || steps % o.every != 0);
  const std::int64_t all = by_interval + (last ? 1 : 0);
  return o.keep > 0 ? std::min(all, o.keep + 1) : all;
}

}  // namespace

void add_checkpoint_options(cli::Command& command, CheckpointOptions& o) {
  cli::Group group = command.group("Checkpoints");
  group
      .add("save", &o.save, "DIR",
           "save parameters and optimizer state there, a folder for each time: weights as Hugging Face's libraries "
           "open them, all of it for --resume on any ranks")
      .common();
  group.add("save-every", &o.every, "N", "after every Nth step").default_text("the last step alone").least(1);
  group.add_flag("save-at-exit", &o.at_exit,
                 "after the last step too, where --save-every does not save it; and at SIGTERM or SIGINT behind the "
                 "step that runs, and end by that signal (143, 130); a second signal ends at once");
  group.add_flag("save-async", &o.async,
                 "bring a checkpoint to the disk, read it again and give it its name while the next steps run");
  group.add("keep", &o.keep, "N", "only the newest N stay").default_text("all").least(1);
  group
      .add("resume", &o.resume, "DIR",
           "go on where the newest whole checkpoint of the folder stands, or the one named; bit for bit, whatever the "
           "number of ranks and the strategy of the run that saved it")
      .common();
  group.add_flag("resume-inexact", &o.resume_inexact,
                 "go on though the numbers will not be those of the saved run: another precision, batch, optimizer");
}

checkpoint::Manifest facts_of(const Prepared& p, const TrainOptions& o) {
  checkpoint::Manifest facts;
  const auto number = [&](std::string name, std::string value) {
    facts.numbers.push_back({.name = std::move(name), .value = std::move(value)});
  };
  const plan::Strategy& s = p.planned.strategy;
  number("parameters", sha256_hex(parameters_text(*p.planned.model)).substr(0, 16));
  for (const plan::FieldId id : plan::class_fields())
    number(std::string(plan::field(id).option), value_text(plan::field(id), s));
  number("device", plan::to_string(s.device));
  number("same bits for any ranks",
         plan::has_bits_of_class(s) ? "yes" : "no, " + std::to_string(s.data_parallel()) + " data-parallel ranks");
  number("data", data_text(p.data));
  number("seed", std::to_string(o.seed));
  number("learning rate", schedule_text(o.control, o.steps));
  const OptimizerScalars scalars = scalars_of(o);
  number("betas", exactly(scalars.beta1) + ' ' + exactly(scalars.beta2));
  number("epsilon", exactly(scalars.epsilon));
  number("weight decay", exactly(scalars.weight_decay));
  if (s.is_controlled()) number("clip norm", exactly(knobs_of(o.strategy).max_norm));
  if (s.has_scaler()) number("loss scaler", scaler_text(knobs_of(o.strategy).scaler));
  number("instruction set", cpu::to_string(p.instruction_set));
  number("matrix library", cpu::matrix_library());
  facts.about = {{.name = "program", .value = "shardscope " SHARDSCOPE_VERSION},
                 {.name = "model", .value = p.planned.model->name},
                 {.name = "plan hash", .value = p.plans.hash},
                 {.name = "strategy", .value = to_string(s)}};
  return facts;
}

Result<std::shared_ptr<const train::ResumedRun>> resumed_run(const ResumeRequest& request, const TrainOptions& o,
                                                             const Prepared& p, std::vector<std::string>& notes) {
  if (!o.weights.read.empty())
    return cli::contradiction(request.by + " and --weights " + o.weights.read + " both say what parameters begin with",
                              "one of the two");
  Result<std::shared_ptr<const train::ResumedRun>> run =
      train::ResumedRun::open(request.folder, *p.plans.of_rank(0).model, p.planned.strategy, request.inexact);
  if (!run && run.error().code == Errc::no_input)
    if (const std::optional<std::string> form = torch::form_of(request.folder))
      return Error{Errc::no_input, "is " + *form, request.folder,
                   "'shardscope checkpoint import " + request.folder + " DIR', then --resume DIR --resume-inexact"};
  if (!run) return run.error();
  const std::vector<std::string> other = train::differences((*run)->manifest().numbers, facts_of(p, o).numbers);
  if (other.empty()) return run;
  std::string list;
  // Of a checkpoint that was imported.
  if ((*run)->manifest().numbers.empty()) list = "it does not say how it was trained";
  for (const std::string& each : other)
    if (!(*run)->manifest().numbers.empty()) list += (list.empty() ? "" : "; ") + each;
  if (!request.inexact)
    return cli::contradiction(request.by + " would not give the numbers of the saved run: " + list,
                              "the values that it was saved with, or " + request.inexact_by);
  notes.push_back("goes on with other numbers than the saved run's: " + list);
  return run;
}

Result<std::shared_ptr<const train::ResumedRun>> open_resumed(const cli::Command& command, const TrainOptions& o,
                                                              const Prepared& p, std::vector<std::string>& notes) {
  using Run = std::shared_ptr<const train::ResumedRun>;
  const CheckpointOptions& c = o.checkpoints;
  if (c.resume.empty()) {
    if (c.resume_inexact)
      return cli::contradiction(command.describe("resume-inexact") + " is of a run that goes on", "--resume DIR");
    return Run();
  }
  Result<Run> run = resumed_run({.folder = c.resume,
                                 .inexact = c.resume_inexact,
                                 .by = command.describe("resume"),
                                 .inexact_by = "--resume-inexact"},
                                o, p, notes);
  if (!run) return run.error();
  const std::int64_t done = (*run)->manifest().step;
  if (done >= o.steps)
    return cli::contradiction(command.describe("steps") + " are done: " + (*run)->path().string() +
                                  " stands behind step " + std::to_string(done),
                              "--steps " + std::to_string(done + o.steps) + ", which counts those of the saved run");
  return run;
}

Result<void> check_checkpoints(const cli::Command& command, const TrainOptions& o, const Prepared& p) {
  const CheckpointOptions& c = o.checkpoints;
  if (c.save.empty()) {
    for (const char* const option : {"save-every", "save-at-exit", "save-async", "keep"})
      if (command.has(option) && command.given(option))
        return cli::contradiction(command.describe(option) + " is of checkpoints, and none are saved", "--save DIR");
    return {};
  }
  std::error_code fault;
  const fs::path folder(c.save);
  const std::string option = command.describe("save");
  Result<void> possible;
  if (fs::exists(folder, fault) && !fs::is_directory(folder, fault))
    possible = Error{Errc::cannot_create, "is a file; checkpoints are saved into a folder", option, "another name"};
  else if (fs::is_directory(folder, fault))
    possible = can_write(folder / "manifest.json");
  else
    possible = can_write(folder.has_filename() ? folder : folder.parent_path());
  if (possible) {
    const train::CheckpointTensors t = train::checkpoint_tensors(*p.plans.of_rank(0).model, p.planned.strategy);
    const std::int64_t first = p.resumed == nullptr ? 0 : p.resumed->manifest().step;
    possible =
        checkpoint::check_room(folder, checkpoint::lay_out(t.weights, t.state).bytes * most_at_once(c, first, o.steps));
  }
  if (possible) return {};
  Error error = possible.error();
  error.where = option;
  return error;
}

Result<std::unique_ptr<train::CheckpointKeeper>> keeper_of(const TrainOptions& o, const Prepared& p,
                                                           const plan::Plan& plan, Communicator& communicator,
                                                           std::function<void(const train::SavedCheckpoint&)> after) {
  const CheckpointOptions& c = o.checkpoints;
  if (c.save.empty()) return std::unique_ptr<train::CheckpointKeeper>();
  const plan::Strategy& s = p.planned.strategy;
  return std::make_unique<train::CheckpointKeeper>(
      train::CheckpointPlan{.tensors = train::checkpoint_tensors(*plan.model, s),
                            .tokens = s.global_batch * s.sequence,
                            .folder = c.save,
                            .every = c.every,
                            .at_end = c.at_exit || c.every == 0,
                            .asked = c.asked,
                            .keep = c.keep,
                            .beside_training = c.async,
                            .config = p.planned.config,
                            .facts = facts_of(p, o)},
      plan, communicator, std::move(after));
}

}  // namespace shard::commands
