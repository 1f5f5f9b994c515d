// From options to Gemini's figures.
#include "sim/commands/simulate_gemini.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/cli/contradiction.h"
#include "sim/cli/sizes.h"
#include "sim/cluster/read_cluster.h"
#include "sim/commands/assumed.h"
#include "sim/commands/like_options.h"
#include "sim/compile/compile.h"
#include "sim/like/gemini_report.h"
#include "sim/like/simulate_gemini.h"
#include "sim/like/simulate_like.h"
#include "sim/model/family.h"
#include "sim/model/graph_limits.h"
#include "sim/model/read_model.h"
#include "sim/search/chunk_search.h"
#include "sim/strategy/checks.h"

namespace shard::commands {
namespace {

/// The peer's own runs were recorded for three: the first, and two alike.
constexpr std::int32_t kIterations = 3;
constexpr std::int64_t kMostIterations = 1000;
/// What its documents search v0.1.9's chunk size in.
constexpr Elems kOldRange{64 << 20};

/// Options of our own strategies that Gemini has no part in, or has only one value of.
Result<void> check_options(const cli::Command& command, const GeminiRequest& r) {
  const StrategyOptions& s = r.strategy;
  const bool list = !r.flags.parameters.empty();
  if (list && command.given("model"))
    return cli::contradiction(
        command.describe("model") + " and " + command.describe("parameters") + " both name what to simulate",
        "keep one of them");
  if (!list && !command.given("model"))
    return Error{.code = Errc::usage,
                 .what = "nothing to simulate: neither --model nor --parameters is given",
                 .where = "options",
                 .help = "--parameters FILE, or --model gpt2"};
  if (command.given("stage") && s.chosen.stage != 3)
    return no_meaning_for_like(command, "stage", "its chunks are always sharded");
  if (command.given("precision") && std::string(plan::to_string(s.chosen.precision)) != "fp16")
    return no_meaning_for_like(command, "precision", "it keeps fp16 parameters and fp32 masters");
  if (s.chunk_size.starts_with("variable"))
    return no_meaning_for_like(command, "chunk-size", "its chunks have one size");
  if (command.given("optimizer") && s.chosen.optimizer == plan::OptimizerKind::sgd)
    return no_meaning_for_like(command, "optimizer", "Adam's state is what it offloads");
  if (command.given("steps") && r.steps > kMostIterations)
    return cli::contradiction(command.describe("steps") + ": steps after the first are alike, more are not listed",
                              "--steps 3");
  if (list)
    for (const char* option : {"sequence", "micro-batch", "global-batch", "recompute"})
      if (command.given(option)) return no_meaning_for_like(command, option, "a list of parameters has no activations");
  return {};
}

/// --chunk-size ELEMS, none, or what the version's own search finds.
Result<void> choose(const cli::Command& command, const GeminiRequest& r, like::GeminiRules rules,
                    const ParameterList& parameters, like::GeminiOptions& options, std::vector<std::string>& notes) {
  if (r.strategy.chunk_size == "none") return {};
  if (r.strategy.chunk_size != "search") {
    const Result<Elems> given = cli::parse_elems(r.strategy.chunk_size, command.describe("chunk-size"));
    if (!given) return given.error();
    options.chunk = *given;
    return {};
  }
  ChunkSearchOptions search{.world_size = options.world_size, .min_chunk = {}, .max_chunk = {}, .forecast = {}};
  search.rule = rules == like::GeminiRules::whole ? ChunkRule::gemini_v019 : ChunkRule::gemini;
  if (rules == like::GeminiRules::whole) search.search_range = kOldRange;
  const Result<RuleAnswer> answer = choose_chunk(parameters, search);
  if (!answer) return answer.error();
  options.chunk = answer->chunk;
  options.keep_gathered = answer->keep_gathered;
  notes.push_back("chunk size found by " + like::name_of(rules) + ": " + std::to_string(answer->chunk.count()) +
                  " elements, " + std::to_string(answer->chunk_count) +
                  (answer->keep_gathered ? " chunk, kept gathered" : " chunks"));
  return {};
}

/// `taken` is filled with what the figures rest on.
Result<like::GeminiResult> predict(const cli::Command& command, const GeminiRequest& r, like::GeminiRules rules,
                                   Assumed& taken) {
  std::vector<std::string> notes;
  like::GeminiOptions options{.world_size = r.strategy.chosen.world_size,
                              .chunk = {},
                              .shard_param_frac = r.flags.shard_param_frac,
                              .offload_optim_frac = r.flags.offload_optim_frac,
                              .offload_param_frac = r.flags.offload_param_frac,
                              .rank = r.flags.rank};
  const Result<cluster::Cluster> cluster = cluster::read_cluster(r.cluster);
  if (!cluster) return cluster.error();
  if (Result<void> ok = cluster::check_ranks(*cluster, options.world_size); !ok) return ok.error();
  const std::optional<Bytes> capacity = r.device_capacity ? r.device_capacity : cluster->device_memory;
  const cluster::ByteRange outside =
      cluster::outside_allocator(*cluster, options.world_size, cluster::KernelLoading::all);
  taken = {.model = r.flags.parameters,
           .precision = "fp16",
           .world_size = options.world_size,
           .has_batch = false,
           .cluster = r.cluster,
           .device_capacity = capacity,
           .memory_of = like::name_of(rules)};
  const auto iterations = command.given("steps") ? static_cast<std::int32_t>(r.steps) : kIterations;
  if (!r.flags.parameters.empty()) {
    const Result<ParameterList> parameters = read_parameter_list(r.flags.parameters);
    if (!parameters) return parameters.error();
    if (Result<void> ok = choose(command, r, rules, *parameters, options, notes); !ok) return ok.error();
    r.note(notes);
    for (const Parameter& each : *parameters) taken.parameter_elements += each.elems.count();
    return like::simulate_gemini(r.framework.full_name(), *parameters, options, iterations, capacity, outside);
  }
  Result<model::Model> model = model::read_model(r.strategy.model);
  if (!model) return model.error();
  if (model->not_simulated) return *model->not_simulated;
  *model = model::simulated_part(std::move(*model));
  if (Result<void> ok = choose(command, r, rules, model->parameters, options, notes); !ok) return ok.error();
  r.note(model->notes);
  r.note(notes);
  plan::Strategy strategy = training_strategy(r.strategy, *model);
  strategy.stage = 0;
  strategy.unit = plan::UnitKind::module;
  strategy.precision = plan::Precision::fp32;  // what check() knows nothing of is Gemini's own
  if (Result<void> ok = model::check_batch(*model, strategy.micro_batch, strategy.sequence); !ok) return ok.error();
  if (Result<void> ok = plan::check(*model, strategy); !ok) return ok.error();
  const Assumed own = std::exchange(taken, assumed(*model, strategy, r.cluster, capacity));
  taken.precision = own.precision;
  taken.memory_of = own.memory_of;
  return like::simulate_gemini(r.framework.full_name(), std::make_shared<const model::Model>(std::move(*model)),
                               strategy, options, iterations, capacity, outside);
}

}  // namespace

void add_gemini_options(cli::Command& command, GeminiFlags& o) {
  cli::Group gemini = command.group("Like colossalai-gemini");
  gemini
      .add("parameters", &o.parameters, "FILE",
           "a JSON list of {name, shape, numel} in order, instead of a model: one op per module, no activations")
      .reads_file();
  gemini
      .add("shard-param-frac", &o.shard_param_frac, "0..1",
           "StaticPlacementPolicy: how much is sharded again after use; @0.1.9: 1 or 0")
      .least(0)
      .most(1);
  gemini
      .add("offload-optim-frac", &o.offload_optim_frac, "0..1",
           "StaticPlacementPolicy: how much of gradients, masters and moments rests in host memory; @0.1.9: 1 with the "
           "next is policy cpu")
      .least(0)
      .most(1);
  gemini
      .add("offload-param-frac", &o.offload_param_frac, "0..1",
           "StaticPlacementPolicy: how much of parameters rests there; counts only where both others are 1")
      .least(0)
      .most(1);
  gemini.add("rank", &o.rank, "N", "whose memory; @0.5.1: all ranks are alike").least(0).most(1 << 20);
}

Result<GeminiPrediction> predict_gemini(const cli::Command& command, const GeminiRequest& request) {
  if (Result<void> ok = check_options(command, request); !ok) return ok.error();
  GeminiPrediction prediction;
  Result<like::GeminiResult> result = predict(command, request, request.framework.gemini, prediction.taken);
  if (!result) return result.error();
  prediction.result = std::move(*result);
  return prediction;
}

cli::Table steps_table(const like::GeminiResult& result) {
  const nlohmann::json iters = like::to_json(result)["iters"];
  cli::Table table;
  table.columns.push_back({.key = "step", .title = "step"});
  for (const auto& [key, value] : iters.front().items()) table.columns.push_back({.key = key, .title = key});
  std::int64_t step = 0;
  for (const nlohmann::json& it : iters) {
    std::vector<cli::Cell> row{step++};
    for (const auto& [key, value] : it.items()) row.push_back(value.get<std::int64_t>());
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace shard::commands
