// Exports a trace as Chrome's JSON trace event format, which Perfetto and chrome://tracing open.
#pragma once

#include <filesystem>

#include "traces/base/result.h"
#include "traces/reader.h"

namespace shard {

/// Writes one object: traceEvents (X for spans, C for memory and counters, s and f for flows, M for names; one process
/// per rank, one thread per lane, crossing spans on lanes of their own), otherData (the header with its metadata and
/// tables). Times are microseconds with three decimals. Memory counters are "device memory" with one series per
/// category. Text that is not UTF-8 is written with replacement characters. Fails with Errc::cannot_create or Errc::io;
/// `path` appears complete or not at all.
[[nodiscard]] Result<void> export_chrome_json(const Trace& trace, const std::filesystem::path& path);

}  // namespace shard
