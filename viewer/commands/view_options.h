// What `view` is asked to show, and how that becomes the first state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/cli/command_line.h"
#include "traces/base/result.h"
#include "viewer/ui/derived.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// Pixels of a picture or window.
struct PixelSize {
  int width = 1600;
  int height = 1000;
};

struct ViewOptions {
  std::optional<std::int64_t> at_ns;  ///< since the begin of the first trace
  bool at_peak = false;               ///< of the memory shown, instead
  std::optional<TimeRange> range;     ///< likewise
  std::optional<std::int64_t> step;   ///< shows this step of the first trace
  std::optional<std::int64_t> op;
  std::optional<std::int64_t> rank;
  std::optional<ByteRange> bytes;  ///< of an allocator's memory
  MemoryBy memory_by = MemoryBy::site;
  AlignMode align = AlignMode::step;
  ThemeName theme = ThemeName::dark;
  std::optional<Pane> pane;  ///< fills the picture
  std::optional<Pane> tab;   ///< of the side panel
  std::string find;          ///< name to search for
  PixelSize size;
  double scale = 0;  ///< 0: the screen's
};

/// Declares them in groups of `command`.
void add_view_options(cli::Command& command, ViewOptions& options);

/// The first state. Errc::contradiction for a rank, a step or an op that no trace has, and for a range beside a step.
[[nodiscard]] Result<ViewState> first_state(const Session& session, const ViewOptions& options);

}  // namespace shard::view
