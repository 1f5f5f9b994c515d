// Column widths from the widest cell.
#include "traces/text_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

namespace shard {
namespace {

template <class... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

}  // namespace

TextTable::TextTable(std::vector<std::string> header, std::size_t left_columns)
    : rows_{std::move(header)}, left_columns_(left_columns) {}

std::string TextTable::str() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size() && c < widths.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < row.size() && c < widths.size(); ++c) {
      const std::string padding(widths[c] - row[c].size(), ' ');
      line += (c == 0 ? "" : "  ") + (c < left_columns_ ? row[c] + padding : padding + row[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string bytes_text(std::int64_t bytes) {
  const double size = std::abs(static_cast<double>(bytes));
  if (size >= 1024.0 * 1024 * 1024) return format("%.2f GiB", static_cast<double>(bytes) / (1024.0 * 1024 * 1024));
  if (size >= 1024.0 * 1024) return format("%.2f MiB", static_cast<double>(bytes) / (1024.0 * 1024));
  return format("%lld B", static_cast<long long>(bytes));
}

std::string seconds_text(double seconds) {
  const double size = std::abs(seconds);
  if (size >= 1) return format("%.3f s", seconds);
  if (size >= 1e-3) return format("%.3f ms", seconds * 1e3);
  return format("%.1f us", seconds * 1e6);
}

std::string ratio_text(double first, double second) {
  return first == 0 ? "-" : format("%.2fx", second / first);
}

}  // namespace shard
