// Column widths from the widest cell.
#include "traces/base/text_table.h"

#include <algorithm>

namespace shard {
namespace {

std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

TextTable::TextTable(std::vector<std::string> header, std::size_t left_columns)
    : rows_{std::move(header)}, left_(rows_.front().size(), false) {
  std::fill_n(left_.begin(), std::min(left_columns, left_.size()), true);
}

TextTable::TextTable(std::vector<std::string> header, std::vector<bool> left)
    : rows_{std::move(header)}, left_(std::move(left)) {
  left_.resize(rows_.front().size(), false);
}

std::string TextTable::str() const {
  std::vector<std::size_t> widths(left_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size() && c < widths.size(); ++c)
      widths[c] = std::max(widths[c], columns_of(row[c]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < row.size() && c < widths.size(); ++c) {
      const std::string padding(widths[c] - columns_of(row[c]), ' ');
      line += (c == 0 ? "" : "  ") + (left_[c] ? row[c] + padding : padding + row[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace shard
