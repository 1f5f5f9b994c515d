// Spans to rows: by track, then first fit over lanes as in traces/lanes.h, then by depth within the lane.
#include "viewer/index/document.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <iterator>
#include <thread>
#include <utility>

#include "traces/base/parallel.h"
#include "traces/lane_fit.h"
#include "traces/span_order.h"

namespace shard::view {
namespace {

constexpr auto kNowhere = static_cast<std::size_t>(-1);

/// Spans of one track as stretches of the file, in file order.
struct Stretch {
  std::uint32_t first, last;
};

struct TrackSpans {
  std::vector<Stretch> stretches;
  std::size_t count = 0;
  bool sorted = true;  ///< by begin, then longest first
};

std::vector<TrackSpans> spans_by_track(const Trace& trace) {
  const SpanTable& table = trace.spans;
  std::vector<TrackSpans> tracks(trace.tracks.size());
  for (std::size_t i = 0; i < table.size();) {
    const std::size_t first = i;
    TrackSpans& track = tracks[static_cast<std::size_t>(table.track[i].value)];
    std::uint32_t previous = track.stretches.empty() ? static_cast<std::uint32_t>(i) : track.stretches.back().last - 1;
    for (; i < table.size() && table.track[i] == table.track[first]; ++i) {
      const std::int64_t begin = table.begin_ns[i], begin_before = table.begin_ns[previous];
      if (begin < begin_before || (begin == begin_before && table.duration_ns[i] > table.duration_ns[previous])) {
        track.sorted = false;
      }
      previous = static_cast<std::uint32_t>(i);
    }
    track.stretches.push_back({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(i)});
    track.count += i - first;
  }
  return tracks;
}

/// Span indices of a track by begin, then longest first.
std::vector<std::uint32_t> in_order(const SpanTable& table, const TrackSpans& track) {
  std::vector<std::uint32_t> order;
  order.reserve(track.count);
  for (const Stretch& stretch : track.stretches) {
    for (std::uint32_t i = stretch.first; i < stretch.last; ++i) order.push_back(i);
  }
  if (!track.sorted) sort_spans(table, order);
  return order;
}

/// The rows of one track, by lane, then depth.
std::vector<Row> rows_of(const Trace& trace, TrackId id, const TrackSpans& track,
                         const std::vector<SpanClass>& class_of_name) {
  const SpanTable& table = trace.spans;
  std::vector<std::uint32_t> order = in_order(table, track);
  LaneFit fit;
  std::vector<std::vector<std::uint32_t>> row_of_depth;  // of each lane
  std::vector<std::uint32_t> row_of(order.size());
  std::vector<std::size_t> counts;
  for (std::size_t n = 0; n < order.size(); ++n) {
    const std::int64_t begin = table.begin_ns[order[n]];
    const LaneFit::Slot place = fit.place(begin, begin + table.duration_ns[order[n]]);
    if (place.lane == row_of_depth.size()) row_of_depth.emplace_back();
    std::vector<std::uint32_t>& rows_here = row_of_depth[place.lane];
    if (place.depth == rows_here.size()) {
      rows_here.push_back(static_cast<std::uint32_t>(counts.size()));
      counts.push_back(0);
    }
    row_of[n] = rows_here[place.depth];
    ++counts[row_of[n]];
  }

  const Track& where = trace.track_of(id);
  std::array<SpanClass, kPartCount> class_of_part{};  // but of those that say none
  for (int part = 0; part < kPartCount; ++part) {
    if (static_cast<Part>(part) != Part::unknown)
      class_of_part[static_cast<std::size_t>(part)] = view::class_of(where, static_cast<Part>(part));
  }
  std::array<SpanClass, kSpanClassCount> class_here{};  // by what the name says
  for (std::size_t c = 0; c < class_here.size(); ++c) {
    class_here[c] = view::class_of(where, static_cast<SpanClass>(c));
  }
  const SpanClass nameless = view::class_of(where, SpanClass::other);
  std::vector<std::vector<std::uint32_t>> spans(counts.size());
  std::vector<std::vector<SpanClass>> classes(counts.size());
  for (std::size_t row = 0; row < counts.size(); ++row) {
    classes[row].reserve(counts[row]);
    if (counts.size() > 1) spans[row].reserve(counts[row]);
  }
  for (std::size_t n = 0; n < order.size(); ++n) {
    const NameId name = table.name[order[n]];
    const Part part = table.part[order[n]];
    SpanClass kind = nameless;
    if (part != Part::unknown) {
      kind = class_of_part[static_cast<std::size_t>(part)];
    } else if (name.valid()) {
      kind = class_here[static_cast<std::size_t>(class_of_name[static_cast<std::size_t>(name.value)])];
    }
    classes[row_of[n]].push_back(kind);
    if (counts.size() > 1) spans[row_of[n]].push_back(order[n]);
  }
  if (counts.size() == 1) spans[0] = std::move(order);

  std::vector<Row> rows;
  rows.reserve(counts.size());
  for (std::size_t lane = 0; lane < row_of_depth.size(); ++lane) {
    for (std::size_t depth = 0; depth < row_of_depth[lane].size(); ++depth) {
      const std::uint32_t row = row_of_depth[lane][depth];
      rows.push_back({id, static_cast<std::int32_t>(lane), static_cast<std::int32_t>(depth),
                      RowIndex(table, std::move(spans[row]), std::move(classes[row]))});
    }
  }
  return rows;
}

std::string name_of_track(const Track& track) {
  if (!track.name.empty()) return track.name;
  return track.kind == TrackKind::stream ? to_string(track.stream) : "track";
}

/// From the first event to the last end.
TimeRange range_of(const Trace& trace) {
  TimeRange range{INT64_MAX, INT64_MIN};
  const auto include = [&](std::int64_t begin, std::int64_t end) {
    range.begin_ns = std::min(range.begin_ns, begin);
    range.end_ns = std::max(range.end_ns, end);
  };
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    include(trace.spans.begin_ns[i], trace.spans.begin_ns[i] + trace.spans.duration_ns[i]);
  }
  for (const std::int64_t time : trace.memory.time_ns) include(time, time);
  for (const Counter& counter : trace.counters) include(counter.time_ns, counter.time_ns);
  for (const ChunkState& state : trace.chunk_states) include(state.time_ns, state.time_ns);
  return range.begin_ns > range.end_ns ? TimeRange{} : range;
}

/// Streams in the order of their enumeration, then other tracks.
std::pair<int, int> order_of(const Track& track) {
  return track.kind == TrackKind::stream ? std::pair{0, static_cast<int>(track.stream)}
                                         : std::pair{1, static_cast<int>(track.kind)};
}

}  // namespace

