// Writes a trace in memory as a file of our own.
#pragma once

#include <filesystem>

#include "traces/base/result.h"
#include "traces/reader.h"

namespace shard {

/// Everything that the trace holds, as a closed .sst; what its file had lost is told in the metadata, "incomplete".
/// Fails as Writer does; `path` appears complete or not at all.
[[nodiscard]] Result<void> write_trace(const Trace& trace, const std::filesystem::path& path);

}  // namespace shard
