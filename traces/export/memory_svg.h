// Exports memory over time, stacked by category, as a picture (SVG).
#pragma once

#include <filesystem>

#include "traces/base/result.h"
#include "traces/reader.h"

namespace shard {

struct MemorySvgOptions {
  int width = 1200;        ///< pixels
  int panel_height = 260;  ///< pixels of each memory of each rank
  int max_panels = 16;     ///< further ranks and memories are left out, which the picture says
};

/// One panel per rank and memory: bytes by category stacked, the peak marked with its time and size, the capacity as a
/// line where the trace knows it. Exact at any width: of the samples that share a pixel the one with the largest sum is
/// drawn, with its own stack.
/// Fails with Errc::contradiction for a trace without memory events, Errc::cannot_create or Errc::io; `path` appears
/// complete or not at all.
[[nodiscard]] Result<void> export_memory_svg(const Trace& trace, const std::filesystem::path& path,
                                             const MemorySvgOptions& options = {});

}  // namespace shard
