// Exports a trace as tables of comma-separated values.
#pragma once

#include <filesystem>

#include "traces/base/result.h"
#include "traces/reader.h"

namespace shard {

/// One table with a header line: a row per span, then per memory event, counter sample and flow, told apart by the
/// column `kind` (span, memory, counter, flow); what a kind does not have is empty. Times are nanoseconds, sizes bytes.
/// Text is quoted where it has to be (RFC 4180), and on one line (printable_line()).
/// Fails with Errc::cannot_create or Errc::io; `path` appears complete or not at all.
[[nodiscard]] Result<void> export_csv(const Trace& trace, const std::filesystem::path& path);

}  // namespace shard
