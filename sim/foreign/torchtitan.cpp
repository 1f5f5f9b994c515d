// Reads torchtitan's TOML, of the versions that have parallel degrees under [training] and of those that have
// [parallelism]. Names and defaults: torchtitan/config_manager.py and torchtitan/config/job_config.py.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "sim/foreign/batches.h"
#include "sim/foreign/megatron.h"
#include "sim/foreign/readers.h"
#include "sim/foreign/toml_document.h"

namespace shard::foreign {
namespace {

constexpr std::string_view kTitanSaves = "about saving and loading, which is no part of a step";
constexpr std::string_view kTitanLogs = "what is logged and measured changes neither memory nor time";
constexpr std::string_view kTitanRate = "the learning rate changes neither memory nor time";
constexpr std::string_view kTitanData = "about the data: neither memory nor time of a step depends on it";
constexpr std::string_view kTitanPipeline = "pipeline parallelism is not modelled yet";
constexpr std::string_view kTitanContext = "splitting sequences over ranks is not modelled yet";
constexpr std::string_view kTitanExperts = "experts spread over ranks are not modelled yet";
constexpr std::string_view kTitanCompile = "what torch.compile fuses is predicted with --like pytorch alone";
constexpr std::string_view kTitanEight = "8-bit arithmetic is not modelled";

Result<void> titan_recompute(Reading& reading, const Leaf& leaf, const Row& row) {
  const std::string mode = lower(leaf.value->text);
  if (leaf.value->kind != Kind::text) return reading.wrong_kind(leaf, "none, selective or full");
  if (mode == "memory_budget") {
    reading.leave(leaf.pointer, "what torch.compile keeps within a budget is not modelled");
    return {};
  }
  if (mode != "none" && mode != "selective" && mode != "full")
    return reading.refused(leaf, "torchtitan has none, selective and full", "full");
  reading.set(leaf, row.option, mode == "full" ? "block" : mode);
  return {};
}

Result<void> titan_selective(Reading& reading, const Leaf& leaf, const Row&) {
  const bool by_op = lower(leaf.value->text) == "op";
  const Value* const mode = reading.root().at("/activation_checkpoint/mode");
  if (by_op)
    reading.understand(leaf.pointer);
  else if (mode != nullptr && mode->text != "selective")
    reading.leave(leaf.pointer, "counts with mode selective alone");
  else
    reading.leave(leaf.pointer, "whole layers now and then: what --recompute selective makes again is by operator");
  return {};
}

Result<void> titan_optimizer(Reading& reading, const Leaf& leaf, const Row& row) {
  const std::string name = lower(leaf.value->text);
  if (name == "adamw" || name == "adam" || name == "sgd")
    reading.set(leaf, row.option, name);
  else
    reading.leave(leaf.pointer, "the states of " + shown(*leaf.value) + " are not modelled: AdamW's are predicted");
  return {};
}

Result<void> titan_precision(Reading& reading, const Leaf& leaf, const Row& row) {
  const std::string name = lower(leaf.value->text);
  if (name != "bfloat16" && name != "float32" && name != "float16")
    return reading.wrong_kind(leaf, "bfloat16 or float32");
  reading.set(leaf, row.option, name == "bfloat16" ? "bf16" : name == "float16" ? "fp16" : "fp32");
  return {};
}

Result<void> titan_reduce(Reading& reading, const Leaf& leaf, const Row& row) {
  const std::string name = lower(leaf.value->text);
  if (name != "bfloat16" && name != "float32" && name != "float16")
    return reading.wrong_kind(leaf, "bfloat16 or float32");
  reading.set(leaf, row.option, name == "float32" ? "true" : "false");
  reading.set(leaf, "reduce-dtype", name == "float32" ? "fp32" : "precision");
  return {};
}

Result<void> titan_reshard(Reading& reading, const Leaf& leaf, const Row& row) {
  const std::string name = lower(leaf.value->text);
  if (name != "default" && name != "always" && name != "never")
    return reading.wrong_kind(leaf, "default, always or never");
  if (name == "never")
    reading.set(leaf, row.option, "true");
  else
    reading.understand(leaf.pointer);
  return {};
}

Result<void> titan_offload(Reading& reading, const Leaf& leaf, const Row& row) {
  const std::optional<bool> on = flag_in(*leaf.value);
  if (!on) return reading.wrong_kind(leaf, "true or false");
  if (*on)
    reading.set(leaf, row.option, "host");
  else
    reading.understand(leaf.pointer);
  return {};
}

constexpr Row kTitanRows[] = {
    {"/training/batch_size", "micro-batch", megatron_later, "sequences per rank and micro-step"},
    {"/training/local_batch_size", "micro-batch", megatron_later, "the same"},
    {"/training/global_batch_size", "global-batch", megatron_later, "sequences of a step; -1: no accumulation"},
    {"/training/gradient_accumulation_steps", "global-batch", megatron_later, "micro-steps"},
    {"/training/seq_len", "sequence", take_count, "tokens per sequence"},
    {"/training/max_norm", "clip-norm", megatron_clip, "0: none"},
    {"/training/mixed_precision_param", "precision", titan_precision, "of computation; fp32 masters stay"},
    {"/training/mixed_precision_reduce", "fp32-reduce-scatter", titan_reduce, "of gradients' sums"},
    {"/training/dtype", "", nullptr, "master parameters are fp32 here"},
    {"/training/enable_cpu_offload", "placement", titan_offload, "host"},
    {"/training/seed", "seed", take_number, "of train"},
    {"/training/warmup_steps", "warmup-steps", take_number, "of train"},
    {"/training/steps", "", nullptr, "--steps says how many; each takes the same memory and time"},
    {"/training/compile", "", nullptr, kTitanCompile},
    {"/training/dataset*", "", nullptr, kTitanData},
    {"/training/gc_*", "", nullptr, "of Python's memory, not the device's"},
    {"/training/deterministic", "", nullptr, "Shardscope's numbers are always reproducible"},
    {"/training/enable_fp8_linear", "", nullptr, kTitanEight},
    {"/*/data_parallel_replicate_degree", "shard-group", megatron_later, "copies of the sharded model"},
    {"/*/data_parallel_shard_degree", "stage", megatron_later, "ranks that share shards; -1: all that are left"},
    {"/*/data_parallel_degree", "stage", megatron_later, "the same, as older versions have it"},
    {"/*/tensor_parallel_degree", "tensor-parallel", megatron_later, "ranks that split one model"},
    {"/*/fsdp_reshard_after_forward", "keep-gathered", titan_reshard, "never: true"},
    {"/*/pipeline_parallel_degree", "", just_one, kTitanPipeline},
    {"/*/pipeline_parallel_*", "", nullptr, kTitanPipeline},
    {"/*/context_parallel_degree", "", just_one, kTitanContext},
    {"/*/context_parallel_*", "", nullptr, kTitanContext},
    {"/*/expert_parallel_degree", "", just_one, kTitanExperts},
    {"/*/expert_*", "", megatron_one, kTitanExperts},
    {"/*/enable_async_tensor_parallel", "", nullptr,
     "Shardscope always overlaps communication with computation where the plan lets it"},
    {"/*/enable_loss_parallel", "", nullptr, "the loss is computed over the vocabulary's parts where it is split"},
    {"/*/disable_loss_parallel", "", nullptr, "the loss is computed over the vocabulary's parts where it is split"},
    {"/*/enable_compiled_autograd", "", nullptr, kTitanCompile},
    {"/parallelism/*", "", nullptr, "not modelled"},
    {"/activation_checkpoint/mode", "recompute", titan_recompute, "full: block; selective; none"},
    {"/activation_checkpoint/selective_ac_option", "", titan_selective, "op: by operator, as here"},
    {"/activation_checkpoint/*", "", nullptr, "how torchtitan recomputes: Shardscope follows --recompute"},
    {"/optimizer/name", "optimizer", titan_optimizer, "AdamW, Adam, SGD"},
    {"/optimizer/lr", "lr", take_number, "of train"},
    {"/optimizer/eps", "epsilon", take_number, "of train"},
    {"/optimizer/beta1", "beta1", take_number, "of train"},
    {"/optimizer/beta2", "beta2", take_number, "of train"},
    {"/optimizer/weight_decay", "weight-decay", take_number, "of train"},
    {"/optimizer/*", "", nullptr, "which code runs the same arithmetic"},
    {"/lr_scheduler/warmup_steps", "warmup-steps", take_number, "of train"},
    {"/lr_scheduler/*", "", nullptr, kTitanRate},
    {"/model/name", "model", megatron_later, "with the flavor"},
    {"/model/flavor", "model", megatron_later, "the model's size"},
    {"/model/norm_type", "", nullptr, "the model's norm is RMSNorm here, as torchtitan's own default is"},
    {"/model/tokenizer_path", "", nullptr, kTitanData},
    {"/model/hf_assets_path", "", nullptr, kTitanData},
    {"/model/converters", "", nullptr, kTitanEight},
    {"/model/*", "", nullptr, "--model says which model"},
    {"/compile/**", "", nullptr, kTitanCompile},
    {"/float8/**", "", nullptr, kTitanEight},
    {"/mx/**", "", nullptr, kTitanEight},
    {"/quantize/**", "", nullptr, kTitanEight},
    {"/checkpoint/**", "", nullptr, kTitanSaves},
    {"/job/**", "", nullptr, kTitanLogs},
    {"/profiling/**", "", nullptr, kTitanLogs},
    {"/metrics/**", "", nullptr, kTitanLogs},
    {"/debug/**", "", nullptr, kTitanLogs},
    {"/validation/**", "", nullptr, "about evaluation, which is no part of a step"},
    {"/comm/**", "", nullptr, "how long torchtitan waits for a rank"},
    {"/fault_tolerance/**", "", nullptr, "about ranks that die, which is no part of a step"},
    {"/memory_estimation/**", "", nullptr, "torchtitan's own estimate of memory"},
    {"/experimental/**", "", nullptr, "not modelled"},
};

/// Sizes of torchtitan's flavors: torchtitan/models/llama3/__init__.py and its older models/llama.
struct Flavor {
  std::string_view name;
  std::string_view flavor;
  std::int64_t hidden, layers, heads, groups, intermediate, vocabulary;
  double theta;
};
constexpr Flavor kFlavors[] = {
    {"llama3", "1B", 2048, 16, 32, 8, 8192, 128256, 5e5},       {"llama3", "3B", 3072, 28, 24, 8, 8192, 128256, 5e5},
    {"llama3", "8B", 4096, 32, 32, 8, 14336, 128256, 5e5},      {"llama3", "70B", 8192, 80, 64, 8, 28672, 128256, 5e5},
    {"llama3", "405B", 16384, 126, 128, 8, 53248, 128256, 5e5}, {"llama2", "7B", 4096, 32, 32, 32, 11008, 32000, 1e4},
    {"llama2", "13B", 5120, 40, 40, 40, 13824, 32000, 1e4},     {"llama2", "70B", 8192, 80, 64, 8, 28672, 32000, 1e4},
};

/// The first of two places of a key: newer versions have [parallelism], older ones [training] and [experimental].
Leaf titan_leaf(const Reading& reading, std::string_view key) {
  for (const char* section : {"/parallelism/", "/training/", "/experimental/"}) {
    const std::string pointer = section + std::string(key);
    if (const Value* value = reading.root().at(pointer)) return {.pointer = pointer, .value = value};
  }
  return {.pointer = "", .value = nullptr};
}

void settle_titan_model(Reading& reading) {
  const Value* const name = reading.root().at("/model/name");
  const Value* const flavor = reading.root().at("/model/flavor");
  const auto leave = [&](const std::string& reason) {
    if (name != nullptr) reading.leave("/model/name", reason);
    if (flavor != nullptr) reading.leave("/model/flavor", reason);
  };
  if (const std::optional<std::string> model = reading.given().option("model"))
    return leave("--model " + *model + " says it");
  if (name == nullptr || flavor == nullptr) return leave("a model is a name and a flavor: give --model");
  const auto known = std::ranges::find_if(
      kFlavors, [&](const Flavor& each) { return each.name == name->text && each.flavor == flavor->text; });
  if (known == std::end(kFlavors)) return leave("the sizes of this flavor are not known here: give --model");
  const nlohmann::ordered_json config{{"model_type", "llama"},
                                      {"hidden_size", known->hidden},
                                      {"num_hidden_layers", known->layers},
                                      {"num_attention_heads", known->heads},
                                      {"num_key_value_heads", known->groups},
                                      {"intermediate_size", known->intermediate},
                                      {"vocab_size", known->vocabulary},
                                      {"max_position_embeddings", 131072},
                                      {"rope_theta", known->theta},
                                      {"tie_word_embeddings", false}};
  reading.understand("/model/name");
  reading.set({.pointer = "/model/flavor", .value = flavor}, "model", config.dump());
}

struct Degrees {
  Leaf replicate, shard, tensor;
  std::int64_t copies = 1, shards = -1, parts = 1;
};

Result<std::int64_t> titan_degree(Reading& reading, const Leaf& leaf, std::int64_t otherwise) {
  if (leaf.value == nullptr) return otherwise;
  const std::optional<std::int64_t> degree = whole_in(*leaf.value);
  if (!degree) return reading.wrong_kind(leaf, "a whole number");
  if (*degree < -1 || *degree == 0 || *degree > (1 << 20)) return reading.refused(leaf, "it is at least 1, or -1", "1");
  reading.understand(leaf.pointer);
  return *degree;
}

/// Ranks, and what FSDP2 is among our stages.
Result<void> settle_titan_ranks(Reading& reading) {
  Degrees d{.replicate = titan_leaf(reading, "data_parallel_replicate_degree"),
            .shard = titan_leaf(reading, "data_parallel_shard_degree"),
            .tensor = titan_leaf(reading, "tensor_parallel_degree")};
  if (d.shard.value == nullptr) d.shard = titan_leaf(reading, "data_parallel_degree");
  for (auto [leaf, degree] :
       {std::pair{&d.replicate, &d.copies}, std::pair{&d.shard, &d.shards}, std::pair{&d.tensor, &d.parts}}) {
    const Result<std::int64_t> read = titan_degree(reading, *leaf, *degree);
    if (!read) return read.error();
    *degree = *read;
  }
  if (d.copies < 1) return reading.refused(d.replicate, "it is at least 1", "1");
  if (d.parts < 1) return reading.refused(d.tensor, "it is at least 1", "1");
  if (d.tensor.value != nullptr && d.parts > 1) reading.set(d.tensor, "tensor-parallel", std::to_string(d.parts));
  if (d.shards > 0) {
    const std::int64_t ranks = d.copies * d.shards * d.parts;
    if (ranks > (1 << 20)) return reading.refused(d.shard, "more than 1048576 ranks", "1");
    reading.set(d.shard, "world-size", std::to_string(ranks));
  }
  if (d.shard.value == nullptr) return {};
  const bool sharded = d.shards != 1;
  reading.set(d.shard, "stage", sharded ? "3" : "0");
  if (sharded) reading.set(d.shard, "unit", "module");
  if (sharded && d.copies > 1 && d.shards > 0) reading.set(d.replicate, "shard-group", std::to_string(d.shards));
  if (sharded && reading.setting("precision") == nullptr) reading.set(d.shard, "precision", "bf16", Certainty::assumed);
  return {};
}

}  // namespace

bool is_torchtitan(const Text& text) {
  if (text.is_json) return false;
  int sections = 0;
  for (const char* section :
       {"[job]", "[training]", "[parallelism]", "[activation_checkpoint]", "[experimental]", "[metrics]",
        "[checkpoint]", "[float8]", "[profiling]", "[optimizer]", "[model]", "[lr_scheduler]"}) {
    const std::string name(section);
    if (text.content.starts_with(name) || text.content.find("\n" + name) != std::string::npos) ++sections;
  }
  return sections >= 2;
}

Result<ForeignConfig> read_torchtitan(const Text& text, const Given& given) {
  const Result<Value> root = read_toml(text.content, text.file);
  if (!root) return root.error();
  Reading reading("torchtitan", text.file, *root, given);
  if (Result<void> ok = reading.walk(kTitanRows); !ok) return ok.error();
  if (Result<void> ok = settle_titan_ranks(reading); !ok) return ok.error();
  const Value* const whole = root->at("/training/global_batch_size");
  const bool no_accumulation = whole != nullptr && whole_in(*whole) == -1;
  if (no_accumulation) reading.understand("/training/global_batch_size");
  const bool local = root->at("/training/local_batch_size") != nullptr;
  const BatchKeys keys{.micro = local ? "/training/local_batch_size" : "/training/batch_size",
                       .accumulation = "/training/gradient_accumulation_steps",
                       .whole = no_accumulation ? "" : "/training/global_batch_size"};
  if (Result<void> ok = settle_batches(reading, keys); !ok) return ok.error();
  settle_titan_model(reading);
  reading.set_framework("fsdp2");
  ForeignConfig config = reading.finish();
  leave_rest(config, *root);
  return config;
}

}  // namespace shard::foreign
