// Renders tables.
#include "sim/cli/table.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/cli/sizes.h"
#include "traces/base/printable.h"

namespace shard::cli {
namespace {

template <class... F>
struct on : F... {
  using F::operator()...;
};
template <class... F>
on(F...) -> on<F...>;  // clang 14 deduces no aggregates

std::string raw_text(const Cell& cell) {
  return std::visit(on{[](std::monostate) { return std::string(); }, [](const std::string& text) { return text; },
                       [](std::int64_t count) { return std::to_string(count); },
                       [](double number) {
                         std::array<char, 64> text{};
                         const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
                         return std::string(text.data(), end);
                       },
                       [](bool flag) { return std::string(flag ? "true" : "false"); }},
                    cell.value);
}

/// As people see it, on one line.
std::string shown_text(const Cell& cell) {
  if (!cell.shown.empty()) return printable_line(cell.shown);
  if (const bool* flag = std::get_if<bool>(&cell.value)) return *flag ? "yes" : "no";
  if (const double* number = std::get_if<double>(&cell.value)) {
    std::array<char, 64> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), *number, std::chars_format::general, 4).ptr;
    return {text.data(), end};
  }
  return printable_line(raw_text(cell));
}

/// Columns of a terminal: code points, which is right for all but combining and double-width characters.
std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::string blanks(width - std::min(width, columns_of(text)), ' ');
  return align == Align::left ? text + blanks : blanks + text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

std::string aligned_text(const Table& table, const Style& style) {
  std::vector<std::size_t> widths;
  for (const Column& column : table.columns) widths.push_back(columns_of(column.title));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(shown_text(row[i])));
  }
  std::string text;
  const auto add_line = [&](auto field) {
    std::string line;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      line.append(i == 0 ? "" : "  ").append(padded(field(i), widths[i], table.columns[i].align));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  };
  const std::string header = add_line([&](std::size_t i) { return table.columns[i].title; });
  text += style.color ? "\033[1m" + header + "\033[0m\n" : header + "\n";
  for (const auto& row : table.rows) text += add_line([&](std::size_t i) { return shown_text(row[i]); }) + "\n";
  return text;
}

std::string csv(const Table& table) {
  std::string text;
  for (std::size_t i = 0; i < table.columns.size(); ++i) text.append(i == 0 ? "" : ",").append(table.columns[i].key);
  text += "\n";
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) text.append(i == 0 ? "" : ",").append(csv_field(raw_text(row[i])));
    text += "\n";
  }
  return text;
}

std::string markdown(const Table& table) {
  std::string text = "|";
  for (const Column& column : table.columns) text += " " + markdown_text(column.title) + " |";
  text += "\n|";
  for (const Column& column : table.columns) text += column.align == Align::left ? " :-- |" : " --: |";
  text += "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (const Cell& cell : row) text += " " + markdown_text(shown_text(cell)) + " |";
    text += "\n";
  }
  return text;
}

}  // namespace

std::string markdown_text(std::string_view text) {
  std::string line(text);
  std::ranges::replace(line, '\n', ' ');
  std::string safe;
  for (const char c : printable_line(line)) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else
      safe.append(std::string_view("|*`[]\\").find(c) == std::string_view::npos ? 0 : 1, '\\').append(1, c);
  }
  return safe;
}

Cell cell(Bytes bytes) {
  return {bytes.count(), mib(bytes)};
}

Cell cell(Elems elements) {
  const std::string plain = std::to_string(elements.count());
  const std::string brief = short_count(elements.count());
  return {elements.count(), brief == plain ? plain : plain + " (" + brief + ")"};
}

Cell cell(Seconds time) {
  return {time.count(), duration(time)};
}

std::string render(const Table& table, Format format, const Style& style) {
  for ([[maybe_unused]] const auto& row : table.rows) assert(row.size() == table.columns.size());
  switch (format) {
    case Format::table: return aligned_text(table, style);
    case Format::json: return json_text(to_json(table));
    case Format::csv: return csv(table);
    case Format::markdown: return markdown(table);
  }
  return {};
}

nlohmann::ordered_json to_json(const Table& table) {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& row : table.rows) {
    auto object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::visit(on{[&](std::monostate) { object[table.columns[i].key] = nullptr; },
                    [&](const auto& value) { object[table.columns[i].key] = value; }},
                 row[i].value);
    }
    rows.push_back(std::move(object));
  }
  return rows;
}

}  // namespace shard::cli
