// Sums over a selected range of time: spans by name, class, stream or rank, and memory by category. Rows sort; CSV.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewer/index/document.h"

namespace shard::view {

enum class GroupBy : std::uint8_t { name, span_class, stream, rank };
[[nodiscard]] const char* to_string(GroupBy value);

/// Spans of one group that touch the range, each counted with the part of it that lies within.
struct SpanStatistics {
  std::string key;
  NameId name{};  ///< where grouped by name
  Rank rank{};    ///< where grouped by rank
  std::int64_t count = 0;
  std::int64_t total_ns = 0, least_ns = 0, most_ns = 0;
  double mean_ns = 0;
  double share = 0;        ///< of the total of all rows
  std::int64_t bytes = 0;  ///< moved or communicated by spans that begin within the range

  friend bool operator==(const SpanStatistics&, const SpanStatistics&) = default;
};

/// A nested span counts in its own row, as the spans around it do in theirs. A span of no length counts where its time
/// lies within. Largest total first. `rank` valid: only that rank.
[[nodiscard]] std::vector<SpanStatistics> span_statistics(const Document& document, TimeRange range, GroupBy by,
                                                          Rank rank = {});

/// Buffers of one category of one memory of one rank in the range.
struct MemoryStatistics {
  Rank rank{};
  Memory memory = Memory::device;
  Category category = Category::workspace;
  std::int64_t acquired_count = 0, acquired_bytes = 0;
  std::int64_t released_count = 0, released_bytes = 0;
  std::int64_t peak_bytes = 0;  ///< the category's own, within the range, what it holds at the begin included
  std::int64_t end_bytes = 0;   ///< live at the end of the range

  friend bool operator==(const MemoryStatistics&, const MemoryStatistics&) = default;
};

/// By rank, memory, category; categories without bytes in the range are left out.
[[nodiscard]] std::vector<MemoryStatistics> memory_statistics(const Document& document, TimeRange range,
                                                              Rank rank = {});

enum class SpanColumn : std::uint8_t { key, count, total, mean, least, most, share, bytes };
/// Sorts rows; equal ones keep their order.
void sort_rows(std::vector<SpanStatistics>& rows, SpanColumn by, bool descending);

/// RFC 4180, a header line first; units in the column names.
[[nodiscard]] std::string to_csv(const std::vector<SpanStatistics>& rows);
[[nodiscard]] std::string to_csv(const std::vector<MemoryStatistics>& rows);
[[nodiscard]] std::string to_csv(const Document& document, const std::vector<LiveBuffer>& rows);

}  // namespace shard::view
