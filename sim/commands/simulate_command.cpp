// `shardscope simulate`: what one strategy will take, offline.
#include <algorithm>
#include <optional>

#include "sim/cli/chart.h"
#include "sim/cluster/read_cluster.h"
#include "sim/commands/assumed.h"
#include "sim/commands/commands.h"
#include "sim/commands/device_of_cluster.h"
#include "sim/commands/eager_options.h"
#include "sim/commands/foreign_files.h"
#include "sim/commands/like_options.h"
#include "sim/commands/printing.h"
#include "sim/commands/simulate_gemini_command.h"
#include "sim/commands/strategy_options.h"
#include "sim/compile/compile.h"
#include "sim/engine/report.h"
#include "sim/engine/simulate.h"
#include "sim/engine/smallest_change.h"
#include "sim/like/gemini_options.h"
#include "sim/like/report.h"
#include "sim/like/simulate_like.h"
#include "traces/base/numbers.h"

namespace shard::commands {
namespace {

constexpr const char* kSimulateDetails =
    R"(Predicts, without running anything, what every rank will hold and send and how long a step takes.

Examples:
  shardscope simulate --model gpt2-medium --world-size 8 --stage 3 --cluster a100-40gb-x8
  shardscope simulate --model llama-7b --world-size 64 --stage 3 --recompute block --sequence 2048 --json
  shardscope simulate --model gpt2-xl --world-size 8 --device-capacity 20Gi --stage 0    (exit 3: what to change)
  shardscope simulate --model mlp-20x2000 --world-size 2 --stage 1 --partition parameter \
      --like pytorch@1.8 --optimizer adam --micro-batch 20
  shardscope simulate --model gpt2-medium --like pytorch --cluster a100-40gb-x8 --micro-batch 8 --sequence 1024
  shardscope simulate --parameters params.json --like colossalai-gemini --world-size 4 --chunk-size 256Ki \
      --offload-optim-frac 1 --json
)";

struct SimulateOptions {
  StrategyOptions strategy;
  std::string cluster = "cpu-local";
  std::int64_t nodes = 0;
  std::int64_t steps = 2;
  std::string like;
  GeminiFlags gemini;
  like::EagerOptions eager;
  std::string trace;
  ForeignFiles foreign;
  cli::OutputOptions output;
};

void declare(cli::Command& command, SimulateOptions& o) {
  o.strategy.device_of_cluster = true;
  add_strategy_options(command, o.strategy, false);
  cli::Group machine = command.group("Machine");
  machine
      .add("cluster", &o.cluster, "NAME|PATH",
           "cpu-local, a100-40gb-x8, h100-80gb-x8, ... (a wrong name shows all),\nor a description's file")
      .common()
      .reads_file(cluster::cluster_file);
  machine.add("nodes", &o.nodes, "N", "hosts of the cluster, and without --world-size a rank for each of their devices")
      .least(1)
      .most(65536);
  machine
      .add("like", &o.like, "NAME@VERSION",
           "predict another framework instead: pytorch@2.11 (a transformer on one GPU),\n"
           "pytorch@1.8 (an mlp, stages 0 and 1),\n"
           "colossalai-gemini@0.5.1 or @0.1.9 (fp16 in chunks)")
      .common();
  add_eager_options(command, o.eager);
  add_gemini_options(command, o.gemini);
  cli::Group output = command.group("Output");
  output.add("steps", &o.steps, "N", "steps of the run whose totals and trace are given").least(1).most(1e9);
  output.add("trace", &o.trace, "FILE", "write the predicted trace").common().writes_file();
  cli::add_output_options(command, o.output);
  add_foreign_files(command, o.foreign);
}

/// The same in every picture, whatever else is in it.
constexpr char letter_of(Category category) {
  switch (category) {
    case Category::parameter: return 'P';
    case Category::gathered: return 'F';
    case Category::gradient: return 'G';
    case Category::master_parameter: return 'M';
    case Category::optimizer_state: return 'O';
    case Category::activation: return 'A';
    case Category::workspace: return 'W';
    case Category::communication: return 'C';
    case Category::input: return 'I';
    case Category::not_known: return 'N';
  }
  return '?';
}

/// Memory over the step of the class with the largest arena, by category.
std::string picture(const engine::Simulation& s) {
  const engine::ClassResult& c = s.largest();
  std::vector<cli::Layer> layers;
  for (int k = 0; k < kCategoryCount; ++k) {
    const auto category = static_cast<Category>(k);
    cli::Layer layer{.name = to_string(category), .letter = letter_of(category), .values = {}};
    for (const engine::MemoryPoint& p : c.series)
      layer.values.push_back(static_cast<double>(p.live[static_cast<std::size_t>(k)].count()));
    layers.push_back(std::move(layer));
  }
  const auto show = [](double v) { return show_bytes(Bytes{static_cast<std::int64_t>(v)}); };
  return cli::stacked_area(layers, {.show = show, .marks = {}}, cli::style_of(1));
}

cli::Table phase_table(const engine::Simulation& s) {
  cli::Table table{.columns = {{.key = "ranks", .title = "ranks"},
                               {.key = "phase", .title = "phase", .align = cli::Align::left},
                               {.key = "memory", .title = "memory", .align = cli::Align::left},
                               {.key = "peak_bytes", .title = "peak"},
                               {.key = "live_peak_bytes", .title = "live peak"},
                               {.key = "seconds", .title = "time"}},
                   .rows = {}};
  for (const engine::ClassResult& c : s.classes)
    for (const engine::PhaseResult& p : c.phases)
      for (const engine::MemoryPeak& m : p.memory) {
        if (m.peak.count() == 0) continue;
        table.rows.push_back({static_cast<std::int64_t>(c.ranks.size()), to_string(p.phase), to_string(m.memory),
                              cli::cell(m.peak), cli::cell(m.live_peak), cli::cell(p.seconds)});
      }
  return table;
}

/// What a program of its own would take under eager PyTorch 2, or under what other frameworks are known.
Result<like::LikeResult> predict_other(const cli::Command& command, const SimulateOptions& o, const Planned& planned,
                                       const cluster::Cluster& cluster, std::optional<Bytes> capacity) {
  if (!like::is_eager(o.like, *planned.model)) {
    if (Result<void> ok = refuse_eager_options(command); !ok) return ok.error();
    if (Result<void> ok = refuse_own_options(command, {}); !ok) return ok.error();
    if (command.given("precision") && planned.strategy.precision != plan::Precision::fp32)
      return no_meaning_for_like(command, "precision", "it is predicted in fp32");
    return like::simulate_like(o.like, *planned.model, planned.strategy,
                               {.device_capacity = capacity, .rules = {}, .allocator = std::nullopt});
  }
  like::EagerOptions eager = o.eager;
  eager.device_capacity = capacity;
  if (!cluster.card) print_notes({"the kernels are those of an H100; --cluster names another card"});
  if (cluster.card)
    eager.machine = {.compute_capability = cluster.card->compute_capability,
                     .multiprocessors = cluster.card->multiprocessors,
                     .threads_per_multiprocessor = cluster.card->threads_per_multiprocessor};
  return like::simulate_eager(planned.model, planned.strategy, eager);
}

/// What another framework would take.
int simulate_other(const cli::Command& command, const SimulateOptions& o, const Planned& planned,
                   const cluster::Cluster& cluster, cli::Format format) {
  const std::optional<Bytes> capacity =
      o.strategy.placement.device_capacity ? o.strategy.placement.device_capacity : cluster.device_memory;
  const Result<like::LikeResult> result = predict_other(command, o, planned, cluster, capacity);
  if (!result) return failed(result.error());
  Assumed taken = assumed(*planned.model, planned.strategy, cluster.name, capacity);
  taken.config_dtype = planned.config_dtype;
  taken.memory_of = result->framework;
  print_assumed(format, command, taken);
  print_foreign_files(format, o.foreign);
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("simulate");
    j["assumed"] = to_json(command, taken);
    j.update(like::to_json(*result));
    std::cout << cli::json_text(j);
  } else if (format == cli::Format::markdown) {
    cli::print(std::cout, like::to_markdown(*result));
  } else {
    cli::print(std::cout, like::to_text(*result));
  }
  return result->fits ? 0 : exit_code(Errc::does_not_fit);
}

