// One way from options to figures, with what --like names on its side.
#include "sim/commands/simulate_strategy.h"

#include <memory>
#include <utility>

#include "sim/cluster/read_cluster.h"
#include "sim/commands/device_of_cluster.h"
#include "sim/commands/eager_options.h"
#include "sim/commands/like_options.h"
#include "sim/compile/compile.h"
#include "sim/like/gemini_options.h"
#include "traces/export/snapshot_again.h"

namespace shard::commands {
namespace {

/// What a program of its own would take under eager PyTorch 2, or under what other frameworks are known.
Result<like::LikeResult> predict_other(const cli::Command& command, const SimulateOptions& o, const Planned& planned,
                                       const cluster::Cluster& cluster, std::optional<Bytes> capacity,
                                       const SimulateRequest& request) {
  if (!like::is_eager(o.like, *planned.model)) {
    if (Result<void> ok = refuse_eager_options(command); !ok) return ok.error();
    if (Result<void> ok = refuse_own_options(command, {}); !ok) return ok.error();
    if (!request.trace.empty())
      return no_meaning_for_like(command, "trace", "its events are not written down; those of pytorch@2.11 are");
    if (command.given("precision") && planned.strategy.precision != plan::Precision::fp32)
      return no_meaning_for_like(command, "precision", "it is predicted in fp32");
    return like::simulate_like(o.like, *planned.model, planned.strategy,
                               {.device_capacity = capacity, .rules = {}, .allocator = std::nullopt});
  }
  like::EagerOptions eager = o.eager;
  eager.framework = like::eager_framework(o.like).value_or(like::eager::Framework::none);
  eager.device_capacity = capacity;
  std::vector<std::string> notes;
  const Result<CachingAllocatorOptions> allocator = allocator_of(o.allocator, capacity, notes);
  if (!allocator) return allocator.error();
  request.note(notes);
  eager.allocator = *allocator;
  if (!cluster.card) request.note({"the kernels are those of an H100; --cluster names another card"});
  if (cluster.card)
    eager.machine = {.compute_capability = cluster.card->compute_capability,
                     .multiprocessors = cluster.card->multiprocessors,
                     .threads_per_multiprocessor = cluster.card->threads_per_multiprocessor};
  eager.snapshot = !request.trace.empty();
  Result<like::LikeResult> result = like::simulate_eager(planned.model, planned.strategy, eager);
  if (result && eager.snapshot)
    if (Result<void> written =
            export_snapshot_again(result->snapshot->snapshot, result->snapshot->names, request.trace);
        !written)
      return written.error();
  return result;
}

/// Options that have no meaning for another framework's prediction.
Result<void> check_like(const cli::Command& command, const SimulateOptions& o) {
  if (o.like.empty()) return {};
  const bool eager = like::is_eager_name(o.like);
  const std::string_view dropout = eager ? "dropout" : "", clip = eager ? "clip-norm" : "";
  const std::optional<like::eager::Framework> framework = like::eager_framework(o.like);
  const bool megatron = framework == like::eager::Framework::megatron;
  const bool fsdp = framework == like::eager::Framework::fsdp1 || framework == like::eager::Framework::fsdp2;
  if (Result<void> ok = refuse_own_options(
          command, {}, {dropout, clip, megatron ? "tensor-parallel" : "", fsdp ? "shard-group" : ""});
      !ok)
    return ok;
  if (!megatron && command.given("sequence-parallel"))
    return no_meaning_for_like(command, "sequence-parallel", "it is Megatron's");
  if (command.given("unit") && o.strategy.chosen.unit != plan::UnitKind::bucket)
    return no_meaning_for_like(command, "unit", "DistributedDataParallel makes its own buckets");
  if (command.given("prefetch") && o.strategy.chosen.prefetch != 0)
    return no_meaning_for_like(command, "prefetch", "it gathers nothing");
  if (command.given("steps")) return no_meaning_for_like(command, "steps", "its first step is what is predicted");
  if (command.has("trace") && command.given("trace") && !like::is_eager_name(o.like))
    return no_meaning_for_like(command, "trace", "its figures have no times");
  return {};
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
  simulated.figures = std::move(*simulation);
  return {};
}

/// What another framework would take, in the same way.
Result<void> simulate_other(const cli::Command& command, const SimulateOptions& o, const SimulateRequest& request,
                            Simulated& simulated) {
  const std::optional<Bytes> capacity =
      o.strategy.placement.device_capacity ? o.strategy.placement.device_capacity : simulated.cluster.device_memory;
  Result<like::LikeResult> result = predict_other(command, o, *simulated.planned, simulated.cluster, capacity, request);
  if (!result) return result.error();
  simulated.taken = assumed(*simulated.planned->model, simulated.planned->strategy, simulated.cluster.name, capacity);
  simulated.taken.memory_of = result->framework;
  simulated.figures = std::move(*result);
  return {};
}

Result<Simulated> simulate_as_gemini(const cli::Command& command, const SimulateOptions& o,
                                     const SimulateRequest& request) {
  Result<GeminiPrediction> predicted = predict_gemini(command, {.like = o.like,
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
  machine
      .add("like", &o.like, "NAME@VERSION",
           "predict another framework instead: pytorch@2.11 (a transformer on one GPU),\n"
           "ddp@2.11 (DistributedDataParallel, stage 0),\n"
           "fsdp2@2.11 (fully_shard of each block and of the model, stages 3 and 2),\n"
           "fsdp1@2.11 (FullyShardedDataParallel, blocks wrapped, stages 3 and 2),\n"
           "deepspeed@0.19 (ZeRO stages 1 and 2),\n"
           "megatron@0.16 (a gpt2 in bf16, its local layers, tensor parallelism, stage 1: the distributed optimizer),\n"
           "pytorch@1.8 (an mlp, stages 0 and 1),\n"
           "colossalai-gemini@0.5.1 or @0.1.9 (fp16 in chunks)")
      .common();
  add_eager_options(command, o.eager, o.allocator);
  add_gemini_options(command, o.gemini);
  command.group("Output")
      .add("steps", &o.steps, "N", "steps of the run whose totals and trace are given")
      .least(1)
      .most(1e9);
}

Result<Simulated> simulate_strategy(const cli::Command& command, const SimulateOptions& o,
                                    const SimulateRequest& request) {
  if (!o.like.empty() && !like::is_known_framework(o.like)) return like::unknown_framework(o.like);
  if (!like::is_eager_name(o.like))
    if (Result<void> ok = refuse_eager_options(command); !ok) return ok.error();
  if (like::gemini_rules(o.like)) return simulate_as_gemini(command, o, request);
  if (Result<void> ok = refuse_gemini_options(command); !ok) return ok.error();
  if (Result<void> ok = require_model(command); !ok) return ok.error();
  if (Result<void> ok = check_like(command, o); !ok) return ok.error();
  const auto cluster = request.inputs.clusters.get(o.cluster);
  if (!cluster) return cluster.error();
  Simulated simulated{.figures = {}, .planned = std::nullopt, .cluster = **cluster, .options = {}, .taken = {}};
  StrategyOptions strategy = o.strategy;
  take_nodes(command, o, simulated.cluster, strategy);
  if (!command.given("stage")) strategy.chosen.stage = like::usual_stage(o.like);
  // Other frameworks' figures rest on a plan of ours for the CPU, as they were compared with what those measured.
  if (o.like.empty())
    if (Result<void> ok = choose_device(command, strategy, simulated.cluster); !ok) return ok.error();
  Result<Planned> planned = resolve(command, strategy, simulated.cluster.device_memory, &request.inputs.models);
  if (!planned) return planned.error();
  request.note(planned->notes);
  simulated.planned = std::move(*planned);
  const Result<void> done =
      o.like.empty() ? simulate_own(o, request, simulated) : simulate_other(command, o, request, simulated);
  if (!done) return done.error();
  simulated.taken.config_dtype = simulated.planned->config_dtype;
  return simulated;
}

}  // namespace shard::commands
