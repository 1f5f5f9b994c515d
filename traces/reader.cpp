// Scans frame headers, decodes tables in order and events beside each other (FORMAT.md; rule numbers beside the
// checks).
#include "traces/reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "traces/base/input_file.h"
#include "traces/columns.h"
#include "traces/frame.h"
#include "traces/reader_events.h"
#include "traces/reader_frames.h"
#include "traces/rows.h"

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

/// Takes the fields of an entry from a payload.
struct EntryReader {
  ColumnReader& in;
  bool sound = true;  ///< no value is out of range
  template <class T>
  void number(T& value, sst::Limit limit = sst::Limit::type) {
    const auto number = in.scalar<sst::Stored<T>>();
    sound = sound && sst::in_range<T>(number, limit);
    if (sound) value = sst::restored<T>(number);
  }
  void text(std::string& text) { text = in.text(); }
  void zero() { sound = in.scalar<std::uint8_t>() == 0 && sound; }
};

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
    std::array<std::size_t, 18> rows{};
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
    EventFrame event{.frame = &frame,
                     .known_names = static_cast<std::int64_t>(trace_.names.size()),
                     .known_stacks = static_cast<std::int64_t>(trace_.stacks.size())};
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
        if (fault == nullptr)
          (frame.type() == FrameType::spans ? sound_.spans : sound_.memory_events) += frame.header.count;
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
      case FrameType::strings: return numbered(header, in, trace_.names, {"a STRINGS frame is out of order", kStrings});
      case FrameType::tracks: return tracks(header, in);
      case FrameType::units:
        return numbered(header, in, trace_.header.units, {"a UNITS frame is out of order", kUnits});
      case FrameType::strategy: return listed(header, in, trace_.header.strategy, kStrategy);
      case FrameType::capacities: return listed(header, in, trace_.header.capacities, kCapacities);
      case FrameType::frames: return frames(header, in);
      case FrameType::stacks: return stacks(header, in);
      case FrameType::counters: return rows(header, in, trace_.counters);
      case FrameType::chunk_states: return rows(header, in, trace_.chunk_states);
      case FrameType::flows: return rows(header, in, trace_.flows);
      case FrameType::arenas: return rows(header, in, trace_.arenas);
      case FrameType::collectives: return rows(header, in, trace_.collectives);
      case FrameType::dropped: return dropped(header, in);
      case FrameType::end: return end(header, in);
      case FrameType::spans:
      case FrameType::memory: break;  // decode_events()
    }
    return "unknown frame";
  }

  // --- Tables ---

  static constexpr const char* kTooMuchText = "more names than a file of this size can have (T6)";
  static constexpr const char* kMeta = "a META frame is not what it says";
  static constexpr const char* kStrings = "a STRINGS frame is not what it says";
  static constexpr const char* kFrames = "a FRAMES frame is not what it says, or has a value out of range (T9)";
  static constexpr const char* kStacks = "a STACKS frame is not what it says";
  static constexpr const char* kTracks = "a TRACKS frame is not what it says, or has a value out of range (T9)";
  static constexpr const char* kUnits = "a UNITS frame is not what it says, or has a value out of range (T9)";
  static constexpr const char* kStrategy = "a STRATEGY frame is not what it says";
  static constexpr const char* kCapacities = "a CAPACITIES frame is not what it says, or has a value out of range (T9)";

  /// Whether so many more bytes of tables are in proportion to the file (T6).
  bool keep(std::uint64_t bytes) {
    kept_bytes_ += bytes;
    return kept_bytes_ <= (16u << 20) + 2 * std::uint64_t{bytes_.size()};
  }

  /// All entries of a frame; false where it is not what it says. What it says of their number is not believed.
  template <class Entry>
  static bool read(const FrameHeader& header, ColumnReader& in, std::vector<Entry>& entries) {
    EntryReader reader{in};
    for (std::uint32_t i = 0; i < header.count && in.ok() && reader.sound; ++i)
      sst::fields_of(reader, entries.emplace_back());
    return in.finished() && reader.sound;
  }

  /// Entries with ids, of which the frame says the first.
  struct Faults {
    const char* order;
    const char* content;
  };
  template <class Entry>
  const char* numbered(const FrameHeader& header, ColumnReader& in, std::vector<Entry>& table, const Faults& faults) {
    // T8: an id is never more than the file can have defined before; a gap is a lost frame.
    if (header.track < table.size() || header.track > bytes_.size() / sst::least_bytes<Entry>()) return faults.order;
    std::vector<Entry> entries;
    if (!read(header, in, entries)) return faults.content;
    if (!keep((header.track + entries.size() - table.size()) * sizeof(Entry))) return kTooMuchText;
    table.resize(header.track);
    std::move(entries.begin(), entries.end(), std::back_inserter(table));
    return nullptr;
  }

  /// Entries without.
  template <class Entry>
  const char* listed(const FrameHeader& header, ColumnReader& in, std::vector<Entry>& table, const char* fault) {
    std::vector<Entry> entries;
    if (!read(header, in, entries)) return fault;
    if (!keep(entries.size() * sizeof(Entry))) return kTooMuchText;
    std::move(entries.begin(), entries.end(), std::back_inserter(table));
    return nullptr;
  }

  const char* meta(const FrameHeader& header, ColumnReader& in) {
    std::vector<sst::MetaEntry> entries;
    if (!read(header, in, entries)) return kMeta;
    for (auto& [key, value] : entries) {
      if (!keep(sizeof(sst::MetaEntry) + 48 + key.size() + value.size())) return kTooMuchText;
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

  const char* tracks(const FrameHeader& header, ColumnReader& in) {
    const char* fault = numbered(header, in, trace_.tracks, {"a TRACKS frame is out of order", kTracks});
    if (fault != nullptr) return fault;
    defined_.resize(header.track, false);
    defined_.resize(trace_.tracks.size(), true);
    return nullptr;
  }

  /// T8: what no earlier frame defines is none.
  template <class Id>
  static void forget_undefined(Id& id, std::size_t defined) {
    if (id.value < 0 || static_cast<std::size_t>(id.value) >= defined) id = Id{};
  }
  const char* frames(const FrameHeader& header, ColumnReader& in) {
    const char* fault = numbered(header, in, trace_.frames, {"a FRAMES frame is out of order", kFrames});
    if (fault != nullptr) return fault;
    for (std::size_t i = header.track; i < trace_.frames.size(); ++i) {
      forget_undefined(trace_.frames[i].function, trace_.names.size());
      forget_undefined(trace_.frames[i].file, trace_.names.size());
    }
    return nullptr;
  }
  const char* stacks(const FrameHeader& header, ColumnReader& in) {
    const char* fault = numbered(header, in, trace_.stacks, {"a STACKS frame is out of order", kStacks});
    if (fault != nullptr) return fault;
    for (std::size_t i = header.track; i < trace_.stacks.size(); ++i) {
      forget_undefined(trace_.stacks[i].frame, trace_.frames.size());
      forget_undefined(trace_.stacks[i].caller, i);  // so that no stack is without an end
    }
    return nullptr;
  }

  [[nodiscard]] bool defined(std::uint32_t track) const { return track < defined_.size() && defined_[track]; }
  [[nodiscard]] bool defined(TrackId track) const {
    return track.valid() && defined(static_cast<std::uint32_t>(track.value));
  }

  // --- Rows ---

  /// All columns of a frame as rows; false where a value is out of range.
  template <class Row>
  static bool read(const FrameHeader& header, ColumnReader& in, std::vector<Row>& rows) requires requires {
    sst::Rows<Row>::columns;
  }
  {
    rows.resize(header.count);
    bool sound = true;
    sst::for_each_column<Row>([&](const auto& column) {
      using Value = typename std::decay_t<decltype(column)>::Type;
      if (column.since > header.version) return;
      std::vector<sst::Stored<Value>> values(rows.size());
      if (column.coding == sst::Coding::delta) {
        in.delta(std::span(values));
      } else {
        in.plain(std::span(values));
      }
      for (std::size_t i = 0; i < rows.size(); ++i) {
        sound = sound && sst::in_range<Value>(values[i], column.limit);
        if (sound) rows[i].*column.of = sst::restored<Value>(values[i]);
      }
    });
    return sound && in.finished();
  }

  // T8: what a row refers to is defined.
  [[nodiscard]] bool refers(const Flow& flow) const { return defined(flow.from_track) && defined(flow.to_track); }
  template <class Row>
  [[nodiscard]] static bool refers(const Row& /*to nothing*/) {
    return true;
  }

  template <class Row>
  const char* rows(const FrameHeader& header, ColumnReader& in, std::vector<Row>& table) {
    std::vector<Row> entries;
    if (!read(header, in, entries)) return sst::Rows<Row>::out_of_range;
    if (!std::ranges::all_of(entries, [&](const Row& row) { return refers(row); })) return sst::Rows<Row>::out_of_range;
    if constexpr (std::is_same_v<Row, Counter>) {
      const auto known_names = static_cast<std::int64_t>(trace_.names.size());
      for (Counter& row : entries) {
        if (row.name.value < 0 || row.name.value >= known_names) row.name.value = -1;  // T8
      }
    }
    table.insert(table.end(), entries.begin(), entries.end());
    return nullptr;
  }

  const char* dropped(const FrameHeader& header, ColumnReader& in) {
    std::vector<sst::DroppedCount> counts;
    if (!read(header, in, counts) || counts.size() != 1 || counts[0].count > sst::kMaxTime - trace_.dropped_count) {
      return sst::Rows<sst::DroppedCount>::out_of_range;
    }
    trace_.dropped_count += counts[0].count;
    return nullptr;
  }

  const char* end(const FrameHeader& header, ColumnReader& in) {
    std::vector<sst::EndCounts> counts;
    const bool agrees = read(header, in, counts) && counts.size() == 1 && counts[0].frames == sound_.frames &&
                        counts[0].spans == sound_.spans && counts[0].memory_events == sound_.memory_events;
    const bool whole = !damaged_ && trace_.skipped_frame_count == 0;
    if (counts.size() != 1 || (!agrees && whole)) return "the END frame counts other frames than the file has (T12)";
    return nullptr;
  }

  Bytes bytes_;
  Trace& trace_;
  sst::Payloads payloads_;
  bool damaged_ = false;                                   // something before this frame was lost
  sst::EndCounts sound_;                                   // before the frame being settled
  std::vector<bool> defined_;                              // tracks that a frame defined
  std::unordered_map<std::uint32_t, std::uint64_t> live_;  // running total per memory track
  std::uint64_t kept_bytes_ = 0;                           // that tables of text take
};

Result<std::vector<std::byte>> read_all(const std::filesystem::path& path) {
  const auto fail = [&](Error error) {
    error.what = "the trace cannot be read: " + error.what;
    return error;
  };
  Result<InputFile> file = InputFile::open_stream(path);
  if (!file) return fail(file.error());
  std::vector<std::byte> bytes;
  if (file->regular()) bytes.reserve(static_cast<std::size_t>(file->bytes()) + 1);
  // Pipes have no size. The first piece is the file header alone, so that /dev/zero is refused rather than read.
  std::size_t piece = sst::kFileHeaderBytes;
  while (true) {
    const std::size_t before = bytes.size();
    bytes.resize(before + piece);
    const Result<std::size_t> got = file->read(std::span(bytes).subspan(before));
    if (!got) return fail(got.error());
    bytes.resize(before + *got);
    if (*got == 0) return bytes;
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
