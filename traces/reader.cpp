// Scans frame headers, reserves once, then decodes every undamaged frame (FORMAT.md; rule numbers beside the checks).
#include "traces/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>

#include "traces/columns.h"
#include "traces/frame.h"

namespace shard {
namespace {

using Bytes = std::span<const std::byte>;
using sst::ColumnReader;
using sst::FrameHeader;
using sst::FrameType;

/// A frame whose header and extent are sound.
struct Frame {
  std::uint64_t offset = 0;
  FrameHeader header;
};

Error malformed(std::string_view label, std::uint64_t offset, std::string what) {
  return {Errc::malformed, std::move(what), std::string(label) + ": byte " + std::to_string(offset), ""};
}

Result<void> read_file_header(Bytes bytes, std::string_view label, Trace& trace) {
  const std::size_t compared = std::min(bytes.size(), sst::kMagic.size());
  if (bytes.empty()) return malformed(label, 0, "the file is empty");
  if (std::memcmp(bytes.data(), sst::kMagic.data(), compared) != 0) {
    return malformed(label, 0, "not a shardscope trace (T1)");
  }
  if (bytes.size() < sst::kFileHeaderBytes) return malformed(label, bytes.size(), "the file header is cut off (T2)");
  const auto major = sst::get<std::uint16_t>(bytes, 8);
  if (major != sst::kMajor) {
    Error error = malformed(
        label, 8,
        "format version " + std::to_string(major) + ", this program reads " + std::to_string(sst::kMajor) + " (T2)");
    error.help = major > sst::kMajor ? "use a newer shardscope" : "write the trace again";
    return error;
  }
  if (sst::get<std::uint32_t>(bytes, 60) != sst::checksum(bytes.first(60))) {
    return malformed(label, 0, "the file header is damaged: its checksum differs (T2)");
  }
  if (sst::get<std::uint32_t>(bytes, 12) != sst::kByteOrderMark) return malformed(label, 12, "wrong byte order (T2)");
  Header& header = trace.header;
  trace.format_minor = sst::get<std::uint16_t>(bytes, 10);
  std::memcpy(header.uuid.data(), bytes.data() + 16, header.uuid.size());
  header.clock_ns = sst::get<std::int64_t>(bytes, 32);
  header.wall_ns = sst::get<std::int64_t>(bytes, 40);
  const auto kind = sst::get<std::uint8_t>(bytes, 48);
  if (kind > static_cast<std::uint8_t>(TraceKind::measured)) return malformed(label, 48, "unknown kind of trace (T2)");
  header.kind = static_cast<TraceKind>(kind);
  header.world_size = sst::get<std::int32_t>(bytes, 52);
  if (header.world_size < 1) return malformed(label, 52, "the world size is not positive (T2)");
  return {};
}

/// Finds the frames. What lies between sound frames is noted in `truncated`.
std::vector<Frame> scan(Bytes bytes, std::vector<Truncated>& truncated) {
  std::vector<Frame> frames;
  std::uint64_t at = sst::kFileHeaderBytes;
  bool lost = false;  // inside a damaged stretch that is already noted
  const auto note = [&](const char* why) {
    if (!lost) truncated.push_back({at, why});
    lost = true;
  };
  while (at < bytes.size()) {
    const std::uint64_t left = bytes.size() - at;
    if (left < sst::kFrameHeaderBytes) {
      note("the last frame is cut off");
      break;
    }
    Frame frame{at, {}};
    const auto header_bytes =
        std::span<const std::byte, sst::kFrameHeaderBytes>(bytes.data() + at, sst::kFrameHeaderBytes);
    if (!sst::unpack(header_bytes, frame.header)) {
      note("a frame header is damaged");  // T7: go on at the next sound header
      at += sst::kAlignment;
      continue;
    }
    lost = false;
    const std::uint64_t area = sst::area_bytes(frame.header.raw_bytes, frame.header.stored_bytes);
    if (area > left - sst::kFrameHeaderBytes) {
      note("the last frame is cut off");
      break;
    }
    frames.push_back(frame);
    at += sst::kFrameHeaderBytes + area;
  }
  return frames;
}

/// Bytes of one row of a frame of rows; 0 for tables of strings and for unknown types.
std::uint32_t row_bytes(std::uint16_t type) {
  switch (static_cast<FrameType>(type)) {
    case FrameType::spans: return 45;
    case FrameType::memory: return 42;
    case FrameType::counters: return 24;
    case FrameType::chunk_states: return 18;
    case FrameType::flows: return 25;
    case FrameType::arenas: return 30;
    case FrameType::collectives: return 21;
    case FrameType::dropped: return 8;
    case FrameType::end: return 24;
    case FrameType::meta:
    case FrameType::strings:
    case FrameType::tracks: return 0;
  }
  return 0;
}

bool known(const FrameHeader& header) {
  return header.type >= static_cast<std::uint16_t>(FrameType::meta) &&
         header.type <= static_cast<std::uint16_t>(FrameType::end) && header.version == sst::kFrameVersion &&
         header.codec <= static_cast<std::uint8_t>(sst::Codec::zstd);
}

/// True where sizes in a known frame's header agree with each other (T5).
bool sizes_agree(const FrameHeader& header) {
  if (header.raw_bytes > sst::kMaxRawBytes || header.count > sst::kMaxRows) return false;
  if (header.codec == 0 && header.stored_bytes != header.raw_bytes) return false;
  const std::uint32_t row = row_bytes(header.type);
  if (row == 0) return header.codec == 0;  // T6: tables of strings are never compressed
  const std::uint64_t fixed = header.type == static_cast<std::uint16_t>(FrameType::memory) ? 8 : 0;
  return header.raw_bytes == fixed + std::uint64_t{row} * header.count;
}

template <class E>
bool all_at_most(std::span<const E> values, E last) {
  std::uint8_t highest = 0;
  for (const E value : values) highest = std::max(highest, static_cast<std::uint8_t>(value));
  return highest <= static_cast<std::uint8_t>(last);
}

template <class Tag>
bool none_negative(std::span<const Id<Tag>> values) {
  std::int32_t all = 0;
  for (const Id<Tag> value : values) all |= value.value;
  return all >= 0;
}

bool time_fits(std::int64_t time) {
  return time >= -sst::kMaxTime && time <= sst::kMaxTime;
}

// The integers inside ids and enumerations, for decoding in place.
template <class Tag>
std::span<std::int32_t> numbers(std::span<Id<Tag>> ids) {
  static_assert(sizeof(Id<Tag>) == sizeof(std::int32_t));
  return {reinterpret_cast<std::int32_t*>(ids.data()), ids.size()};
}
template <class E>
std::span<std::uint8_t> numbers(std::span<E> values) {
  static_assert(std::is_enum_v<E> && sizeof(E) == 1);
  return {reinterpret_cast<std::uint8_t*>(values.data()), values.size()};
}

/// The last `count` elements of a column, newly added.
template <class T>
std::span<T> grow(std::vector<T>& column, std::size_t count) {
  column.resize(column.size() + count);
  return std::span(column).last(count);
}

struct FreeZstd {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

class Decoder {
 public:
  Decoder(Bytes bytes, Trace& trace) : bytes_(bytes), trace_(trace) {}

