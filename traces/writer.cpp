// Buffers events by track and kind, and appends them as frames (FORMAT.md).
#include "traces/writer.h"

#include <zstd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "traces/columns.h"
#include "traces/frame.h"

namespace shard {
namespace {

using sst::ColumnWriter;
using sst::FrameHeader;
using sst::FrameType;

constexpr int kZstdLevel = 1;                       // level 3: 3 % smaller, twice the time
constexpr std::size_t kTableFrameBytes = 4u << 20;  // strings are split into frames of about this size

using TrackKey = std::tuple<std::int32_t, TrackKind, Stream, Memory, std::string>;

TrackKey key_of(const Track& track) {
  return {track.rank.value, track.kind, track.stream, track.memory, track.name};
}

std::string_view cut(std::string_view text) {
  return text.substr(0, sst::kMaxStringBytes);
}  // T5

/// A column out of rows: `field` picks the value.
template <class T, class Row, class Field>
std::vector<T> column(const std::vector<Row>& rows, Field field) {
  std::vector<T> values(rows.size());
  std::transform(rows.begin(), rows.end(), values.begin(), [&](const Row& row) { return static_cast<T>(field(row)); });
  return values;
}

struct FreeZstd {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

}  // namespace

struct Writer::State {
  OutputFile file;
  bool open = true;
  bool whole;  // appears at close() or not at all

  std::map<TrackKey, TrackId> track_ids;
  std::unordered_map<std::string, NameId> name_ids;
  std::unordered_map<std::uint64_t, std::size_t> memory_tracks;  // (rank, memory) -> index into memory_tracks_list

  struct MemoryTrack {
    TrackId id;
    std::int64_t live_before = 0;  // bytes live before the first buffered event
    std::vector<MemoryEvent> events;
  };

  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<std::string> names;        // not yet written
  std::vector<Track> tracks;             // not yet written
  std::vector<std::vector<Span>> spans;  // by track
  std::vector<MemoryTrack> memory;
  std::vector<Counter> counters;
  std::vector<ChunkState> chunk_states;
  std::vector<Flow> flows;
  std::vector<ArenaSummary> arenas;
  std::vector<CollectiveTotal> collectives;
  std::int64_t dropped = 0;

  std::size_t buffered = 0;
  std::uint32_t next_name = 0;   // id of names.front()
  std::uint32_t next_track = 0;  // id of tracks.front()
  std::int64_t frame_count = 0, span_count = 0, memory_event_count = 0;

  std::unique_ptr<ZSTD_CCtx, FreeZstd> zstd{ZSTD_createCCtx()};
  ColumnWriter payload;
  std::vector<std::byte> frame;

  State(OutputFile out, bool at_close) : file(std::move(out)), whole(at_close) {}

  /// Appends `payload` as one frame.
  void write_frame(FrameType type, std::size_t count, std::uint32_t track, bool compress, std::int64_t t_min = 0,
                   std::int64_t t_max = 0, std::uint16_t version = sst::kFrameVersion) {
    const std::span<const std::byte> raw = payload.bytes();
    assert(count <= sst::kMaxRows && raw.size() <= sst::kMaxRawBytes);
    FrameHeader header;
    header.type = static_cast<std::uint16_t>(type);
    header.version = version;
    header.count = static_cast<std::uint32_t>(count);
    header.raw_bytes = static_cast<std::uint32_t>(raw.size());
    header.track = track;
    header.t_min = t_min;
    header.t_max = t_max;

    frame.assign(sst::kFrameHeaderBytes + ZSTD_compressBound(raw.size()) + sst::kAlignment, std::byte{0});
    std::byte* const area = frame.data() + sst::kFrameHeaderBytes;
    std::size_t stored = raw.size();
    if (compress) {
      const std::size_t size =
          ZSTD_compressCCtx(zstd.get(), area, ZSTD_compressBound(raw.size()), raw.data(), raw.size(), kZstdLevel);
      if (ZSTD_isError(size) == 0 && size < raw.size()) {
        stored = size;
        header.codec = static_cast<std::uint8_t>(sst::Codec::zstd);
      }
    }
    if (header.codec == 0 && !raw.empty()) std::memcpy(area, raw.data(), raw.size());
    header.stored_bytes = static_cast<std::uint32_t>(stored);
    const std::size_t length = sst::area_bytes(header.raw_bytes, header.stored_bytes);
    std::memset(area + stored, 0, length - stored);
    header.payload_crc = sst::checksum({area, length});
    sst::pack(header, std::span<std::byte, sst::kFrameHeaderBytes>(frame.data(), sst::kFrameHeaderBytes));
    file.write(std::span<const std::byte>(frame).first(sst::kFrameHeaderBytes + length));
    ++frame_count;
    payload.clear();
  }

