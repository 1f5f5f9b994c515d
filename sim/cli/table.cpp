// Renders tables.
#include "sim/cli/table.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <nlohmann/json.hpp>

#include "sim/cli/sizes.h"
#include "traces/base/numbers.h"
#include "traces/base/printable.h"
#include "traces/base/text_table.h"

namespace shard::cli {
namespace {

template <class... F>
struct on : F... {
  using F::operator()...;
};
template <class... F>
on(F...) -> on<F...>;  // clang 14 deduces no aggregates

std::string raw_text(const Cell& cell) {
  return std::visit(
      on{[](std::monostate) { return std::string(); }, [](const std::string& text) { return text; },
         [](std::int64_t count) { return std::to_string(count); }, [](double number) { return shortest(number); },
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

Styled aligned_text(const Table& table, const Style& style) {
  std::vector<std::string> titles;
  std::vector<bool> left;
  for (const Column& column : table.columns) {
    titles.push_back(printable_line(column.title));
    left.push_back(column.align == Align::left);
  }
  TextTable shown(std::move(titles), std::move(left));
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    for (const Cell& cell : row) cells.push_back(shown_text(cell));
    shown.add(std::move(cells));
  }
  const std::string text = shown.str();
  if (!style.color) return text;
  const std::size_t titles_end = text.find('\n');
  return Styled().add(Mark::bold).add(text.substr(0, titles_end)).add(Mark::plain).add(text.substr(titles_end));
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

Styled render(const Table& table, Format format, const Style& style) {
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
