// Exact level of detail for one row of spans: busy time per pixel column and class, and the spans wide enough to draw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "traces/reader.h"
#include "viewer/index/span_class.h"
#include "viewer/index/viewport.h"

namespace shard::view {

/// One pixel column of a row. Only columns with something in them are listed.
struct BusyColumn {
  std::int32_t column = 0;
  std::int32_t count = 0;  ///< narrow spans that touch the column; a span of no length touches the one it is in
  ByClass busy_ns{};       ///< of narrow spans, within the column; sums to at most the column's length
};

/// A span to draw by itself.
struct WideSpan {
  std::uint32_t span = 0;  ///< index into Trace::spans
  SpanClass kind = SpanClass::other;
  std::int64_t begin_ns = 0, end_ns = 0;  ///< not clipped to the view
};

/// What to draw of one row. Each span of the row that touches the view is either wide or counted in columns.
struct RowPicture {
  std::vector<WideSpan> wide;       ///< by begin
  std::vector<BusyColumn> columns;  ///< by column

  void clear() {
    wide.clear();
    columns.clear();
  }
};

/// Spans that never overlap, by begin: one depth of one lane. Holds indices into a trace's spans and their
/// times in short: about 15 bytes a span. Sums are kept every 16 spans for the classes that the row has; what lies
/// between is added up when asked for.
class RowIndex {
 public:
  RowIndex() = default;
  /// `spans` sorted by begin, disjoint; classes likewise, one each.
  RowIndex(const SpanTable& table, std::vector<std::uint32_t> spans, std::vector<SpanClass> classes);

  [[nodiscard]] std::size_t size() const { return spans_.size(); }
  [[nodiscard]] std::span<const std::uint32_t> spans() const { return spans_; }
  [[nodiscard]] SpanClass class_at(std::size_t position) const { return classes_[position]; }

  /// The number of spans that begin before a time: the position of the first that does not.
  [[nodiscard]] std::size_t begin_before(const SpanTable& table, std::int64_t time_ns) const;
  /// The position of the span that covers a time (begin <= time < end), if any.
  [[nodiscard]] std::optional<std::size_t> at(const SpanTable& table, std::int64_t time_ns) const;
  /// Nanoseconds per class within [begin, end), exactly.
  [[nodiscard]] ByClass busy(const SpanTable& table, TimeRange range) const;
  /// Positions [first, last).
  struct Positions {
    std::size_t first = 0, last = 0;
  };
  /// The spans that touch a range: they begin before its end and end behind its begin, or begin within it.
  [[nodiscard]] Positions touching(const SpanTable& table, TimeRange range) const;
  /// How many spans touch the range.
  [[nodiscard]] std::int64_t count(const SpanTable& table, TimeRange range) const;

  /// The row in a view, into `out` (cleared; its memory is reused). A span is wide where it lasts at least `wide_ns`;
  /// pass wide_at_least(view, pixels).
  void draw(const SpanTable& table, const PixelRange& view, std::int64_t wide_ns, RowPicture& out) const;

 private:
  static constexpr std::size_t kBlock = 16;
  void wide_in(const SpanTable& table, Positions within, std::int64_t wide_ns, std::vector<std::size_t>& out) const;
  /// Adds what blocks [first, last) hold.
  void add_blocks(ByClass& sum, std::size_t first, std::size_t last) const;
  void columns_of(const SpanTable& table, const PixelRange& view, Positions run, RowPicture& out) const;
  /// A span's times beside its neighbours' of the row, where they fit: what is added up lies together in memory.
  struct Near {
    std::uint32_t offset_ns = kFar;  ///< from the begin of the block
    std::uint32_t duration_ns = kFar;
  };
  static constexpr std::uint32_t kFar = UINT32_MAX;
  [[nodiscard]] std::int64_t begin_of(const SpanTable& table, std::size_t position) const {
    const std::uint32_t offset = near_[position].offset_ns;
    return offset != kFar ? block_begin_[position / kBlock] + offset : table.begin_ns[spans_[position]];
  }
  [[nodiscard]] std::int64_t duration_of(const SpanTable& table, std::size_t position) const {
    const std::uint32_t duration = near_[position].duration_ns;
    return duration != kFar ? duration : table.duration_ns[spans_[position]];
  }

  std::vector<std::uint32_t> spans_;
  std::vector<SpanClass> classes_;
  std::vector<Near> near_;
  std::vector<std::int64_t> block_begin_;  ///< begin of the first span of each block
  std::vector<SpanClass> kinds_;           ///< that occur in the row, in order
  /// Nanoseconds before each block, kinds_.size() values each; one block more than there are.
  std::vector<std::int64_t> block_sum_;
  std::vector<std::vector<std::int64_t>> longest_;  ///< per level: the longest span of each block of 16^(level + 1)
};

/// The least duration that covers `pixels` columns of a view, at least 1 ns.
[[nodiscard]] std::int64_t wide_at_least(const PixelRange& view, double pixels);

}  // namespace shard::view