  template <class T, class Row, class Field>
  void plain(const std::vector<Row>& rows, Field field) {
    const std::vector<T> values = column<T>(rows, field);
    payload.plain(std::span<const T>(values));
  }
  template <class T, class Row, class Field>
  void delta(const std::vector<Row>& rows, Field field) {
    std::vector<T> values = column<T>(rows, field);
    payload.delta(std::span<T>(values));
  }

  void write_tables() {
    std::size_t done = 0;
    while (done < metadata.size()) {
      std::size_t count = 0;
      for (; done < metadata.size() && payload.bytes().size() < kTableFrameBytes && count < sst::kMaxRows; ++count) {
        payload.text(cut(metadata[done].first));
        payload.text(cut(metadata[done].second));
        ++done;
      }
      write_frame(FrameType::meta, count, 0, false);
    }
    metadata.clear();

    for (done = 0; done < names.size();) {
      const std::uint32_t first = next_name;
      std::size_t count = 0;
      for (; done < names.size() && payload.bytes().size() < kTableFrameBytes && count < sst::kMaxRows; ++count) {
        payload.text(cut(names[done++]));
      }
      next_name += static_cast<std::uint32_t>(count);
      write_frame(FrameType::strings, count, first, false);
    }
    names.clear();

    for (done = 0; done < tracks.size();) {
      const std::uint32_t first = next_track;
      std::size_t count = 0;
      for (; done < tracks.size() && payload.bytes().size() < kTableFrameBytes && count < sst::kMaxRows; ++count) {
        const Track& track = tracks[done++];
        payload.scalar(track.rank.value);
        payload.scalar(static_cast<std::uint8_t>(track.kind));
        payload.scalar(static_cast<std::uint8_t>(track.stream));
        payload.scalar(static_cast<std::uint8_t>(track.memory));
        payload.scalar(std::uint8_t{0});
        payload.text(cut(track.name));
      }
      next_track += static_cast<std::uint32_t>(count);
      write_frame(FrameType::tracks, count, first, false);
    }
    tracks.clear();
  }

  void write_spans(std::uint32_t track, std::vector<Span>& rows) {
    const auto earlier = [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; };
    if (!std::is_sorted(rows.begin(), rows.end(), earlier)) std::stable_sort(rows.begin(), rows.end(), earlier);
    std::int64_t t_max = std::numeric_limits<std::int64_t>::min();
    std::vector<std::int64_t> gaps(rows.size());
    std::int64_t previous_end = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      gaps[i] = rows[i].begin_ns - previous_end;
      previous_end = rows[i].begin_ns + rows[i].duration_ns;
      t_max = std::max(t_max, previous_end);
    }
    payload.plain(std::span<const std::int64_t>(gaps));
    plain<std::int64_t>(rows, [](const Span& s) { return s.duration_ns; });
    delta<std::int32_t>(rows, [](const Span& s) { return s.op.value; });
    plain<std::int32_t>(rows, [](const Span& s) { return s.name.value; });
    plain<std::uint8_t>(rows, [](const Span& s) { return s.phase; });
    delta<std::int32_t>(rows, [](const Span& s) { return s.step; });
    delta<std::int32_t>(rows, [](const Span& s) { return s.micro_step; });
    plain<std::int64_t>(rows, [](const Span& s) { return s.bytes; });
    delta<std::int32_t>(rows, [](const Span& s) { return s.unit.value; });
    const bool any_waits = std::ranges::any_of(rows, [](const Span& s) { return s.waiting_ns != 0; });
    if (any_waits) plain<std::int64_t>(rows, [](const Span& s) { return s.waiting_ns; });
    write_frame(FrameType::spans, rows.size(), track, true, rows.front().begin_ns, t_max,
                any_waits ? sst::kWaitingSpansVersion : sst::kFrameVersion);
    span_count += static_cast<std::int64_t>(rows.size());
    rows.clear();
  }