  void run() {
    std::vector<Truncated> notes;
    const std::vector<Frame> frames = scan(bytes_, notes);
    damaged_ = !notes.empty();
    reserve(frames);
    bool closed = false;
    std::int64_t decoded = 0;
    for (const Frame& frame : frames) {
      if (!known(frame.header)) {
        ++trace_.skipped_frame_count;  // T10
        ++decoded;
        continue;
      }
      closed = frame.header.type == static_cast<std::uint16_t>(FrameType::end);
      frames_before_ = decoded;
      if (const char* why = decode(frame)) {
        notes.push_back({frame.offset, why});
        damaged_ = true;
        closed = false;
      } else {
        ++decoded;
      }
    }
    if (!closed && !damaged_) notes.push_back({bytes_.size(), "the trace was not closed: its writer broke off"});
    std::stable_sort(notes.begin(), notes.end(),
                     [](const Truncated& a, const Truncated& b) { return a.offset < b.offset; });
    trace_.truncated = std::move(notes);
  }

 private:
  void reserve(const std::vector<Frame>& frames) {
    std::array<std::size_t, 16> rows{};
    for (const Frame& frame : frames) {
      if (known(frame.header) && sizes_agree(frame.header)) rows[frame.header.type] += frame.header.count;
    }
    const auto count = [&](FrameType type) { return rows[static_cast<std::size_t>(type)]; };
    const auto reserve_all = [](std::size_t n, auto&... columns) { (columns.reserve(n), ...); };
    SpanTable& s = trace_.spans;
    reserve_all(count(FrameType::spans), s.track, s.begin_ns, s.duration_ns, s.op, s.name, s.phase, s.step,
                s.micro_step, s.bytes, s.unit);
    MemoryTable& m = trace_.memory;
    reserve_all(count(FrameType::memory), m.rank, m.memory, m.buffer, m.offset_bytes, m.delta_bytes, m.category, m.op,
                m.time_ns, m.phase, m.step, m.unit);
    trace_.counters.reserve(count(FrameType::counters));
    trace_.chunk_states.reserve(count(FrameType::chunk_states));
    trace_.flows.reserve(count(FrameType::flows));
    trace_.arenas.reserve(count(FrameType::arenas));
    trace_.collectives.reserve(count(FrameType::collectives));
  }

