// Which chunk is where over time: a row per unit, and for many units per pixel exact shares of their states.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/reader.h"
#include "viewer/index/viewport.h"

namespace shard::view {

/// A unit's state and memory as one colour.
enum class ChunkClass : std::uint8_t {
  sharded,  ///< at rest, in device memory
  on_host,  ///< at rest
  on_disk,  ///< at rest
  gathering,
  gathered,
  reducing,
  moving,  ///< between memories
};
inline constexpr int kChunkClassCount = 7;
[[nodiscard]] const char* to_string(ChunkClass value);
[[nodiscard]] ChunkClass chunk_class(UnitState state, Memory memory);

using ByChunkClass = std::array<std::int64_t, kChunkClassCount>;

/// Neighbouring columns of one pixel row that look the same.
struct ChunkRun {
  std::int32_t row = 0;                                ///< pixel row, from 0
  std::int32_t first_column = 0, last_column = 0;      ///< [first, last)
  std::array<std::uint8_t, kChunkClassCount> share{};  ///< of time x units, 255 all, rounded; what is missing: unknown
  friend bool operator==(const ChunkRun&, const ChunkRun&) = default;
};

/// A stretch of one unit's history.
struct ChunkStretch {
  TimeRange time;  ///< to the next state; the last one ends with the document
  Memory memory = Memory::device;
  UnitState state = UnitState::sharded;
};

/// Which rows of the map are shown: `rows` pixel rows of `units_per_row` units (>= 1), beginning at unit `first`.
/// Units are counted by position in ChunkMap::units().
struct ChunkRows {
  std::size_t first = 0;
  std::size_t units_per_row = 1;
  std::int32_t rows = 0;
};

/// States of the units of one rank; a unit is unknown before its first state.
class ChunkMap {
 public:
  ChunkMap() = default;
  /// The end of the document is `end_ns`.
  ChunkMap(const Trace& trace, std::int64_t end_ns);

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  /// Ranks with states, in order.
  [[nodiscard]] const std::vector<Rank>& ranks() const { return ranks_; }
  /// The units of a rank that have states, in order.
  [[nodiscard]] std::span<const UnitId> units(Rank rank) const;
  /// "chunk 3", as the trace calls it; "unit 3" where it does not. Empty for none.
  [[nodiscard]] std::string name_of(UnitId unit) const;
  /// What the trace says of the unit's size; null where it does not.
  [[nodiscard]] const UnitInfo* info_of(UnitId unit) const;

  /// Nanoseconds x units per class for one pixel row and each column, exactly: the reference for draw().
  void row(Rank rank, std::size_t first, std::size_t count, const PixelRange& view,
           std::vector<ByChunkClass>& out) const;
  /// The visible part, into `out` (replaced), by row and column. Costs one step per visible unit and per state in view,
  /// shared by threads where those are many.
  void draw(Rank rank, const ChunkRows& rows, const PixelRange& view, std::vector<ChunkRun>& out) const;

  /// Position of a unit in units(rank), or none.
  [[nodiscard]] std::optional<std::size_t> position_of(Rank rank, UnitId unit) const;
  /// The state that holds at a time, or none before the first.
  [[nodiscard]] std::optional<ChunkStretch> at(Rank rank, UnitId unit, std::int64_t time_ns) const;
  [[nodiscard]] std::vector<ChunkStretch> history(Rank rank, UnitId unit) const;

 private:
  struct Entry {
    std::int64_t time_ns;
    Memory memory;
    UnitState state;
  };
  struct OfRank {
    std::vector<UnitId> units;
    std::vector<std::size_t> first;  ///< into entries_; one more than units
  };
  [[nodiscard]] const OfRank* of(Rank rank) const;
  [[nodiscard]] std::span<const Entry> entries_of(const OfRank& of_rank, std::size_t position) const;
  /// Calls add(class, begin, end) for every stretch of some units, clipped to a time range.
  template <class Sums>
  void add_units(const OfRank& of_rank, std::size_t first, std::size_t count, TimeRange time, const Sums& add) const;
  template <class Edges, class Sums>
  void draw_row(const OfRank& of_rank, const ChunkRows& rows, std::int32_t row, const PixelRange& view,
                const Edges& edges, Sums& sums, std::vector<ChunkRun>& out) const;

  std::vector<Rank> ranks_;
  std::vector<OfRank> by_rank_;
  std::vector<Entry> entries_;     ///< by rank, unit, time; at one time in file order
  std::vector<UnitInfo> of_unit_;  ///< by unit, as far as the trace has them
  std::int64_t end_ns_ = 0;
};

}  // namespace shard::view
