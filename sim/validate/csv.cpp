// The reader of comma-separated text.
#include "sim/validate/csv.h"

#include <algorithm>
#include <utility>

namespace shard::validate {
namespace {

/// One record after the other.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  [[nodiscard]] bool done() const { return at_ >= text_.size(); }
  [[nodiscard]] std::size_t line() const { return line_; }

  Result<std::vector<std::string>> record() {
    std::vector<std::string> cells;
    while (true) {
      Result<std::string> cell = at_ < text_.size() && text_[at_] == '"' ? quoted() : bare();
      if (!cell) return cell.error();
      cells.push_back(std::move(*cell));
      if (done()) return cells;
      const char c = text_[at_++];
      if (c == ',') continue;
      if (c == '\r' && at_ < text_.size() && text_[at_] == '\n') ++at_;
      ++line_;
      return cells;
    }
  }

 private:
  [[nodiscard]] Error malformed(std::string what, std::string help) const {
    return {.code = Errc::malformed,
            .what = std::move(what),
            .where = std::string(file_) + ":" + std::to_string(line_),
            .help = std::move(help)};
  }

  Result<std::string> bare() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r') {
      if (text_[at_] == '"')
        return malformed("a quote within a cell that has none around it", "write it twice, and the cell in quotes");
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  Result<std::string> quoted() {
    std::string cell;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] != '"') {
        if (text_[at_] == '\n') ++line_;
        cell += text_[at_];
        continue;
      }
      ++at_;
      if (at_ < text_.size() && text_[at_] == '"') {
        cell += '"';
        continue;
      }
      if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r')
        return malformed("text after a closing quote", "a quote within a cell is written twice");
      return cell;
    }
    return malformed("a quote that never ends", "close it");
  }

  std::string_view text_, file_;
  std::size_t at_ = 0, line_ = 1;
};

}  // namespace

bool CsvTable::has(std::string_view column) const {
  return std::ranges::find(columns, column) != columns.end();
}

std::string_view CsvTable::at(std::size_t row, std::string_view column) const {
  const auto found = std::ranges::find(columns, column);
  if (found == columns.end()) return {};
  return rows[row][static_cast<std::size_t>(found - columns.begin())];
}

Result<CsvTable> parse_csv(std::string_view text, std::string_view file) {
  const auto malformed = [&](std::size_t line, std::string what, std::string help) {
    return Error{.code = Errc::malformed,
                 .what = std::move(what),
                 .where = std::string(file) + ":" + std::to_string(line),
                 .help = std::move(help)};
  };
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  CsvReader reader(text, file);
  if (reader.done()) return malformed(1, "there is no header", "name the columns in the first line");
  CsvTable table;
  Result<std::vector<std::string>> header = reader.record();
  if (!header) return header.error();
  table.columns = std::move(*header);
  std::vector<std::string> sorted = table.columns;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    return malformed(1, "two columns are named '" + *twice + "'", "give each a name of its own");
  while (!reader.done()) {
    const std::size_t line = reader.line();
    Result<std::vector<std::string>> cells = reader.record();
    if (!cells) return cells.error();
    if (cells->size() == 1 && cells->front().empty() && table.columns.size() > 1) continue;  // an empty line
    if (cells->size() != table.columns.size())
      return malformed(line,
                       "a row of " + std::to_string(cells->size()) + " cells under " +
                           std::to_string(table.columns.size()) + " columns",
                       "give every row one cell per column; a comma within a cell needs quotes around it");
    table.rows.push_back(std::move(*cells));
    table.lines.push_back(line);
  }
  return table;
}

}  // namespace shard::validate
