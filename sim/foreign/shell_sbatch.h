// #SBATCH lines of a script: what SLURM is asked for.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/foreign/shell_text.h"

namespace shard::foreign {

/// Names without dashes, "nodes" for -N; at most 100.
[[nodiscard]] std::vector<std::pair<std::string, ShellWord>> sbatch_lines(std::string_view source);

}  // namespace shard::foreign
