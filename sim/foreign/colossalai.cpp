// Single keys of Colossal-AI, and which of its three kinds of files one is.
#include "sim/foreign/colossalai.h"

#include <algorithm>
#include <array>

#include "sim/foreign/megatron.h"
#include "sim/foreign/readers.h"
#include "sim/foreign/script_document.h"
#include "sim/model/examples.h"

namespace shard::foreign {
namespace {

/// Of what wraps the model the first counts; what stands beside it is read, too.
constexpr std::string_view kWrappers[] = {
    "GeminiDDP",          "ZeroDDP",         "GeminiPlugin",        "ShardedModelV2", "TorchDDPPlugin",
    "LowLevelZeroPlugin", "TorchFSDPPlugin", "HybridParallelPlugin"};
constexpr std::string_view kBeside[] = {"ShardedOptimizerV2", "GeminiAdamOptimizer", "GeminiOptimizer",
                                        "ZeroOptimizer",      "HybridAdam",          "CPUAdam",
                                        "FusedAdam",          "ZeroInitContext",     "ColoInitContext",
                                        "GeminiManager",      "ChunkManager",        "init_chunk_manager",
                                        "search_chunk_size"};
constexpr std::string_view kMarksOfColossal[] = {
    "colossalai",     "ColossalAI",   "TensorShardStrategy",   "AMP_TYPE",
    "GeminiPlugin",   "GeminiDDP",    "hybrid_zero_optimizer", "TPDEGREE",
    "GeminiAdam",     "zero1=dict(",  "shard_strategy",        "ZeroDDP",
    "ShardedModelV2", "ChunkManager", "init_chunk_manager",    "GeminiManager"};

const Value* lightning_strategy(const Text& text) {
  const Value* const strategy = text.tree ? text.tree->at("/lightning/trainer/strategy") : nullptr;
  if (strategy == nullptr || !strategy->is_table()) return nullptr;
  const Value* const target = strategy->find("target");
  const bool named = target != nullptr && target->text.find("ColossalAI") != std::string::npos;
  const bool own =
      target == nullptr && (strategy->find("use_chunk") != nullptr || strategy->find("placement_policy") != nullptr);
  return named || own ? strategy : nullptr;
}

bool has_line(const Text& text, std::string_view begin) {
  return text.content.starts_with(begin) || text.content.find("\n" + std::string(begin)) != std::string::npos;
}

/// A launch script, not a program in Python.
bool is_launch(const Text& text) {
  for (const char* ending : {".sh", ".bash", ".slurm", ".sbatch"})
    if (text.file.ends_with(ending)) return true;
  if (text.file.ends_with(".py") || has_line(text, "import ") || has_line(text, "from ")) return false;
  if (text.content.starts_with("#!") && text.content.substr(0, text.content.find('\n')).find("sh") != std::string::npos)
    return true;
  return has_line(text, "colossalai run ") || has_line(text, "torchrun ") || has_line(text, "export ") ||
         text.content.find("bash ./") != std::string::npos;
}

Result<ForeignConfig> read_by(const Text& text, const Given& given, const ScriptDocument& document,
                              std::span<const Row> rows) {
  Reading reading("Colossal-AI", text.file, document.root, given);
  if (Result<void> ok = reading.walk(rows); !ok) return ok.error();
  constexpr std::string_view kProcesses[] = {"/nproc_per_node", "/nproc-per-node", "/GPUNUM", "/sbatch/gpus-per-node",
                                             "/sbatch/gres"};
  constexpr std::string_view kNodes[] = {"/nnodes", "/num_nodes", "/sbatch/nodes"};
  settle_ranks(reading, kProcesses, kNodes, document.unread);
  if (Result<void> ok = settle_colossalai(reading); !ok) return ok.error();
  leave_unread(reading, document.unread, rows);
  ForeignConfig config = reading.finish();
  leave_rest(config, document.root);
  return config;
}

Result<void> leave_null(Reading& reading, const Leaf& leaf) {
  reading.leave(leaf.pointer, "not set");
  return {};
}

std::string last_name(const std::string& dotted) {
  return dotted.substr(dotted.rfind('.') + 1);
}

}  // namespace

bool is_colossalai(const Text& text) {
  if (text.is_json) return false;
  if (text.tree) return lightning_strategy(text) != nullptr;
  return std::ranges::any_of(kMarksOfColossal,
                             [&](std::string_view mark) { return text.content.find(mark) != std::string::npos; });
}

Result<ForeignConfig> read_colossalai(const Text& text, const Given& given) {
  if (lightning_strategy(text) != nullptr)
    return read_by(text, given, {.root = *text.tree}, colossalai_lightning_rows());
  if (!is_launch(text)) {
    const Result<ScriptDocument> document = python_document(text.content, text.file, kWrappers, kBeside);
    if (!document) return document.error();
    if (document->root.members.empty() && document->unread.empty())
      return Error{.code = Errc::malformed,
                   .what = "nothing is assigned here, and none of Colossal-AI's classes is called",
                   .where = text.file,
                   .help = "a file with zero = dict(model_config=dict(...))"};
    return read_by(text, given, *document, colossalai_rows());
  }
  std::vector<std::string_view> known;
  for (const Row& row : colossalai_launch_rows())
    if (row.key.find('*') == std::string_view::npos) known.push_back(row.key.substr(1));
  const Result<ScriptDocument> document = launch_document(text.content, text.file, known);
  if (!document) return document.error();
  return read_by(text, given, *document, colossalai_launch_rows());
}

std::optional<std::string> placement_word(std::string_view word) {
  const std::string name = lower(word);
  if (name == "cuda" || name == "gpu" || name == "device") return "device";
  if (name == "cpu" || name == "host") return "host";
  if (name == "auto" || name == "static") return name;
  return std::nullopt;
}

Result<void> colossal_later(Reading&, const Leaf&, const Row&) {
  return {};
}

Result<void> colossal_strategy(Reading& reading, const Leaf& leaf, const Row& row) {
  const std::string name = last_name(leaf.value->text);
  if (name != "TensorShardStrategy" && name != "BucketTensorShardStrategy")
    return reading.wrong_kind(leaf, "TensorShardStrategy() or BucketTensorShardStrategy()");
  reading.set(leaf, row.option, name == "TensorShardStrategy" ? "tensor" : "bucket");
  return {};
}

Result<void> colossal_policy(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return leave_null(reading, leaf);
  if (leaf.value->kind == Kind::text && leaf.value->text == "const") {
    reading.leave(leaf.pointer, "a fixed bound on what is gathered at once is not modelled");
    return {};
  }
  const std::optional<std::string> word =
      leaf.value->kind == Kind::text ? placement_word(leaf.value->text) : std::nullopt;
  if (!word) return reading.wrong_kind(leaf, "cuda, cpu, auto or static");
  // Without fractions everything rests on the device, as settle_colossalai() leaves it.
  if (*word == "static")
    reading.understand(leaf.pointer);
  else
    reading.set(leaf, row.option, *word);
  return {};
}

Result<void> colossal_bucket(Reading& reading, const Leaf& leaf, const Row& row) {
  const std::optional<double> size = number_in(*leaf.value);
  if (!size) return reading.wrong_kind(leaf, "a number of MiB");
  if (*size <= 0) return reading.understand(leaf.pointer), Result<void>();
  if (*size > 1e6) return reading.refused(leaf, "no bucket is as large", "25");
  reading.set(leaf, row.option, std::to_string(std::max<std::int64_t>(1, static_cast<std::int64_t>(*size))));
  return {};
}

Result<void> colossal_number(Reading& reading, const Leaf& leaf, const Row& row) {
  return leaf.value->kind == Kind::null ? leave_null(reading, leaf) : take_number(reading, leaf, row);
}

Result<void> colossal_count(Reading& reading, const Leaf& leaf, const Row& row) {
  return leaf.value->kind == Kind::null ? leave_null(reading, leaf) : take_count(reading, leaf, row);
}

Result<void> colossal_clip(Reading& reading, const Leaf& leaf, const Row& row) {
  return leaf.value->kind == Kind::null ? leave_null(reading, leaf) : megatron_clip(reading, leaf, row);
}

Result<void> colossal_precision(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return leave_null(reading, leaf);
  constexpr auto kNames = std::to_array<std::pair<std::string_view, std::string_view>>({{"fp16", "fp16"},
                                                                                        {"float16", "fp16"},
                                                                                        {"half", "fp16"},
                                                                                        {"16", "fp16"},
                                                                                        {"bf16", "bf16"},
                                                                                        {"bfloat16", "bf16"},
                                                                                        {"fp32", "fp32"},
                                                                                        {"float32", "fp32"},
                                                                                        {"32", "fp32"},
                                                                                        {"no", "fp32"},
                                                                                        {"tf32", "tf32"}});
  const std::string name =
      leaf.value->kind == Kind::integer ? std::to_string(leaf.value->integer) : lower(last_name(leaf.value->text));
  const auto known = std::ranges::find(kNames, name, &std::pair<std::string_view, std::string_view>::first);
  if (known == kNames.end()) return reading.wrong_kind(leaf, "fp16, bf16 or fp32");
  reading.set(leaf, row.option, std::string(known->second));
  return {};
}

Result<void> colossal_amp(Reading& reading, const Leaf& leaf, const Row& row) {
  const std::string mode = lower(last_name(leaf.value->text));
  if (leaf.value->kind == Kind::null) return leave_null(reading, leaf);
  if (mode == "naive") return reading.set(leaf, row.option, "fp16"), Result<void>();
  if (mode != "torch" && mode != "apex")
    return reading.wrong_kind(leaf, "AMP_TYPE.NAIVE, AMP_TYPE.TORCH or AMP_TYPE.APEX");
  reading.leave(
      leaf.pointer,
      "it keeps fp32 parameters and casts what each operator reads, which is not modelled: --precision fp16 has "
      "16-bit parameters with fp32 masters");
  return {};
}

Result<void> colossal_optimizer(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return leave_null(reading, leaf);
  if (leaf.value->kind != Kind::text) return reading.wrong_kind(leaf, "an optimizer");
  const std::string name = lower(last_name(leaf.value->text));
  if (name.ends_with("adamw") || name == "hybridadam" || name == "cpuadam" || name == "fusedadam" ||
      name == "geminiadam")
    reading.set(leaf, row.option, "adamw");
  else if (name == "adam")
    reading.set(leaf, row.option, "adam");
  else if (name == "sgd" || name == "fusedsgd")
    reading.set(leaf, row.option, "sgd");
  else
    reading.leave(leaf.pointer, "the states of " + leaf.value->text + " are not modelled: AdamW's are predicted");
  return {};
}

Result<void> colossal_betas(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return leave_null(reading, leaf);
  const std::vector<Value>& both = leaf.value->items;
  if (both.size() != 2 || !number_in(both[0]) || !number_in(both[1])) return reading.wrong_kind(leaf, "two numbers");
  reading.set(leaf, row.option, number_text(*number_in(both[0])));
  reading.set(leaf, "beta2", number_text(*number_in(both[1])));
  return {};
}

Result<void> colossal_checkpoint(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return leave_null(reading, leaf);
  const std::optional<double> share = leaf.value->kind == Kind::boolean ? std::nullopt : number_in(*leaf.value);
  const std::optional<bool> on = share ? std::optional(*share > 0) : flag_in(*leaf.value);
  if (!on) return reading.wrong_kind(leaf, "True or False");
  if (share && *share > 0 && *share < 1) {
    reading.leave(leaf.pointer, "recomputing some of the blocks is not modelled: --recompute block takes all");
    return {};
  }
  reading.set(leaf, row.option, *on ? "block" : "none");
  return {};
}

Result<void> colossal_one(Reading& reading, const Leaf& leaf, const Row& row) {
  return leaf.value->kind == Kind::null ? leave_null(reading, leaf) : megatron_one(reading, leaf, row);
}

Result<void> colossal_plugin(Reading& reading, const Leaf& leaf, const Row& row) {
  std::string name = lower(leaf.value->text);
  if (name.starts_with("cai_")) name = name.substr(4);
  if (name.starts_with("gemini") || name == "colossalai" || name == "colossalai_gemini") {
    reading.set(leaf, row.option, "3");
    reading.set(leaf, "unit", "chunk");
    if (reading.setting("precision") == nullptr) reading.set(leaf, "precision", "fp16", Certainty::assumed);
    if (name.ends_with("auto") && reading.setting("placement") == nullptr) reading.set(leaf, "placement", "auto");
  } else if (name.starts_with("zero1") || name.starts_with("zero2") || name == "low_level_zero" ||
             name == "colossalai_zero2") {
    reading.set(leaf, row.option, name.starts_with("zero2") || name == "colossalai_zero2" ? "2" : "1");
    if (reading.setting("precision") == nullptr) reading.set(leaf, "precision", "fp16", Certainty::assumed);
    if (name.ends_with("cpu")) reading.set(leaf, "placement", "host");
  } else if (name.starts_with("torch_ddp") || name.starts_with("pytorch_ddp") || name == "ddp" || name == "pytorch") {
    reading.set(leaf, row.option, "0");
    if (name.ends_with("fp16")) reading.set(leaf, "precision", "fp16");
  } else {
    reading.leave(leaf.pointer, "what this plugin shards is not known here: give --stage");
  }
  return {};
}

Result<void> colossal_stage(Reading& reading, const Leaf& leaf, const Row& row) {
  return leaf.value->kind == Kind::null ? leave_null(reading, leaf) : megatron_zero(reading, leaf, row);
}

Result<void> colossal_model(Reading& reading, const Leaf& leaf, const Row& row) {
  if (const std::optional<std::string> model = reading.given().option("model")) {
    reading.leave(leaf.pointer, "--model " + *model + " says it");
    return {};
  }
  std::string name = lower(leaf.value->text);
  name = name.substr(name.rfind('/') + 1);
  std::ranges::replace(name, '_', '-');
  for (const std::string& candidate : {name, "llama-" + name, name.substr(0, name.find("-pipeline"))}) {
    const std::string small = candidate == "gpt2-small" ? "gpt2" : candidate;
    if (!model::find_example_model(small)) continue;
    reading.set(leaf, row.option, small);
    return {};
  }
  reading.leave(leaf.pointer, "no model of this name is known here: give --model");
  return {};
}

Result<void> colossal_mega(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return leave_null(reading, leaf);
  const std::optional<double> mega = number_in(*leaf.value);
  if (!mega) return reading.wrong_kind(leaf, "a number");
  if (*mega < 0 || *mega > 1e6) return reading.refused(leaf, "no chunk is as large", "32");
  reading.set(leaf, row.option, std::to_string(static_cast<std::int64_t>(*mega * 1048576.0 + 0.5)));
  return {};
}

}  // namespace shard::foreign