  void write_memory(MemoryTrack& track) {
    std::vector<MemoryEvent>& rows = track.events;
    const auto [first, last] = std::minmax_element(
        rows.begin(), rows.end(), [](const MemoryEvent& a, const MemoryEvent& b) { return a.time_ns < b.time_ns; });
    const std::int64_t t_min = first->time_ns, t_max = last->time_ns;
    payload.scalar(track.live_before);
    plain<std::int32_t>(rows, [](const MemoryEvent& e) { return e.buffer.value; });
    plain<std::int64_t>(rows, [](const MemoryEvent& e) { return e.offset_bytes; });
    plain<std::int64_t>(rows, [](const MemoryEvent& e) { return e.delta_bytes; });
    plain<std::uint8_t>(rows, [](const MemoryEvent& e) { return e.category; });
    delta<std::int32_t>(rows, [](const MemoryEvent& e) { return e.op.value; });
    delta<std::int64_t>(rows, [](const MemoryEvent& e) { return e.time_ns; });
    plain<std::uint8_t>(rows, [](const MemoryEvent& e) { return e.phase; });
    delta<std::int32_t>(rows, [](const MemoryEvent& e) { return e.step; });
    plain<std::int32_t>(rows, [](const MemoryEvent& e) { return e.unit.value; });
    for (const MemoryEvent& event : rows) track.live_before += event.delta_bytes;
    write_frame(FrameType::memory, rows.size(), static_cast<std::uint32_t>(track.id.value), true, t_min, t_max);
    memory_event_count += static_cast<std::int64_t>(rows.size());
    rows.clear();
  }

