// `dryrun --recipe`: runs of the installed framework that need no script of the user's, only files that people have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/command_line.h"
#include "traces/base/result.h"

namespace shard::dryrun {

/// What the user said; what is empty is the framework's own default, or as dryrun/python/recipe.py says.
struct Recipe {
  std::string name;  ///< empty: none, the program is the user's
  std::string python = "python3";
  std::string model, ds_config, accelerate_config, training_args, attention, precision, weights, reduce_dtype, quantize;
  std::string megatron, megatron_args, megatron_script;  ///< a folder, a file, a file's name in the folder
  std::string torchtitan_config, llama_factory_config, axolotl_config;  ///< files
  std::optional<std::int64_t> sequence, micro_batch, steps, lora_rank;
  bool recompute = false;
};

void declare_recipe(cli::Group group, Recipe& recipe);

/// What --ds-config's file has; null where there is none, or it is no JSON, which DeepSpeed will say.
[[nodiscard]] nlohmann::json deepspeed_config(const Recipe& recipe);

/// Samples of one rank: as was said, or as DeepSpeed's file does, with which the Trainer must agree.
[[nodiscard]] std::int64_t micro_batch_of(const Recipe& recipe);

/// What FSDP's recipe sums gradients in: "fp32", or "precision", what --precision says.
[[nodiscard]] std::string reduce_dtype_of(const Recipe& recipe);

/// Options of recipes given without one are a contradiction, and so is a program beside one.
[[nodiscard]] Result<void> check_recipe(const Recipe& recipe, const std::vector<std::string>& program);

/// The config.json of a model: of a file, of a folder that has one, or of a known name. Errc::no_input,
/// Errc::malformed.
[[nodiscard]] Result<nlohmann::ordered_json> model_config(const std::string& model);

/// The program that runs it; its files are written into the folder of the run. Errc::no_input, Errc::malformed where
/// the model is no config.json and no known name, or the folder is not Megatron-LM's.
[[nodiscard]] Result<std::vector<std::string>> recipe_program(const Recipe& recipe,
                                                              const std::filesystem::path& folder);

/// What recipe.py reads, without paths of the run's folder; for JSON answers.
[[nodiscard]] nlohmann::ordered_json to_json(const Recipe& recipe);

}  // namespace shard::dryrun
