// A recipe's program is python/recipe.py, megatron_recipe.py or torchtitan_recipe.py, which reads what was said out of
// a JSON file.
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

/// By whose name its frames are known to be none of the user's (traces/sites.cpp).
constexpr const char* kRecipeFolder = "shardscope-recipe";

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

/// Which recipes have a setting: those that train transformers' models, the Trainers alone, Megatron, torchtitan, or
/// all.
enum class Of { models, trainer, megatron, torchtitan, all };

struct Setting {
  std::string_view name;
  Of of;
  bool is_given;
};

std::array<Setting, 17> settings(const Recipe& recipe) {
  return {{{"--model", Of::models, !recipe.model.empty()},
           {"--ds-config", Of::trainer, !recipe.ds_config.empty()},
           {"--accelerate-config", Of::trainer, !recipe.accelerate_config.empty()},
           {"--training-args", Of::trainer, !recipe.training_args.empty()},
           {"--megatron", Of::megatron, !recipe.megatron.empty()},
           {"--megatron-args", Of::megatron, !recipe.megatron_args.empty()},
           {"--megatron-script", Of::megatron, !recipe.megatron_script.empty()},
           {"--torchtitan-config", Of::torchtitan, !recipe.torchtitan_config.empty()},
           {"--sequence", Of::models, recipe.sequence.has_value()},
           {"--micro-batch", Of::models, recipe.micro_batch.has_value()},
           {"--steps", Of::all, recipe.steps.has_value()},
           {"--precision", Of::models, !recipe.precision.empty()},
           {"--weights", Of::models, !recipe.weights.empty()},
           {"--attention", Of::models, !recipe.attention.empty()},
           {"--lora-rank", Of::trainer, recipe.lora_rank.has_value()},
           {"--quantize", Of::trainer, !recipe.quantize.empty()},
           {"--recompute", Of::models, recipe.recompute}}};
}

/// A setting that the recipe does not have: refused by name.
Result<void> check_settings(const Recipe& recipe) {
  for (const auto& [name, of, is_given] : settings(recipe)) {
    if (!is_given || (of == Of::all && !recipe.name.empty())) continue;
    const auto refused = [&](std::string why, std::string help) {
      return Error{Errc::contradiction, std::move(why), std::string(name), std::move(help)};
    };
    if (recipe.name.empty())
      return refused("a program of your own has its own model and settings",
                     "--recipe hf-trainer, say, in place of the program");
    if (recipe.name == "megatron" && of != Of::megatron)
      return refused("Megatron has arguments of its own for this", "the argument in the file of --megatron-args");
    if (recipe.name == "torchtitan" && of != Of::torchtitan)
      return refused("torchtitan has settings of its own for this", "the entry in the file of --torchtitan-config");
    if (recipe.name != "torchtitan" && of == Of::torchtitan)
      return refused("the recipe " + recipe.name + " runs no torchtitan", "--recipe torchtitan");
    if (recipe.name != "megatron" && of == Of::megatron)
      return refused("the recipe " + recipe.name + " runs no Megatron-LM", "--recipe megatron");
    if (recipe.name != "hf-trainer" && recipe.name != "trl-sft" && of == Of::trainer)
      return refused("the recipe " + recipe.name + " has no such setting", "--recipe hf-trainer, or trl-sft");
  }
  return {};
}

std::string text_of(std::string_view file_name) {
  for (const PythonFile& file : python_files())
    if (file.name == file_name) return {reinterpret_cast<const char*>(file.content.data()), file.content.size()};
  return {};
}

/// The two files of a run and the command that they make.
Result<std::vector<std::string>> written(const Recipe& recipe, const fs::path& folder, std::string_view program,
                                         const nlohmann::ordered_json& spec) {
  std::error_code error;
  fs::create_directories(folder / kRecipeFolder, error);
  const std::array<std::pair<fs::path, std::string>, 2> files{
      {{folder / kRecipeFolder / "spec.json", spec.dump(2)}, {folder / kRecipeFolder / program, text_of(program)}}};
  for (const auto& [path, content] : files)
    if (const Result<void> done = write_file(path, content); !done) return done.error();
  return std::vector<std::string>{recipe.python, files[1].first, files[0].first};
}

