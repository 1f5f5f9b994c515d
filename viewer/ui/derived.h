// Results computed from a session and a state, kept until what they depend on changes; and memory that frames reuse.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "traces/fragmentation.h"
#include "traces/library_files.h"
#include "viewer/index/block_picture.h"
#include "viewer/index/compare_view.h"
#include "viewer/index/flows.h"
#include "viewer/index/search.h"
#include "viewer/index/statistics.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// One value with what it was made from.
template <class Key, class Value>
class Memo {
 public:
  template <class Make>
  Value& get(const Key& key, Make make) {
    if (!key_ || !(*key_ == key)) {
      value_ = make();
      key_ = key;
    }
    return value_;
  }

 private:
  std::optional<Key> key_;
  Value value_{};
};

using RangeKey = std::pair<std::int64_t, std::int64_t>;

/// Segments at a moment, and what is to say of them.
struct SegmentsShown {
  std::optional<SegmentMap> map;
  Fragmentation fragmentation;
  std::vector<std::string> words;
};

/// What is drawn below the memory of two documents.
struct ComparedCurves {
  MemoryDifference memory;
  std::string begins_at;  ///< the first difference: its bytes, op and step; empty where there is none
  StepCurve lateness;     ///< in nanoseconds
};

/// Belongs to one session; start with a new one when the session changes.
struct Derived {
  Memo<std::tuple<std::size_t, RangeKey, int, std::int32_t>, std::vector<SpanStatistics>> statistics;
  std::pair<SpanColumn, bool> statistics_sorted{SpanColumn::total, true};
  Memo<std::tuple<std::size_t, RangeKey, std::int32_t>, std::vector<MemoryStatistics>> memory_statistics;
  Memo<std::tuple<const MemorySeries*, std::size_t>, std::vector<LiveBuffer>> live;
  Memo<std::tuple<std::size_t, std::string>, NameMatch> match;
  std::map<const MemorySeries*, BlockList> blocks;
  std::map<std::pair<const MemorySeries*, MemoryBy>, MemoryClasses> classes;
  std::optional<std::vector<FrameId>> sites;  ///< of the first document, by stack
  std::optional<LibraryFiles> library_files;  ///< of the first document
  Memo<std::tuple<const MemorySeries*, MemoryBy, RangeKey, std::int32_t, RangeKey, std::int64_t>, BlockPicture>
      block_picture;
  Memo<std::tuple<const MemorySeries*, std::optional<std::int64_t>>, SegmentsShown> segments;
  std::map<std::tuple<const MemorySeries*, const MemorySeries*, AlignMode>, ComparedCurves> differences;
  std::map<std::size_t, FlowIndex> flows;
  std::map<std::tuple<std::size_t, OpId, Rank>, std::optional<std::uint32_t>> op_spans;

  RowPicture row;
  std::vector<MemoryColumn> columns;
  std::vector<ValueColumn> values;
  std::vector<ChunkRun> chunk_runs;
};

/// Spans that match the query in the document that tables are about.
[[nodiscard]] const NameMatch& matches(const Session& session, const ViewState& state, Derived& derived);

/// The memory series that the memory pane shows of a document: of the chosen rank and memory where there are such, else
/// of the same rank and memory as `like`, else the highest. Null without memory events.
[[nodiscard]] const MemorySeries* shown_memory(const Document& document, const ViewState& state,
                                               const MemorySeries* like = nullptr);

/// The document that is compared with the first: the one that tables are about, else the second.
[[nodiscard]] inline std::size_t compared_document(const ViewState& state) {
  return state.document == 0 ? 1 : state.document;
}

/// The marker, else the peak of the memory shown, in the first document's time.
[[nodiscard]] std::int64_t marker_time(const Session& session, const ViewState& state);

/// The selected range, else what is visible; on the axis.
[[nodiscard]] TimeRange range_of_interest(const ViewState& state);

/// find_op() over the whole document, remembered: it may look at every span.
[[nodiscard]] std::optional<std::uint32_t> span_of_op(const Session& session, Derived& derived, std::size_t document,
                                                      OpId op, Rank rank);

[[nodiscard]] const FlowIndex& flows_of(const Session& session, Derived& derived, std::size_t document);

}  // namespace shard::view