  void write_rest() {
    if (!counters.empty()) {
      plain<std::int32_t>(counters, [](const Counter& c) { return c.rank.value; });
      plain<std::int32_t>(counters, [](const Counter& c) { return c.name.value; });
      delta<std::int64_t>(counters, [](const Counter& c) { return c.time_ns; });
      plain<std::uint64_t>(counters, [](const Counter& c) { return std::bit_cast<std::uint64_t>(c.value); });
      write_frame(FrameType::counters, counters.size(), 0, true);
      counters.clear();
    }
    if (!chunk_states.empty()) {
      plain<std::int32_t>(chunk_states, [](const ChunkState& c) { return c.rank.value; });
      plain<std::int32_t>(chunk_states, [](const ChunkState& c) { return c.unit.value; });
      delta<std::int64_t>(chunk_states, [](const ChunkState& c) { return c.time_ns; });
      plain<std::uint8_t>(chunk_states, [](const ChunkState& c) { return c.memory; });
      plain<std::uint8_t>(chunk_states, [](const ChunkState& c) { return c.state; });
      write_frame(FrameType::chunk_states, chunk_states.size(), 0, true);
      chunk_states.clear();
    }
    if (!flows.empty()) {
      plain<std::int32_t>(flows, [](const Flow& f) { return f.from_track.value; });
      delta<std::int64_t>(flows, [](const Flow& f) { return f.from_ns; });
      plain<std::int32_t>(flows, [](const Flow& f) { return f.to_track.value; });
      delta<std::int64_t>(flows, [](const Flow& f) { return f.to_ns; });
      plain<std::uint8_t>(flows, [](const Flow& f) { return f.kind; });
      write_frame(FrameType::flows, flows.size(), 0, true);
      flows.clear();
    }
    if (!arenas.empty()) {
      plain<std::int32_t>(arenas, [](const ArenaSummary& a) { return a.rank.value; });
      plain<std::uint8_t>(arenas, [](const ArenaSummary& a) { return a.memory; });
      plain<std::uint8_t>(arenas, [](const ArenaSummary& a) { return a.phase; });
      plain<std::int64_t>(arenas, [](const ArenaSummary& a) { return a.peak_bytes; });
      plain<std::int64_t>(arenas, [](const ArenaSummary& a) { return a.live_peak_bytes; });
      plain<std::int64_t>(arenas, [](const ArenaSummary& a) { return a.capacity_bytes; });
      write_frame(FrameType::arenas, arenas.size(), 0, true);
      arenas.clear();
    }
    if (!collectives.empty()) {
      plain<std::int32_t>(collectives, [](const CollectiveTotal& c) { return c.rank.value; });
      plain<std::uint8_t>(collectives, [](const CollectiveTotal& c) { return c.kind; });
      plain<std::int64_t>(collectives, [](const CollectiveTotal& c) { return c.count; });
      plain<std::int64_t>(collectives, [](const CollectiveTotal& c) { return c.bytes; });
      write_frame(FrameType::collectives, collectives.size(), 0, true);
      collectives.clear();
    }
    if (dropped != 0) {
      payload.scalar(dropped);
      write_frame(FrameType::dropped, 1, 0, false);
      dropped = 0;
    }
  }

  void write_everything() {
    write_tables();  // T8: what an event refers to comes before it
    for (std::size_t track = 0; track < spans.size(); ++track) {
      if (!spans[track].empty()) write_spans(static_cast<std::uint32_t>(track), spans[track]);
    }
    for (MemoryTrack& track : memory) {
      if (!track.events.empty()) write_memory(track);
    }
    write_rest();
    buffered = 0;
  }

  /// What a writer that is given up leaves: all that it was told, without an END frame.
  void break_off() {
    if (!open || whole) return;
    write_everything();
    static_cast<void>(file.flush());
  }

  void count_event() {
    if (++buffered < kEventsPerFlush) return;
    write_everything();
    static_cast<void>(file.flush());  // a failure is kept
  }
};

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&& other) noexcept {
  if (this != &other) {
    if (state_) state_->break_off();
    state_ = std::move(other.state_);
  }
  return *this;
}

Writer::~Writer() {
  if (state_) state_->break_off();
}

Result<Writer> Writer::create(const std::filesystem::path& path, const Header& header, Appears appears) {
  Result<OutputFile> file = OutputFile::create(path, appears);
  if (!file) return file.error();
  auto state = std::make_unique<State>(std::move(*file), appears == Appears::whole);

  std::array<std::byte, sst::kFileHeaderBytes> bytes{};
  const std::span<std::byte> out(bytes);
  std::memcpy(bytes.data(), sst::kMagic.data(), sst::kMagic.size());
  sst::put(out, 8, sst::kMajor);
  sst::put(out, 10, sst::kMinor);
  sst::put(out, 12, sst::kByteOrderMark);
  std::memcpy(bytes.data() + 16, header.uuid.data(), header.uuid.size());
  sst::put(out, 32, header.clock_ns);
  sst::put(out, 40, header.wall_ns);
  sst::put(out, 48, static_cast<std::uint8_t>(header.kind));
  sst::put(out, 52, header.world_size);
  sst::put(out, 60, sst::checksum(out.first(60)));
  state->file.write(std::span<const std::byte>(bytes));

  if (!header.plan_hash.empty()) state->metadata.emplace_back("plan_hash", header.plan_hash);
  if (!header.parent_plan_hash.empty()) state->metadata.emplace_back("parent_plan_hash", header.parent_plan_hash);
  for (const auto& [key, value] : header.metadata) state->metadata.emplace_back(key, value);
  state->write_tables();
  if (const Result<void> begun = state->file.flush(); !begun) {
    state->open = false;
    state->file.discard();
    return begun.error();
  }
  return Writer(std::move(state));
}

