// Tells whose configuration a file is.
#include "sim/foreign/tools.h"

#include <algorithm>
#include <initializer_list>

#include "sim/foreign/accelerate.h"
#include "sim/foreign/readers.h"
#include "traces/base/read_file.h"

namespace shard::foreign {
namespace {

/// Of a configuration; nobody writes more.
constexpr Bytes kLargestFile{1 << 20};

bool has(const Text& text, std::string_view key) {
  return text.tree && text.tree->find(key) != nullptr;
}
bool has_any(const Text& text, std::initializer_list<std::string_view> keys) {
  return std::ranges::any_of(keys, [&](std::string_view key) { return has(text, key); });
}
bool holds(const Text& text, std::string_view words) {
  return text.content.find(words) != std::string::npos;
}

/// YAML in braces, with comments; as strict JSON it is what DeepSpeed is given.
bool is_gpt_neox(const Text& text) {
  return has_any(text, {"num_layers", "num-layers"}) &&
         has_any(text, {"pipe_parallel_size", "pipe-parallel-size", "make_vocab_size_divisible_by"}) &&
         !(text.is_json && read_json(text.content, text.file));
}
bool is_model_config(const Text& text) {
  return has_any(text, {"architectures", "model_type"}) &&
         has_any(text, {"hidden_size", "n_embd", "d_model", "text_config", "vocab_size"});
}
bool is_llama_factory(const Text& text) {
  return has_any(text, {"finetuning_type", "template", "cutoff_len"}) &&
         has_any(text, {"model_name_or_path", "dataset", "dataset_dir"});
}
bool is_axolotl(const Text& text) {
  return has(text, "base_model") && has_any(text, {"datasets", "sequence_len", "micro_batch_size", "output_dir"});
}
bool is_torchtune(const Text& text) {
  return text.tree && holds(text, "_component_:");
}
bool is_trainer_arguments(const Text& text) {
  return text.tree && has_any(text, {"model_name_or_path", "per_device_train_batch_size"}) &&
         !has_any(text, {"distributed_type", "zero_optimization"});
}
bool is_lightning(const Text& text) {
  return text.tree && (has(text, "lightning") || (has(text, "model") && has(text, "trainer"))) &&
         !has(text, "zero_optimization");
}

bool is_megatron_bridge(const Text& text) {
  return has(text, "train") && has(text, "ddp") && has_any(text, {"scheduler", "tokenizer", "checkpoint"});
}

constexpr std::string_view kNone = "no option of Shardscope takes these files: give the options by hand";

constexpr Tool kTools[] = {
    {"Megatron-LM", "megatron-args", "a launch script with Megatron-LM's arguments (shell)", is_megatron, read_megatron,
     "--tensor-model-parallel-size, --micro-batch-size, --num-layers, ..."},
    {"torchtitan", "torchtitan-config", "a torchtitan configuration (TOML)", is_torchtitan, read_torchtitan,
     "[model], [training], [parallelism], ..."},
    {"Colossal-AI", "colossalai-config",
     "a Colossal-AI configuration (Python), a program with its plugins, or a launch script", is_colossalai,
     read_colossalai,
     "zero = dict(...), parallel = dict(...), fp16 = dict(...), or a call of GeminiPlugin, GeminiDDP, "
     "LowLevelZeroPlugin, ZeroDDP, GeminiManager, ShardedModelV2, ..."},
    {"GPT-NeoX", "", kNone, is_gpt_neox},
    {"DeepSpeed", "ds-config", "a DeepSpeed configuration (JSON)", is_deepspeed, read_deepspeed,
     "zero_optimization, bf16, fp16, train_micro_batch_size_per_gpu, ...", deepspeed_rows},
    {"accelerate", "accelerate-config", "a configuration of Hugging Face accelerate (YAML), or a --fsdp_config file",
     is_accelerate, read_accelerate, "distributed_type, mixed_precision, num_processes, fsdp_config, ...",
     accelerate_rows},
    {"Hugging Face transformers (a model's config.json)", "", "--model FILE", is_model_config},
    {"LLaMA-Factory", "", kNone, is_llama_factory},
    {"axolotl", "", kNone, is_axolotl},
    {"torchtune", "", kNone, is_torchtune},
    {"Hugging Face Trainer", "", kNone, is_trainer_arguments},
    {"Megatron Bridge", "", kNone, is_megatron_bridge},
    {"PyTorch Lightning", "", kNone, is_lightning},
};

}  // namespace

Text text_of(std::string file, std::string content) {
  Text text{.file = std::move(file), .content = std::move(content)};
  const std::size_t first = text.content.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  text.is_json = first != std::string::npos && text.content[first] == '{';
  Result<Value> tree = text.is_json ? read_json(text.content, text.file) : read_yaml(text.content, text.file);
  if (!tree && text.is_json) tree = read_yaml(text.content, text.file);
  if (!tree) tree = read_hjson(text.content, text.file);
  if (tree && tree->is_table()) text.tree = std::move(*tree);
  return text;
}

Result<Text> read_text(const std::filesystem::path& path) {
  Result<std::string> content = read_file(path, "configuration", kLargestFile);
  if (!content) return content.error();
  return text_of(path.string(), std::move(*content));
}

std::span<const Tool> tools() {
  return kTools;
}

const Tool* recognise(const Text& text) {
  const auto tool = std::ranges::find_if(kTools, [&](const Tool& each) { return each.recognises(text); });
  return tool == std::end(kTools) ? nullptr : tool;
}

const Tool* tool_of_option(std::string_view option) {
  const auto tool = std::ranges::find(kTools, option, &Tool::option);
  return option.empty() || tool == std::end(kTools) ? nullptr : tool;
}

Result<ForeignConfig> read_as(const Tool& tool, const Text& text, const Given& given) {
  const Tool* const owner = recognise(text);
  if (owner != nullptr && owner != &tool) return belongs_to(*owner, text);
  Result<ForeignConfig> config = tool.read(text, given);
  if (!config || !config->understood.empty() || !config->not_predicted.empty()) return config;
  // The command line may say all that the file does.
  const Result<ForeignConfig> alone = tool.read(text, Given{});
  if (alone && !alone->understood.empty()) return config;
  return Error{.code = Errc::malformed,
               .what = "nothing in it is understood as " + std::string(tool.name) + "'s, of " +
                       std::to_string(config->left_out.size()) + (config->left_out.size() == 1 ? " key" : " keys"),
               .where = text.file,
               .help = "looked for " + std::string(tool.looks_for)};
}

Error belongs_to(const Tool& tool, const Text& text) {
  return {.code = Errc::contradiction,
          .what = "this is a configuration of " + std::string(tool.name),
          .where = text.file,
          .help = tool.option.empty() ? std::string(tool.help) : "--" + std::string(tool.option) + " " + text.file};
}

}  // namespace shard::foreign