  /// Null, or why the frame cannot be used; a frame is used whole or not at all.
  const char* decode(const Frame& frame) {
    const FrameHeader& header = frame.header;
    if (!sizes_agree(header)) return "sizes in a frame header contradict each other (T5)";
    const std::uint64_t area = sst::area_bytes(header.raw_bytes, header.stored_bytes);
    const Bytes stored = bytes_.subspan(frame.offset + sst::kFrameHeaderBytes, area);
    if (sst::checksum(stored) != header.payload_crc) return "a frame is damaged: its checksum differs";
    Bytes raw = stored.first(header.stored_bytes);
    if (header.codec == static_cast<std::uint8_t>(sst::Codec::zstd)) {
      raw_.resize(header.raw_bytes);
      if (!zstd_) zstd_.reset(ZSTD_createDCtx());
      const std::size_t size = ZSTD_decompressDCtx(zstd_.get(), raw_.data(), raw_.size(), raw.data(), raw.size());
      if (ZSTD_isError(size) != 0 || size != header.raw_bytes) return "a frame does not decompress to its size";
      raw = raw_;
    }
    ColumnReader in(raw);
    switch (static_cast<FrameType>(header.type)) {
      case FrameType::meta: return meta(header, in);
      case FrameType::strings: return strings(header, in);
      case FrameType::tracks: return tracks(header, in);
      case FrameType::spans: return spans(header, in);
      case FrameType::memory: return memory(header, in);
      case FrameType::counters: return counters(header, in);
      case FrameType::chunk_states: return chunk_states(header, in);
      case FrameType::flows: return flows(header, in);
      case FrameType::arenas: return arenas(header, in);
      case FrameType::collectives: return collectives(header, in);
      case FrameType::dropped: return dropped(header, in);
      case FrameType::end: return end(header, in);
    }
    return "unknown frame";
  }

  const char* meta(const FrameHeader& header, ColumnReader& in) {
    std::vector<std::pair<std::string, std::string>> entries;
    for (std::uint32_t i = 0; i < header.count && in.ok(); ++i) {
      const std::string_view key = in.text();
      const std::string_view value = in.text();
      if (in.ok()) entries.emplace_back(key, value);
    }
    if (!in.finished()) return "a META frame is not what it says";
    for (auto& [key, value] : entries) {
      if (key == "plan_hash") {
        trace_.header.plan_hash = std::move(value);
      } else if (key == "parent_plan_hash") {
        trace_.header.parent_plan_hash = std::move(value);
      } else {
        trace_.header.metadata.insert_or_assign(std::move(key), std::move(value));
      }
    }
    return nullptr;
  }

  const char* strings(const FrameHeader& header, ColumnReader& in) {
    // T8: an id is never more than the file can have defined before; a gap is a lost frame.
    if (header.track < trace_.names.size() || header.track > bytes_.size() / 4)
      return "a STRINGS frame is out of order";
    std::vector<std::string> entries;
    for (std::uint32_t i = 0; i < header.count && in.ok(); ++i) entries.emplace_back(in.text());
    if (!in.finished()) return "a STRINGS frame is not what it says";
    trace_.names.resize(header.track);
    std::move(entries.begin(), entries.end(), std::back_inserter(trace_.names));
    return nullptr;
  }

