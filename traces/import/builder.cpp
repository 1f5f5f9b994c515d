// Rows become tracks, begins find their ends, arrows their points; then the columns are filled.
#include "traces/import/builder.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "traces/frame.h"

namespace shard::import {
namespace {

// What a row of each kind takes while the trace is being built and afterwards; see room().
constexpr std::uint64_t kSpanBytes = 64, kMarkBytes = 16, kMemoryBytes = 80, kCounterBytes = 48, kFlowBytes = 48,
                        kNameBytes = 128, kRowBytes = 256, kKeyBytes = 112, kStackBytes = 72;

}  // namespace

Builder::Builder(TraceFormat format) : name_ids_(0, NameHash{&loaded.trace.names}, NameEqual{&loaded.trace.names}) {
  loaded.format = format;
  loaded.trace.header.kind = TraceKind::measured;
}

bool Builder::in_range(std::int64_t time_ns) {
  return time_ns >= -sst::kMaxTime && time_ns <= sst::kMaxTime;
}

void Builder::note(std::int64_t count, const std::string& what) {
  if (count > 0) loaded.notes.push_back(std::to_string(count) + " " + what);
}

NameId Builder::name(std::string_view text) {
  if (text.empty()) return NameId{};
  if (const auto at = name_ids_.find(text); at != name_ids_.end()) return NameId{*at};
  std::vector<std::string>& names = loaded.trace.names;
  charged_ += kNameBytes + text.size();
  names.emplace_back(text.substr(0, sst::kMaxStringBytes));
  const auto id = static_cast<std::int32_t>(names.size() - 1);
  name_ids_.insert(id);
  return NameId{id};
}

FrameId Builder::frame(const StackFrame& frame) {
  const auto [id, added] = stack_ids_.frame(frame);
  if (added) {
    charged_ += kStackBytes;
    loaded.trace.frames.push_back(frame);
  }
  return id;
}

StackId Builder::stack(const StackNode& node) {
  const auto [id, added] = stack_ids_.stack(node);
  if (added) {
    charged_ += kStackBytes;
    loaded.trace.stacks.push_back(node);
  }
  return id;
}

RowId Builder::add_row(Track track) {
  charged_ += kRowBytes + track.name.size();
  const RowId id{static_cast<std::int32_t>(rows_.size())};
  rows_.push_back({.track = std::move(track), .shown_on = id});
  return id;
}

void Builder::set_order(RowId row, std::pair<std::int64_t, std::int64_t> order) {
  rows_[static_cast<std::size_t>(row.value)].order = order;
}

void Builder::merge_row(RowId from, RowId to) {
  rows_[static_cast<std::size_t>(from.value)].shown_on = to;
}

bool Builder::complete(RowId row, Span span) {
  if (!in_range(span.begin_ns) || span.duration_ns < 0 || span.duration_ns > 2 * sst::kMaxTime ||
      !in_range(span.begin_ns + span.duration_ns)) {
    ++void_count_;
    return false;
  }
  charged_ += kSpanBytes;
  span.track = TrackId{row.value};
  spans_.push_back(span);
  return true;
}

void Builder::begin(RowId row, std::int32_t group, Span span) {
  if (!in_range(span.begin_ns)) {
    ++void_count_;
    return;
  }
  charged_ += kSpanBytes + kMarkBytes;
  span.track = TrackId{row.value};
  span.duration_ns = -1;
  marks_.push_back({span.begin_ns, group, static_cast<std::int32_t>(spans_.size())});
  spans_.push_back(span);
}

void Builder::end(std::int32_t group, std::int64_t time_ns) {
  if (!in_range(time_ns)) {
    ++void_count_;
    return;
  }
  charged_ += kMarkBytes;
  marks_.push_back({time_ns, group, -1});
}

void Builder::instant(RowId row, std::int64_t time_ns, NameId name) {
  if (!in_range(time_ns)) {
    ++void_count_;
    return;
  }
  charged_ += kCounterBytes;
  loaded.instants.push_back({TrackId{row.value}, time_ns, name});
}

void Builder::memory(const MemoryEvent& event, bool counted) {
  if (counted) ++loaded.memory_event_count;
  if (!in_range(event.time_ns)) {
    ++void_count_;
    return;
  }
  charged_ += kMemoryBytes;
  loaded.trace.memory.push_back(event);
}

void Builder::counter(const Counter& counter) {
  if (!in_range(counter.time_ns)) {
    ++void_count_;
    return;
  }
  charged_ += kCounterBytes;
  loaded.trace.counters.push_back(counter);
}

void Builder::flow(std::uint64_t key, FlowEnd end, RowId row, std::int64_t time_ns, FlowKind kind) {
  ++loaded.flow_event_count;
  if (!in_range(time_ns)) {
    ++void_count_;
    return;
  }
  charged_ += kFlowBytes;
  flow_points_.push_back({key, time_ns, row, end, kind});
}

void Builder::flow(const std::string& key, FlowEnd end, RowId row, std::int64_t time_ns, FlowKind kind) {
  const auto [at, added] = flow_keys_.try_emplace(key, flow_keys_.size());
  if (added) charged_ += kKeyBytes + key.size();
  flow(at->second, end, row, time_ns, kind);
}

void Builder::reserve_memory(std::size_t count) {
  loaded.trace.memory.reserve(count);
}

/// Walks every group in the order of time and keeps the stack of its open spans.
void Builder::match() {
  std::unordered_map<std::int32_t, std::int64_t> last;
  bool sorted = true;
  for (const Mark& mark : marks_) {
    const auto [at, added] = last.try_emplace(mark.group, mark.time_ns);
    if (!added && mark.time_ns < at->second) sorted = false;
    at->second = mark.time_ns;
  }
  if (!sorted) {
    std::stable_sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) { return a.time_ns < b.time_ns; });
  }
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> open;
  for (const Mark& mark : marks_) {
    std::vector<std::int32_t>& stack = open[mark.group];
    if (mark.span >= 0) {
      stack.push_back(mark.span);
    } else if (stack.empty()) {
      ++unmatched_end_count_;
    } else {
      Span& span = spans_[static_cast<std::size_t>(stack.back())];
      span.duration_ns = mark.time_ns - span.begin_ns;
      stack.pop_back();
    }
  }
  // What is still open at the end of a whole file lasts until then; of a broken one nobody knows.
  std::int64_t end = INT64_MIN;
  for (const Mark& mark : marks_) end = std::max(end, mark.time_ns);
  for (const Span& span : spans_) end = std::max(end, span.begin_ns + std::max<std::int64_t>(span.duration_ns, 0));
  for (const Instant& instant : loaded.instants) end = std::max(end, instant.time_ns);
  for (const Counter& counter : loaded.trace.counters) end = std::max(end, counter.time_ns);
  const bool whole = loaded.trace.truncated.empty();
  for (const auto& [group, stack] : open) {
    unmatched_begin_count_ += static_cast<std::int64_t>(stack.size());
    for (const std::int32_t i : stack) {
      Span& span = spans_[static_cast<std::size_t>(i)];
      if (whole) span.duration_ns = end - span.begin_ns;
    }
  }
  marks_.clear();
  std::erase_if(spans_, [](const Span& span) { return span.duration_ns < 0; });
}

