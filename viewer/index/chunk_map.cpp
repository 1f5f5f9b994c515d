// States sorted by rank, unit and time; a pixel row adds up the stretches of its units with running counts.
#include "viewer/index/chunk_map.h"

#include <algorithm>
#include <utility>

#include "traces/base/parallel.h"

namespace shard::view {
namespace {

/// Edges of the columns of a view, so that many times find their columns fast.
class Edges {
 public:
  explicit Edges(const PixelRange& view)
      : view_(view), per_ns_(static_cast<double>(view.width) / static_cast<double>(view.time.length_ns())) {
    begin_.reserve(static_cast<std::size_t>(view.width) + 1);
    for (std::int32_t c = 0; c <= view.width; ++c) begin_.push_back(view.begin(c));
  }
  [[nodiscard]] std::int64_t begin(std::size_t column) const { return begin_[column]; }
  [[nodiscard]] std::int64_t end(std::size_t column) const { return std::max(begin_[column] + 1, begin_[column + 1]); }
  /// As PixelRange::column_of, for a time within the view.
  [[nodiscard]] std::size_t column_of(std::int64_t time_ns) const {
    if (view_.cuts) return static_cast<std::size_t>(view_.column_of(time_ns));
    const auto most = static_cast<std::size_t>(view_.width - 1);
    auto column =
        std::min(static_cast<std::size_t>(static_cast<double>(time_ns - view_.time.begin_ns) * per_ns_), most);
    while (column > 0 && end(column - 1) > time_ns) --column;
    while (column < most && end(column) <= time_ns) ++column;
    return column;
  }
  /// One behind the last column that begins before a time (view begin < time <= view end).
  [[nodiscard]] std::size_t columns_before(std::int64_t time_ns) const {
    if (time_ns >= view_.time.end_ns) return static_cast<std::size_t>(view_.width);
    const std::size_t column = column_of(time_ns);
    return begin(column) < time_ns ? column + 1 : column;
  }

 private:
  PixelRange view_;
  double per_ns_;
  std::vector<std::int64_t> begin_;
};

std::uint64_t length(const Edges& edges, std::size_t column) {
  return static_cast<std::uint64_t>(edges.end(column) - edges.begin(column));
}

/// Time x units per column and class of one pixel row; whole columns as differences of counts until they are walked.
class RowSums {
 public:
  using Row = std::array<std::uint64_t, kChunkClassCount>;  // hostile times wrap

  RowSums(const Edges& edges, std::size_t width) : edges_(edges), part_(width), count_(width + 1), touched_(width) {}

  void clear() {
    std::fill(part_.begin(), part_.end(), Row{});
    std::fill(count_.begin(), count_.end(), Row{});
    std::fill(touched_.begin(), touched_.end(), std::uint8_t{0});
  }
  /// A stretch within the view, not empty, that touches the columns [first, last).
  void add(ChunkClass kind, std::int64_t begin, std::int64_t end, std::size_t first, std::size_t last) {
    const auto k = static_cast<std::size_t>(kind);
    const auto overlap = [&](std::size_t c) {
      return static_cast<std::uint64_t>(std::min(end, edges_.end(c)) - std::max(begin, edges_.begin(c)));
    };
    part_[first][k] += overlap(first);
    touched_[first] = touched_[last - 1] = 1;
    if (last - first > 1) part_[last - 1][k] += overlap(last - 1);
    if (last - first > 2) {
      ++count_[first + 1][k];
      --count_[last - 1][k];
    }
  }
  /// Calls column(c, sums, same) from left to right; `same`: the share of every class is that of the column before.
  template <class Column>
  void walk(Column column) const {
    Row count{};
    for (std::size_t c = 0; c < part_.size(); ++c) {
      // Counts change only beside touched columns; between them all columns are covered alike.
      const bool same = c > 0 && touched_[c] == 0 && touched_[c - 1] == 0;
      Row sums{};
      if (!same) {
        const std::uint64_t each = length(edges_, c);
        for (std::size_t k = 0; k < count.size(); ++k) {
          count[k] += count_[c][k];
          sums[k] = part_[c][k] + count[k] * each;
        }
      }
      column(c, sums, same);
    }
  }

