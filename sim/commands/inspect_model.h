// `inspect` of a model: its class, and its parameters as Hugging Face's class registers them.
#pragma once

#include <optional>
#include <string>

#include "sim/cli/output.h"

namespace shard::commands {

/// `path` is a config.json, a directory that holds one, or the name of a known model.
[[nodiscard]] bool is_model(const std::string& path);

/// Prints it and returns the exit code.
[[nodiscard]] int inspect_model(const std::string& path, cli::Format format);

}  // namespace shard::commands
