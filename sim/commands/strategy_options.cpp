// The one vocabulary of model and strategy options.
#include "sim/commands/strategy_options.h"
#include "sim/strategy/checks.h"

#include <algorithm>

#include "sim/cli/contradiction.h"
#include "sim/cli/origins.h"
#include "sim/cli/sizes.h"
#include "sim/commands/contradictions.h"
#include "sim/commands/measured_room.h"
#include "sim/commands/variable_chunks.h"
#include "sim/compile/compile.h"
#include "sim/model/freeze.h"
#include "sim/model/graph_limits.h"
#include "sim/model/read_model.h"
#include "sim/search/chunk_search.h"

namespace shard::commands {
namespace {

constexpr const char* kModelHelp = "an example model's name, a Hugging Face config.json, or its directory";
/// Where a model has no limit of its own, or a very long one.
constexpr std::int64_t kDefaultSequence = 1024;
/// Times the most ranks it is the largest size.
constexpr double kLargestMicroBatch = 1LL << 40;

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
  const Result<model::Model> own = model::freeze(
      model::split_model(model, options.tensor_parallel, options.tensor_layout), frozen_patterns(options));
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

}  // namespace

void add_strategy_options(cli::Command& command, StrategyOptions& o, bool model_required) {
  cli::Group model = command.group("Model");
  cli::Option name = model.add("model", &o.model, "NAME|PATH", kModelHelp).common().reads_file(model::model_file);
  if (model_required) name.required();
  add_sequence_option(model, o);
  cli::Group sharding = command.group("Sharding");
  sharding.add("world-size", &o.world_size, "N", "number of ranks").common().alias("ranks").least(1).most(1 << 20);
  sharding.add("stage", &o.stage, "0..3", "ZeRO stage: 1 shards optimizer state, 2 gradients too, 3 parameters too")
      .common()
      .least(0)
      .most(3);
  sharding
      .add_choice<plan::UnitKind>(
          "unit", &o.unit,
          {{"tensor", plan::UnitKind::tensor, "each parameter by itself"},
           {"bucket", plan::UnitKind::bucket, "the parameters of one operator, sharded singly, gathered in one call"},
           {"module", plan::UnitKind::module, "a transformer block (an mlp layer) flattened"},
           {"chunk", plan::UnitKind::chunk, "chunks over the parameters in order"}},
          "what is gathered, released and reduced together")
      .common();
  sharding.add_choice<plan::Partition>(
      "partition", &o.partition,
      {{"flat", plan::Partition::flat, "equal shards of every unit"},
       {"parameter", plan::Partition::parameter, "stage 1: whole parameters, as PyTorch's ZeroRedundancyOptimizer"}},
      "who owns which optimizer state");
  sharding
      .add("chunk-size", &o.chunk_size, "ELEMS|search|variable[:ELEMS]|none",
           "unit chunk: elements of a chunk, or the least waste; variable: few chunks of their own sizes, of "
           "at most so many elements, at most 0.1 % waste; none: a chunk per tensor")
      .common();
  sharding.add("chunk-bytes", &o.chunk_bytes, "BYTES", "the same in bytes of stored parameters").least(1);
  add_sharding_options(sharding, o.sharding);
  sharding.add("prefetch", &o.prefetch, "N", "stage 3: gathers that run ahead of their use").least(0).most(1024);
  sharding
      .add("shard-group", &o.shard_group, "N", "hybrid sharding: shard inside groups of N ranks, replicate across them")
      .least(0)
      .most(1 << 20)
      .default_text("all ranks");
  sharding.add("tensor-parallel", &o.tensor_parallel, "N", "ranks that split each model between them")
      .common()
      .least(1)
      .most(1 << 20);
  sharding.add_choice<model::TensorLayout>(
      "tensor-parallel-layout", &o.tensor_layout,
      {{"megatron", model::TensorLayout::megatron, "heads, MLP and vocabulary; two sums each way per block"},
       {"colossalai", model::TensorLayout::colossalai,
        "as its Gemini tutorial: columns, gathered after every product"}},
      "which part of each parameter a rank has");
  sharding.add_choice<plan::Transport>("transport", &o.transport,
                                       {{"shared", plan::Transport::shared, "ranks of one host, through shared memory"},
                                        {"messages", plan::Transport::messages, "across hosts, with planned staging"}},
                                       "how ranks exchange data");
  add_training_options(command, o);
  add_scaler_options(command, o.scaler);
  add_placement_options(command, o.placement);
}

std::vector<std::string> frozen_patterns(const StrategyOptions& options) {
  std::vector<std::string> result;
  for (const std::string& patterns : options.freeze)
    for (std::size_t at = 0; at <= patterns.size();) {
      const std::size_t comma = std::min(patterns.find(',', at), patterns.size());
      result.push_back(patterns.substr(at, comma - at));
      at = comma + 1;
    }
  return result;
}

Bytes stored_element(const StrategyOptions& options) {
  return Bytes{bytes_per_element(plan::Strategy{.precision = options.precision}.storage())};
}

Result<void> require_model(const cli::Command& command) {
  if (command.given("model")) return {};
  return Error{.code = Errc::usage,
               .what = std::string("--model is required: ") + kModelHelp,
               .where = "",
               .help = "--model NAME|PATH; see shardscope " + command.name() + " --help"};
}

void add_sequence_option(cli::Group& group, StrategyOptions& o) {
  group.add("sequence", &o.sequence, "TOKENS", "tokens per sequence")
      .common()
      .least(1)
      .default_text("the model's longest, at most " + std::to_string(kDefaultSequence));
}

void add_training_options(cli::Command& command, StrategyOptions& o) {
  cli::Group training = command.group("Training");
  training.add("micro-batch", &o.micro_batch, "N", "sequences (mlp: samples) per rank and micro-step")
      .common()
      .least(1)
      .most(kLargestMicroBatch);
  training.add("global-batch", &o.global_batch, "N", "sequences per step over all ranks")
      .common()
      .least(1)
      .default_text("micro-batch x data-parallel ranks");
  training
      .add_choice<plan::OptimizerKind>("optimizer", &o.optimizer,
                                       {{"sgd", plan::OptimizerKind::sgd},
                                        {"adam", plan::OptimizerKind::adam},
                                        {"adamw", plan::OptimizerKind::adamw}},
                                       "how parameters are stepped")
      .common();
  training
      .add_choice<plan::Recompute>("recompute", &o.recompute,
                                   {{"none", plan::Recompute::none, "keep what backward needs"},
                                    {"block", plan::Recompute::block, "keep each block's input, make the rest again"},
                                    {"selective", plan::Recompute::selective,
                                     "make norms, activations and rotations again, keep the costly rest"}},
                                   "activation checkpointing")
      .common();
  training
      .add_choice<plan::Precision>(
          "precision", &o.precision,
          {{"fp32", plan::Precision::fp32},
           {"bf16", plan::Precision::bf16, "16 bits, fp32 master parameters"},
           {"fp16", plan::Precision::fp16, "16 bits, fp32 master parameters"},
           {"tf32", plan::Precision::tf32, "fp32, products in TF32 on GPUs that have it"}},
          "what parameters, gradients and activations are stored as; a config.json's torch_dtype is not followed")
      .common();
  training.add_switch("fp32-reduce-scatter", &o.fp32_reduce_scatter,
                      "widen 16-bit gradients before they are summed over micro-batches and ranks");
  training.add("clip-norm", &o.clip_norm, "NORM", "scale gradients down to this norm over all parameters").least(0);
  training
      .add("gradient-predivide-factor", &o.gradient_predivide_factor, "F",
           "divide gradients by F before they are summed over ranks and by ranks / F after; 1: all before, in the loss")
      .least(1e-6)
      .most(1e6);
  training
      .add("dropout", &o.dropout, "P",
           "drop results of embeddings, attention probabilities and what residuals add (mlp: hidden values) with this "
           "probability")
      .least(0);
  training.add("threads", &o.threads, "N", "compute threads per rank").least(1).most(1024);
  training.add_switch("reproducible", &o.reproducible,
                      "sum gradients along one fixed tree, so that the result does not depend on the strategy");
  training.add("freeze", &o.freeze, "PATTERN[,...]",
               "parameters that keep their first values, for no gradient and no optimizer state: "
               "names, with * and ? as in file names");
}

plan::Strategy training_strategy(const StrategyOptions& o, const model::Model& model) {
  plan::Strategy s;
  s.world_size = o.world_size;
  s.stage = o.stage;
  s.unit = o.unit;
  s.partition = o.partition;
  s.micro_batch = o.micro_batch;
  s.tensor_parallel = o.tensor_parallel;
  s.tensor_layout = o.tensor_layout;
  s.global_batch = o.global_batch.value_or(o.micro_batch * std::max(1, s.data_parallel()));
  const std::int64_t longest = model.max_sequence > 0 ? model.max_sequence : kDefaultSequence;
  s.sequence = o.sequence.value_or(std::min(longest, kDefaultSequence));
  s.recompute = o.recompute;
  s.optimizer = o.optimizer;
  s.precision = o.precision;
  s.prefetch = o.prefetch;
  s.threads = o.threads;
  s.reproducible = o.reproducible;
  s.transport = o.transport;
  s.shard_group = o.shard_group;
  s.fp32_reduce_scatter = o.fp32_reduce_scatter;
  apply(o.sharding, s);
  s.clip_norm = o.clip_norm.has_value();
  s.predivide = static_cast<float>(o.gradient_predivide_factor);
  s.freeze = frozen_patterns(o);
  s.dropout = static_cast<float>(o.dropout);
  return s;
}

namespace {

/// What is wrong with a model is said of the option that named it.
Error named(const cli::Command& command, Error error) {
  error = cli::with_origins(command, std::move(error));
  if (error.where == "model") error.where = command.describe("model");
  return error;
}

}  // namespace

Result<Planned> resolve(const cli::Command& command, const StrategyOptions& o, std::optional<Bytes> cluster_memory) {
  if (Result<void> ok = check_contradictions(command); !ok) return ok.error();
  Result<model::ConfiguredModel> configured = model::read_configured_model(o.model);
  if (!configured) return configured.error();
  model::Model* const model = &configured->model;
  Planned planned;
  planned.config_dtype = configured->dtype;
  planned.notes = model->notes;
  if (command.given("dropout"))
    std::erase_if(planned.notes, [](const std::string& note) { return note.starts_with("dropout "); });
  planned.strategy = training_strategy(o, *model);
  plan::Strategy& s = planned.strategy;
  const Result<plan::Placement> placement = placement_of(command, o.placement, cluster_memory);
  if (!placement) return placement.error();
  s.placement = *placement;
  if (!o.placement.from_trace.empty()) {
    const Result<MeasuredRoom> measured = read_measured_room(o.placement.from_trace);
    if (!measured) return measured.error();
    s.placement.non_model_peak = measured->non_model_peak;
    planned.parent_plan_hash = measured->plan_hash;
  }
  // Chunks are of the part that a rank has.
  if (Result<void> ok = plan::check_tensor_parallel(*model, s); !ok) return named(command, ok.error());
  if (s.unit == plan::UnitKind::chunk) {
    if (Result<void> ok = choose_chunks(command, o, *model, s, planned.notes); !ok) return ok.error();
  }
  if (o.clip_norm == 0.0)
    return cli::contradiction(command.describe("clip-norm") + " would make every gradient 0",
                              "--clip-norm 1, or leave --clip-norm out");
  if (Result<void> ok = check_scaler(command, o.scaler, s); !ok) return ok.error();
  if (Result<void> ok = check_sharding(command, s); !ok) return ok.error();
  if (s.precision == plan::Precision::tf32)
    planned.notes.push_back(
        "--precision tf32 differs from fp32 only on GPUs that have it: ranks on CPUs compute in fp32");
  if (Result<void> ok = model::check_batch(*model, s.micro_batch, s.sequence); !ok) return ok.error();
  if (Result<void> ok = plan::check(*model, s); !ok) return named(command, ok.error());
  planned.model = std::make_shared<const model::Model>(std::move(*model));
  return planned;
}

}  // namespace shard::commands
