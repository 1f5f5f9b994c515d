// Reads a recording of a real run, whoever made it.
#pragma once

#include <filesystem>

#include "profiler/steptime/recorded.h"
#include "traces/base/result.h"
#include "traces/reader.h"

namespace shard::steptime {

/// Of PyTorch's profiler (JSON, gzip or not), an nsys export (SQLite), or `shardscope profile` (.sst), told by content.
/// Errors: no_input; malformed; unavailable for nsys in a program built without SQLite; contradiction for another kind
/// of file, and where no kernels are in it.
[[nodiscard]] Result<Recorded> read_recording(const std::filesystem::path& path);

/// Of a trace of ours: kernels by name, those of its first rank that has any; operators where emit_nvtx named ranges.
/// Errors: contradiction where it is a prediction.
[[nodiscard]] Result<import::KinetoProgram> program_of_trace(const Trace& trace, const std::string& where);

}  // namespace shard::steptime