Document Document::build(Trace trace, std::string label, const std::function<void(double)>& progress,
                         std::optional<Snapshot> snapshot) {
  Document document;
  document.trace_ = std::move(trace);
  document.snapshot_ = std::move(snapshot);
  document.label_ = std::move(label);
  const Trace& t = document.trace_;
  const bool parallel = t.spans.size() + t.memory.size() > 100'000;

  // Everything that does not need the tracks is one more piece of work beside them.
  enum Piece : std::size_t { memory_piece, steps_piece, chunks_piece, counters_piece, pieces };
  const std::vector<TrackSpans> by_track = spans_by_track(t);
  std::vector<SpanClass> class_of_names(t.names.size());  // read only of spans that say no part
  constexpr std::size_t kNamesTogether = 10'000;
  for_each_index((t.names.size() + kNamesTogether - 1) / kNamesTogether, parallel, [&](std::size_t piece) {
    const std::size_t last = std::min(t.names.size(), (piece + 1) * kNamesTogether);
    for (std::size_t i = piece * kNamesTogether; i < last; ++i) class_of_names[i] = class_of_name(t.names[i]);
  });
  std::vector<std::size_t> order;  // tracks with spans, as they are shown
  for (std::size_t id = 0; id < t.tracks.size(); ++id) {
    if (by_track[id].count > 0) order.push_back(id);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Track &x = t.tracks[a], &y = t.tracks[b];
    return x.rank != y.rank ? x.rank < y.rank : order_of(x) < order_of(y);
  });

  std::vector<std::vector<Row>> rows(order.size());
  const auto caller = std::this_thread::get_id();
  std::atomic<std::size_t> done = 0;
  for_each_index(pieces + order.size(), parallel, [&](std::size_t piece) {
    if (piece == memory_piece) {
      document.memory_ = memory_series(t);
    } else if (piece == steps_piece) {
      document.steps_ = step_times(t);
    } else if (piece == chunks_piece) {
      document.range_ = range_of(t);
      document.waits_ = std::ranges::any_of(t.spans.waiting_ns, [](std::int64_t waiting) { return waiting > 0; });
      document.chunks_ = ChunkMap(t, document.range_.end_ns);
    } else if (piece == counters_piece) {
      document.counters_ = counter_series(t);
    } else {
      const std::size_t id = order[piece - pieces];
      rows[piece - pieces] = rows_of(t, TrackId{static_cast<std::int32_t>(id)}, by_track[id], class_of_names);
    }
    ++done;
    if (progress && std::this_thread::get_id() == caller) {
      progress(static_cast<double>(done) / static_cast<double>(pieces + order.size()));
    }
  });

  document.rows_of_track_.assign(t.tracks.size(), kNowhere);
  for (std::size_t n = 0; n < order.size(); ++n) {
    const std::size_t id = order[n];
    const Track& track = t.tracks[id];
    document.rows_of_track_[id] = document.tracks_.size();
    document.tracks_.push_back({TrackId{static_cast<std::int32_t>(id)}, track.rank, name_of_track(track),
                                document.rows_.size(), rows[n].size(), static_cast<std::int64_t>(by_track[id].count)});
    std::move(rows[n].begin(), rows[n].end(), std::back_inserter(document.rows_));
  }
  for (const Track& track : t.tracks) document.ranks_.push_back(track.rank);
  for (const MemorySeries& series : document.memory_) document.ranks_.push_back(series.rank());
  for (const CounterSeries& counter : document.counters_) document.ranks_.push_back(counter.rank);
  for (const Rank rank : document.chunks_.ranks()) document.ranks_.push_back(rank);
  std::sort(document.ranks_.begin(), document.ranks_.end());
  document.ranks_.erase(std::unique(document.ranks_.begin(), document.ranks_.end()), document.ranks_.end());
  if (progress) progress(1);
  return document;
}