 private:
  const Edges& edges_;
  std::vector<Row> part_, count_;
  std::vector<std::uint8_t> touched_;  ///< where a stretch begins or ends
};

}  // namespace

const char* to_string(ChunkClass value) {
  switch (value) {
    case ChunkClass::sharded: return "sharded";
    case ChunkClass::on_host: return "on host";
    case ChunkClass::on_disk: return "on disk";
    case ChunkClass::gathering: return "gathering";
    case ChunkClass::gathered: return "gathered";
    case ChunkClass::reducing: return "reducing";
    case ChunkClass::moving: return "moving";
  }
  return "?";
}

ChunkClass chunk_class(UnitState state, Memory memory) {
  switch (state) {
    case UnitState::sharded: break;
    case UnitState::gathering: return ChunkClass::gathering;
    case UnitState::gathered: return ChunkClass::gathered;
    case UnitState::reducing: return ChunkClass::reducing;
    case UnitState::moving: return ChunkClass::moving;
  }
  switch (memory) {
    case Memory::device: return ChunkClass::sharded;
    case Memory::host:
    case Memory::pinned: return ChunkClass::on_host;
    case Memory::disk: return ChunkClass::on_disk;
  }
  return ChunkClass::sharded;
}

ChunkMap::ChunkMap(const Trace& trace, std::int64_t end_ns) : of_unit_(trace.header.units), end_ns_(end_ns) {
  std::vector<std::uint32_t> order(trace.chunk_states.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const ChunkState &x = trace.chunk_states[a], &y = trace.chunk_states[b];
    if (x.rank != y.rank) return x.rank < y.rank;
    if (x.unit != y.unit) return x.unit < y.unit;
    return x.time_ns < y.time_ns;
  });
  entries_.reserve(order.size());
  for (const std::uint32_t i : order) {
    const ChunkState& state = trace.chunk_states[i];
    if (ranks_.empty() || ranks_.back() != state.rank) {
      if (!by_rank_.empty()) by_rank_.back().first.push_back(entries_.size());
      ranks_.push_back(state.rank);
      by_rank_.emplace_back();
    }
    OfRank& of_rank = by_rank_.back();
    if (of_rank.units.empty() || of_rank.units.back() != state.unit) {
      of_rank.units.push_back(state.unit);
      of_rank.first.push_back(entries_.size());
    }
    entries_.push_back({state.time_ns, state.memory, state.state});
  }
  if (!by_rank_.empty()) by_rank_.back().first.push_back(entries_.size());
}

const ChunkMap::OfRank* ChunkMap::of(Rank rank) const {
  const auto at = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
  return at == ranks_.end() || *at != rank ? nullptr : &by_rank_[static_cast<std::size_t>(at - ranks_.begin())];
}

std::span<const ChunkMap::Entry> ChunkMap::entries_of(const OfRank& of_rank, std::size_t position) const {
  return std::span(entries_).subspan(of_rank.first[position], of_rank.first[position + 1] - of_rank.first[position]);
}

std::span<const UnitId> ChunkMap::units(Rank rank) const {
  const OfRank* of_rank = of(rank);
  return of_rank == nullptr ? std::span<const UnitId>() : std::span<const UnitId>(of_rank->units);
}

const UnitInfo* ChunkMap::info_of(UnitId unit) const {
  if (!unit.valid() || static_cast<std::size_t>(unit.value) >= of_unit_.size()) return nullptr;
  const UnitInfo& info = of_unit_[static_cast<std::size_t>(unit.value)];
  return info == UnitInfo{} ? nullptr : &info;  // its part of the table was lost
}

std::string ChunkMap::name_of(UnitId unit) const {
  if (!unit.valid()) return "";
  const UnitInfo* info = info_of(unit);
  return info == nullptr || info->name.empty() ? "unit " + std::to_string(unit.value) : info->name;
}

template <class Sums>
void ChunkMap::add_units(const OfRank& of_rank, std::size_t first, std::size_t count, TimeRange time,
                         const Sums& add) const {
  for (std::size_t unit = first; unit < std::min(first + count, of_rank.units.size()); ++unit) {
    const std::span<const Entry> entries = entries_of(of_rank, unit);
    auto at = std::upper_bound(entries.begin(), entries.end(), time.begin_ns,
                               [](std::int64_t t, const Entry& entry) { return t < entry.time_ns; });
    if (at != entries.begin()) --at;
    for (; at != entries.end() && at->time_ns < time.end_ns; ++at) {
      const auto next = std::next(at);
      const std::int64_t begin = std::max(at->time_ns, time.begin_ns);
      const std::int64_t end = std::min(next == entries.end() ? end_ns_ : next->time_ns, time.end_ns);
      if (begin < end) add(chunk_class(at->state, at->memory), begin, end);
    }
  }
}

