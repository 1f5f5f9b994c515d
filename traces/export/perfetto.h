// Exports a trace as Perfetto's protobuf (TrackEvent), which ui.perfetto.dev opens.
#pragma once

#include <filesystem>

#include "traces/base/result.h"
#include "traces/reader.h"

namespace shard {

/// Writes one track per rank with its lanes below it (crossing spans on lanes of their own), a counter track in bytes
/// per rank and memory and one per category, one per counter, and flows. Spans carry op, phase, step, micro-step,
/// bytes, unit and part as annotations. Names are interned. Fails with Errc::cannot_create or Errc::io; `path` appears
/// complete or not at all.
[[nodiscard]] Result<void> export_perfetto(const Trace& trace, const std::filesystem::path& path);

}  // namespace shard
