// A loaded trace prepared for viewing: rows of spans that never overlap, steps, memory, counters, chunks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/inspect.h"
#include "traces/reader.h"
#include "traces/snapshot.h"
#include "viewer/index/chunk_map.h"
#include "viewer/index/counters.h"
#include "viewer/index/lod.h"
#include "viewer/index/memory.h"

namespace shard::view {

/// One row of a lane: spans of one track at one depth. Crossing spans of a track are on lanes of their own, so that on
/// one lane spans are only nested or disjoint (traces/lanes.h).
struct Row {
  TrackId track{};
  std::int32_t lane = 0;   ///< within the track
  std::int32_t depth = 0;  ///< nesting within the lane, 0 outermost
  RowIndex index{};
};

/// The rows of one track, next to each other in Document::rows(): by lane, then depth.
struct TrackRows {
  TrackId track{};
  Rank rank{};
  std::string name;  ///< "compute", or the track's own; without the rank
  std::size_t first_row = 0, row_count = 0;
  std::int64_t span_count = 0;
};

/// Where a span is drawn.
struct RowPosition {
  std::size_t row = 0;       ///< in Document::rows()
  std::size_t position = 0;  ///< within the row's index
};

/// Owns the trace; everything else refers to its columns by index. Immutable once built: any number of threads may
/// read.
class Document {
 public:
  /// Takes the trace over. `label` names it for people (a file name). `progress`, if any, is called with a share from
  /// 0 to 1, from this thread. Two threads share the work where the trace is large.
  /// `snapshot`: what the allocator recorded beside the trace, where there is one.
  [[nodiscard]] static Document build(Trace trace, std::string label, const std::function<void(double)>& progress = {},
                                      std::optional<Snapshot> snapshot = {});

  Document(Document&&) = default;
  Document& operator=(Document&&) = default;
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  ~Document() = default;

  [[nodiscard]] const Trace& trace() const { return trace_; }
  [[nodiscard]] const std::string& label() const { return label_; }
  /// From the first event to the last end; [0, 0) without events.
  [[nodiscard]] TimeRange range() const { return range_; }
  [[nodiscard]] const std::vector<Rank>& ranks() const { return ranks_; }
  /// Whether any span says how long it waited.
  [[nodiscard]] bool waits() const { return waits_; }

  /// Tracks that have spans: by rank, then stream, then other tracks in file order.
  [[nodiscard]] const std::vector<TrackRows>& tracks() const { return tracks_; }
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  [[nodiscard]] const std::vector<StepTime>& steps() const { return steps_; }
  [[nodiscard]] const std::vector<MemorySeries>& memory() const { return memory_; }       ///< by rank, memory
  [[nodiscard]] const std::vector<CounterSeries>& counters() const { return counters_; }  ///< by rank, name
  [[nodiscard]] const ChunkMap& chunks() const { return chunks_; }
  /// Of a PyTorch memory snapshot, else null.
  [[nodiscard]] const Snapshot* snapshot() const { return snapshot_ ? &*snapshot_ : nullptr; }
  /// Whether its memory is an allocator's, of which one asks who held it: events know stacks, or are of a snapshot.
  [[nodiscard]] bool of_allocator() const { return !trace_.stacks.empty() || snapshot_; }

  /// The memory series, or null.
  [[nodiscard]] const MemorySeries* memory_of(Rank rank, Memory memory) const;
  /// The largest live peak of device memory (of any memory where there is no device); null without memory events.
  [[nodiscard]] const MemorySeries* highest_memory() const;
  /// The step that covers a time, or null; the later one where two overlap.
  [[nodiscard]] const StepTime* step_at(std::int64_t time_ns) const;

  /// Draws a row: RowIndex::draw over this trace's spans.
  void draw(std::size_t row, const PixelRange& view, std::int64_t wide_ns, RowPicture& out) const {
    rows_[row].index.draw(trace_.spans, view, wide_ns, out);
  }
  /// The span of a row under a time, or none.
  [[nodiscard]] std::optional<std::uint32_t> span_at(std::size_t row, std::int64_t time_ns) const;
  [[nodiscard]] RowPosition place_of(std::uint32_t span) const;
  [[nodiscard]] SpanClass class_of(std::uint32_t span) const;
  [[nodiscard]] TimeRange time_of(std::uint32_t span) const {
    const std::int64_t begin = trace_.spans.begin_ns[span];
    return {begin, begin + trace_.spans.duration_ns[span]};
  }
  [[nodiscard]] Rank rank_of(std::uint32_t span) const { return trace_.track_of(trace_.spans.track[span]).rank; }
  /// "name", or "op 12" where a span has no name.
  [[nodiscard]] std::string name_of(std::uint32_t span) const;

 private:
  Document() = default;

  Trace trace_;
  std::optional<Snapshot> snapshot_;
  std::string label_;
  TimeRange range_;
  bool waits_ = false;
  std::vector<Rank> ranks_;
  std::vector<TrackRows> tracks_;
  std::vector<Row> rows_;
  std::vector<std::size_t> rows_of_track_;  ///< by TrackId: its entry in tracks_, or npos
  std::vector<StepTime> steps_;
  std::vector<MemorySeries> memory_;
  std::vector<CounterSeries> counters_;
  ChunkMap chunks_;
};

}  // namespace shard::view
