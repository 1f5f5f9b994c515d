// What completes a command line in bash and in zsh, made of the commands' own descriptions.
#pragma once

#include <span>
#include <string>

#include "sim/cli/describe.h"

namespace shard::cli {

/// A script for bash to source (bash-completion finds it as completions/shardscope).
[[nodiscard]] std::string bash_completion(std::span<const CommandDescription> commands);
/// A function for zsh's fpath, as _shardscope.
[[nodiscard]] std::string zsh_completion(std::span<const CommandDescription> commands);

}  // namespace shard::cli