/// Options that have no meaning for another framework's prediction.
Result<void> check_like(const cli::Command& command, const SimulateOptions& o) {
  if (o.like.empty()) return {};
  const std::string_view allowed = like::is_eager_name(o.like) ? "dropout" : "";
  if (Result<void> ok = refuse_own_options(command, {}, allowed); !ok) return ok;
  if (command.given("unit") && o.strategy.chosen.unit != plan::UnitKind::bucket)
    return no_meaning_for_like(command, "unit", "DistributedDataParallel makes its own buckets");
  if (command.given("prefetch") && o.strategy.chosen.prefetch != 0)
    return no_meaning_for_like(command, "prefetch", "it gathers nothing");
  if (command.given("steps")) return no_meaning_for_like(command, "steps", "its first step is what is predicted");
  if (command.given("trace")) return no_meaning_for_like(command, "trace", "its figures have no times");
  return {};
}

void take_nodes(const cli::Command& command, SimulateOptions& o, cluster::Cluster& cluster) {
  if (!command.given("nodes")) return;
  cluster.hosts = static_cast<std::int32_t>(o.nodes);
  if (!command.given("world-size"))
    o.strategy.chosen.world_size = static_cast<std::int32_t>(o.nodes) * cluster.devices_per_host;
}

}  // namespace