/// Points of one key by time; with a single start, the start first: clocks of devices may disagree a little.
void Builder::join_flows() {
  const auto by_time = [](const FlowPoint& a, const FlowPoint& b) {
    return std::tuple(a.key, a.time_ns, a.end, a.row) < std::tuple(b.key, b.time_ns, b.end, b.row);
  };
  const auto by_end = [](const FlowPoint& a, const FlowPoint& b) {
    return std::tuple(a.end, a.time_ns, a.row) < std::tuple(b.end, b.time_ns, b.row);
  };
  std::sort(flow_points_.begin(), flow_points_.end(), by_time);
  for (auto from = flow_points_.begin(); from != flow_points_.end();) {
    const auto to = std::find_if(from, flow_points_.end(), [&](const FlowPoint& p) { return p.key != from->key; });
    const auto is_start = [](const FlowPoint& p) { return p.end == FlowEnd::start; };
    if (std::count_if(from, to, is_start) == 1) std::sort(from, to, by_end);
    from = to;
  }
  const auto joins = [&](std::size_t i) {  // to the point before it
    return i > 0 && i < flow_points_.size() && flow_points_[i].key == flow_points_[i - 1].key &&
           flow_points_[i - 1].end != FlowEnd::finish && flow_points_[i].end != FlowEnd::start;
  };
  std::size_t count = 0;
  for (std::size_t i = 0; i < flow_points_.size(); ++i) count += joins(i) ? 1 : 0;
  loaded.trace.flows.reserve(count);
  for (std::size_t i = 0; i < flow_points_.size(); ++i) {
    if (!joins(i) && !joins(i + 1)) ++unmatched_flow_count_;
    if (!joins(i)) continue;
    const FlowPoint &from = flow_points_[i - 1], &to = flow_points_[i];
    loaded.trace.flows.push_back({TrackId{from.row.value}, from.time_ns, TrackId{to.row.value}, to.time_ns, from.kind});
  }
  flow_points_.clear();
}

