// A recipe's program is python/recipe.py, which reads what was said out of a JSON file.
#include "profiler/commands/recipe.h"

#include <array>
#include <string_view>
#include <system_error>
#include <utility>

#include "profiler/dryrun/resources.h"
#include "sim/model/examples.h"
#include "sim/model/known_models.h"
#include "traces/base/output_file.h"
#include "traces/base/read_file.h"

namespace shard::dryrun {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kLongest{std::int64_t{16} << 20};

/// The text of a config.json: of a file, of a folder that has one, or of a known model.
Result<std::string> config_text(const std::string& model) {
  std::error_code error;
  const fs::path given(model);
  if (fs::is_directory(given, error)) return read_file(given / "config.json", "the model's configuration", kLongest);
  if (fs::exists(given, error)) return read_file(given, "the model's configuration", kLongest);
  if (const auto example = model::find_example_model(model)) return std::string(example->config_json);
  if (std::optional<std::string> known = model::known_model_config(model)) return std::move(*known);
  return Error{
      Errc::no_input, "there is no such file, and no model of that name is known", model,
      "a config.json as Hugging Face writes it, the folder of one, or a name that 'shardscope inspect --models' has"};
}

/// Absolute, since the program may change its directory.
std::string whole_path(const std::string& path) {
  return path.empty() ? path : fs::absolute(path).string();
}

}  // namespace

void declare_recipe(cli::Group group, Recipe& recipe) {
  const std::vector<cli::Choice<std::string>> recipes{
      {"none", "", "a program of your own"},
      {"pytorch", "pytorch", "a plain loop on one card"},
      {"ddp", "ddp", "DistributedDataParallel"},
      {"fsdp1", "fsdp1", "FullyShardedDataParallel, a unit each block"},
      {"fsdp2", "fsdp2", "fully_shard, a unit each block"},
      {"hf-trainer", "hf-trainer",
       "Hugging Face's Trainer; with --ds-config DeepSpeed's, with --accelerate-config FSDP's"}};
  group.add_choice("recipe", &recipe.name, recipes,
                   "instead of a program: what is installed trains a transformers model with AdamW on random tokens");
  group
      .add("model", &recipe.model, "NAME|PATH",
           "its config.json, the folder of one, or a known name; no weights are read")
      .known_names(model::known_model_names);
  group.add("ds-config", &recipe.ds_config, "FILE", "DeepSpeed's configuration").reads_file();
  group.add("accelerate-config", &recipe.accelerate_config, "FILE", "what 'accelerate config' wrote").reads_file();
  group.add("training-args", &recipe.training_args, "FILE", "TrainingArguments as JSON").reads_file();
  group.add("sequence", &recipe.sequence, "TOKENS", "of one sample").least(1).default_text("the model's, 4096 at most");
  group.add("micro-batch", &recipe.micro_batch, "SAMPLES", "of one rank").least(1).default_text("1");
  group.add("steps", &recipe.steps, "N", "of the optimizer").least(1).default_text("2");
  group.add("precision", &recipe.precision, "bf16|fp16|fp32", "autocast's or the sharding's").default_text("bf16");
  group.add("weights", &recipe.weights, "bf16|fp16|fp32", "the type that the model is loaded in")
      .default_text("transformers' own default");
  group.add("attention", &recipe.attention, "NAME", "transformers' attn_implementation (eager, sdpa, ...)")
      .default_text("transformers' own choice");
  group.add("lora-rank", &recipe.lora_rank, "R", "peft's adapters on all linear layers (hf-trainer)").least(1);
  group.add_flag("recompute", &recipe.recompute, "gradient checkpointing, as transformers does it");
  group.add("python", &recipe.python, "PATH", "the interpreter that has the framework");
}

