// `inspect --models` and `inspect --clusters`: what is known by name, with the source of its figures.
#pragma once

#include "sim/cli/output.h"

namespace shard::commands {

/// Prints the models that --model knows by name; returns the exit code.
[[nodiscard]] int list_models(cli::Format format);
/// Prints the machines that --cluster knows by name; returns the exit code.
[[nodiscard]] int list_clusters(cli::Format format);

}  // namespace shard::commands