void Builder::place_tracks() {
  for (const Span& span : spans_) rows_[static_cast<std::size_t>(span.track.value)].used = true;
  loaded.lane_count = std::count_if(rows_.begin(), rows_.end(), [](const Row& row) { return row.used; });
  const auto use = [&](TrackId row) {
    if (row.valid()) rows_[static_cast<std::size_t>(row.value)].used = true;
  };
  for (const Instant& instant : loaded.instants) use(instant.track);
  for (const Flow& flow : loaded.trace.flows) use(flow.from_track), use(flow.to_track);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].used) rows_[static_cast<std::size_t>(rows_[i].shown_on.value)].used = true;
  }
  std::vector<std::int32_t> order(rows_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const Row &x = rows_[static_cast<std::size_t>(a)], &y = rows_[static_cast<std::size_t>(b)];
    return std::tie(x.track.rank, x.order) < std::tie(y.track.rank, y.order);
  });
  std::vector<TrackId> track_of(rows_.size());
  std::set<std::tuple<Rank, TrackKind, Stream, Memory, std::string>> seen;
  for (const std::int32_t index : order) {
    Row& row = rows_[static_cast<std::size_t>(index)];
    if (row.shown_on.value != index || !row.used) continue;
    if (!row.track.rank.valid()) row.track.rank = Rank{0};
    row.track.name.resize(std::min<std::size_t>(row.track.name.size(), 4096));
    const auto key = [&] {
      return std::tuple(row.track.rank, row.track.kind, row.track.stream, row.track.memory, row.track.name);
    };
    if (!seen.insert(key()).second) {
      row.track.name += (row.track.name.empty() ? "row " : ", row ") + std::to_string(index);
      seen.insert(key());
    }
    track_of[static_cast<std::size_t>(index)] = TrackId{static_cast<std::int32_t>(loaded.trace.tracks.size())};
    loaded.trace.tracks.push_back(row.track);
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    track_of[i] = track_of[static_cast<std::size_t>(rows_[i].shown_on.value)];
  }
  const auto place = [&](TrackId& track) {
    if (track.valid()) track = track_of[static_cast<std::size_t>(track.value)];
  };
  for (Span& span : spans_) place(span.track);
  for (Instant& instant : loaded.instants) place(instant.track);
  for (Flow& flow : loaded.trace.flows) {
    place(flow.from_track);
    place(flow.to_track);
  }
}

void Builder::fill_spans(std::int64_t shift_ns) {
  std::vector<std::uint32_t> order(spans_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t x, std::uint32_t y) {
    const Span &a = spans_[x], &b = spans_[y];
    if (a.track != b.track) return a.track < b.track;
    if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
    if (a.duration_ns != b.duration_ns) return a.duration_ns > b.duration_ns;
    return x < y;
  });
  loaded.trace.spans.reserve(spans_.size());
  for (const std::uint32_t i : order) {
    Span span = spans_[i];
    span.begin_ns += shift_ns;
    span.waiting_ns = std::clamp(span.waiting_ns, std::int64_t{0}, span.duration_ns);
    loaded.trace.spans.push_back(span);
  }
  spans_.clear();
}

LoadedTrace Builder::finish(std::int64_t shift_ns) {
  if (!in_range(shift_ns)) shift_ns = 0;
  match();
  join_flows();
  // A shift may not push anything out of range.
  bool fits = true;
  const auto check = [&](std::int64_t time) { fits = fits && in_range(time + shift_ns); };
  if (shift_ns != 0) {
    for (const Span& span : spans_) check(span.begin_ns), check(span.begin_ns + span.duration_ns);
    for (const std::int64_t time : loaded.trace.memory.time_ns) check(time);
    for (const Counter& counter : loaded.trace.counters) check(counter.time_ns);
    for (const Flow& flow : loaded.trace.flows) check(flow.from_ns), check(flow.to_ns);
    for (const Instant& instant : loaded.instants) check(instant.time_ns);
  }
  if (!fits) shift_ns = 0;
  place_tracks();
  fill_spans(shift_ns);
  for (std::int64_t& time : loaded.trace.memory.time_ns) time += shift_ns;
  for (Counter& counter : loaded.trace.counters) counter.time_ns += shift_ns;
  for (Flow& flow : loaded.trace.flows) flow.from_ns += shift_ns, flow.to_ns += shift_ns;
  for (Instant& instant : loaded.instants) instant.time_ns += shift_ns;
  std::stable_sort(loaded.instants.begin(), loaded.instants.end(),
                   [](const Instant& a, const Instant& b) { return a.time_ns < b.time_ns; });
  note(unmatched_begin_count_, loaded.trace.truncated.empty() ? "spans without an end, shown to the end of the file"
                                                              : "spans that begin and never end");
  note(unmatched_end_count_, "ends of spans that never began");
  note(unmatched_flow_count_, "ends of arrows without a partner");
  note(void_count_, "events whose time is out of range");
  Header& header = loaded.trace.header;
  for (const Track& track : loaded.trace.tracks) {
    header.world_size = std::max(header.world_size, track.rank.value < 0x7fff'ffff ? track.rank.value + 1 : 1);
  }
  return std::move(loaded);
}

BufferId LiveBuffers::add(Rank rank, Memory memory, std::uint64_t address, std::int64_t bytes) {
  const BufferId buffer = fresh();
  map(rank, memory)[address] = {buffer, bytes};
  return buffer;
}

LiveBuffers::Live LiveBuffers::remove(Rank rank, Memory memory, std::uint64_t address) {
  auto& live = map(rank, memory);
  const auto at = live.find(address);
  if (at == live.end()) return {};
  const Live found = at->second;
  live.erase(at);
  return found;
}

std::unordered_map<std::uint64_t, LiveBuffers::Live>& LiveBuffers::map(Rank rank, Memory memory) {
  return live_[std::int64_t{rank.value} * kMemoryCount + static_cast<int>(memory)];
}

}  // namespace shard::import