  const char* tracks(const FrameHeader& header, ColumnReader& in) {
    if (header.track < trace_.tracks.size() || header.track > bytes_.size() / 12)
      return "a TRACKS frame is out of order";
    std::vector<Track> entries;
    for (std::uint32_t i = 0; i < header.count && in.ok(); ++i) {
      Track track;
      track.rank = Rank{in.scalar<std::int32_t>()};
      track.kind = static_cast<TrackKind>(in.scalar<std::uint8_t>());
      track.stream = static_cast<Stream>(in.scalar<std::uint8_t>());
      track.memory = static_cast<Memory>(in.scalar<std::uint8_t>());
      if (in.scalar<std::uint8_t>() != 0) return "a TRACKS frame has an unknown field";
      track.name = in.text();
      if (track.rank.value < 0 || track.kind > TrackKind::other || static_cast<int>(track.stream) >= kStreamCount ||
          static_cast<int>(track.memory) >= kMemoryCount) {
        return "a TRACKS frame has a value out of range (T9)";
      }
      entries.push_back(std::move(track));
    }
    if (!in.finished()) return "a TRACKS frame is not what it says";
    defined_.resize(header.track, false);
    defined_.resize(header.track + entries.size(), true);
    trace_.tracks.resize(header.track);
    std::move(entries.begin(), entries.end(), std::back_inserter(trace_.tracks));
    return nullptr;
  }

  [[nodiscard]] bool defined(std::uint32_t track) const { return track < defined_.size() && defined_[track]; }
  [[nodiscard]] bool defined(TrackId track) const {
    return track.valid() && defined(static_cast<std::uint32_t>(track.value));
  }

  /// T8: a name that no frame defined reads as none.
  void drop_unknown(std::span<NameId> names) const {
    const auto known_names = static_cast<std::int64_t>(trace_.names.size());
    for (NameId& name : names) {
      if (name.value < 0 || name.value >= known_names) name.value = -1;
    }
  }

  const char* spans(const FrameHeader& header, ColumnReader& in) {
    if (!defined(header.track)) return "spans on a track that is not defined (T8)";
    SpanTable& table = trace_.spans;
    const std::size_t before = table.size();
    const std::size_t n = header.count;
    const std::span begin = grow(table.begin_ns, n), duration = grow(table.duration_ns, n);
    const std::span phase = grow(table.phase, n);
    const std::span name = grow(table.name, n);
    in.plain(begin);
    in.plain(duration);
    in.delta(numbers(grow(table.op, n)));
    in.plain(numbers(name));
    in.plain(numbers(phase));
    in.delta(grow(table.step, n));
    in.delta(grow(table.micro_step, n));
    in.plain(grow(table.bytes, n));
    in.delta(numbers(grow(table.unit, n)));
    std::fill_n(std::back_inserter(table.track), n, TrackId{static_cast<std::int32_t>(header.track)});

    bool sound = in.finished() && all_at_most<Phase>(phase, Phase::digest);
    std::int64_t previous_end = 0;
    for (std::size_t i = 0; i < n && sound; ++i) {
      begin[i] =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(begin[i]) + static_cast<std::uint64_t>(previous_end));
      sound = duration[i] >= 0 && time_fits(begin[i]) && duration[i] <= sst::kMaxTime - begin[i];  // T9
      if (sound) previous_end = begin[i] + duration[i];
    }
    if (sound) {
      drop_unknown(name);
      return nullptr;
    }
    const auto shrink = [&](auto&... columns) { (columns.resize(before), ...); };
    shrink(table.track, table.begin_ns, table.duration_ns, table.op, table.name, table.phase, table.step,
           table.micro_step, table.bytes, table.unit);
    return "a SPANS frame has a value out of range (T9)";
  }

  const char* memory(const FrameHeader& header, ColumnReader& in) {
    if (!defined(header.track) || trace_.tracks[header.track].kind != TrackKind::memory) {
      return "memory events on a track that is not defined (T8)";
    }
    const Track& track = trace_.tracks[header.track];
    MemoryTable& table = trace_.memory;
    const std::size_t before = table.size();
    const std::size_t n = header.count;
    const auto live_before = in.scalar<std::int64_t>();
    const std::span delta = grow(table.delta_bytes, n), time = grow(table.time_ns, n);
    const std::span phase = grow(table.phase, n);
    const std::span category = grow(table.category, n);
    in.plain(numbers(grow(table.buffer, n)));
    in.plain(grow(table.offset_bytes, n));
    in.plain(delta);
    in.plain(numbers(category));
    in.delta(numbers(grow(table.op, n)));
    in.delta(time);
    in.plain(numbers(phase));
    in.delta(grow(table.step, n));
    in.plain(numbers(grow(table.unit, n)));
    std::fill_n(std::back_inserter(table.rank), n, track.rank);
    std::fill_n(std::back_inserter(table.memory), n, track.memory);

    const bool in_range = in.finished() && all_at_most<Phase>(phase, Phase::digest) &&
                          all_at_most<Category>(category, Category::input) &&
                          std::all_of(time.begin(), time.end(), time_fits);
    // The running total is kept modulo 2^64: a hostile file must not overflow it.
    std::uint64_t& live = live_[header.track];
    const bool total_agrees = damaged_ || live == static_cast<std::uint64_t>(live_before);
    if (in_range && total_agrees) {
      live = static_cast<std::uint64_t>(live_before);
      for (const std::int64_t bytes : delta) live += static_cast<std::uint64_t>(bytes);
      return nullptr;
    }
    const auto shrink = [&](auto&... columns) { (columns.resize(before), ...); };
    shrink(table.rank, table.memory, table.buffer, table.offset_bytes, table.delta_bytes, table.category, table.op,
           table.time_ns, table.phase, table.step, table.unit);
    return in_range ? "the running total of live bytes disagrees with the events (T11)"
                    : "a MEMORY frame has a value out of range (T9)";
  }