int simulate_command(std::span<const std::string> arguments) {
  SimulateOptions o;
  cli::Command command("shardscope", "simulate", "predicts memory, communication and time of one strategy",
                       kSimulateDetails);
  declare(command, o);
  if (const auto code = parsed(command, arguments)) return *code;
  const Result<cli::Format> format = cli::chosen_format(command, o.output);
  if (!format) return failed(format.error());
  if (const auto code = printed_config(command, o.foreign, *format)) return *code;
  if (Result<void> ok = check_predictable(o.foreign); !ok) return failed(ok.error());
  if (!o.like.empty() && !like::is_known_framework(o.like)) return failed(like::unknown_framework(o.like));
  if (!like::is_eager_name(o.like))
    if (Result<void> ok = refuse_eager_options(command); !ok) return failed(ok.error());
  if (like::gemini_rules(o.like))
    return simulate_gemini_command(command, {.like = o.like,
                                             .flags = o.gemini,
                                             .strategy = o.strategy,
                                             .cluster = o.cluster,
                                             .device_capacity = o.strategy.placement.device_capacity,
                                             .steps = o.steps,
                                             .format = *format});
  if (Result<void> ok = refuse_gemini_options(command); !ok) return failed(ok.error());
  if (Result<void> ok = require_model(command); !ok) return failed(ok.error());
  if (Result<void> ok = check_like(command, o); !ok) return failed(ok.error());
  Result<cluster::Cluster> cluster = cluster::read_cluster(o.cluster);
  if (!cluster) return failed(cluster.error());
  take_nodes(command, o, *cluster);
  // Other frameworks' figures rest on a plan of ours for the CPU, as they were compared with what those measured.
  if (o.like.empty())
    if (Result<void> ok = choose_device(command, o.strategy, *cluster); !ok) return failed(ok.error());
  const Result<Planned> planned = resolve(command, o.strategy, cluster->device_memory);
  if (!planned) return failed(planned.error());
  print_notes(planned->notes);
  if (!o.like.empty()) return simulate_other(command, o, *planned, *cluster, *format);
  Result<plan::PlanSet> plans = plan::compile(planned->model, planned->strategy);
  if (!plans) return failed(plans.error());
  plans->parent_hash = planned->parent_plan_hash;
  engine::SimulateOptions options{.steps = static_cast<std::int32_t>(o.steps),
                                  .device_capacity = o.strategy.placement.device_capacity,
                                  .host_capacity = o.strategy.placement.host_capacity,
                                  .series = *format == cli::Format::table};
  std::optional<Writer> writer;
  if (!o.trace.empty()) {
    Result<Writer> created = Writer::create(o.trace, engine::trace_header(*plans, *cluster, options), Appears::whole);
    if (!created) return failed(created.error());
    writer.emplace(std::move(*created));
    options.trace = &*writer;
  }
  const Result<engine::Simulation> simulation = engine::simulate(*plans, *cluster, options);
  if (!simulation) return failed(simulation.error());
  if (writer)
    if (Result<void> closed = writer->close(); !closed) return failed(closed.error());
  const auto change = engine::change_that_fits(planned->model, *simulation, *cluster, options);
  Assumed taken = assumed(*planned->model, planned->strategy, simulation->cluster, simulation->device_capacity);
  taken.config_dtype = planned->config_dtype;
  print_assumed(*format, command, taken);
  print_foreign_files(*format, o.foreign);
  if (*format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("simulate");
    j["assumed"] = to_json(command, taken);
    if (!o.foreign.read.empty()) j["configurations"] = to_json(o.foreign);
    j["model"] = planned->model->name;
    j.update(engine::to_json(*simulation, change));
    std::cout << cli::json_text(j);
  } else if (*format == cli::Format::table) {
    cli::print(std::cout, engine::to_text(*simulation, change) + '\n');
    std::cout << picture(*simulation) << kWordsHint;
  } else {
    std::cout << cli::render(phase_table(*simulation), *format, cli::style_of(1));
  }
  return simulation->fits ? 0 : exit_code(Errc::does_not_fit);
}

}  // namespace shard::commands
