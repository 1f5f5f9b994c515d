// Scans frame headers, decodes tables in order and events beside each other (FORMAT.md; rule numbers beside the
// checks).
#include "traces/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "traces/columns.h"
#include "traces/frame.h"
#include "traces/reader_events.h"
#include "traces/reader_frames.h"

namespace shard {
namespace {

using Bytes = std::span<const std::byte>;
using sst::ColumnReader;
using sst::EventFrame;
using sst::Frame;
using sst::FrameHeader;
using sst::FrameType;

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

bool time_fits(std::int64_t time) {
  return time >= -sst::kMaxTime && time <= sst::kMaxTime;
}

class Decoder {
 public:
  Decoder(Bytes bytes, Trace& trace) : bytes_(bytes), trace_(trace), payloads_(bytes) {}

  void run() {
    std::vector<Truncated> notes;
    const std::vector<Frame> frames = sst::scan(bytes_, notes);
    reserve(frames);
    // Tables first, in order; then events beside each other; then, in order again, what depends on what was lost
    // before.
    std::vector<const char*> why(frames.size(), nullptr);
    std::vector<EventFrame> events;
    events.reserve(static_cast<std::size_t>(std::ranges::count_if(frames, is_event)));
    for (std::size_t i = 0; i < frames.size(); ++i) {
      if (!sst::known(frames[i].header)) continue;
      if (is_event(frames[i])) {
        events.push_back(event_of(frames[i]));
      } else if (frames[i].type() != FrameType::end) {
        why[i] = decode(frames[i]);
      }
    }
    sst::decode_events(bytes_, events, trace_);
    settle(frames, why, events, notes);
    sst::drop_unusable(events, trace_);
    std::stable_sort(notes.begin(), notes.end(),
                     [](const Truncated& a, const Truncated& b) { return a.offset < b.offset; });
    trace_.truncated = std::move(notes);
  }

 private:
  static bool is_event(const Frame& frame) {
    return sst::known(frame.header) && (frame.type() == FrameType::spans || frame.type() == FrameType::memory);
  }

  void reserve(const std::vector<Frame>& frames) {
    std::array<std::size_t, 16> rows{};
    for (const Frame& frame : frames) {
      if (sst::known(frame.header) && sst::sizes_agree(frame.header)) rows[frame.header.type] += frame.header.count;
    }
    const auto count = [&](FrameType type) { return rows[static_cast<std::size_t>(type)]; };
    trace_.counters.reserve(count(FrameType::counters));
    trace_.chunk_states.reserve(count(FrameType::chunk_states));
    trace_.flows.reserve(count(FrameType::flows));
    trace_.arenas.reserve(count(FrameType::arenas));
    trace_.collectives.reserve(count(FrameType::collectives));
  }

  [[nodiscard]] EventFrame event_of(const Frame& frame) const {
    const FrameHeader& header = frame.header;
    EventFrame event{.frame = &frame, .known_names = static_cast<std::int64_t>(trace_.names.size())};
    if (!sst::sizes_agree(header)) {
      event.why = "sizes in a frame header contradict each other (T5)";
    } else if (frame.type() == FrameType::spans) {
      if (!defined(header.track)) event.why = "spans on a track that is not defined (T8)";
    } else if (!defined(header.track) || trace_.tracks[header.track].kind != TrackKind::memory) {
      event.why = "memory events on a track that is not defined (T8)";
    } else {
      event.rank = trace_.tracks[header.track].rank;
      event.memory = trace_.tracks[header.track].memory;
    }
    return event;
  }

  /// Walks the frames in order with what became of each: running totals, the END frame, notes.
  void settle(const std::vector<Frame>& frames, const std::vector<const char*>& why, std::vector<EventFrame>& events,
              std::vector<Truncated>& notes) {
    damaged_ = !notes.empty();
    bool closed = false;
    auto event = events.begin();
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const Frame& frame = frames[i];
      if (!sst::known(frame.header)) {
        ++trace_.skipped_frame_count;  // T10
        ++sound_.frames;
        continue;
      }
      closed = frame.type() == FrameType::end;
      const char* fault = why[i];
      if (closed) {
        fault = decode(frame);
      } else if (is_event(frame)) {
        check_total(*event);
        fault = event->why;
        if (fault == nullptr) (frame.type() == FrameType::spans ? sound_.spans : sound_.memory) += frame.header.count;
        ++event;
      }
      if (fault == nullptr) {
        ++sound_.frames;
        continue;
      }
      notes.push_back({frame.offset, fault});
      damaged_ = true;
      closed = false;
    }
    if (!closed && !damaged_) notes.push_back({bytes_.size(), "the trace was not closed: its writer broke off"});
  }

  /// T11: the total at a frame's start is what the events before it add up to, modulo 2^64: a hostile file must not
  /// overflow it.
  void check_total(EventFrame& event) {
    if (event.why != nullptr || event.frame->type() != FrameType::memory) return;
    std::uint64_t& live = live_[event.frame->header.track];
    if (!damaged_ && live != event.live_before) {
      event.why = "the running total of live bytes disagrees with the events (T11)";
      return;
    }
    live = event.live_before + event.live_change;
  }

  /// Null, or why the frame cannot be used; a frame is used whole or not at all.
  const char* decode(const Frame& frame) {
    const sst::Payloads::Payload payload = payloads_.of(frame);
    if (payload.why != nullptr) return payload.why;
    ColumnReader in(payload.raw);
    const FrameHeader& header = frame.header;
    switch (frame.type()) {
      case FrameType::meta: return meta(header, in);
      case FrameType::strings: return strings(header, in);
      case FrameType::tracks: return tracks(header, in);
      case FrameType::counters: return counters(header, in);
      case FrameType::chunk_states: return chunk_states(header, in);
      case FrameType::flows: return flows(header, in);
      case FrameType::arenas: return arenas(header, in);
      case FrameType::collectives: return collectives(header, in);
      case FrameType::dropped: return dropped(header, in);
      case FrameType::end: return end(header, in);
      case FrameType::spans:
      case FrameType::memory: break;  // decode_events()
    }
    return "unknown frame";
  }

  static constexpr const char* kTooMuchText = "more names than a file of this size can have (T6)";
  /// Whether so many more bytes of tables are in proportion to the file (T6).
  bool keep(std::uint64_t bytes) {
    kept_bytes_ += bytes;
    return kept_bytes_ <= (16u << 20) + 2 * std::uint64_t{bytes_.size()};
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
      if (!keep(sizeof(std::pair<std::string, std::string>) + 48 + key.size() + value.size())) return kTooMuchText;
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
    if (!keep((header.track + entries.size() - trace_.names.size()) * sizeof(std::string))) return kTooMuchText;
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
    if (!keep((header.track + entries.size() - trace_.tracks.size()) * sizeof(Track))) return kTooMuchText;
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
    const bool agrees = frames == sound_.frames && spans == sound_.spans && memory_events == sound_.memory;
    if (header.count != 1 || (!agrees && !damaged_ && trace_.skipped_frame_count == 0)) {
      return "the END frame counts other frames than the file has (T12)";
    }
    return nullptr;
  }

  Bytes bytes_;
  Trace& trace_;
  sst::Payloads payloads_;
  bool damaged_ = false;  // something before this frame was lost
  struct {
    std::int64_t frames = 0, spans = 0, memory = 0;
  } sound_;                                                // before the frame being settled
  std::vector<bool> defined_;                              // tracks that a frame defined
  std::unordered_map<std::uint32_t, std::uint64_t> live_;  // running total per memory track
  std::uint64_t kept_bytes_ = 0;                           // that tables of text take
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
