// The published models that the program knows by name: their sizes, as their config.json on the Hugging Face Hub says.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shard::model {

/// sim/model/known_models.json, embedded when the program is built: an object of config.json texts by name, each with
/// the repository that it was read from as `_source`.
struct KnownModelsText {
  std::string_view name;  ///< the file's
  std::string_view json;
};
[[nodiscard]] std::span<const KnownModelsText> known_models_text();

/// The config.json of "llama-3.1-8b"; none for a name that is not known.
[[nodiscard]] std::optional<std::string> known_model_config(std::string_view name);

/// The repository on the Hugging Face Hub that it was read from; empty for a name that is not known.
[[nodiscard]] std::string known_model_source(std::string_view name);

/// Sorted.
[[nodiscard]] std::vector<std::string> known_model_names();

}  // namespace shard::model
