// Small pieces of the side panes: facts, hints, buttons with names.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "viewer/ui/frame.h"

namespace shard::view {

/// A heading in bold.
void heading(std::string_view text, const Frame& frame);
/// "name   value" on one line, on two where the name is long; a value that does not fit is wrapped.
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
/// A line of a table that can be clicked, over all its columns. A name too long for its cell loses its first parts,
/// then its end; hovering shows all of it. `id` tells lines of one table apart.
[[nodiscard]] bool table_line(std::string_view name, int id, const Frame& frame);
/// The heading of a table with `titles`; those from `right_from` on stand over numbers, at the right.
void table_heading(std::initializer_list<const char*> titles, int right_from, const Frame& frame);
/// Text in a table's cell, shortened as the name of a line is.
void cell_text(std::string_view text);
/// Text at the right edge of a table's cell.
void right_text(std::string_view text, bool dim = false);

}  // namespace shard::view
