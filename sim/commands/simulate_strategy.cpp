// One way from options to figures, with what --like names on its side.
#include "sim/commands/simulate_strategy.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/cluster/read_cluster.h"
#include "sim/commands/device_of_cluster.h"
#include "sim/commands/eager_options.h"
#include "sim/commands/like_options.h"
#include "sim/commands/whose_memory.h"
#include "sim/compile/compile.h"
#include "sim/like/like_step.h"
#include "traces/export/snapshot_again.h"

namespace shard::commands {
namespace {

Error changes_nothing() {
  return {.code = Errc::contradiction, .what = "nothing is changed by this", .where = "", .help = ""};
}

/// The passes of PyTorch 1.8 over our own plan.
Result<like::LikeResult> predict_passes(const cli::Command& command, const like::Framework& framework,
                                        const Planned& planned, const cluster::Room& room) {
  if (command.given("precision") && planned.strategy.precision != plan::Precision::fp32)
    return no_meaning_for_like(command, "precision", "it is predicted in fp32");
  if (planned.strategy.recompute != plan::Recompute::none)
    return no_meaning_for_like(command, "recompute", "an mlp has no blocks to run again");
  if (command.given("partition") && planned.strategy.stage == 0)
    return no_meaning_for_like(command, "partition", "without --stage 1 every rank steps all parameters");
  return like::simulate_like(framework.full_name(), *planned.model, planned.strategy,
                             {.device_capacity = room.at_most(), .rules = {}, .allocator = std::nullopt});
}

/// What eager PyTorch 2 is told.
Result<like::EagerOptions> eager_options(const SimulateOptions& o, const like::Framework& framework,
                                         const cluster::Cluster& cluster, const cluster::Room& room,
                                         const SimulateRequest& request) {
  like::EagerOptions eager = o.eager;
  eager.framework = framework.sharding;
  eager.row = &framework;
  const bool of_deepspeed = framework.library == like::eager::Library::deepspeed;
  (of_deepspeed ? eager.deepspeed : eager.version) = like::version_asked(framework, o.like);
  eager.device_capacity = room.at_most();
  std::vector<std::string> notes;
  const Result<CachingAllocatorOptions> allocator = allocator_of(o.allocator, room.capacity, notes);
  if (!allocator) {
    Error error = allocator.error();
    if (!error.where.starts_with("--")) error.where = "--allocator-conf, " + error.where;
    return error;
  }
  request.note(notes);
  request.note(like::not_compared(eager));
  eager.allocator = *allocator;
  if (!cluster.card) request.note({"the kernels are those of an H100; --cluster names another card"});
  if (cluster.card)
    eager.machine = {.compute_capability = cluster.card->compute_capability,
                     .multiprocessors = cluster.card->multiprocessors,
                     .threads_per_multiprocessor = cluster.card->threads_per_multiprocessor};
  eager.snapshot = !request.trace.empty();
  return eager;
}

/// The program of `base` where it is that of `strategy` and `eager`, too; contradiction where figures are equal.
Result<std::shared_ptr<const like::Program>> program_of_base(const Simulated* base, const plan::Strategy& strategy,
                                                             const like::EagerOptions& eager) {
  const auto* const of = base == nullptr ? nullptr : std::get_if<like::LikeResult>(&base->figures);
  if (of == nullptr || !(of->strategy == strategy) || !like::is_same_program(base->eager, eager))
    return std::shared_ptr<const like::Program>();
  if (base->eager == eager) return changes_nothing();
  return of->program;
}

/// What a program would take under eager PyTorch 2.
Result<like::LikeResult> predict_program(const Planned& planned, const like::EagerOptions& eager,
                                         const cluster::Cluster& cluster, const SimulateRequest& request) {
  Result<std::shared_ptr<const like::Program>> made = program_of_base(request.base, planned.strategy, eager);
  if (!made) return made.error();
  Result<like::LikeResult> result = like::simulate_eager(planned.model, planned.strategy, eager, *std::move(made));
  if (result) {
    Result<step::StepTime> step = like::eager_step_time(*planned.model, planned.strategy, eager, cluster);
    if (step)
      result->step = *std::move(step);
    else
      result->no_step = step.error().what;
  }
  if (result && eager.snapshot)
    if (Result<void> written =
            export_snapshot_again(result->snapshot->snapshot, result->snapshot->names, request.trace);
        !written)
      return written.error();
  return result;
}

/// --nodes into the cluster, and into the strategy where it says nothing of ranks.
void take_nodes(const cli::Command& command, const SimulateOptions& o, cluster::Cluster& cluster,
                StrategyOptions& strategy) {
  if (!command.given("nodes")) return;
  cluster.hosts = static_cast<std::int32_t>(o.nodes);
  if (!command.given("world-size"))
    strategy.chosen.world_size = static_cast<std::int32_t>(o.nodes) * cluster.devices_per_host;
}

/// Our own executor's figures into `simulated`, whose other members are there; with the trace, where one is asked for.
Result<void> simulate_own(const SimulateOptions& o, const SimulateRequest& request, Simulated& simulated) {
  if (request.base != nullptr && std::holds_alternative<engine::Simulation>(request.base->figures) &&
      request.base->planned->strategy == simulated.planned->strategy)
    return changes_nothing();
  const plan::MicroSteps wanted = request.trace.empty() ? plan::MicroSteps::folded : plan::MicroSteps::all;
  Result<plan::PlanSet> plans = plan::compile(simulated.planned->model, simulated.planned->strategy, wanted);
  if (!plans) return plans.error();
  plans->parent_hash = simulated.planned->parent_plan_hash;
  simulated.options = {.steps = static_cast<std::int32_t>(o.steps),
                       .device_capacity = o.strategy.placement.device_capacity,
                       .host_capacity = o.strategy.placement.host_capacity,
                       .series = request.series};
  engine::SimulateOptions traced = simulated.options;
  std::optional<Writer> writer;
  if (!request.trace.empty()) {
    Result<Writer> created =
        Writer::create(request.trace, engine::trace_header(*plans, simulated.cluster, traced), Appears::whole);
    if (!created) return created.error();
    writer.emplace(std::move(*created));
    traced.trace = &*writer;
  }
  Result<engine::Simulation> simulation = engine::simulate(*plans, simulated.cluster, traced);
  if (!simulation) return simulation.error();
  if (writer)
    if (Result<void> closed = writer->close(); !closed) return closed;
  simulated.taken =
      assumed(*simulated.planned->model, simulated.planned->strategy, simulation->cluster, simulation->device_capacity);
  simulated.taken.host_capacity = simulation->host.capacity;
  simulated.figures = std::move(*simulation);
  return {};
}

/// FSDP's shards are fp32 under bf16 as under autocast, unless the model was made in 16 bits.
std::string what_rests_wide(const plan::Strategy& strategy, const like::EagerOptions& eager) {
  const bool in_groups =
      eager.framework == like::eager::Framework::fsdp1 || eager.framework == like::eager::Framework::fsdp2;
  if (!in_groups || strategy.storage() == Dtype::f32) return "";
  return eager.masters ? ", parameters and optimizer rest in fp32 (--masters none: in " +
                             std::string(plan::to_string(strategy.precision)) + ", as of a model loaded so)"
                       : ", parameters and optimizer rest in it, too (--masters fp32: in fp32)";
}

/// Both, in the same way.
Result<void> simulate_other(const cli::Command& command, const SimulateOptions& o, const like::Framework& framework,
                            const SimulateRequest& request, Simulated& simulated) {
  const std::int32_t ranks = simulated.planned->strategy.world_size;
  if (Result<void> ok = cluster::check_ranks(simulated.cluster, ranks); !ok) return ok.error();
  const std::optional<Bytes> capacity =
      o.strategy.placement.device_capacity ? o.strategy.placement.device_capacity : simulated.cluster.device_memory;
  const bool eager = framework.teller == like::Teller::eager;
  const cluster::Room room{
      .capacity = capacity,
      .outside = cluster::outside_allocator(simulated.cluster, ranks,
                                            eager ? cluster::KernelLoading::lazy : cluster::KernelLoading::all),
      .uncertainty = eager ? like::kEagerUncertaintyPpm / 1e6 : 0};
  if (eager) {
    Result<like::EagerOptions> told = eager_options(o, framework, simulated.cluster, room, request);
    if (!told) return told.error();
    simulated.eager = *std::move(told);
  }
  Result<like::LikeResult> result =
      eager ? predict_program(*simulated.planned, simulated.eager, simulated.cluster, request)
            : predict_passes(command, framework, *simulated.planned, room);
  if (!result) return result.error();
  result->put_into(room);
  result->host = cluster::host_room(simulated.cluster, ranks, o.strategy.placement.host_capacity);
  simulated.taken = assumed(*simulated.planned->model, simulated.planned->strategy, simulated.cluster.name, capacity);
  simulated.taken.memory_of = result->framework;
  if (eager) simulated.taken.precision_remark = what_rests_wide(simulated.planned->strategy, simulated.eager);
  simulated.taken.host_capacity = result->host.capacity;
  simulated.figures = std::move(*result);
  return {};
}

Result<Simulated> simulate_as_gemini(const cli::Command& command, const SimulateOptions& o,
                                     const like::Framework& framework, const SimulateRequest& request) {
  Result<GeminiPrediction> predicted = predict_gemini(command, {.framework = framework,
                                                                .flags = o.gemini,
                                                                .strategy = o.strategy,
                                                                .cluster = o.cluster,
                                                                .device_capacity = o.strategy.placement.device_capacity,
                                                                .steps = o.steps,
                                                                .note = request.note});
  if (!predicted) return predicted.error();
  request.note(predicted->result.notes);
  return Simulated{.figures = std::move(predicted->result),
                   .planned = std::nullopt,
                   .cluster = {},
                   .options = {},
                   .taken = std::move(predicted->taken)};
}

/// Whose run a line means, on what.
struct Meant {
  Result<WhoseMemory> whose;
  Result<cluster::Cluster> cluster;
  StrategyOptions strategy;  ///< with what is usual on GPUs filled in
  bool precision_of_config = false;
  std::string origin;  ///< of `whose`
};

/// What people train with on GPUs, where nobody says: the precision that the model's file names, and long sequences.
void take_usual_of_gpus(const cli::Command& command, const model::ConfiguredModel& configured, Meant& meant) {
  constexpr std::int64_t kMostTokens = 4096;
  const std::int64_t longest = configured.model.max_sequence;
  if (!command.given("sequence"))
    meant.strategy.chosen.sequence = longest > 0 ? std::min(longest, kMostTokens) : kMostTokens;
  const bool half = configured.dtype == Dtype::bf16 || configured.dtype == Dtype::f16;
  if (command.given("precision") || !half) return;
  meant.strategy.chosen.precision = configured.dtype == Dtype::bf16 ? plan::Precision::bf16 : plan::Precision::fp16;
  meant.precision_of_config = true;
}

Meant meant_by(const cli::Command& command, const SimulateOptions& o, SimulateInputs& inputs) {
  const auto cluster = inputs.clusters.get(o.cluster);
  Meant meant{.whose = WhoseMemory{},
              .cluster = cluster ? Result<cluster::Cluster>(**cluster) : Result<cluster::Cluster>(cluster.error()),
              .strategy = o.strategy,
              .origin = command.given("like") ? command.origin("like").where : "derived"};
  std::shared_ptr<const model::ConfiguredModel> configured;
  if (command.given("model"))
    if (const auto read = inputs.models.get(o.strategy.model)) configured = *read;
  cluster::Cluster none;
  none.device = cluster::DeviceKind::cpu;
  if (cluster) take_nodes(command, o, *meant.cluster, meant.strategy);
  const cluster::Cluster& machine = cluster ? *meant.cluster : none;
  meant.whose = whose_memory(o.like, o.configured.name, machine, configured ? &configured->model : nullptr,
                             meant.strategy.chosen);
  if (!meant.whose) return meant;
  if (!meant.whose->asked && meant.whose->framework != nullptr && !o.configured.name.empty())
    meant.origin = o.configured.file;
  // Nothing was chosen there.
  if (!meant.whose->asked && meant.whose->framework == nullptr) meant.origin = "default";
  if (meant.whose->framework != nullptr && !command.given("stage"))
    meant.strategy.chosen.stage = meant.whose->framework->usual_stage;
  if (configured && !configured->model.class_name.empty() && machine.device == cluster::DeviceKind::cuda)
    take_usual_of_gpus(command, *configured, meant);
  return meant;
}

/// The strategy as the options say, for whoever answers.
Result<Simulated> prepared(const cli::Command& command, const Meant& meant, const SimulateRequest& request) {
  Simulated simulated{.figures = {}, .planned = std::nullopt, .cluster = *meant.cluster, .options = {}, .taken = {}};
  StrategyOptions strategy = meant.strategy;
  // Other frameworks' figures rest on a plan of ours for the CPU, as they were compared with what those measured.
  if (meant.whose->framework == nullptr)
    if (Result<void> ok = choose_device(command, strategy, simulated.cluster); !ok) return ok.error();
  Result<Planned> planned = resolve(command, strategy, &simulated.cluster, &request.inputs.models);
  if (!planned) return planned.error();
  request.note(planned->notes);
  simulated.planned = std::move(*planned);
  return simulated;
}

}  // namespace

Result<cluster::Cluster> SimulateInputs::cluster_of(std::string_view name) {
  return cluster::read_cluster(name);
}

void add_simulate_options(cli::Command& command, SimulateOptions& o) {
  add_strategy_options(command, o.strategy, false);
  cli::Group machine = command.group("Machine");
  machine
      .add("cluster", &o.cluster, "NAME|PATH",
           "cpu-local, a100-40gb-x8, h100-80gb-x8, ... (a wrong name shows all),\nor a description's file")
      .common()
      .known_names(cluster::cluster_names)
      .reads_file(cluster::cluster_file);
  machine.add("nodes", &o.nodes, "N", "hosts of the cluster, and without --world-size a rank for each of their devices")
      .least(1)
      .most(65536);
  machine.add("like", &o.like, "NAME@VERSION", "whose memory is predicted: " + like::frameworks_help()).common();
  add_eager_options(command, o.eager, o.allocator);
  add_gemini_options(command, o.gemini);
  command.group("Output")
      .add("steps", &o.steps, "N", "steps of the run whose totals and trace are given")
      .least(1)
      .most(1e9);
}

Result<Simulated> simulate_strategy(const cli::Command& command, const SimulateOptions& o,
                                    const SimulateRequest& request) {
  const Meant meant = meant_by(command, o, request.inputs);
  if (!meant.whose) return meant.whose.error();
  const like::Framework* const framework = meant.whose->framework;
  if (Result<void> ok = refuse_other_options(command, framework, meant.strategy.chosen); !ok) return ok.error();
  if (framework != nullptr && framework->teller == like::Teller::gemini) {
    Result<Simulated> simulated = simulate_as_gemini(command, o, *framework, request);
    if (simulated) simulated->taken.memory_origin = meant.origin;
    return simulated;
  }
  if (Result<void> ok = require_model(command); !ok) return ok.error();
  if (!meant.cluster) return meant.cluster.error();
  Result<Simulated> simulated = prepared(command, meant, request);
  if (!simulated) return simulated.error();
  const Result<void> done = framework == nullptr ? simulate_own(o, request, *simulated)
                                                 : simulate_other(command, o, *framework, request, *simulated);
  if (!done) return done.error();
  simulated->asked = meant.whose->asked;
  simulated->taken.memory_origin = meant.origin;
  simulated->taken.precision_of_config = meant.precision_of_config;
  simulated->taken.config_dtype = simulated->planned->config_dtype;
  simulated->taken.config_dropouts = simulated->planned->config_dropouts;
  return simulated;
}

std::optional<Instead> instead_of(const cli::Command& command, const SimulateOptions& options, SimulateInputs& inputs,
                                  const Error& refusal) {
  if (refusal.code != Errc::contradiction) return std::nullopt;
  const Meant meant = meant_by(command, options, inputs);
  if (!meant.whose || meant.whose->asked || meant.whose->framework == nullptr) return std::nullopt;
  return Instead{.framework = meant.whose->framework->full_name(), .reason = refusal};
}

}  // namespace shard::commands