Result<std::vector<std::string>> megatron_program(const Recipe& recipe, const fs::path& folder) {
  std::error_code error;
  const fs::path clone = fs::absolute(recipe.megatron.empty() ? "." : recipe.megatron);
  const std::string script = recipe.megatron_script.empty() ? "pretrain_gpt.py" : recipe.megatron_script;
  if (!fs::exists(clone / "megatron" / "training", error) || !fs::exists(clone / script, error))
    return Error{Errc::no_input, "this is no clone of Megatron-LM: it has no " + script + " and no megatron/training",
                 clone.string(), "--megatron DIR, of a checkout of https://github.com/NVIDIA/Megatron-LM"};
  nlohmann::ordered_json spec = to_json(recipe);
  spec["megatron"] = clone.lexically_normal().string();
  return written(recipe, folder, "megatron_recipe.py", spec);
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
       "Hugging Face's Trainer; with --ds-config DeepSpeed's, with --accelerate-config FSDP's"},
      {"trl-sft", "trl-sft", "TRL's SFTTrainer, on the same files and SFTConfig in --training-args"},
      {"megatron", "megatron", "Megatron-LM's own script on --megatron-args and mock data"},
      {"torchtitan", "torchtitan", "torchtitan's own entry point on --torchtitan-config and random tokens"}};
  group.add_choice("recipe", &recipe.name, recipes,
                   "instead of a program: what is installed trains a model on random tokens, transformers' with AdamW");
  group
      .add("model", &recipe.model, "NAME|PATH",
           "its config.json, the folder of one, or a known name; no weights are read")
      .known_names(model::known_model_names);
  group.add("ds-config", &recipe.ds_config, "FILE", "DeepSpeed's configuration").reads_file();
  group.add("accelerate-config", &recipe.accelerate_config, "FILE", "what 'accelerate config' wrote").reads_file();
  group.add("training-args", &recipe.training_args, "FILE", "TrainingArguments as JSON, or SFTConfig").reads_file();
  group
      .add("megatron-args", &recipe.megatron_args, "FILE",
           "a launch script, or YAML or JSON of arguments (MODEL_ARGS, ENV_VARS)")
      .reads_file();
  group.add("megatron", &recipe.megatron, "DIR", "the clone of Megatron-LM").default_text("the current folder");
  group.add("megatron-script", &recipe.megatron_script, "NAME", "pretrain_gpt.py, pretrain_bert.py, ...")
      .default_text("as the arguments say");
  group
      .add("torchtitan-config", &recipe.torchtitan_config, "FILE", "torchtitan's TOML (0.2 runs, older files are read)")
      .reads_file();
  group.add("sequence", &recipe.sequence, "TOKENS", "of one sample").least(1).default_text("the model's, 4096 at most");
  group.add("micro-batch", &recipe.micro_batch, "SAMPLES", "of one rank").least(1).default_text("1");
  group.add("steps", &recipe.steps, "N", "of the optimizer").least(1).default_text("2");
  group.add("precision", &recipe.precision, "bf16|fp16|fp32", "autocast's or the sharding's").default_text("bf16");
  group.add("weights", &recipe.weights, "bf16|fp16|fp32", "the type that the model is loaded in")
      .default_text("transformers' own default");
  group.add("attention", &recipe.attention, "NAME", "transformers' attn_implementation (eager, sdpa, ...)")
      .default_text("transformers' own choice");
  group.add("lora-rank", &recipe.lora_rank, "R", "peft's adapters on all linear layers (hf-trainer, trl-sft)").least(1);
  group.add("quantize", &recipe.quantize, "nf4|fp4|int8", "weights below the adapters, by bitsandbytes: QLoRA");
  group.add_flag("recompute", &recipe.recompute, "gradient checkpointing, as transformers does it");
  group.add("python", &recipe.python, "PATH",
            "the interpreter that has the framework: of a recipe, or of a program that starts one (a shell script)");
}

