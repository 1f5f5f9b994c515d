// Aligned columns of text, and bytes and times as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shard {

/// Rows under a header, columns two spaces apart: the first `left_columns` aligned left, the others right.
class TextTable {
 public:
  TextTable(std::vector<std::string> header, std::size_t left_columns);
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const { return rows_.size() == 1; }
  /// Ends in a newline.
  [[nodiscard]] std::string str() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::size_t left_columns_;
};

/// "1536 B", "1.50 MiB", "12.00 GiB".
[[nodiscard]] std::string bytes_text(std::int64_t bytes);
/// "12.3 us", "4.56 ms", "7.89 s".
[[nodiscard]] std::string seconds_text(double seconds);
/// "1.07x", "-" where the first is 0.
[[nodiscard]] std::string ratio_text(double first, double second);

}  // namespace shard