TrackId Writer::track(const Track& track) {
  const TrackId next{static_cast<std::int32_t>(state_->track_ids.size())};
  const auto [at, added] = state_->track_ids.try_emplace(key_of(track), next);
  if (added) {
    state_->tracks.push_back(track);
    state_->spans.emplace_back();
  }
  return at->second;
}

NameId Writer::name(std::string_view text) {
  const NameId next{static_cast<std::int32_t>(state_->name_ids.size())};
  const auto [at, added] = state_->name_ids.try_emplace(std::string(text), next);
  if (added) state_->names.emplace_back(text);
  return at->second;
}

void Writer::add(const Span& span) {
  assert(span.duration_ns >= 0 && "a span ends after it begins");
  assert(static_cast<std::size_t>(span.track.value) < state_->spans.size() && "tracks come from Writer::track");
  std::vector<Span>& rows = state_->spans[static_cast<std::size_t>(span.track.value)];
  rows.push_back(span);
  // T9: a reader refuses a whole frame over one value out of range.
  rows.back().begin_ns = std::clamp(span.begin_ns, -sst::kMaxTime, sst::kMaxTime);
  rows.back().duration_ns = std::clamp(span.duration_ns, std::int64_t{0}, sst::kMaxTime - rows.back().begin_ns);
  rows.back().waiting_ns = std::clamp(span.waiting_ns, std::int64_t{0}, rows.back().duration_ns);
  state_->count_event();
}

void Writer::add(const MemoryEvent& event) {
  const std::uint64_t key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(event.rank.value)) << 8 |
                            static_cast<std::uint8_t>(event.memory);
  auto at = state_->memory_tracks.find(key);
  if (at == state_->memory_tracks.end()) {
    Track row;
    row.rank = event.rank;
    row.kind = TrackKind::memory;
    row.memory = event.memory;
    at = state_->memory_tracks.emplace(key, state_->memory.size()).first;
    state_->memory.push_back({track(row), 0, {}});
  }
  state_->memory[at->second].events.push_back(event);
  state_->count_event();
}

void Writer::add(const Counter& counter) {
  state_->counters.push_back(counter);
  state_->count_event();
}

void Writer::add(const ChunkState& chunk_state) {
  state_->chunk_states.push_back(chunk_state);
  state_->count_event();
}

void Writer::add(const Flow& flow) {
  state_->flows.push_back(flow);
  state_->count_event();
}

void Writer::add(const ArenaSummary& summary) {
  state_->arenas.push_back(summary);
  state_->count_event();
}

void Writer::add(const CollectiveTotal& total) {
  state_->collectives.push_back(total);
  state_->count_event();
}

void Writer::add_metadata(std::string_view key, std::string_view value) {
  state_->metadata.emplace_back(std::string(key), std::string(value));
  state_->count_event();
}

void Writer::add_dropped(std::int64_t count) {
  state_->dropped += count;
}

Result<void> Writer::flush() {
  state_->write_everything();
  return state_->file.flush();
}

Result<void> Writer::close() {
  State& state = *state_;
  state.write_everything();
  state.payload.scalar(state.frame_count);
  state.payload.scalar(state.span_count);
  state.payload.scalar(state.memory_event_count);
  state.write_frame(FrameType::end, 1, 0, false);
  state.open = false;
  return state.file.finish();
}

}  // namespace shard