void ChunkMap::row(Rank rank, std::size_t first, std::size_t count, const PixelRange& view,
                   std::vector<ByChunkClass>& out) const {
  out.assign(static_cast<std::size_t>(view.width), {});
  const OfRank* of_rank = of(rank);
  if (of_rank == nullptr || view.time.empty()) return;
  add_units(*of_rank, first, count, view.time, [&](ChunkClass kind, std::int64_t begin, std::int64_t end) {
    for (std::int32_t c = 0; c < view.width; ++c) {
      const std::int64_t overlap = std::min(end, view.end(c)) - std::max(begin, view.begin(c));
      if (overlap > 0) out[static_cast<std::size_t>(c)][static_cast<std::size_t>(kind)] += overlap;
    }
  });
}

void ChunkMap::draw(Rank rank, const ChunkRows& rows, const PixelRange& view, std::vector<ChunkRun>& out) const {
  out.clear();
  const OfRank* of_rank = of(rank);
  if (of_rank == nullptr || view.time.empty() || rows.units_per_row == 0) return;
  const Edges edges(view);
  // Bands of rows do not know of each other; a large map is drawn by several threads.
  constexpr std::size_t kManyUnits = 10'000;
  constexpr std::int32_t kBands = 16;
  const bool parallel = static_cast<std::size_t>(rows.rows) * rows.units_per_row >= kManyUnits;
  const std::int32_t bands = parallel ? std::min(kBands, rows.rows) : 1;
  std::vector<std::vector<ChunkRun>> drawn(static_cast<std::size_t>(bands));
  for_each_index(drawn.size(), parallel, [&](std::size_t band) {
    RowSums sums(edges, static_cast<std::size_t>(view.width));
    const auto edge = [&](std::size_t b) { return static_cast<std::int32_t>(b) * rows.rows / bands; };
    for (std::int32_t row = edge(band); row < edge(band + 1); ++row) {
      draw_row(*of_rank, rows, row, view, edges, sums, drawn[band]);
    }
  });
  for (const std::vector<ChunkRun>& band : drawn) out.insert(out.end(), band.begin(), band.end());
}

template <class Edges, class Sums>
void ChunkMap::draw_row(const OfRank& of_rank, const ChunkRows& rows, std::int32_t row, const PixelRange& view,
                        const Edges& edges, Sums& sums, std::vector<ChunkRun>& out) const {
  const std::size_t first = rows.first + static_cast<std::size_t>(row) * rows.units_per_row;
  if (first >= of_rank.units.size()) return;
  const std::size_t count = std::min(rows.units_per_row, of_rank.units.size() - first);
  sums.clear();
  add_units(of_rank, first, count, view.time, [&](ChunkClass kind, std::int64_t begin, std::int64_t end) {
    sums.add(kind, begin, end, edges.column_of(begin), edges.columns_before(end));
  });
  bool any = false;
  sums.walk([&](std::size_t c, const RowSums::Row& cell, bool same) {
    if (same) {
      if (any) ++out.back().last_column;
      return;
    }
    const double scale = 255 / (static_cast<double>(length(edges, c)) * static_cast<double>(count));
    ChunkRun run{row, static_cast<std::int32_t>(c), static_cast<std::int32_t>(c) + 1, {}};
    any = false;
    for (std::size_t k = 0; k < cell.size(); ++k) {
      if (cell[k] == 0) continue;
      any = true;
      run.share[k] = static_cast<std::uint8_t>(static_cast<double>(cell[k]) * scale + 0.5);
    }
    if (!any) return;
    if (!out.empty() && out.back().row == row && out.back().last_column == run.first_column &&
        out.back().share == run.share) {
      ++out.back().last_column;
    } else {
      out.push_back(run);
    }
  });
}

std::optional<std::size_t> ChunkMap::position_of(Rank rank, UnitId unit) const {
  const std::span<const UnitId> all = units(rank);
  const auto at = std::lower_bound(all.begin(), all.end(), unit);
  if (at == all.end() || *at != unit) return std::nullopt;
  return static_cast<std::size_t>(at - all.begin());
}

std::vector<ChunkStretch> ChunkMap::history(Rank rank, UnitId unit) const {
  std::vector<ChunkStretch> result;
  const std::optional<std::size_t> position = position_of(rank, unit);
  if (!position) return result;
  const std::span<const Entry> entries = entries_of(*of(rank), *position);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::int64_t end = i + 1 < entries.size() ? entries[i + 1].time_ns : std::max(end_ns_, entries[i].time_ns);
    result.push_back({{entries[i].time_ns, end}, entries[i].memory, entries[i].state});
  }
  return result;
}

std::optional<ChunkStretch> ChunkMap::at(Rank rank, UnitId unit, std::int64_t time_ns) const {
  std::optional<ChunkStretch> found;
  for (const ChunkStretch& stretch : history(rank, unit)) {
    if (stretch.time.begin_ns <= time_ns) found = stretch;
  }
  return found;
}

}  // namespace shard::view
