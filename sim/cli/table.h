// A result that is a table, and its four forms: aligned text, JSON, CSV, Markdown.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/cli/output.h"
#include "sim/cli/screen.h"
#include "traces/base/units.h"

namespace shard::cli {

/// A value, and how people read it where that differs ("128.0 MiB" for 134217728).
struct Cell {
  using Value = std::variant<std::monostate, std::string, std::int64_t, double, bool>;
  Value value;
  std::string shown;  ///< for text and Markdown; empty: the value itself

  Cell() = default;                                     ///< nothing: empty text, null in JSON
  Cell(std::string text) : value(std::move(text)) {}    // NOLINT: cells are written as plain values
  Cell(const char* text) : value(std::string(text)) {}  // NOLINT
  Cell(std::int64_t count) : value(count) {}            // NOLINT
  Cell(int count) : value(std::int64_t{count}) {}       // NOLINT
  Cell(bool flag) : value(flag) {}                      // NOLINT
  Cell(double number) : value(number) {}                // NOLINT
  Cell(Value raw, std::string text) : value(std::move(raw)), shown(std::move(text)) {}
};

/// Bytes as an integer, shown in MiB; elements as an integer, shown with their short form; seconds, shown with a unit.
[[nodiscard]] Cell cell(Bytes bytes);
[[nodiscard]] Cell cell(Elems elements);
[[nodiscard]] Cell cell(Seconds time);

enum class Align { left, right };

struct Column {
  std::string key;    ///< JSON key and CSV header, with the unit: "peak_device_bytes"
  std::string title;  ///< for people: "peak, device"
  Align align = Align::right;
};

/// Every row has as many cells as there are columns.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

/// The table in one form; ends in a newline. JSON here is the bare array of rows: a command that answers with more
/// than a table puts to_json(table) into its own object.
[[nodiscard]] Styled render(const Table& table, Format format, const Style& style);

/// Text as a Markdown document shows it, on one line: nothing in it is Markdown or HTML.
[[nodiscard]] std::string markdown_text(std::string_view text);

/// One object per row.
[[nodiscard]] nlohmann::ordered_json to_json(const Table& table);

}  // namespace shard::cli