Result<void> check_recipe(const Recipe& recipe, const std::vector<std::string>& program) {
  if (recipe.name.empty()) return check_settings(recipe);
  if (!program.empty()) return Error{Errc::usage, "both a recipe and a program", "--recipe", "one of them"};
  if (const Result<void> right = check_settings(recipe); !right) return right;
  if (recipe.name == "megatron" && recipe.megatron_args.empty())
    return Error{Errc::contradiction, "Megatron's run is its arguments", "--recipe megatron", "--megatron-args FILE"};
  if (recipe.name == "torchtitan" && recipe.torchtitan_config.empty())
    return Error{Errc::contradiction, "torchtitan's run is its file of settings", "--recipe torchtitan",
                 "--torchtitan-config FILE"};
  if (recipe.name != "megatron" && recipe.name != "torchtitan" && recipe.model.empty())
    return Error{Errc::contradiction, "a recipe trains a model", "--recipe " + recipe.name, "--model NAME|PATH"};
  for (const auto& [name, said] :
       {std::pair("--precision", &recipe.precision), std::pair("--weights", &recipe.weights)})
    if (!said->empty() && *said != "bf16" && *said != "fp16" && *said != "fp32")
      return Error{Errc::usage, "'" + *said + "' is no type", name, "bf16, fp16 or fp32"};
  if (recipe.quantize.empty()) return {};
  if (recipe.quantize != "nf4" && recipe.quantize != "fp4" && recipe.quantize != "int8")
    return Error{Errc::usage, "'" + recipe.quantize + "' is no type", "--quantize", "nf4, fp4 or int8"};
  if (!recipe.lora_rank)
    return Error{Errc::contradiction, "quantized weights are not trained, only adapters above them are", "--quantize",
                 "--lora-rank R"};
  return {};
}

nlohmann::ordered_json to_json(const Recipe& recipe) {
  nlohmann::ordered_json j;
  j["recipe"] = recipe.name;
  if (recipe.name == "megatron") {
    j["megatron_args"] = whole_path(recipe.megatron_args);
    if (!recipe.megatron_script.empty()) j["script"] = recipe.megatron_script;
    j["steps"] = recipe.steps.value_or(2);
    return j;
  }
  if (recipe.name == "torchtitan") {
    j["torchtitan_config"] = whole_path(recipe.torchtitan_config);
    j["steps"] = recipe.steps.value_or(2);
    return j;
  }
  j["model"] = recipe.model;
  if (recipe.sequence) j["sequence"] = *recipe.sequence;
  j["micro_batch"] = recipe.micro_batch.value_or(1);
  j["steps"] = recipe.steps.value_or(2);
  j["precision"] = recipe.precision.empty() ? "bf16" : recipe.precision;
  if (!recipe.weights.empty()) j["weights"] = recipe.weights;
  if (!recipe.attention.empty()) j["attention"] = recipe.attention;
  if (recipe.lora_rank) j["lora_rank"] = *recipe.lora_rank;
  if (!recipe.quantize.empty()) j["quantize"] = recipe.quantize;
  j["recompute"] = recipe.recompute;
  if (!recipe.ds_config.empty()) j["ds_config"] = whole_path(recipe.ds_config);
  if (!recipe.accelerate_config.empty()) j["accelerate_config"] = whole_path(recipe.accelerate_config);
  if (!recipe.training_args.empty()) j["training_args"] = whole_path(recipe.training_args);
  return j;
}

Result<std::vector<std::string>> recipe_program(const Recipe& recipe, const fs::path& folder) {
  if (recipe.name == "megatron") return megatron_program(recipe, folder);
  if (recipe.name == "torchtitan") return written(recipe, folder, "torchtitan_recipe.py", to_json(recipe));
  const Result<std::string> text = config_text(recipe.model);
  if (!text) return text.error();
  nlohmann::ordered_json config = nlohmann::ordered_json::parse(*text, nullptr, false);
  if (!config.is_object() || !config.contains("model_type"))
    return Error{Errc::malformed, "this is no config.json of a transformers model: it has no model_type", recipe.model,
                 "the config.json beside a model's weights on the Hugging Face Hub"};
  config.erase("_source");
  std::error_code error;
  fs::create_directories(folder / kRecipeFolder / "model", error);
  if (const Result<void> done = write_file(folder / kRecipeFolder / "model" / "config.json", config.dump(2)); !done)
    return done.error();
  nlohmann::ordered_json spec = to_json(recipe);
  spec["model"] = (folder / kRecipeFolder / "model").string();
  return written(recipe, folder, "recipe.py", spec);
}

}  // namespace shard::dryrun
