// The one vocabulary of model and strategy options.
#include "sim/commands/strategy_options.h"

#include <algorithm>

#include "sim/cli/contradiction.h"
#include "sim/cli/origins.h"
#include "sim/cli/sizes.h"
#include "sim/commands/contradictions.h"
#include "sim/commands/field_options.h"
#include "sim/commands/measured_room.h"
#include "sim/commands/variable_chunks.h"
#include "sim/compile/compile.h"
#include "sim/model/family.h"
#include "sim/model/freeze.h"
#include "sim/model/graph_limits.h"
#include "sim/model/read_model.h"
#include "sim/search/chunk_search.h"
#include "sim/strategy/checks.h"

namespace shard::commands {
namespace {

constexpr const char* kModelHelp = "an example model's name, a Hugging Face config.json, or its directory";

/// Chunks as --chunk-bytes or --chunk-size says, into the strategy, whose ranks and stage must be filled in.
Result<void> choose_chunks(const cli::Command& command, const StrategyOptions& options, const model::Model& model,
                           plan::Strategy& s, std::vector<std::string>& notes) {
  const std::int64_t size = bytes_per_element(s.storage());
  if (options.chunk_bytes) {
    if (options.chunk_bytes->count() % size != 0)
      return cli::contradiction(
          command.describe("chunk-bytes") + " is not a whole number of elements of " + std::to_string(size) + " bytes",
          "--chunk-bytes " + std::to_string(round_up(*options.chunk_bytes, size).count()));
    s.chunk_elems = Elems{options.chunk_bytes->count() / size};
    return {};
  }
  s.chunk_per_tensor = options.chunk_size == "none";
  if (s.chunk_per_tensor) return {};
  const Result<std::optional<VariableChunks>> variable =
      parse_variable_chunks(options.chunk_size, command.describe("chunk-size"));
  if (!variable) return variable.error();
  if (!*variable && options.chunk_size != "search") {
    const Result<Elems> given = cli::parse_elems(options.chunk_size, command.describe("chunk-size"));
    if (!given) return given.error();
    s.chunk_elems = *given;
    return {};
  }
  // Frozen parameters lie in chunks of their own: what counts is the waste where there is state to it.
  const Result<model::Model> own =
      model::freeze(model::split_model(model, s.tensor_parallel, s.tensor_layout), s.freeze);
  if (!own) return cli::with_origins(command, own.error());
  ChunkSearchOptions search{
      .world_size = s.cuts(), .min_chunk = {}, .max_chunk = {}, .bytes_per_element = Bytes{size}, .forecast = {}};
  if (*variable) {
    search.rule = ChunkRule::variable;
    search.max_chunk = (*variable)->largest;
  }
  const Result<RuleAnswer> answer = choose_chunk(model::trained_parameters(*own), search);
  if (!answer) {
    Error error = answer.error();
    if (*variable && error.code == Errc::contradiction) {
      error.where = command.describe("chunk-size");
      error.help = "a smaller --world-size, a larger ELEMS of --chunk-size variable:ELEMS, or --chunk-size search";
    }
    return error;
  }
  const std::string chunks = with_commas(answer->chunk_count) + (answer->chunk_count == 1 ? " chunk" : " chunks");
  if (*variable) {
    use_variable_chunks(*own, answer->chunk_starts, answer->max_chunk, s);
    notes.push_back("chunks found: " + chunks +
                    (answer->chunk_count == 1 ? " of its own size, " : " of their own sizes, the largest ") +
                    cli::elements_and_mib(answer->chunk, size) + ", padding " + with_commas(answer->waste.count()) +
                    " elements");
  } else {
    s.chunk_elems = answer->chunk;
    notes.push_back("chunk size found: " + cli::elements_and_mib(answer->chunk, size) + ", " + chunks);
  }
  return {};
}

Result<model::ConfiguredModel> read_simulated_part(std::string_view name) {
  Result<model::ConfiguredModel> configured = model::read_configured_model(name);
  if (!configured) return configured;
  if (configured->model.not_simulated) return *configured->model.not_simulated;
  configured->model = model::simulated_part(std::move(configured->model));
  return configured;
}

/// The kinds of device, and the one that is none.
void add_device(cli::Group& group, const plan::Field& field, StrategyOptions& o) {
  const std::vector<cli::Group::Named> words{
      {plan::word(plan::Device::cpu).text, plan::word(plan::Device::cpu).help},
      {plan::word(plan::Device::cuda).text, plan::word(plan::Device::cuda).help},
      {"emulated-cuda", "the plan of cuda on a GPU that this machine's processor plays, for development"}};
  cli::Option option = group.add_words(
      std::string(field.option), words,
      [&o]() -> std::size_t { return o.emulated                             ? 2
                                     : o.chosen.device == plan::Device::cpu ? 0
                                                                            : 1; },
      [&o](std::size_t index) {
        o.emulated = index == 2;
        o.chosen.device = index == 0 ? plan::Device::cpu : plan::Device::cuda;
      },
      std::string(field.help));
  if (o.device_of_cluster) option.default_text("of the cluster");
}

}  // namespace

void add_strategy_options(cli::Command& command, StrategyOptions& o, bool model_required) {
  cli::Option name = command.group("Model")
                         .add("model", &o.model, "NAME|PATH", kModelHelp)
                         .common()
                         .known_names(model::model_names)
                         .reads_file(model::model_file);
  if (model_required) name.required();
  for (const char* group : {"Model", "Sharding", "Training"}) add_fields(command, group, o);
  add_scaler_options(command, o.scaler);
  add_fields(command, "Placement", o);
  add_memory_options(command, o.placement);
}

void add_fields(cli::Command& command, std::string_view title, StrategyOptions& o) {
  cli::Group group = command.group(std::string(title));
  for (const plan::Field& field : plan::fields())
    if (field.group == title) add_field(group, field.id, o);
}

void add_field(cli::Group& group, plan::FieldId id, StrategyOptions& o, std::string_view help) {
  const plan::Field& field = plan::field(id);
  if (id == plan::FieldId::device) {
    add_device(group, field, o);
  } else if (field.given_by == plan::GivenBy::value) {
    add_field(group, field, o.chosen, help);
  } else if (id == plan::FieldId::chunk_elems) {
    add_field_as(group, field, &o.chunk_size);
    group.add("chunk-bytes", &o.chunk_bytes, "BYTES", "the same in bytes of stored parameters").least(1);
  } else if (id == plan::FieldId::clip_norm) {
    add_field_as(group, field, &o.clip_norm).least(0);
  } else if (id == plan::FieldId::non_model_peak) {
    add_field_as(group, field, &o.placement.from_trace).reads_file();
  } else if (id == plan::FieldId::device_capacity) {
    add_field_as(group, field, &o.placement.device_capacity).alias(std::string(field.alias));
  }
}

Bytes stored_element(const StrategyOptions& options) {
  return Bytes{bytes_per_element(options.chosen.storage())};
}

Result<void> require_model(const cli::Command& command) {
  if (command.given("model")) return {};
  return Error{.code = Errc::usage,
               .what = std::string("--model is required: ") + kModelHelp,
               .where = "",
               .help = "--model NAME|PATH; see shardscope " + command.name() + " --help"};
}

plan::Strategy training_strategy(const StrategyOptions& o, const model::Model& model) {
  plan::Strategy s = o.chosen;
  if (s.global_batch == 0) s.global_batch = s.micro_batch * std::max(1, s.data_parallel());
  const std::int64_t longest = model.max_sequence > 0 ? model.max_sequence : plan::kDefaultSequence;
  if (s.sequence == 0) s.sequence = std::min(longest, plan::kDefaultSequence);
  s.clip_norm = o.clip_norm.has_value();
  return s;
}

Models::Models() : ReadOnce(read_simulated_part) {}

Result<Planned> resolve(const cli::Command& command, const StrategyOptions& o, const cluster::Cluster* cluster,
                        Models* models) {
  if (Result<void> ok = check_contradictions(command); !ok) return ok.error();
  Models own;
  const auto configured = (models == nullptr ? own : *models).get(o.model);
  if (!configured) return configured.error();
  const std::shared_ptr<const model::Model> model(*configured, &(*configured)->model);
  Planned planned;
  planned.config_dtype = (*configured)->dtype;
  planned.config = (*configured)->config;
  planned.notes = model->notes;
  planned.config_dropouts = (*configured)->dropouts;
  planned.strategy = training_strategy(o, *model);
  plan::Strategy& s = planned.strategy;
  cluster::Room room;
  if (cluster != nullptr)
    room = {.capacity = cluster->device_memory, .outside = cluster::outside_allocator(*cluster, s.world_size)};
  const Result<plan::Placement> placement = placement_of(command, o.placement, s.placement, room);
  if (!placement) return placement.error();
  s.placement = *placement;
  if (!o.placement.from_trace.empty()) {
    const Result<MeasuredRoom> measured = read_measured_room(o.placement.from_trace);
    if (!measured) return measured.error();
    s.placement.non_model_peak = measured->non_model_peak;
    planned.parent_plan_hash = measured->plan_hash;
  }
  // Chunks are of the part that a rank has.
  if (Result<void> ok = plan::check_tensor_parallel(*model, s); !ok) return cli::with_origins(command, ok.error());
  if (s.unit == plan::UnitKind::chunk) {
    if (Result<void> ok = choose_chunks(command, o, *model, s, planned.notes); !ok) return ok.error();
  }
  if (o.clip_norm == 0.0)
    return cli::contradiction(command.describe("clip-norm") + " would make every gradient 0",
                              "--clip-norm 1, or leave --clip-norm out");
  if (Result<void> ok = check_scaler(command, o.scaler, s); !ok) return ok.error();
  if (s.precision == plan::Precision::tf32)
    planned.notes.push_back(
        "--precision tf32 differs from fp32 only on GPUs that have it: ranks on CPUs compute in fp32");
  if (Result<void> ok = model::check_batch(*model, s.micro_batch, s.sequence); !ok) return ok.error();
  if (Result<void> ok = plan::check(*model, s); !ok) return cli::with_origins(command, ok.error());
  planned.model = model;
  return planned;
}

}  // namespace shard::commands
