// Plans of the public interface: the options of `shardscope train`, read and prepared as the command does.
#include <shardscope/plan.h>

#include "executor/api/gate.h"
#include "executor/api/impl.h"
#include "sim/cli/contradiction.h"
#include "sim/cli/uncaught.h"
#include "traces/base/numbers.h"

namespace shardscope {
namespace {

using shard::Memory;
namespace cli = shard::cli;
namespace engine = shard::engine;

/// What the command does beside training.
struct OfTheCommand {
  const char* option;
  const char* here = nullptr;  ///< what does the same here; null: nothing does
};
constexpr OfTheCommand kOfTheCommand[] = {
    {"json"},
    {"format"},
    {"trace"},
    {"trace-predicted"},
    {"profile"},
    {"profile-steps"},
    {"log"},
    {"tensorboard"},
    {"print-every"},
    {"print-memory", "Step::memory"},
    {"print-config"},
    {"recorder"},
    {"eval-every"},
    {"eval-data"},
    {"eval-split"},
    {"eval-steps"},
    {"save-weights", "Training::save()"},
    {"save", "Training::save()"},
    {"save-every", "Training::save()"},
    {"save-at-exit", "Training::save()"},
    {"save-async", "Training::save()"},
    {"keep", "Training::save()"},
    {"resume", "Training::load()"},
    {"resume-inexact", "Training::load()"},
};

Result<void> check_here(const cli::Command& command, const shard::commands::TrainOptions& o) {
  for (const auto& [option, instead] : kOfTheCommand)
    if (command.given(option))
      return cli::contradiction(
          command.describe(option) + " is of the command, and here nothing is printed or written by itself",
          instead != nullptr ? std::string(instead) : std::string("leave --") + option + " out, or shardscope train");
  if (o.strategy.chosen.device == shard::plan::Device::cuda)
    return Error{.code = Errc::unavailable,
                 .what = command.describe("device") + ": ranks of the C++ interface compute on CPUs",
                 .where = "options",
                 .help = "shardscope train --device cuda"};
  return {};
}

}  // namespace

Result<Plan> Plan::compile(const Model& model, const Options& options) {
  return cli::guarded([&]() -> Result<Plan> {
    Impl made;
    made.options.data = "random";
    cli::Command command("shardscope", "train", "", "");
    shard::commands::add_train_options(command, made.options);
    command.require_nothing();
    Options words{"--model", model.impl_->argument};
    words.insert(words.end(), options.begin(), options.end());
    const Result<cli::Outcome> outcome = command.parse(words);
    if (!outcome) return outcome.error();
    if (*outcome == cli::Outcome::help)
      return Error{Errc::usage, "--help is of the command, and here nothing is printed", "", "shardscope train --help"};
    if (Result<void> here = check_here(command, made.options); !here) return here.error();
    Result<shard::commands::Prepared> prepared = shard::commands::prepare(command, made.options);
    if (!prepared) return prepared.error();
    made.prepared = std::move(*prepared);
    if (!command.given("dropout"))
      for (const shard::model::ConfiguredDropout& said : made.prepared.planned.config_dropouts)
        made.prepared.planned.notes.push_back("dropout " + shard::show_number(said.value) + " (" + said.keys +
                                              ") of the model's configuration is not applied");
    for (const shard::plan::Plan& each : made.prepared.plans.classes)
      made.moments.push_back(shard::record::planned_moments(each));
    return Plan(std::make_shared<const Impl>(std::move(made)));
  });
}

Result<Plan> Plan::compile(const Model& model, const Strategy& strategy) {
  return compile(model, to_options(strategy));
}

const std::string& Plan::hash() const {
  return impl_->prepared.plans.hash;
}
const std::vector<std::string>& Plan::notes() const {
  return impl_->prepared.planned.notes;
}
int Plan::ranks() const {
  return impl_->prepared.planned.strategy.world_size;
}
std::int64_t Plan::micro_batch() const {
  return impl_->prepared.planned.strategy.micro_batch;
}
std::int64_t Plan::global_batch() const {
  return impl_->prepared.planned.strategy.global_batch;
}
std::int64_t Plan::sequence() const {
  return impl_->prepared.planned.strategy.sequence;
}
std::int64_t Plan::parameter_elements() const {
  return impl_->prepared.planned.model->parameter_elements();
}

Result<void> Plan::fits() const {
  return cli::guarded([&] { return shard::commands::check_fits(impl_->prepared, impl_->options); });
}

Result<Live> Plan::peak(int rank) const {
  if (Result<void> there = check_rank(rank, ranks()); !there) return there.error();
  const auto& peak = shard::commands::class_of(impl_->prepared.prediction, rank).peak;
  const auto of = [&](Memory memory) { return peak[static_cast<std::size_t>(memory)]; };
  return Live{.device = of(Memory::device), .host = of(Memory::host) + of(Memory::pinned), .disk = of(Memory::disk)};
}
Result<Created> Plan::created(int rank) const {
  if (Result<void> there = check_rank(rank, ranks()); !there) return there.error();
  return created_of(impl_->of_rank(rank).creation);
}
Result<InStep> Plan::first_step(int rank) const {
  if (Result<void> there = check_rank(rank, ranks()); !there) return there.error();
  return in_step_of(impl_->of_rank(rank).first_step);
}
Result<InStep> Plan::steady_step(int rank) const {
  if (Result<void> there = check_rank(rank, ranks()); !there) return there.error();
  return in_step_of(impl_->of_rank(rank).steady_step);
}

Seconds Plan::step_time() const {
  const engine::Simulation& s = impl_->prepared.prediction;
  return s.steps > 1 ? s.step_seconds : s.first_step_seconds;
}

Result<StepFlops> Plan::flops(int rank) const {
  if (Result<void> there = check_rank(rank, ranks()); !there) return there.error();
  const shard::commands::StepFlops flops =
      shard::commands::step_flops(impl_->prepared.planned, impl_->prepared.prediction, rank);
  return StepFlops{.model = flops.model, .all = flops.all, .by_parameters = flops.by_parameters};
}

}  // namespace shardscope