Result<void> check_recipe(const Recipe& recipe, const std::vector<std::string>& program) {
  if (recipe.name.empty()) {
    const std::array<std::pair<std::string_view, bool>, 12> given{
        {{"--model", !recipe.model.empty()},
         {"--ds-config", !recipe.ds_config.empty()},
         {"--accelerate-config", !recipe.accelerate_config.empty()},
         {"--training-args", !recipe.training_args.empty()},
         {"--sequence", recipe.sequence.has_value()},
         {"--micro-batch", recipe.micro_batch.has_value()},
         {"--steps", recipe.steps.has_value()},
         {"--precision", !recipe.precision.empty()},
         {"--weights", !recipe.weights.empty()},
         {"--attention", !recipe.attention.empty()},
         {"--lora-rank", recipe.lora_rank.has_value()},
         {"--recompute", recipe.recompute}}};
    for (const auto& [name, is_given] : given)
      if (is_given)
        return Error{Errc::contradiction, "a program of your own has its own model and settings", std::string(name),
                     "--recipe hf-trainer, say, in place of the program"};
    return {};
  }
  if (!program.empty()) return Error{Errc::usage, "both a recipe and a program", "--recipe", "one of them"};
  if (recipe.model.empty())
    return Error{Errc::contradiction, "a recipe trains a model", "--recipe " + recipe.name, "--model NAME|PATH"};
  const bool trainer = recipe.name == "hf-trainer";
  const std::array<std::pair<std::string_view, bool>, 4> of_trainer{
      {{"--ds-config", !recipe.ds_config.empty()},
       {"--accelerate-config", !recipe.accelerate_config.empty()},
       {"--training-args", !recipe.training_args.empty()},
       {"--lora-rank", recipe.lora_rank.has_value()}}};
  for (const auto& [name, is_given] : of_trainer)
    if (is_given && !trainer)
      return Error{Errc::contradiction, "the recipe " + recipe.name + " has no such setting", std::string(name),
                   "--recipe hf-trainer"};
  for (const auto& [name, said] :
       {std::pair("--precision", &recipe.precision), std::pair("--weights", &recipe.weights)})
    if (!said->empty() && *said != "bf16" && *said != "fp16" && *said != "fp32")
      return Error{Errc::usage, "'" + *said + "' is no type", name, "bf16, fp16 or fp32"};
  return {};
}

nlohmann::ordered_json to_json(const Recipe& recipe) {
  nlohmann::ordered_json j;
  j["recipe"] = recipe.name;
  j["model"] = recipe.model;
  if (recipe.sequence) j["sequence"] = *recipe.sequence;
  j["micro_batch"] = recipe.micro_batch.value_or(1);
  j["steps"] = recipe.steps.value_or(2);
  j["precision"] = recipe.precision.empty() ? "bf16" : recipe.precision;
  if (!recipe.weights.empty()) j["weights"] = recipe.weights;
  if (!recipe.attention.empty()) j["attention"] = recipe.attention;
  if (recipe.lora_rank) j["lora_rank"] = *recipe.lora_rank;
  j["recompute"] = recipe.recompute;
  if (!recipe.ds_config.empty()) j["ds_config"] = whole_path(recipe.ds_config);
  if (!recipe.accelerate_config.empty()) j["accelerate_config"] = whole_path(recipe.accelerate_config);
  if (!recipe.training_args.empty()) j["training_args"] = whole_path(recipe.training_args);
  return j;
}

Result<std::vector<std::string>> recipe_program(const Recipe& recipe, const fs::path& folder) {
  const Result<std::string> text = config_text(recipe.model);
  if (!text) return text.error();
  nlohmann::ordered_json config = nlohmann::ordered_json::parse(*text, nullptr, false);
  if (!config.is_object() || !config.contains("model_type"))
    return Error{Errc::malformed, "this is no config.json of a transformers model: it has no model_type", recipe.model,
                 "the config.json beside a model's weights on the Hugging Face Hub"};
  config.erase("_source");
  std::error_code error;
  fs::create_directories(folder / "recipe" / "model", error);
  nlohmann::ordered_json spec = to_json(recipe);
  spec["model"] = (folder / "recipe" / "model").string();
  std::string program;
  for (const PythonFile& file : python_files())
    if (file.name == "recipe.py")
      program.assign(reinterpret_cast<const char*>(file.content.data()), file.content.size());
  const std::array<std::pair<fs::path, std::string>, 3> files{
      {{folder / "recipe" / "model" / "config.json", config.dump(2)},
       {folder / "recipe" / "spec.json", spec.dump(2)},
       {folder / "recipe" / "recipe.py", program}}};
  for (const auto& [path, content] : files)
    if (const Result<void> written = write_file(path, content); !written) return written.error();
  return std::vector<std::string>{recipe.python, files[2].first, files[1].first};
}

}  // namespace shard::dryrun
