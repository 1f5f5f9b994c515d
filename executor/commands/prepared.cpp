// From options to plans and a prediction.
#include "executor/commands/prepared.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "executor/data/source.h"
#include "sim/cli/contradiction.h"
#include "sim/cli/sizes.h"
#include "sim/cluster/read_cluster.h"
#include "sim/commands/device_of_cluster.h"
#include "sim/model/graph_limits.h"

namespace shard::commands {
namespace {

/// What is too large, and what holds most of it.
std::string too_large(const std::string& what, Bytes needed, Bytes allowed, const engine::PhaseResult* phase,
                      Memory memory) {
  std::string text = what + " needs " + std::to_string(needed.count()) + " bytes (" + cli::mib(needed) + "), " +
                     std::to_string(allowed.count()) + " are allowed";
  if (phase != nullptr)
    for (const engine::Holder& h : phase->memory[static_cast<std::size_t>(memory)].largest_holders)
      text += "\n    " + cli::mib(h.bytes) + "  " + h.name;
  return text;
}

Error does_not_fit(const Prepared& p, const TrainOptions& o) {
  const engine::Simulation& s = p.prediction;
  const Memory memory = *s.short_of();
  const bool device = memory == Memory::device;
  const engine::ClassResult& largest = s.largest(memory);
  const auto change = change_that_fits(p, o);
  return {.code = Errc::does_not_fit,
          .what = too_large(!device                    ? "host memory of a host's ranks"
                            : s.outside.low > Bytes{0} ? "the arena of a rank with CUDA's context and libraries"
                                                       : "the arena of a rank",
                            device ? largest.peak[0] + s.outside.low : s.host_peak,
                            device ? *s.device_capacity : *s.host.capacity, largest.peak_phase(memory), memory),
          .where = device ? "--device-capacity" : "--host-capacity",
          .help = change ? change->text + " (" + cli::mib(change->peak) + ")" : "more ranks, or more memory"};
}

}  // namespace

engine::SimulateOptions simulate_options(const TrainOptions& o) {
  return {.steps = static_cast<std::int32_t>(o.steps),
          .digest = true,
          .device_capacity = o.strategy.placement.device_capacity,
          .host_capacity = o.strategy.placement.host_capacity};
}

Result<void> check_ranks(const cli::Command& command, std::int32_t ranks, const std::string& started) {
  if (ranks <= kMostRanks) return {};
  return cli::contradiction(
      command.describe("world-size") + " asks for " + std::to_string(ranks) + ' ' + started +
          " on this machine; at most " + std::to_string(kMostRanks) + " are started",
      "shardscope simulate, which predicts any number of ranks; or mpirun or srun over more machines");
}

Result<void> check_fits(const Prepared& prepared, const TrainOptions& options) {
  if (prepared.prediction.fits) return {};
  return does_not_fit(prepared, options);
}

std::optional<engine::Change> change_that_fits(const Prepared& prepared, const TrainOptions& options) {
  const Result<cluster::Cluster> cluster = cluster::read_cluster(options.cluster);
  if (!cluster) return std::nullopt;
  return engine::change_that_fits(prepared.planned.model, prepared.prediction, *cluster, simulate_options(options));
}

Result<Prepared> prepare(const cli::Command& command, const TrainOptions& options) {
  const Result<cluster::Cluster> cluster = cluster::read_cluster(options.cluster);
  if (!cluster) return cluster.error();
  if (Result<void> ok = check_device(command, options.strategy, *cluster); !ok) return ok.error();
  Result<Planned> planned = resolve(command, options.strategy, &*cluster);
  if (!planned) return planned.error();
  if (Result<void> ok = model::check_trained(*planned->model, planned->strategy.sequence); !ok) return ok.error();
  if (Result<void> ok = check_disk_path(command, options.strategy.placement, planned->strategy.placement); !ok)
    return ok.error();
  const plan::Strategy& s = planned->strategy;
  if (Result<void> ok = check_control(command, options.control, s, options.steps); !ok) return ok.error();
  Result<std::shared_ptr<const Weights>> weights = open_weights(options.weights, *planned->model);
  if (!weights) return weights.error();
  if (Result<void> ok = check_save(command, options.weights); !ok) return ok.error();
  if (Result<void> ok = check_evaluation(command, options); !ok) return ok.error();
  planned->strategy.evaluates = options.evaluation.every > 0;
  const Result<RunData> data = open_run_data(options, *planned->model, s);
  if (!data) return data.error();
  const Result<cpu::InstructionSet> instruction_set = cpu::use_instruction_set(options.instruction_set);
  if (!instruction_set) return instruction_set.error();
  Result<plan::PlanSet> plans = plan::compile(planned->model, s);
  if (!plans) return plans.error();
  plans->parent_hash = planned->parent_plan_hash;
  Result<engine::Simulation> prediction = engine::simulate(*plans, *cluster, simulate_options(options));
  if (!prediction) return prediction.error();
  Prepared prepared{.planned = std::move(*planned),
                    .plans = std::move(*plans),
                    .prediction = std::move(*prediction),
                    .data = data->source->describe(),
                    .validation = data->validation_text,
                    .instruction_set = *instruction_set,
                    .weights = std::move(*weights)};
  std::vector<std::string> notes;
  Result<std::shared_ptr<const train::ResumedRun>> resumed = open_resumed(command, options, prepared, notes);
  if (!resumed) return resumed.error();
  prepared.resumed = std::move(*resumed);
  if (prepared.resumed != nullptr) {
    engine::SimulateOptions left = simulate_options(options);
    left.steps -= static_cast<std::int32_t>(prepared.resumed->manifest().step);
    prediction = engine::simulate(prepared.plans, *cluster, left);
    if (!prediction) return prediction.error();
    prepared.prediction = std::move(*prediction);
  }
  for (std::string& note : notes) prepared.planned.notes.push_back(std::move(note));
  if (Result<void> ok = check_checkpoints(command, options, prepared); !ok) return ok.error();
  return prepared;
}

const engine::ClassResult& class_of(const engine::Simulation& prediction, std::int32_t rank) {
  for (const engine::ClassResult& c : prediction.classes)
    if (std::ranges::find(c.ranks, rank) != c.ranks.end()) return c;
  assert(false && "every rank has a class");
  return prediction.classes.front();
}

StepFlops step_flops(const Planned& planned, const engine::Simulation& prediction, std::int32_t rank) {
  const plan::Strategy& s = planned.strategy;
  const double tokens = static_cast<double>(s.global_batch * s.sequence) / s.world_size;
  const double parameters = static_cast<double>(planned.model->parameter_elements());
  StepFlops flops{.model = {}, .all = {}, .by_parameters = Flops{8 * parameters * tokens}};
  if (const engine::PhaseResult* const step = class_of(prediction, rank).find(Phase::first_step)) {
    flops.model = step->model_flops;
    flops.all = step->compute_flops;
  }
  return flops;
}

train::SessionOptions session_options(const TrainOptions& o) {
  return {.steps = o.steps,
          .digest = true,
          .scalars = scalars_of(o),
          .knobs = knobs_of(o.strategy),
          .inject = injections_of(o.control),
          .learning_rate = [schedule = schedule_of(o.control, o.steps)](
                               std::int64_t step) { return rates::learning_rate(schedule, step); },
          .seed = o.seed,
          .after_step = {},
          .before_phase = {},
          .disk_path = o.strategy.placement.disk_path,
          .keep_going = o.keep_going};
}

}  // namespace shard::commands
