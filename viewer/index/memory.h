// Memory of one rank over time, stacked by category, exact in plan order; and what is live at any moment of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/peaks.h"
#include "traces/reader.h"
#include "viewer/index/extremes.h"
#include "viewer/index/viewport.h"

namespace shard::view {

/// One pixel column of a memory curve. A column includes the value that it begins with (after all events before it),
/// and every value reached within it, however briefly.
struct MemoryColumn {
  std::int64_t highest_bytes = 0;
  std::int64_t lowest_bytes = 0;
  std::int64_t last_bytes = 0;         ///< at the end of the column
  BytesByCategory at_highest_bytes{};  ///< the stack at the moment of the highest; sums to highest_bytes
};

/// The same without categories, but with the moment.
struct MomentColumn {
  std::size_t highest_moment = 0;  ///< the first of the highest value
  std::int64_t highest_bytes = 0;
  std::int64_t lowest_bytes = 0;
  std::int64_t last_bytes = 0;
};

/// A buffer that is live at some moment.
struct LiveBuffer {
  BufferId buffer{};
  std::uint32_t event = 0;  ///< index into trace.memory of the one that acquired it
  UnitId unit{};
  Category category = Category::workspace;
  std::int64_t bytes = 0;
  std::int64_t offset_bytes = 0;
  std::int64_t since_ns = 0;  ///< when it was acquired
  OpId op{};                  ///< that acquired it
  Phase phase = Phase::steady_step;
  std::int32_t step = 0;

  friend bool operator==(const LiveBuffer&, const LiveBuffer&) = default;
};

/// One memory of one rank. Moments are counted in events: moment n is after the first n events in plan order, moment 0
/// before all. Peaks are exact in plan order; for the picture an event whose time lies before that of an earlier one
/// in plan order is shown at the later time (as exporters do), so shown times never fall.
class MemorySeries {
 public:
  /// `events`: indices into trace.memory of this rank and memory, in file order. Fewer than 2^32.
  MemorySeries(const Trace& trace, Rank rank, Memory memory, std::vector<std::uint32_t> events);

  [[nodiscard]] Rank rank() const { return rank_; }
  [[nodiscard]] Memory memory() const { return memory_; }
  [[nodiscard]] std::size_t event_count() const { return events_.size(); }
  /// What may be used of the memory, where the trace knows; else the size of the arena; 0 where unknown.
  [[nodiscard]] std::int64_t capacity_bytes() const { return capacity_bytes_; }
  /// The arena's own high-water mark over all phases, alignment and gaps included; 0 where unknown.
  [[nodiscard]] std::int64_t arena_peak_bytes() const { return arena_peak_bytes_; }
  /// Categories with events, in order.
  [[nodiscard]] const std::vector<Category>& categories() const { return categories_; }

  /// The moment at which the sum of live buffers is largest for the first time.
  [[nodiscard]] std::size_t peak_moment() const { return peak_moment_; }
  [[nodiscard]] std::int64_t peak_bytes() const { return bytes_at(peak_moment_); }
  [[nodiscard]] std::int64_t peak_time_ns() const { return time_of(peak_moment_); }

  /// The last moment at or before a time.
  [[nodiscard]] std::size_t moment_at(std::int64_t time_ns) const;
  /// The shown time of the event that led to a moment; for moment 0 that of the first event.
  [[nodiscard]] std::int64_t time_of(std::size_t moment) const;
  [[nodiscard]] std::int64_t bytes_at(std::size_t moment) const { return moment == 0 ? 0 : live_bytes_[moment - 1]; }
  /// Index into trace.memory of the event that led to a moment (> 0).
  [[nodiscard]] std::uint32_t event_of(std::size_t moment) const { return events_[moment - 1]; }
  /// All of them in plan order: the one that leads to moment n is the (n - 1)th.
  [[nodiscard]] const std::vector<std::uint32_t>& events() const { return events_; }
  [[nodiscard]] BytesByCategory stack_at(const MemoryTable& table, std::size_t moment) const;

  /// One entry per column into `out` (replaced).
  void moments(const PixelRange& view, std::vector<MomentColumn>& out) const;
  void columns(const MemoryTable& table, const PixelRange& view, std::vector<MemoryColumn>& out) const;
  /// The largest value within a range, the one it begins with included: for scaling the axis.
  [[nodiscard]] std::int64_t highest_in(TimeRange range) const;

  /// Buffers live at a moment, largest first, then by buffer. Their bytes sum to bytes_at(moment): a release without an
  /// acquisition (of a broken trace) is listed with negative bytes. Costs at most about 1024 events plus twice the
  /// result.
  [[nodiscard]] std::vector<LiveBuffer> live_at(const MemoryTable& table, std::size_t moment) const;

 private:
  void index_live_sets(const MemoryTable& table);

  /// A live buffer: the event that acquired it last (its first one where it was never acquired), and its bytes.
  struct Holding {
    std::int32_t buffer = -1;
    std::uint32_t event = 0;  ///< index into trace.memory
    std::int64_t bytes = 0;
  };
  struct LiveSet {
    std::size_t moment = 0;
    std::vector<Holding> holdings;
  };

  Rank rank_;
  Memory memory_;
  std::int64_t capacity_bytes_ = 0, arena_peak_bytes_ = 0;
  std::vector<Category> categories_;
  std::vector<std::uint32_t> events_;
  std::vector<std::int64_t> shown_ns_;    ///< by event, never falling
  std::vector<std::int64_t> live_bytes_;  ///< after each event
  std::vector<BytesByCategory> stacks_;   ///< before each block of 16 events
  Extremes<std::int64_t> extremes_;       ///< of live_bytes_
  std::vector<LiveSet> live_sets_;
  std::size_t peak_moment_ = 0;
};

/// The series of a trace, by rank and memory.
[[nodiscard]] std::vector<MemorySeries> memory_series(const Trace& trace);

}  // namespace shard::view
