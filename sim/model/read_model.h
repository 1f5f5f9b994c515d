// A --model argument -> Model: the only code of this folder that reads files.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "sim/model/config.h"

namespace shard::model {

/// `argument` is an example's name (examples.h), a directory holding config.json, a path to a config.json, or such a
/// text itself, which begins with "{". An example's name wins over a file of that name in the working directory; write
/// ./NAME for the file.
/// Errors: usage (neither a known name nor anything that looks like a path), no_input (absent or unreadable), and
/// those of parse_config.
[[nodiscard]] Result<Model> read_model(std::string_view argument);

/// The same, with every value's provenance.
[[nodiscard]] Result<ConfiguredModel> read_configured_model(std::string_view argument);

/// The file that `argument` leads to, whether it exists or not; none for an example's name.
[[nodiscard]] std::optional<std::filesystem::path> model_file(std::string_view argument);

}  // namespace shard::model
