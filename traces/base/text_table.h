// Aligned columns of text.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace shard {

/// Rows under a header, columns two spaces apart. A column is as wide as the widest of its cells on a terminal: in code
/// points, which is right for all but combining and double-width characters.
class TextTable {
 public:
  /// The first `left_columns` are aligned left, the others right.
  TextTable(std::vector<std::string> header, std::size_t left_columns);
  /// Aligned left where `left` says so.
  TextTable(std::vector<std::string> header, std::vector<bool> left);
  /// Cells beyond the header's are not shown.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const { return rows_.size() == 1; }
  /// Ends in a newline.
  [[nodiscard]] std::string str() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> left_;
};

}  // namespace shard
