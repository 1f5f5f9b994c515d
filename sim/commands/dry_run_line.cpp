// Which recipe of `dryrun` runs whose program, and which of the options it takes.
#include "sim/commands/dry_run_line.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "sim/cli/shell_word.h"
#include "sim/foreign/tools.h"

namespace shard::commands {
namespace {

using std::string_view;

/// By the option that takes a file: the recipe that runs it. The first of them that was given counts.
constexpr std::array<std::pair<string_view, string_view>, 4> kOfFiles{{{"megatron-args", "megatron"},
                                                                       {"torchtitan-config", "torchtitan"},
                                                                       {"accelerate-config", "hf-trainer"},
                                                                       {"ds-config", "hf-trainer"}}};
/// By framework, where there is no file: plain loops.
constexpr std::array kLoops{string_view("pytorch"), string_view("ddp"), string_view("fsdp1"), string_view("fsdp2")};

/// What a recipe is told of, or what says nothing about the run.
constexpr std::array kTold{
    string_view("model"),        string_view("cluster"),         string_view("nodes"),
    string_view("world-size"),   string_view("sequence"),        string_view("micro-batch"),
    string_view("precision"),    string_view("recompute"),       string_view("like"),
    string_view("stage"),        string_view("masters"),         string_view("reduce-dtype"),
    string_view("use-cache"),    string_view("format"),          string_view("json"),
    string_view("trace"),        string_view("save-program"),    string_view("find"),
    string_view("what-if"),      string_view("steps"),           string_view("config"),
    string_view("print-config"), string_view("device-capacity"), string_view("memory-over-time")};

/// Whether the recipe would run what the options mean: none of them says what it is not told of.
bool is_told(string_view recipe, const cli::Command& command, const SimulateOptions& options,
             const ForeignFiles& files) {
  const auto of_a_file = [&](const cli::Origin& origin) {
    return std::ranges::any_of(files.read,
                               [&](const ForeignFiles::Read& read) { return origin.where.starts_with(read.file); });
  };
  const auto tells = [&](const cli::Effective& option) {
    return option.origin.source == cli::Source::fallback || of_a_file(option.origin) ||
           takes_foreign_file(option.name) || std::ranges::find(kTold, option.name) != kTold.end();
  };
  if (!std::ranges::all_of(command.effective(), tells)) return false;
  const plan::Strategy& chosen = options.strategy.chosen;
  if ((recipe == "fsdp1" || recipe == "fsdp2") && chosen.stage != 3) return false;
  return chosen.recompute == plan::Recompute::none || chosen.recompute == plan::Recompute::block;
}

/// A file's option with the file: " --ds-config ds.json"; empty where none was read that a recipe runs.
std::pair<string_view, std::string> recipe_of_files(const ForeignFiles& files) {
  for (const auto& [option, recipe] : kOfFiles)
    for (const ForeignFiles::Read& read : files.read) {
      const auto tool = std::ranges::find(foreign::tools(), read.config.tool, &foreign::Tool::name);
      if (tool != foreign::tools().end() && tool->option == option)
        return {recipe, " --" + std::string(option) + " " + cli::shell_word(read.file)};
    }
  return {};
}

/// What a recipe that trains transformers' models is told beside its files.
std::string of_model(string_view recipe, const SimulateOptions& options, const Assumed& taken) {
  std::string text = " --model " + cli::shell_word(options.strategy.model);
  if (taken.sequence > 0) text += " --sequence " + std::to_string(taken.sequence);
  if (taken.micro_batch > 1) text += " --micro-batch " + std::to_string(taken.micro_batch);
  if (taken.precision != "bf16") text += " --precision " + taken.precision;
  const bool sharded = recipe == "fsdp1" || recipe == "fsdp2";
  if (sharded) {
    text += options.eager.masters ? " --weights fp32" : " --weights " + taken.precision;
    const bool in_fp32 = like::reduces_in_fp32(options.eager);
    if (taken.precision != "fp32" && in_fp32 != (recipe == "fsdp2"))
      text += in_fp32 ? " --reduce-dtype fp32" : " --reduce-dtype precision";
  }
  if (options.strategy.chosen.recompute == plan::Recompute::block) text += " --recompute";
  return text;
}

}  // namespace

DryRunLine dry_run_line(const std::string& framework, const cli::Command& command, const SimulateOptions& options,
                        const ForeignFiles& files, const Simulated& simulated) {
  const Assumed& taken = simulated.taken;
  std::string line = "shardscope dryrun --cluster " + cli::shell_word(options.cluster) + " --world-size " +
                     std::to_string(taken.world_size);
  auto [recipe, file] = recipe_of_files(files);
  const string_view name = string_view(framework).substr(0, framework.find('@'));
  const bool of_transformers = options.eager.code == like::eager::Code::hugging_face && !framework.ends_with("@1.8");
  if (recipe.empty() && of_transformers && std::ranges::find(kLoops, name) != kLoops.end()) recipe = name;
  if (recipe.empty() || !is_told(recipe, command, options, files)) return {.text = line + " -- python train.py"};
  line += " --recipe " + std::string(recipe) + file;
  if (recipe != "megatron" && recipe != "torchtitan") line += of_model(recipe, options, taken);
  return {.text = line, .is_recipe = true};
}

}  // namespace shard::commands
