// `shardscope search`: which chunk size, by which rule, and why.
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sim/cli/contradiction.h"
#include "sim/cli/origins.h"
#include "sim/cli/progress.h"
#include "sim/cluster/read_cluster.h"
#include "sim/commands/assumed.h"
#include "sim/commands/commands.h"
#include "sim/commands/contradictions.h"
#include "sim/commands/device_of_cluster.h"
#include "sim/commands/foreign_files.h"
#include "sim/commands/printing.h"
#include "sim/commands/strategy_options.h"
#include "sim/commands/variable_chunks.h"
#include "sim/compile/compile.h"
#include "sim/engine/simulate.h"
#include "sim/model/family.h"
#include "sim/model/freeze.h"
#include "sim/model/read_model.h"
#include "sim/search/chunk_search.h"
#include "sim/search/chunk_search_json.h"
#include "sim/search/chunk_search_text.h"
#include "sim/strategy/checks.h"

namespace shard::commands {
namespace {

constexpr const char* kSearchDetails =
    R"(Finds the chunk size that a model's parameters should be cut into before they are sharded, offline.

Rules: exact (least padding of the layout really built, over every size in range), variable (chunks of different
sizes: simulate, plan and train make them with --chunk-size variable), and the searches of Colossal-AI's Gemini,
today's and that of v0.1.9, to the element.

Parameters that --freeze names lie in chunks of their own, so the size is chosen for the others.

With --model every rule's answer and every point of the curve also say what a ZeRO-3 step with such chunks takes: peak
memory per rank and time on the given cluster, as far as --forecast-ops allows; the last line is the command that
simulates the answer. With --parameters FILE (an ordered list of names and shapes) only the layout.

Examples:
  shardscope search --model gpt2-medium --world-size 8 --cluster a100-40gb-x8
  shardscope search --model llama-7b --world-size 64 --rule gemini --search-range 64Mi
  shardscope search --parameters params.json --world-size 4 --rule variable --json
)";

struct SearchOptions {
  StrategyOptions strategy{.chosen = {.stage = 3, .unit = plan::UnitKind::chunk, .global_batch = 0, .sequence = 0}};
  std::string parameters;
  std::string over = "chunk";
  ChunkSearchOptions search;
  std::string cluster = "cpu-local";
  bool forecast = true;
  ForeignFiles foreign;
  cli::OutputOptions output;
};

void declare(cli::Command& command, SearchOptions& o) {
  cli::Group model = command.group("Model");
  model
      .add("model", &o.strategy.model, "NAME|PATH",
           "an example model's name, a Hugging Face config.json, or its directory")
      .common()
      .known_names(model::model_names)
      .reads_file(model::model_file);
  model.add("parameters", &o.parameters, "FILE", "a JSON list of {name, shape, numel} in order, instead of a model")
      .common()
      .reads_file();
  add_field(model, plan::FieldId::sequence, o.strategy);
  cli::Group search = command.group("Search");
  search.add_choice<std::string>("over", &o.over, {{"chunk", "chunk"}}, "what is searched");
  add_field(search, plan::FieldId::world_size, o.strategy);
  search
      .add_choice<ChunkRule>(
          "rule", &o.search.rule,
          {{"exact", ChunkRule::exact, "least waste of the layout built, over every size in range"},
           {"gemini", ChunkRule::gemini, "Colossal-AI's search_chunk_configuration"},
           {"gemini-v0.1.9", ChunkRule::gemini_v019, "Colossal-AI 0.1.9's ChunkManager.search_chunk_size"},
           {"variable", ChunkRule::variable, "fewest chunks of different sizes with at most 0.1 % waste"}},
          "how the size is chosen")
      .common();
  search.add("search-range", &o.search.search_range, "ELEMS", "gemini rules: from the smallest size up").least(0);
  search.add("search-interval", &o.search.search_interval, "ELEMS", "gemini: distance of candidates").least(1);
  search.add("grids", &o.search.grids, "N", "gemini-v0.1.9: number of intervals in the range").least(1);
  search.add("min-chunk", &o.search.min_chunk, "ELEMS", "smallest size")
      .common()
      .least(1)
      .default_text("32Mi; gemini-v0.1.9: none");
  search.add("max-chunk", &o.search.max_chunk, "ELEMS", "largest size")
      .common()
      .least(1)
      .default_text("exact: the end of gemini's range; variable: exact's answer");
  search.add_switch("filter", &o.search.filter, "gemini rules: leave outsized parameters out of the score");
  cli::Group forecast = command.group("Forecast (with --model)");
  add_field(forecast, plan::FieldId::stage, o.strategy, "ZeRO stage of the forecast");
  add_field(forecast, plan::FieldId::prefetch, o.strategy, "gathers that run ahead of their use");
  forecast.add("cluster", &o.cluster, "NAME|PATH", "the machine of the forecast")
      .common()
      .known_names(cluster::cluster_names)
      .reads_file(cluster::cluster_file);
  forecast.add_switch("forecast", &o.forecast, "say what a step takes at every point of the curve");
  forecast
      .add("forecast-ops", &o.search.forecast_ops, "N",
           "ops to plan for forecasts: the answer's is made in any case, those that would take more are left out; 0: "
           "all are made")
      .least(0);
  add_fields(command, "Training", o.strategy);
  cli::add_output_options(command, o.output);
  add_foreign_files(command, o.foreign);
}

/// What a step with these chunks takes; nothing for sizes that cannot be planned. `frozen`: the model, with what it
/// does not train.
std::optional<ChunkForecast> forecast(const std::shared_ptr<const model::Model>& model, const model::Model& frozen,
                                      plan::Strategy strategy, const cluster::Cluster& cluster, const ChunkCut& cut) {
  if (!cut.starts.empty())
    use_variable_chunks(frozen, cut.starts, cut.chunk, strategy);
  else if (cut.chunk.count() % strategy.world_size != 0)
    return std::nullopt;
  else
    strategy.chunk_elems = cut.chunk;
  const Result<plan::PlanSet> plans = plan::compile(model, strategy, plan::MicroSteps::folded);
  if (!plans) return std::nullopt;
  const Result<engine::Simulation> simulation =
      engine::simulate(*plans, cluster, {.steps = 2, .device_capacity = {}, .series = false});
  if (!simulation) return std::nullopt;
  std::int64_t ops = 0;
  for (const plan::Plan& plan : plans->classes)
    for (const plan::PhaseOps& phase : plan.phases) ops += static_cast<std::int64_t>(phase.ops.size());
  return ChunkForecast{
      .peak_device_bytes = simulation->largest().peak[0], .step_seconds = simulation->step_seconds, .planned_ops = ops};
}

/// The command that simulates the answer: the options that were given and are not about searching, and the chunks.
/// Empty where no plan can have them.
std::string command_to_try(const cli::Command& command, const SearchOptions& o, const RuleAnswer& answer) {
  constexpr std::array<std::string_view, 6> kBounds{"search-range", "search-interval", "min-chunk",
                                                    "max-chunk",    "filter",          "grids"};
  constexpr std::array<std::string_view, 9> kOther{"over",         "rule",   "parameters", "stage", "forecast",
                                                   "forecast-ops", "format", "json",       "freeze"};
  if (o.strategy.model.empty()) return "";
  const bool varies = answer.rule == ChunkRule::variable;
  if (!varies && answer.chunk.count() % o.strategy.chosen.world_size != 0) return "";
  std::string text = "shardscope simulate";
  bool bounded = false;
  for (const cli::Effective& each : command.effective()) {
    if (each.origin.source == cli::Source::fallback || takes_foreign_file(each.name)) continue;
    const bool bound = std::ranges::find(kBounds, each.name) != kBounds.end();
    bounded = bounded || bound;
    if (bound || std::ranges::find(kOther, each.name) != kOther.end()) continue;
    text += " " + typed_option(each.name, each.value);
  }
  plan::Strategy tried = o.strategy.chosen;
  const auto add = [&](plan::FieldId id) { text += ' ' + plan::option_text(plan::field(id), tried); };
  if (!tried.freeze.empty())
    text += " " + typed_option("freeze", plan::value_text(plan::field(plan::FieldId::freeze), tried));
  add(plan::FieldId::stage);
  add(plan::FieldId::unit);
  if (varies) return text + " --chunk-size variable" + (bounded ? ":" + std::to_string(answer.max_chunk.count()) : "");
  tried.chunk_elems = answer.chunk;
  add(plan::FieldId::chunk_elems);
  return text;
}

Error one_of_two(const cli::Command& command, const SearchOptions& o) {
  if (!o.parameters.empty())
    return cli::contradiction(
        command.describe("model") + " and " + command.describe("parameters") + " both name what to search",
        "keep one of them");
  return {.code = Errc::usage,
          .what = "nothing to search: neither --model nor --parameters is given",
          .where = "options",
          .help = "--model gpt2-medium"};
}

/// What is searched, and what was taken for granted.
struct Searched {
  ParameterList parameters;
  Assumed taken;
  std::function<std::optional<ChunkForecast>(const ChunkCut&)> forecast;
};

Result<Searched> of_list(const cli::Command& command, const SearchOptions& o) {
  Result<ParameterList> read = read_parameter_list(o.parameters);
  if (!read) return read.error();
  model::Model named;
  named.name = o.parameters;
  named.parameters = std::move(*read);
  const Result<model::Model> frozen = model::freeze(std::move(named), o.strategy.chosen.freeze);
  if (!frozen) return cli::with_origins(command, frozen.error());
  return Searched{.parameters = model::trained_parameters(*frozen),
                  .taken = {.model = o.parameters,
                            .parameter_elements = frozen->parameter_elements(),
                            .precision = plan::to_string(o.strategy.chosen.precision),
                            .world_size = o.strategy.chosen.world_size,
                            .has_batch = false},
                  .forecast = {}};
}

Result<Searched> of_model(const cli::Command& command, const SearchOptions& o) {
  Result<model::ConfiguredModel> read = model::read_configured_model(o.strategy.model);
  if (!read) return read.error();
  const bool forecasts = o.forecast && !read->model.not_simulated;
  if (forecasts) read->model = model::simulated_part(std::move(read->model));
  print_notes(read->model.notes);
  if (o.forecast && !forecasts)
    print_notes({"no forecast: " + read->model.name + " " + read->model.not_simulated->what});
  const Result<cluster::Cluster> cluster = cluster::read_cluster(o.cluster);
  if (!cluster) return cluster.error();
  const auto model = std::make_shared<const model::Model>(std::move(read->model));
  StrategyOptions on_cluster = o.strategy;
  if (Result<void> ok = choose_device(command, on_cluster, *cluster); !ok) return ok.error();
  plan::Strategy strategy = training_strategy(on_cluster, *model);
  strategy.chunk_elems = Elems{strategy.world_size};
  if (Result<void> ok = plan::check(*model, strategy); !ok) return cli::with_origins(command, ok.error());
  Result<model::Model> frozen = model::freeze(*model, strategy.freeze);
  if (!frozen) return cli::with_origins(command, frozen.error());
  Searched searched{.parameters = model::trained_parameters(*frozen),
                    .taken = assumed(*model, strategy, cluster->name, cluster->device_memory),
                    .forecast = {}};
  searched.taken.config_dtype = read->dtype;
  searched.taken.has_batch = forecasts;
  if (!forecasts) {
    searched.taken.cluster.reset();
    return searched;
  }
  searched.forecast = [model, frozen = std::make_shared<const model::Model>(std::move(*frozen)), strategy,
                       cluster = *cluster](const ChunkCut& cut) {
    return forecast(model, *frozen, strategy, cluster, cut);
  };
  return searched;
}

cli::Table curve_table(const ChunkSearchResult& result) {
  cli::Table table{.columns = {{.key = "chunk_elements", .title = "chunk size"},
                               {.key = "chunk_count", .title = "chunks"},
                               {.key = "waste_elements", .title = "waste"},
                               {.key = "gather_working_set_elements", .title = "gather working set"},
                               {.key = "peak_device_bytes", .title = "peak, device"},
                               {.key = "step_seconds", .title = "step"}},
                   .rows = {}};
  for (const ForecastCurvePoint& p : result.curve)
    table.rows.push_back({cli::cell(p.point.chunk), p.point.chunk_count, cli::cell(p.point.waste),
                          cli::cell(p.point.gather_working_set),
                          p.forecast ? cli::cell(p.forecast->peak_device_bytes) : cli::Cell{},
                          p.forecast ? cli::cell(p.forecast->step_seconds) : cli::Cell{}});
  return table;
}

}  // namespace

