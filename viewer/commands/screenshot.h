// One picture of traces, as a file: what `view --screenshot` and `convert` to PNG do.
#pragma once

#include <string>

#include "viewer/commands/load_session.h"
#include "viewer/commands/view_options.h"

namespace shard::view {

/// Draws what `options` say of `sources` into a PNG file at `path`, and prints notes on what could not be read. With
/// `json`, what it cost on stdout, as one object of `command`. Returns the process's exit code, the error printed.
[[nodiscard]] int take_screenshot(const Sources& sources, const ViewOptions& options, const std::string& path,
                                  const std::string& command, bool json);

}  // namespace shard::view
