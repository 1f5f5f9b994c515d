// Comma-separated text (RFC 4180) -> rows by column name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"

namespace shard::validate {

/// Every row has as many cells as there are columns.
struct CsvTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> lines;  ///< of the text where each row begins, from 1

  /// The cell's text; empty where the table lacks the column.
  [[nodiscard]] std::string_view at(std::size_t row, std::string_view column) const;
  [[nodiscard]] bool has(std::string_view column) const;
};

/// Records end in LF or CRLF; a cell in quotes holds commas, line ends and doubled quotes. The first record names the
/// columns. `file` names the text in errors. Errc::malformed: no header, a column named twice, a quote within a bare
/// cell or after a quoted one, a quote that never ends, a record of another length than the header's.
[[nodiscard]] Result<CsvTable> parse_csv(std::string_view text, std::string_view file);

}  // namespace shard::validate