  /// Decodes rows into a scratch column each, then hands them over one by one.
  template <class T>
  std::vector<T> column(std::size_t count, ColumnReader& in, bool delta = false) {
    std::vector<T> values(count);
    if (delta) {
      in.delta(std::span<T>(values));
    } else {
      in.plain(std::span<T>(values));
    }
    return values;
  }

  const char* counters(const FrameHeader& header, ColumnReader& in) {
    const std::size_t n = header.count;
    const auto rank = column<std::int32_t>(n, in), name = column<std::int32_t>(n, in);
    const auto time = column<std::int64_t>(n, in, true);
    const auto value = column<std::uint64_t>(n, in);
    for (std::size_t i = 0; i < n; ++i) {
      if (rank[i] < 0 || !time_fits(time[i])) return "a COUNTERS frame has a value out of range (T9)";
    }
    for (std::size_t i = 0; i < n; ++i) {
      Counter row{Rank{rank[i]}, NameId{name[i]}, time[i], std::bit_cast<double>(value[i])};
      drop_unknown(std::span(&row.name, 1));
      trace_.counters.push_back(row);
    }
    return nullptr;
  }

  const char* chunk_states(const FrameHeader& header, ColumnReader& in) {
    const std::size_t n = header.count;
    const auto rank = column<std::int32_t>(n, in), unit = column<std::int32_t>(n, in);
    const auto time = column<std::int64_t>(n, in, true);
    const auto memory = column<std::uint8_t>(n, in), state = column<std::uint8_t>(n, in);
    for (std::size_t i = 0; i < n; ++i) {
      if (rank[i] < 0 || !time_fits(time[i]) || memory[i] >= kMemoryCount ||
          state[i] > static_cast<std::uint8_t>(UnitState::moving)) {
        return "a CHUNK_STATES frame has a value out of range (T9)";
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      trace_.chunk_states.push_back(
          {Rank{rank[i]}, UnitId{unit[i]}, time[i], static_cast<Memory>(memory[i]), static_cast<UnitState>(state[i])});
    }
    return nullptr;
  }

  const char* flows(const FrameHeader& header, ColumnReader& in) {
    const std::size_t n = header.count;
    const auto from = column<std::int32_t>(n, in);
    const auto from_ns = column<std::int64_t>(n, in, true);
    const auto to = column<std::int32_t>(n, in);
    const auto to_ns = column<std::int64_t>(n, in, true);
    const auto kind = column<std::uint8_t>(n, in);
    for (std::size_t i = 0; i < n; ++i) {
      if (!defined(TrackId{from[i]}) || !defined(TrackId{to[i]}) || !time_fits(from_ns[i]) || !time_fits(to_ns[i]) ||
          kind[i] > static_cast<std::uint8_t>(FlowKind::communication)) {
        return "a FLOWS frame has a value out of range (T9)";
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      trace_.flows.push_back({TrackId{from[i]}, from_ns[i], TrackId{to[i]}, to_ns[i], static_cast<FlowKind>(kind[i])});
    }
    return nullptr;
  }

  const char* arenas(const FrameHeader& header, ColumnReader& in) {
    const std::size_t n = header.count;
    const auto rank = column<std::int32_t>(n, in);
    const auto memory = column<std::uint8_t>(n, in), phase = column<std::uint8_t>(n, in);
    const auto peak = column<std::int64_t>(n, in), live = column<std::int64_t>(n, in);
    const auto capacity = column<std::int64_t>(n, in);
    for (std::size_t i = 0; i < n; ++i) {
      if (rank[i] < 0 || memory[i] >= kMemoryCount || phase[i] >= kPhaseCount) {
        return "an ARENAS frame has a value out of range (T9)";
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      trace_.arenas.push_back(
          {Rank{rank[i]}, static_cast<Memory>(memory[i]), static_cast<Phase>(phase[i]), peak[i], live[i], capacity[i]});
    }
    return nullptr;
  }

  const char* collectives(const FrameHeader& header, ColumnReader& in) {
    const std::size_t n = header.count;
    const auto rank = column<std::int32_t>(n, in);
    const auto kind = column<std::uint8_t>(n, in);
    const auto count = column<std::int64_t>(n, in), bytes = column<std::int64_t>(n, in);
    for (std::size_t i = 0; i < n; ++i) {
      if (rank[i] < 0 || kind[i] >= kCollectiveCount) return "a COLLECTIVES frame has a value out of range (T9)";
    }
    for (std::size_t i = 0; i < n; ++i) {
      trace_.collectives.push_back({Rank{rank[i]}, static_cast<Collective>(kind[i]), count[i], bytes[i]});
    }
    return nullptr;
  }

  const char* dropped(const FrameHeader& header, ColumnReader& in) {
    const auto count = in.scalar<std::int64_t>();
    if (header.count != 1 || count < 0 || count > sst::kMaxTime - trace_.dropped_count) {
      return "a DROPPED frame has a value out of range (T9)";
    }
    trace_.dropped_count += count;
    return nullptr;
  }

  const char* end(const FrameHeader& header, ColumnReader& in) {
    const auto frames = in.scalar<std::int64_t>();
    const auto spans = in.scalar<std::int64_t>();
    const auto memory_events = in.scalar<std::int64_t>();
    const bool agrees = frames == frames_before_ && spans == static_cast<std::int64_t>(trace_.spans.size()) &&
                        memory_events == static_cast<std::int64_t>(trace_.memory.size());
    if (header.count != 1 || (!agrees && !damaged_ && trace_.skipped_frame_count == 0)) {
      return "the END frame counts other frames than the file has (T12)";
    }
    return nullptr;
  }

  Bytes bytes_;
  Trace& trace_;
  bool damaged_ = false;            // something before this frame was lost
  std::int64_t frames_before_ = 0;  // sound frames before the one being decoded
  std::unique_ptr<ZSTD_DCtx, FreeZstd> zstd_;
  std::vector<std::byte> raw_;                             // decompressed payload
  std::vector<bool> defined_;                              // tracks that a frame defined
  std::unordered_map<std::uint32_t, std::uint64_t> live_;  // running total per memory track
};

/// Closes a descriptor.
struct File {
  int fd = -1;
  ~File() {
    if (fd >= 0) ::close(fd);
  }
};

Result<std::vector<std::byte>> read_all(const std::filesystem::path& path) {
  const File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat info {};
  const auto fail = [&](Errc code) {
    return Error{code, std::string("the trace cannot be read: ") + std::strerror(errno), path.string(), ""};
  };
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0) return fail(Errc::no_input);
  std::vector<std::byte> bytes;
  if (S_ISREG(info.st_mode)) bytes.reserve(static_cast<std::size_t>(info.st_size) + 1);
  // Pipes have no size. The first piece is the file header alone, so that /dev/zero is refused rather than read.
  std::size_t piece = sst::kFileHeaderBytes;
  while (true) {
    const std::size_t before = bytes.size();
    bytes.resize(before + piece);
    const ssize_t got = ::read(file.fd, bytes.data() + before, piece);
    if (got < 0) {
      bytes.resize(before);
      if (errno == EINTR) continue;
      return fail(errno == EISDIR ? Errc::no_input : Errc::io);
    }
    bytes.resize(before + static_cast<std::size_t>(got));
    if (got == 0) return bytes;
    const std::size_t compared = std::min(bytes.size(), sst::kMagic.size());
    if (std::memcmp(bytes.data(), sst::kMagic.data(), compared) != 0) return bytes;  // load() says what is wrong
    piece = 4u << 20;
  }
}

}  // namespace

Result<Trace> load(std::span<const std::byte> bytes, std::string_view label) {
  Trace trace;
  if (const Result<void> sound = read_file_header(bytes, label, trace); !sound) return sound.error();
  Decoder(bytes, trace).run();
  return trace;
}

Result<Trace> load(const std::filesystem::path& path) {
  const Result<std::vector<std::byte>> bytes = read_all(path);
  if (!bytes) return bytes.error();
  return load(std::span<const std::byte>(*bytes), path.string());
}

}  // namespace shard
