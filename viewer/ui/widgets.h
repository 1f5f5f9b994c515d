// Small pieces of the side panes: facts, hints, buttons with names.
#pragma once

#include <string>
#include <string_view>

#include "viewer/ui/frame.h"

namespace shard::view {

/// A heading in bold.
void heading(std::string_view text, const Frame& frame);
/// "name   value" on one line; a value that does not fit is wrapped.
void fact(std::string_view name, std::string_view value, const Frame& frame);
/// Dim text that wraps: why something is empty, what to do.
void hint(std::string_view text, const Frame& frame);
/// A small button, known to tests as "button:LABEL".
[[nodiscard]] bool button(const char* label, const Frame& frame);
/// A button that stays pressed while `on`.
[[nodiscard]] bool toggle(const char* label, bool on, const Frame& frame);
/// Names the last ImGui item for tests.
void name_last(std::string_view name, const Frame& frame);
/// A small square of colour, at the height of the text that follows on the line.
void swatch(Color color, const Frame& frame);
/// Text at the right edge of a table's cell.
void right_text(std::string_view text, bool dim = false);

}  // namespace shard::view