const MemorySeries* Document::memory_of(Rank rank, Memory memory) const {
  for (const MemorySeries& series : memory_) {
    if (series.rank() == rank && series.memory() == memory) return &series;
  }
  return nullptr;
}

const MemorySeries* Document::highest_memory() const {
  const MemorySeries* highest = nullptr;
  for (const MemorySeries& series : memory_) {
    if (highest == nullptr || series.memory() < highest->memory() ||
        (series.memory() == highest->memory() && series.peak_bytes() > highest->peak_bytes())) {
      highest = &series;
    }
  }
  return highest;
}

const StepTime* Document::step_at(std::int64_t time_ns) const {
  const StepTime* found = nullptr;
  for (const StepTime& step : steps_) {
    if (step.begin_ns <= time_ns && time_ns < step.end_ns && (found == nullptr || step.begin_ns >= found->begin_ns)) {
      found = &step;
    }
  }
  return found;
}

std::optional<std::uint32_t> Document::span_at(std::size_t row, std::int64_t time_ns) const {
  const RowIndex& index = rows_[row].index;
  const std::optional<std::size_t> position = index.at(trace_.spans, time_ns);
  if (!position) return std::nullopt;
  return index.spans()[*position];
}

RowPosition Document::place_of(std::uint32_t span) const {
  const TrackRows& track = tracks_[rows_of_track_[static_cast<std::size_t>(trace_.spans.track[span].value)]];
  const std::int64_t begin = trace_.spans.begin_ns[span];
  for (std::size_t row = track.first_row; row < track.first_row + track.row_count; ++row) {
    const RowIndex& index = rows_[row].index;
    // Several spans begin at once where they have no length.
    for (std::size_t i = index.begin_before(trace_.spans, begin); i < index.size(); ++i) {
      const std::uint32_t candidate = index.spans()[i];
      if (candidate == span) return {row, i};
      if (trace_.spans.begin_ns[candidate] != begin) break;
    }
  }
  assert(false && "every span is on a row");
  return {};
}

SpanClass Document::class_of(std::uint32_t span) const {
  const Part part = trace_.spans.part[span];
  if (part != Part::unknown) return view::class_of(trace_.track_of(trace_.spans.track[span]), part);
  const NameId name = trace_.spans.name[span];
  return view::class_of(trace_.track_of(trace_.spans.track[span]),
                        name.valid() ? class_of_name(trace_.name_of(name)) : SpanClass::other);
}

std::string Document::name_of(std::uint32_t span) const {
  const std::string_view name = trace_.name_of(trace_.spans.name[span]);
  if (!name.empty()) return std::string(name);
  const OpId op = trace_.spans.op[span];
  return op.valid() ? "op " + std::to_string(op.value) : "span";
}

}  // namespace shard::view
