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
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "traces/columns.h"
#include "traces/frame.h"
#include "traces/rows.h"
#include "traces/stack_ids.h"

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

/// Appends the fields of an entry to a payload.
struct EntryWriter {
  ColumnWriter& out;
  template <class T>
  void number(const T& value, sst::Limit /*checked by readers*/ = sst::Limit::type) {
    out.scalar(sst::stored(value));
  }
  void text(const std::string& text) { out.text(cut(text)); }
  void zero() { out.scalar(std::uint8_t{0}); }
};

/// The oldest version of a frame that says all of its rows: columns that it lacks would hold what they hold without.
template <class Row>
std::uint16_t version_for(const std::vector<Row>& rows) {
  std::uint16_t version = sst::kFrameVersion;
  const Row unsaid{};
  sst::for_each_column<Row>([&](const auto& column) {
    if (column.since <= version) return;
    if (std::ranges::any_of(rows, [&](const Row& row) { return row.*column.of != unsaid.*column.of; }))
      version = column.since;
  });
  if constexpr (std::is_same_v<Row, MemoryEvent>) {
    const auto is_new = [](const MemoryEvent& row) { return row.category == Category::not_known; };
    if (std::ranges::any_of(rows, is_new)) version = std::max(version, sst::kCategoryNotKnownSince);
  }
  return version;
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
  StackIds stack_ids;
  std::unordered_map<std::uint64_t, std::size_t> memory_tracks;  // (rank, memory) -> index into memory_tracks_list

  struct MemoryTrack {
    TrackId id;
    std::int64_t live_before = 0;  // bytes live before the first buffered event
    std::vector<MemoryEvent> events;
  };

  // Not yet written.
  std::vector<sst::MetaEntry> metadata;
  std::vector<std::string> names;
  std::vector<Track> tracks;
  std::vector<UnitInfo> units;
  std::vector<StrategyField> strategy;
  std::vector<MemoryCapacity> capacities;
  std::vector<StackFrame> frames;
  std::vector<StackNode> stacks;
  std::vector<std::vector<Span>> spans;  // by track
  std::vector<MemoryTrack> memory;
  std::vector<Counter> counters;
  std::vector<ChunkState> chunk_states;
  std::vector<Flow> flows;
  std::vector<ArenaSummary> arenas;
  std::vector<CollectiveTotal> collectives;
  std::int64_t dropped = 0;

  std::size_t buffered = 0;
  std::uint32_t next_name = 0, next_track = 0, next_unit = 0, next_frame = 0,
                next_stack = 0;  // ids of names.front(), ...
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

  /// Appends one column of `rows` to the payload.
  template <class Row, class Column>
  void append_column(const std::vector<Row>& rows, const Column& column) {
    std::vector<sst::Stored<typename Column::Type>> values(rows.size());
    std::ranges::transform(rows, values.begin(), [&](const Row& row) { return sst::stored(row.*column.of); });
    if constexpr (std::is_same_v<Row, Span> && std::is_same_v<typename Column::Type, std::int64_t>) {
      for (std::size_t i = 1; i < rows.size() && column.coding == sst::Coding::gap; ++i)
        values[i] -= rows[i - 1].begin_ns + rows[i - 1].duration_ns;
    }
    if (column.coding == sst::Coding::delta) {
      payload.delta(std::span(values));
    } else {
      payload.plain(std::span(std::as_const(values)));
    }
  }

  /// Appends all columns of `rows`, and writes them as a frame of the oldest version that holds them.
  template <class Row>
  void write_rows(std::vector<Row>& rows, bool compress = true, std::uint32_t track = 0, std::int64_t t_min = 0,
                  std::int64_t t_max = 0) {
    if (rows.empty()) return;
    const std::uint16_t version = version_for(rows);
    sst::for_each_column<Row>([&](const auto& column) {
      if (column.since <= version) append_column(rows, column);
    });
    write_frame(sst::Rows<Row>::type, rows.size(), track, compress, t_min, t_max, version);
    rows.clear();
  }

  /// `next_id`, where entries have ids: that of the first; counts on.
  template <class Entry>
  void write_entries(FrameType type, std::vector<Entry>& entries, std::uint32_t* next_id = nullptr) {
    EntryWriter out{payload};
    for (std::size_t done = 0; done < entries.size();) {
      std::size_t count = 0;
      for (; done < entries.size() && payload.bytes().size() < kTableFrameBytes && count < sst::kMaxRows; ++count)
        sst::fields_of(out, std::as_const(entries[done++]));
      const std::uint32_t first = next_id == nullptr ? 0 : *next_id;
      if (next_id != nullptr) *next_id += static_cast<std::uint32_t>(count);
      write_frame(type, count, first, false);
    }
    entries.clear();
  }

  void write_tables() {
    write_entries(FrameType::meta, metadata);
    write_entries(FrameType::strategy, strategy);
    write_entries(FrameType::units, units, &next_unit);
    write_entries(FrameType::capacities, capacities);
    write_entries(FrameType::strings, names, &next_name);
    write_entries(FrameType::tracks, tracks, &next_track);
    write_entries(FrameType::frames, frames, &next_frame);
    write_entries(FrameType::stacks, stacks, &next_stack);
  }

  void write_spans(std::uint32_t track, std::vector<Span>& rows) {
    if (rows.empty()) return;
    const auto earlier = [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; };
    if (!std::is_sorted(rows.begin(), rows.end(), earlier)) std::stable_sort(rows.begin(), rows.end(), earlier);
    std::int64_t t_max = std::numeric_limits<std::int64_t>::min();
    for (const Span& row : rows) t_max = std::max(t_max, row.begin_ns + row.duration_ns);
    span_count += static_cast<std::int64_t>(rows.size());
    write_rows(rows, true, track, rows.front().begin_ns, t_max);
  }

  void write_memory(MemoryTrack& track) {
    std::vector<MemoryEvent>& rows = track.events;
    if (rows.empty()) return;
    const auto [first, last] = std::minmax_element(
        rows.begin(), rows.end(), [](const MemoryEvent& a, const MemoryEvent& b) { return a.time_ns < b.time_ns; });
    const std::int64_t t_min = first->time_ns, t_max = last->time_ns;
    payload.scalar(track.live_before);
    for (const MemoryEvent& event : rows) track.live_before += event.delta_bytes;
    memory_event_count += static_cast<std::int64_t>(rows.size());
    write_rows(rows, true, static_cast<std::uint32_t>(track.id.value), t_min, t_max);
  }

  void write_rest() {
    write_rows(counters);
    write_rows(chunk_states);
    write_rows(flows);
    write_rows(arenas);
    write_rows(collectives);
    std::vector<sst::DroppedCount> lost;
    if (dropped != 0) lost.push_back({dropped});
    dropped = 0;
    write_rows(lost, false);
  }

  void write_everything() {
    write_tables();  // T8: what an event refers to comes before it
    for (std::size_t track = 0; track < spans.size(); ++track)
      write_spans(static_cast<std::uint32_t>(track), spans[track]);
    for (MemoryTrack& track : memory) write_memory(track);
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
  state->units = header.units;
  state->strategy = header.strategy;
  state->capacities = header.capacities;
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

FrameId Writer::frame(const StackFrame& frame) {
  const auto [id, added] = state_->stack_ids.frame(frame);
  if (added) state_->frames.push_back(frame);
  return id;
}

StackId Writer::stack(const StackNode& node) {
  const auto [id, added] = state_->stack_ids.stack(node);
  if (added) state_->stacks.push_back(node);
  return id;
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
  std::vector<sst::EndCounts> end{{state.frame_count, state.span_count, state.memory_event_count}};
  state.write_rows(end, false);
  state.open = false;
  return state.file.finish();
}

}  // namespace shard