int search_command(std::span<const std::string> arguments) {
  SearchOptions o;
  cli::Command command("shardscope", "search", "finds the chunk size that wastes least, offline", kSearchDetails);
  declare(command, o);
  if (const auto code = parsed(command, arguments)) return *code;
  const Result<cli::Format> format = cli::chosen_format(command, o.output);
  if (!format) return failed(format.error());
  if (const auto code = printed_config(command, o.foreign, *format)) return *code;
  if (Result<void> ok = check_predictable(o.foreign); !ok) return failed(ok.error());
  if (o.strategy.model.empty() == o.parameters.empty()) return failed(one_of_two(command, o));
  if (Result<void> ok = check_contradictions(command); !ok) return failed(ok.error());
  o.search.world_size = o.strategy.chosen.world_size;
  o.search.bytes_per_element = stored_element(o.strategy);

  Result<Searched> searched = o.parameters.empty() ? of_model(command, o) : of_list(command, o);
  if (!searched) return failed(searched.error());
  const Assumed& taken = searched->taken;
  std::optional<cli::Progress> progress;
  if (searched->forecast) {
    progress.emplace(std::cerr, "forecast", cli::style_of(2));
    o.search.forecast = [&](const ChunkCut& cut) {
      progress->update(-1, cut.starts.empty() ? "chunk size " + std::to_string(cut.chunk.count())
                                              : std::to_string(cut.starts.size()) + " chunks of their own sizes");
      return searched->forecast(cut);
    };
  }
  const Result<ChunkSearchResult> result = search_chunks(searched->parameters, o.search);
  if (progress) progress->finish();
  if (!result) return failed(result.error());
  const std::string to_try = command_to_try(command, o, result->answer);
  print_assumed(*format, command, taken);
  print_foreign_files(*format, o.foreign);
  if (*format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("search");
    j["assumed"] = to_json(command, taken);
    if (!o.foreign.read.empty()) j["configurations"] = to_json(o.foreign);
    j.update(to_json(*result));
    if (!to_try.empty()) j["try_command"] = to_try;
    std::cout << cli::json_text(j);
  } else if (*format == cli::Format::table) {
    cli::print(std::cout, to_text(*result, cli::style_of(1).unicode));
    if (!to_try.empty()) cli::print(std::cout, "\ntry it: " + to_try + "\n");
    std::cout << kWordsHint;
  } else {
    std::cout << cli::render(curve_table(*result), *format, cli::style_of(1));
  }
  return 0;
}

}  // namespace shard::commands
