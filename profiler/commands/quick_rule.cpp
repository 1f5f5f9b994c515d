// The options of a recipe in the words of `simulate`, as dryrun/python/recipe.py would train with them: the way back of
// sim/commands/dry_run_line.cpp.
#include "profiler/commands/quick_rule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "profiler/process/child.h"
#include "sim/cli/shell_word.h"
#include "traces/base/numbers.h"

namespace shard::dryrun {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr std::array<std::string_view, 4> kLoops{"pytorch", "ddp", "fsdp1", "fsdp2"};

std::string command_line(const Words& words) {
  std::string text = "shardscope";
  for (const std::string& word : words) text += " " + cli::shell_word(word);
  return text;
}

/// A text of the configuration; empty where it is null, say, as newer transformers write what is not set.
std::string text_of(const nlohmann::ordered_json& config, const char* key) {
  const auto found = config.find(key);
  return found != config.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Two numbers of a version, "2.11.0+cu130": {2, 11}.
std::pair<int, int> release_of(const std::string& version) {
  std::pair<int, int> release{0, 0};
  (void)std::sscanf(version.c_str(), "%d.%d", &release.first, &release.second);
  return release;
}

/// Releases from 5 on have other defaults.
bool has_new_transformers(const DryRun& run) {
  const auto transformers = run.software.find("transformers");
  return transformers != run.software.end() && release_of(transformers->second).first >= 5;
}

/// What transformers load the model in: as was said, from its release 5 on as the configuration says, else fp32.
std::string weights_of(const Recipe& recipe, const nlohmann::ordered_json& config, const DryRun& run) {
  if (!recipe.weights.empty()) return recipe.weights;
  if (!has_new_transformers(run)) return "fp32";
  const std::string newer = text_of(config, "dtype");
  const std::string said = newer.empty() ? text_of(config, "torch_dtype") : newer;
  return said == "bfloat16" ? "bf16" : said == "float16" ? "fp16" : said == "float32" || said.empty() ? "fp32" : "";
}

/// --like and the precision of a plain loop; empty: no rule has that mixture.
Words of_loop(const Recipe& recipe, const nlohmann::ordered_json& config, const DryRun& run) {
  const std::string weights = weights_of(recipe, config, run);
  const std::string precision = recipe.precision.empty() ? "bf16" : recipe.precision;
  Words words{"--like", recipe.name + "@" + run.pytorch.version.substr(0, run.pytorch.version.find('.', 2))};
  const auto with = [&](std::initializer_list<const char*> more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  if (weights.empty()) return {};
  if (recipe.name == "fsdp1" || recipe.name == "fsdp2") {
    if (weights == "fp32" && precision == "fp32") return with({"--stage", "3", "--precision", "fp32"});
    if (precision != "bf16") return {};
    if (weights != "fp32" && weights != "bf16") return {};
    const std::string reduced = reduce_dtype_of(recipe);
    return with({"--stage", "3", "--precision", "bf16", "--masters", weights == "fp32" ? "fp32" : "none",
                 "--reduce-dtype", reduced.c_str()});
  }
  if (weights != "fp32") return with({"--precision", weights.c_str()});
  if (precision == "fp32") return with({"--precision", "fp32"});
  return precision == "bf16" ? with({"--precision", "fp32", "--autocast", "bf16"}) : Words{};
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What accelerate's file does not say of FSDP: ranks sum gradients up in what they compute in (its
/// utils/dataclasses.py, set_mixed_precision()), and from 1.14 on ends of the model are units under FSDP 2
/// (utils/fsdp_utils.py, fsdp2_prepare_model()).
Words of_accelerate(const Recipe& recipe, const DryRun& run) {
  constexpr std::pair kWithEnds{1, 14};
  const std::string text = text_of_file(recipe.accelerate_config);
  if (text.find("distributed_type: FSDP") == std::string::npos) return {};
  Words words{"--reduce-dtype", "precision"};
  const auto accelerate = run.software.find("accelerate");
  const bool with_ends = accelerate == run.software.end() || release_of(accelerate->second) >= kWithEnds;
  if (with_ends && text.find("fsdp_version: 2") != std::string::npos)
    words.insert(words.end(), {"--fsdp-units", "ends"});
  return words;
}

/// Whether the Trainer makes the optimizer itself, which then is fused (its training_args.py: on PyTorch 2.8 and
/// later).
bool has_fused_optimizer(const Recipe& recipe, const DryRun& run) {
  if (!has_new_transformers(run) || release_of(run.pytorch.version) < std::pair(2, 8)) return false;
  if (!recipe.ds_config.empty()) {
    const nlohmann::json said = deepspeed_config(recipe);
    return said.is_object() && !said.contains("optimizer");
  }
  return text_of_file(recipe.accelerate_config).find("deepspeed_config_file") == std::string::npos;
}

/// The file that says how the Trainer is sharded; without one no rule has its loop.
Words of_trainer(const Recipe& recipe, const DryRun& run) {
  if (!recipe.training_args.empty() || !recipe.weights.empty() || recipe.lora_rank || !recipe.quantize.empty())
    return {};
  if (recipe.ds_config.empty() == recipe.accelerate_config.empty()) return {};
  Words words = recipe.ds_config.empty() ? Words{"--accelerate-config", recipe.accelerate_config}
                                         : Words{"--ds-config", recipe.ds_config};
  if (!recipe.precision.empty()) words.insert(words.end(), {"--precision", recipe.precision});
  const Words more = of_accelerate(recipe, run);
  words.insert(words.end(), more.begin(), more.end());
  if (has_fused_optimizer(recipe, run)) words.insert(words.end(), {"--optimizer-implementation", "fused"});
  return words;
}

std::int64_t sequence_of(const Recipe& recipe, const nlohmann::ordered_json& config) {
  constexpr std::int64_t kLongest = 4096;
  if (recipe.sequence) return *recipe.sequence;
  for (const char* key : {"max_position_embeddings", "n_positions"})
    if (const auto longest = config.find(key); longest != config.end() && longest->is_number_integer() && *longest > 0)
      return std::min(longest->get<std::int64_t>(), kLongest);
  return kLongest;
}

/// The largest of the probabilities that the configuration, or else its class, drops with: in training all are in
/// force.
double dropout_of(const nlohmann::ordered_json& config) {
  constexpr std::array<std::string_view, 3> kDrop{"gpt2", "gpt_bigcode", "opt"};
  constexpr double kUsual = 0.1;
  const bool drops = std::ranges::find(kDrop, text_of(config, "model_type")) != kDrop.end();
  double most = 0;
  for (const char* key :
       {"resid_pdrop", "embd_pdrop", "attn_pdrop", "dropout", "hidden_dropout", "attention_dropout"}) {
    const auto said = config.find(key);
    if (said != config.end() && said->is_number()) most = std::max(most, said->get<double>());
  }
  const bool silent = !config.contains("resid_pdrop") && !config.contains("dropout");
  return drops && silent ? std::max(most, kUsual) : most;
}

Words of_model(const Recipe& recipe, const DryRun& run) {
  const Result<nlohmann::ordered_json> config = model_config(recipe.model);
  if (!config || config->contains("text_config")) return {};
  const bool is_loop = std::ranges::find(kLoops, recipe.name) != kLoops.end();
  Words words = is_loop ? of_loop(recipe, *config, run) : of_trainer(recipe, run);
  if (words.empty()) return {};
  words.insert(words.end(), {"--model", recipe.model, "--sequence", std::to_string(sequence_of(recipe, *config)),
                             "--micro-batch", std::to_string(micro_batch_of(recipe))});
  if (!recipe.attention.empty()) words.insert(words.end(), {"--attention", recipe.attention});
  if (recipe.recompute) words.insert(words.end(), {"--recompute", "block"});
  words.insert(words.end(), {"--use-cache", "false"});
  if (const double dropped = dropout_of(*config); dropped > 0)
    words.insert(words.end(), {"--dropout", show_number(dropped, 3)});
  return words;
}

/// The words of `shardscope` that ask for the run of a recipe; empty where no rule has all that it says.
Words words_of_rule(const Recipe& recipe, const DryRun& run) {
  if (recipe.name == "megatron" && recipe.megatron_script.empty())
    return {"simulate", "--megatron-args", recipe.megatron_args};
  if (recipe.name == "torchtitan") return {"simulate", "--torchtitan-config", recipe.torchtitan_config};
  if (recipe.name != "hf-trainer" && std::ranges::find(kLoops, recipe.name) == kLoops.end()) return {};
  Words words = of_model(recipe, run);
  if (!words.empty()) words.insert(words.begin(), "simulate");
  return words;
}

std::string step_text(const QuickRule& rule) {
  if (!rule.step.is_object()) return "";
  const auto said = [&](const char* key) { return Seconds{rule.step.value(key, 0.0)}; };
  return "step            " + duration_between(said("seconds"), said("low"), said("high")) +
         ", by laws of the card's kernels; the dry run itself takes no time\n";
}

}  // namespace

std::optional<QuickRule> quick_rule(const Recipe& recipe, const std::string& cluster, std::int64_t world_size,
                                    const RankRun& rank) {
  const DryRun& run = rank.run;
  if (run.ended.exit_code != 0 || run.unmet || run.optimizer_steps == 0 || !rank.answer) return std::nullopt;
  Words words = words_of_rule(recipe, run);
  std::error_code fault;
  const fs::path planner = fs::read_symlink("/proc/self/exe", fault).parent_path() / "shardscope";
  if (words.empty() || !fs::exists(planner, fault)) return std::nullopt;
  words.insert(words.end(), {"--cluster", cluster, "--world-size", std::to_string(world_size)});
  Words started{planner.string()};
  started.insert(started.end(), words.begin(), words.end());
  started.emplace_back("--json");
  const Result<profiler::Ended> asked = profiler::run_and_read(started);
  if (!asked) return std::nullopt;
  const nlohmann::json said = nlohmann::json::parse(asked->out, nullptr, /*allow_exceptions=*/false);
  // Our own executor has no such key, and a fault has none either.
  if (!said.is_object() || !said.contains("peak_allocated_bytes")) return std::nullopt;
  const std::int64_t peak = said.value("peak_allocated_bytes", std::int64_t{0});
  const auto seen = static_cast<double>(std::max<std::int64_t>(1, rank.answer->allocated_bytes));
  return QuickRule{.command = command_line(words),
                   .peak_bytes = peak,
                   .difference = (static_cast<double>(peak) - seen) / seen,
                   .stated_error = said.value("peak_uncertainty", 0.0),
                   .step = said.value("step", nlohmann::json())};
}

nlohmann::ordered_json to_json(const std::optional<QuickRule>& rule) {
  if (!rule) return nullptr;
  return {{"command", rule->command},
          {"peak_bytes", rule->peak_bytes},
          {"difference", rule->difference},
          {"stated_error", rule->stated_error},
          {"step", rule->step}};
}

std::string to_text(const std::optional<QuickRule>& rule) {
  if (!rule) return "";
  if (std::abs(rule->difference) <= rule->stated_error) return step_text(*rule);
  return "quick rule      " + rule->command + " says " + show_bytes(Bytes{rule->peak_bytes}) + " allocated, " +
         show_fixed(100 * std::abs(rule->difference), 1) + " %" + (rule->difference < 0 ? " less" : " more") + "\n" +
         step_text(*rule);
}

}  // namespace shard::dryrun
