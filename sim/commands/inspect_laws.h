// `inspect --laws`: a profiler's recording beside what laws of kernels say that its kernels take.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/output.h"

namespace shard::commands {

/// `cluster`: whose laws, as --cluster names it. `top`: so many of the kernels that have none.
[[nodiscard]] int inspect_laws(const std::vector<std::string>& paths, const std::string& cluster, std::size_t top,
                               cli::Format format);

}  // namespace shard::commands
