// A --model argument -> Model: the only code of this folder that reads files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model/config.h"

namespace shard::model {

/// The names of examples (examples.h) and of published models (known_models.h), sorted.
[[nodiscard]] std::vector<std::string> model_names();
[[nodiscard]] bool is_model_name(std::string_view argument);

/// `argument` is one of these names, a directory holding config.json, a path to a config.json, or such a text itself,
/// which begins with "{". Behind any of them "#layers=N" asks for N layers in place of its own. A name wins over a file
/// of that name in the working directory; write ./NAME for the file. Errors: usage (neither a known name nor anything
/// that looks like a path), no_input (absent or unreadable), and those of parse_config.
[[nodiscard]] Result<Model> read_model(std::string_view argument);

/// The same, with every value's provenance.
[[nodiscard]] Result<ConfiguredModel> read_configured_model(std::string_view argument);

/// `argument` with so many layers, in place of those that it may say itself.
[[nodiscard]] std::string with_layers(std::string_view argument, std::int64_t layers);

/// The file that `argument` leads to, whether it exists or not; none for a known name.
[[nodiscard]] std::optional<std::filesystem::path> model_file(std::string_view argument);

}  // namespace shard::model
