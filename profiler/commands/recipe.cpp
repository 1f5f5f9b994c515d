// A recipe's program is python/recipe.py, or that of a framework that has a file of its own for its settings, and reads
// what was said out of a JSON file.
#include "profiler/commands/recipe.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "profiler/dryrun/resources.h"
#include "sim/model/examples.h"
#include "sim/model/known_models.h"
#include "sim/model/python_json.h"
#include "traces/base/output_file.h"
#include "traces/base/read_file.h"

namespace shard::dryrun {
namespace {

namespace fs = std::filesystem;

/// By whose name its frames are known to be none of the user's (traces/sites.cpp).
constexpr const char* kRecipeFolder = "shardscope-recipe";

constexpr Bytes kLongest{std::int64_t{16} << 20};
/// What programs import.
constexpr std::array<std::string_view, 3> kShared{"apex_parts.py", "fine_tuning.py", "model_samples.py"};

/// The text of a config.json: of a file, of a folder that has one, or of a known model.
Result<std::string> config_text(const std::string& model) {
  std::error_code error;
  const fs::path given(model);
  if (fs::is_directory(given, error)) return read_file(given / "config.json", "the model's configuration", kLongest);
  if (fs::exists(given, error)) return read_file(given, "the model's configuration", kLongest);
  if (const auto example = model::find_example_model(model)) return std::string(example->config_json);
  if (const std::optional<std::string> known = model::known_model_config(model)) {
    nlohmann::ordered_json config = nlohmann::ordered_json::parse(*known);
    config.erase("_source");  // ours
    return config.dump(2);
  }
  return Error{
      Errc::no_input, "there is no such file, and no model of that name is known", model,
      "a config.json as Hugging Face writes it, the folder of one, or a name that 'shardscope inspect --models' has"};
}

/// `model`: as it was given, for errors.
Result<nlohmann::ordered_json> parsed(const std::string& text, const std::string& model) {
  const char* const help = "the config.json beside a model's weights on the Hugging Face Hub";
  nlohmann::ordered_json config = nlohmann::ordered_json::parse(model::without_infinities(text), nullptr, false);
  if (config.is_discarded()) return Error{Errc::malformed, "this is not JSON", model, help};
  if (!config.is_object() || !config.contains("model_type"))
    return Error{Errc::malformed, "this is no config.json of a transformers model: it has no model_type", model, help};
  return config;
}

/// Absolute, since the program may change its directory.
std::string whole_path(const std::string& path) {
  return path.empty() ? path : fs::absolute(path).string();
}

/// A framework whose run is a file of its own. Its recipe has few settings beside that.
struct Framework {
  std::string_view recipe, title;
  std::string_view option;
  std::string Recipe::*file;
  std::string_view key;      ///< of the file in what the program reads
  std::string_view program;  ///< among python_files()
};

constexpr std::array kFrameworks{
    Framework{"megatron", "Megatron", "--megatron-args", &Recipe::megatron_args, "megatron_args", "megatron_recipe.py"},
    Framework{"torchtitan", "torchtitan", "--torchtitan-config", &Recipe::torchtitan_config, "torchtitan_config",
              "torchtitan_recipe.py"},
    Framework{"llama-factory", "LLaMA-Factory", "--llama-factory-config", &Recipe::llama_factory_config,
              "llama_factory_config", "llama_factory_recipe.py"},
    Framework{"axolotl", "axolotl", "--axolotl-config", &Recipe::axolotl_config, "axolotl_config",
              "axolotl_recipe.py"}};

const Framework* framework_of(std::string_view recipe) {
  const auto found = std::ranges::find(kFrameworks, recipe, &Framework::recipe);
  return found == kFrameworks.end() ? nullptr : &*found;
}

/// Recipes by name; those of loops are all that are no framework's.
struct Setting {
  std::string_view name;
  bool is_given;
  bool of_loops = false;                  ///< pytorch, ddp, fsdp1, fsdp2
  std::vector<std::string_view> of = {};  ///< of these, too
};

bool has_setting(const Recipe& recipe, const Setting& setting) {
  const bool is_loop = !framework_of(recipe.name) && recipe.name != "hf-trainer" && recipe.name != "trl-sft";
  return (is_loop && setting.of_loops) || std::ranges::find(setting.of, recipe.name) != setting.of.end();
}

std::vector<Setting> settings(const Recipe& recipe) {
  std::vector<Setting> all{
      {"--model", !recipe.model.empty(), true, {"hf-trainer", "trl-sft", "llama-factory", "axolotl"}},
      {"--ds-config", !recipe.ds_config.empty(), false, {"hf-trainer", "trl-sft"}},
      {"--accelerate-config", !recipe.accelerate_config.empty(), false, {"hf-trainer", "trl-sft", "llama-factory"}},
      {"--training-args", !recipe.training_args.empty(), false, {"hf-trainer", "trl-sft"}},
      {"--megatron", !recipe.megatron.empty(), false, {"megatron"}},
      {"--megatron-script", !recipe.megatron_script.empty(), false, {"megatron"}},
      {"--sequence", recipe.sequence.has_value(), true, {"hf-trainer", "trl-sft"}},
      {"--micro-batch", recipe.micro_batch.has_value(), true, {"hf-trainer", "trl-sft"}},
      {"--steps", recipe.steps.has_value(), true, {"hf-trainer", "trl-sft"}},
      {"--precision", !recipe.precision.empty(), true, {"hf-trainer", "trl-sft"}},
      {"--weights", !recipe.weights.empty(), true, {"hf-trainer", "trl-sft"}},
      {"--reduce-dtype", !recipe.reduce_dtype.empty(), false, {"fsdp1", "fsdp2"}},
      {"--attention", !recipe.attention.empty(), true, {"hf-trainer", "trl-sft"}},
      {"--lora-rank", recipe.lora_rank.has_value(), false, {"hf-trainer", "trl-sft"}},
      {"--quantize", !recipe.quantize.empty(), false, {"hf-trainer", "trl-sft"}},
      {"--recompute", recipe.recompute, true, {"hf-trainer", "trl-sft"}}};
  for (const Framework& each : kFrameworks) {
    all.push_back({each.option, !(recipe.*each.file).empty(), false, {each.recipe}});
    std::ranges::find(all, "--steps", &Setting::name)->of.push_back(each.recipe);
  }
  return all;
}

/// A setting that the recipe does not have: refused by name.
Result<void> check_settings(const Recipe& recipe) {
  const Framework* framework = framework_of(recipe.name);
  for (const Setting& setting : settings(recipe)) {
    if (!setting.is_given || (!recipe.name.empty() && has_setting(recipe, setting))) continue;
    const auto refused = [&](std::string why, std::string help) {
      return Error{Errc::contradiction, std::move(why), std::string(setting.name), std::move(help)};
    };
    if (recipe.name.empty())
      return refused("a program of your own has its own model and settings",
                     "--recipe hf-trainer, say, in place of the program");
    const Framework* other = setting.of.size() == 1 ? framework_of(setting.of.front()) : nullptr;
    if (other != nullptr)
      return refused("the recipe " + recipe.name + " does not run " + std::string(other->title),
                     "--recipe " + std::string(other->recipe));
    if (framework != nullptr)
      return refused(std::string(framework->title) + " has settings of its own for this",
                     "the entry in the file of " + std::string(framework->option));
    std::string recipes;
    for (std::string_view each : setting.of) recipes += (recipes.empty() ? "" : ", or ") + std::string(each);
    return refused("the recipe " + recipe.name + " has no such setting", "--recipe " + recipes);
  }
  return {};
}

std::string text_of(std::string_view file_name) {
  for (const PythonFile& file : python_files())
    if (file.name == file_name) return {reinterpret_cast<const char*>(file.content.data()), file.content.size()};
  return {};
}

/// The files of a run and the command that they make.
Result<std::vector<std::string>> written(const Recipe& recipe, const fs::path& folder, std::string_view program,
                                         const nlohmann::ordered_json& spec) {
  std::error_code error;
  fs::create_directories(folder / kRecipeFolder, error);
  std::vector<std::pair<fs::path, std::string>> files{{folder / kRecipeFolder / "spec.json", spec.dump(2)},
                                                      {folder / kRecipeFolder / program, text_of(program)}};
  for (const std::string_view each : kShared) files.emplace_back(folder / kRecipeFolder / each, text_of(each));
  for (const auto& [path, content] : files)
    if (const Result<void> done = write_file(path, content); !done) return done.error();
  return std::vector<std::string>{recipe.python, files[1].first, files[0].first};
}

/// Megatron-LM's script: a path from here, or a name within the clone.
std::string script_of(const Recipe& recipe) {
  if (recipe.megatron_script.empty()) return "pretrain_gpt.py";
  const fs::path script = recipe.megatron_script;
  std::error_code error;
  return script.has_parent_path() && fs::exists(script, error) ? whole_path(script) : script.string();
}

/// Where a clone may be: what --megatron says, or else this folder and those that script and arguments lie in.
std::vector<fs::path> places_of_clone(const Recipe& recipe) {
  if (!recipe.megatron.empty()) return {fs::absolute(recipe.megatron)};
  std::vector<fs::path> places{fs::absolute(".")};
  for (const fs::path file : {recipe.megatron_script, recipe.megatron_args})
    if (!file.empty())
      for (fs::path at = fs::absolute(file).parent_path(); at != at.root_path(); at = at.parent_path())
        places.push_back(at);
  return places;
}

Result<std::string> megatron_clone(const Recipe& recipe) {
  const std::string script = script_of(recipe);
  const std::vector<fs::path> places = places_of_clone(recipe);
  const auto clone = std::ranges::find_if(places, [&](const fs::path& place) {
    std::error_code error;
    return fs::exists(place / "megatron" / "training", error) && fs::exists(place / script, error);
  });
  if (clone == places.end())
    return Error{Errc::no_input, "this is no clone of Megatron-LM: it has no " + script + " and no megatron/training",
                 places.front().lexically_normal().string(),
                 "--megatron DIR, of a checkout of https://github.com/NVIDIA/Megatron-LM"};
  return clone->lexically_normal().string();
}

/// A folder with the model's config.json alone.
Result<std::string> model_folder(const std::string& model, const fs::path& folder) {
  const Result<std::string> text = config_text(model);
  if (!text) return text.error();
  if (const Result<nlohmann::ordered_json> config = parsed(*text, model); !config) return config.error();
  std::error_code error;
  fs::create_directories(folder / kRecipeFolder / "model", error);
  if (const Result<void> done = write_file(folder / kRecipeFolder / "model" / "config.json", *text); !done)
    return done.error();
  return (folder / kRecipeFolder / "model").string();
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
      {"torchtitan", "torchtitan", "torchtitan's own entry point on --torchtitan-config and random tokens"},
      {"llama-factory", "llama-factory", "LLaMA-Factory's own run on --llama-factory-config and random words"},
      {"axolotl", "axolotl", "axolotl's own run on --axolotl-config and random tokens"}};
  group
      .add_choice("recipe", &recipe.name, recipes,
                  "instead of a program: what is installed trains a model on random tokens, transformers' with AdamW")
      .common();
  group
      .add("model", &recipe.model, "NAME|PATH",
           "its config.json, the folder of one, or a known name; no weights are read")
      .common()
      .known_names(model::known_model_names);
  group.add("ds-config", &recipe.ds_config, "FILE", "DeepSpeed's configuration").common().reads_file();
  group.add("accelerate-config", &recipe.accelerate_config, "FILE", "what 'accelerate config' wrote")
      .common()
      .reads_file();
  group.add("training-args", &recipe.training_args, "FILE", "TrainingArguments as JSON, or SFTConfig").reads_file();
  group
      .add("megatron-args", &recipe.megatron_args, "FILE",
           "a launch script, or YAML or JSON of arguments (MODEL_ARGS, ENV_VARS)")
      .reads_file();
  group.add("megatron", &recipe.megatron, "DIR", "the clone of Megatron-LM")
      .default_text("the current folder, or what the arguments' file or the script lies in");
  group.add("megatron-script", &recipe.megatron_script, "NAME", "pretrain_gpt.py, pretrain_bert.py, ...")
      .default_text("as the arguments say");
  group
      .add("torchtitan-config", &recipe.torchtitan_config, "FILE", "torchtitan's TOML (0.2 runs, older files are read)")
      .reads_file();
  group
      .add("llama-factory-config", &recipe.llama_factory_config, "FILE",
           "LLaMA-Factory's YAML, of whose model --model has the config.json")
      .reads_file();
  group.add("axolotl-config", &recipe.axolotl_config, "FILE", "axolotl's YAML, likewise").reads_file();
  group.add("sequence", &recipe.sequence, "TOKENS", "of one sample")
      .least(1)
      .default_text("the model's, 4096 at most")
      .common();
  group.add("micro-batch", &recipe.micro_batch, "SAMPLES", "of one rank")
      .least(1)
      .default_text("what --ds-config says, or 1")
      .common();
  group.add("steps", &recipe.steps, "N", "of the optimizer").least(1).default_text("2");
  group.add("precision", &recipe.precision, "bf16|fp16|fp32", "autocast's or the sharding's")
      .default_text("bf16")
      .common();
  group.add("weights", &recipe.weights, "bf16|fp16|fp32", "the type that the model is loaded in")
      .default_text("transformers' own default");
  group.add("reduce-dtype", &recipe.reduce_dtype, "fp32|precision", "what FSDP sums gradients in: fp32 or --precision")
      .default_text("fsdp2: fp32; fsdp1: precision");
  group.add("attention", &recipe.attention, "NAME", "transformers' attn_implementation (eager, sdpa, ...)")
      .default_text("transformers' own choice");
  group.add("lora-rank", &recipe.lora_rank, "R", "peft's adapters on all linear layers (hf-trainer, trl-sft)")
      .least(1)
      .common();
  group.add("quantize", &recipe.quantize, "nf4|fp4|int8", "weights below the adapters, by bitsandbytes: QLoRA")
      .common();
  group.add_flag("recompute", &recipe.recompute, "gradient checkpointing, as transformers does it").common();
  group
      .add("python", &recipe.python, "PATH",
           "the interpreter that has the framework: of a recipe, or of a program that starts one (a shell script)")
      .common();
}

std::string reduce_dtype_of(const Recipe& recipe) {
  return !recipe.reduce_dtype.empty() ? recipe.reduce_dtype : recipe.name == "fsdp2" ? "fp32" : "precision";
}

Result<void> check_recipe(const Recipe& recipe, const std::vector<std::string>& program) {
  if (recipe.name.empty()) return check_settings(recipe);
  if (!program.empty()) return Error{Errc::usage, "both a recipe and a program", "--recipe", "one of them"};
  if (const Result<void> right = check_settings(recipe); !right) return right;
  const Framework* framework = framework_of(recipe.name);
  if (framework != nullptr && (recipe.*framework->file).empty())
    return Error{Errc::contradiction, std::string(framework->title) + "'s run is its file of settings",
                 "--recipe " + recipe.name, std::string(framework->option) + " FILE"};
  if (framework == nullptr && recipe.model.empty())
    return Error{Errc::contradiction, "a recipe trains a model", "--recipe " + recipe.name, "--model NAME|PATH"};
  for (const auto& [name, said] :
       {std::pair("--precision", &recipe.precision), std::pair("--weights", &recipe.weights)})
    if (!said->empty() && *said != "bf16" && *said != "fp16" && *said != "fp32")
      return Error{Errc::usage, "'" + *said + "' is no type", name, "bf16, fp16 or fp32"};
  if (!recipe.reduce_dtype.empty() && recipe.reduce_dtype != "fp32" && recipe.reduce_dtype != "precision")
    return Error{Errc::usage, "'" + recipe.reduce_dtype + "' is no type", "--reduce-dtype", "fp32 or precision"};
  if (recipe.quantize.empty()) return {};
  if (recipe.quantize != "nf4" && recipe.quantize != "fp4" && recipe.quantize != "int8")
    return Error{Errc::usage, "'" + recipe.quantize + "' is no type", "--quantize", "nf4, fp4 or int8"};
  if (!recipe.lora_rank)
    return Error{Errc::contradiction, "quantized weights are not trained, only adapters above them are", "--quantize",
                 "--lora-rank R"};
  return {};
}

nlohmann::json deepspeed_config(const Recipe& recipe) {
  std::ifstream in(recipe.ds_config);
  nlohmann::json said = nlohmann::json::parse(in, nullptr, false, true);
  return said.is_object() ? said : nlohmann::json();
}

std::int64_t micro_batch_of(const Recipe& recipe) {
  constexpr std::int64_t kUsual = 1;
  if (recipe.micro_batch || recipe.ds_config.empty()) return recipe.micro_batch.value_or(kUsual);
  const nlohmann::json said = deepspeed_config(recipe);
  const auto samples = said.find("train_micro_batch_size_per_gpu");  // "auto" is the Trainer's own
  return samples != said.end() && samples->is_number_integer() && *samples > 0 ? samples->get<std::int64_t>() : kUsual;
}

nlohmann::ordered_json to_json(const Recipe& recipe) {
  nlohmann::ordered_json j;
  j["recipe"] = recipe.name;
  if (const Framework* framework = framework_of(recipe.name)) {
    j[framework->key] = whole_path(recipe.*framework->file);
    if (!recipe.model.empty()) j["model"] = recipe.model;
    if (!recipe.accelerate_config.empty()) j["accelerate_config"] = whole_path(recipe.accelerate_config);
    if (!recipe.megatron_script.empty()) j["script"] = recipe.megatron_script;
    j["steps"] = recipe.steps.value_or(2);
    return j;
  }
  j["model"] = recipe.model;
  if (recipe.sequence) j["sequence"] = *recipe.sequence;
  j["micro_batch"] = micro_batch_of(recipe);
  j["steps"] = recipe.steps.value_or(2);
  j["precision"] = recipe.precision.empty() ? "bf16" : recipe.precision;
  if (!recipe.weights.empty()) j["weights"] = recipe.weights;
  if (recipe.name == "fsdp1" || recipe.name == "fsdp2") j["reduce_dtype"] = reduce_dtype_of(recipe);
  if (!recipe.attention.empty()) j["attention"] = recipe.attention;
  if (recipe.lora_rank) j["lora_rank"] = *recipe.lora_rank;
  if (!recipe.quantize.empty()) j["quantize"] = recipe.quantize;
  j["recompute"] = recipe.recompute;
  if (!recipe.ds_config.empty()) j["ds_config"] = whole_path(recipe.ds_config);
  if (!recipe.accelerate_config.empty()) j["accelerate_config"] = whole_path(recipe.accelerate_config);
  if (!recipe.training_args.empty()) j["training_args"] = whole_path(recipe.training_args);
  return j;
}

Result<nlohmann::ordered_json> model_config(const std::string& model) {
  const Result<std::string> text = config_text(model);
  if (!text) return text.error();
  return parsed(*text, model);
}

Result<std::vector<std::string>> recipe_program(const Recipe& recipe, const fs::path& folder) {
  nlohmann::ordered_json spec = to_json(recipe);
  if (recipe.name == "megatron") {
    Result<std::string> clone = megatron_clone(recipe);
    if (!clone) return clone.error();
    const fs::path script = script_of(recipe);
    if (script.is_absolute()) spec["script"] = script.lexically_relative(*clone).string();
    spec["megatron"] = *std::move(clone);
  }
  if (!recipe.model.empty()) {
    Result<std::string> model = model_folder(recipe.model, folder);
    if (!model) return model.error();
    spec["model"] = *std::move(model);
  }
  const Framework* framework = framework_of(recipe.name);
  return written(recipe, folder, framework != nullptr ? framework->program : "recipe.py", spec);
}

}  // namespace shard::dryrun
