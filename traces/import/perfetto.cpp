// Field numbers are those of protos/perfetto/trace in github.com/google/perfetto.
#include "traces/import/perfetto.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/import/builder.h"
#include "traces/import/json_reader.h"
#include "traces/import/names.h"
#include "traces/import/proto_reader.h"

namespace shard::import {
namespace {

constexpr std::uint32_t kBootTime = 6;
/// Perfetto compresses at most 512 KiB of packets together; more than this is no trace.
constexpr std::size_t kMaxInflated = 8u << 20;
constexpr std::uint64_t kMaxRank = 1u << 20;

std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t times(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
std::int32_t clamp32(std::int64_t value) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, -0x8000'0000ll, 0x7fff'ffff));
}

struct Described {
  std::string name, process_name, thread_name;
  std::uint64_t parent = 0;
  std::int64_t pid = -1, tid = -1;
  bool described = false;
  bool is_counter = false, incremental = false;
  std::int64_t multiplier = 1;
  double last = 0;  // of an incremental counter
  RowId row{};
};

struct RowInfo {
  std::uint64_t uuid = 0;
  std::string first_category{};
};

/// What interning, defaults and clocks have come to on one sequence of packets.
struct Sequence {
  bool state_valid = false;
  std::unordered_map<std::uint64_t, NameId> names, categories, annotations;
  std::uint64_t default_track = 0;
  std::uint32_t default_clock = 0;
  std::vector<std::uint64_t> default_counters;
  std::int64_t thread_us = 0;  // of the older, per-thread time stamps
};

struct Clock {
  std::int64_t unit_ns = 1;
  bool incremental = false;
  std::int64_t last_ns = 0;
  std::optional<std::int64_t> to_trace_ns;
};

/// The fields of a TrackEvent that are used.
struct TrackEvent {
  std::int64_t type = 0;
  std::optional<std::uint64_t> track;
  NameId name{};
  std::string_view category;
  NameId category_id{};
  std::optional<double> value;
  std::optional<std::int64_t> integer_value;
  std::vector<std::uint64_t> flows, terminating_flows, counters;
  std::vector<std::int64_t> counter_values;
  std::optional<std::int64_t> delta_us, absolute_us;
  std::string_view legacy;
  Span described;
};

class Importer {
 public:
  explicit Importer(ByteSource& source) : source_(source) {}

  Result<LoadedTrace> run() {
    while (read_packet()) {
    }
    if (!source_.fault().empty() && stop_.empty()) stop(source_.offset(), source_.fault());
    std::vector<Truncated>& lost = builder_.loaded.trace.truncated;
    if (!known_) {
      const std::uint64_t at = !lost.empty() ? lost.front().offset : stop_.empty() ? 0 : stop_at_;
      const std::string why = !lost.empty() ? lost.front().why : stop_.empty() ? "no packet of it is known" : stop_;
      return Error{.code = Errc::malformed,
                   .what = "is no Perfetto trace: " + why,
                   .where = source_.label() + ": byte " + std::to_string(at),
                   .help = "a file of TracePackets, as Perfetto's SDK or traced wrote it"};
    }
    if (!stop_.empty()) lost.push_back({stop_at_, stop_});
    return finish();
  }

 private:
  void stop(std::uint64_t at, const std::string& why) {
    stop_ = why;
    stop_at_ = at;
  }

  bool varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const int byte = source_.get();
      if (byte < 0) return false;
      value |= (static_cast<std::uint64_t>(byte) & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  /// One field of the outermost message. False at the end, or where what follows cannot be made out.
  bool read_packet() {
    const std::uint64_t at = source_.offset();
    if (source_.peek() < 0) return false;
    std::uint64_t tag = 0, length = 0;
    const auto cut = [&] {
      stop(at, source_.fault().empty() ? "the file ends inside a packet" : source_.fault());
      return false;
    };
    if (!varint(tag)) return cut();
    switch (tag & 7) {
      case 0: return varint(length) || cut();
      case 1: return source_.skip(8) || cut();
      case 5: return source_.skip(4) || cut();
      case 2: break;
      default: stop(at, "no packet begins here"); return false;
    }
    if (!varint(length)) return cut();
    if (tag >> 3 != 1) return source_.skip(length) || cut();
    buffer_.clear();
    if (!source_.append(buffer_, length)) return cut();
    if (!packet(buffer_, false)) lost(at, "a packet is damaged");
    if (buffer_.capacity() > kLargePacket) buffer_ = std::string();
    if (!builder_.room(source_.offset())) {
      stop(source_.offset(), "more events and names than a file of this size can hold");
      return false;
    }
    return true;
  }

  void lost(std::uint64_t at, const char* why) {
    std::vector<Truncated>& lost = builder_.loaded.trace.truncated;
    if (lost.size() < 100) lost.push_back({at, why});
  }

  bool packet(std::string_view message, bool inside) {
    ProtoReader reader(message);
    ProtoField field;
    std::uint64_t timestamp = 0;
    std::uint32_t clock = 0;
    std::uint64_t sequence_id = 0, flags = 0;
    std::string_view event, interned, descriptor, defaults, clocks, thread;
    bool has_event = false, dropped = false, ok = true;
    while (reader.next(field)) {
      switch (field.number) {
        case 8: timestamp = field.value; break;
        case 58: clock = static_cast<std::uint32_t>(field.value); break;
        case 10: sequence_id = field.value; break;
        case 13: flags = field.value; break;
        case 41: flags |= field.value != 0 ? 1 : 0; break;
        case 42: dropped = field.value != 0; break;
        case 11:
          event = field.bytes;
          has_event = field.delimited;
          break;
        case 12: interned = field.bytes; break;
        case 60: descriptor = field.bytes; break;
        case 59: defaults = field.bytes; break;
        case 6: clocks = field.bytes; break;
        case 44: thread = field.bytes; break;
        case 50:
          if (!inside && field.delimited) ok = inflated(field.bytes) && ok;
          known_ = known_ || ok;
          break;
        default: break;
      }
    }
    if (!reader.ok()) return false;
    if (sequence_id != 0 || has_event || !descriptor.empty() || !clocks.empty()) known_ = true;
    const auto [at, first] = sequences_.try_emplace(sequence_id);
    Sequence& sequence = at->second;
    if (first) builder_.charge(sizeof(Sequence) + 64);
    if (dropped && !first) ++builder_.loaded.trace.dropped_count;
    if ((flags & 1) != 0) {
      sequence = Sequence{};
      sequence.state_valid = true;
    }
    if (!defaults.empty()) ok = take_defaults(defaults, sequence) && ok;
    if (!interned.empty()) ok = intern(interned, sequence) && ok;
    if (!clocks.empty()) ok = take_clocks(clocks, sequence_id) && ok;
    if (!descriptor.empty()) ok = describe(descriptor) && ok;
    if (!thread.empty()) ok = take_thread(thread, sequence) && ok;
    if (has_event) {
      if ((flags & 2) != 0 && !sequence.state_valid) {
        ++builder_.loaded.trace.dropped_count;  // what it refers to was lost
        return ok;
      }
      const std::uint32_t id = clock != 0 ? clock : sequence.default_clock != 0 ? sequence.default_clock : kBootTime;
      ok = track_event(event, to_trace_time(timestamp, id, sequence_id), sequence) && ok;
    }
    return ok;
  }

  bool inflated(std::string_view bytes) {
    z_stream zlib{};
    if (inflateInit(&zlib) != Z_OK) return false;
    std::string packets;
    zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib's interface; it only reads
    zlib.avail_in = static_cast<uInt>(std::min<std::size_t>(bytes.size(), 1u << 30));
    int code = Z_OK;
    while (code == Z_OK && packets.size() < kMaxInflated) {
      const std::size_t held = packets.size();
      packets.resize(held + (1u << 16));
      zlib.next_out = reinterpret_cast<Bytef*>(packets.data() + held);
      zlib.avail_out = 1u << 16;
      code = ::inflate(&zlib, Z_NO_FLUSH);
      packets.resize(packets.size() - zlib.avail_out);
      if (zlib.avail_in == 0 && zlib.avail_out != 0 && code == Z_OK) break;
    }
    inflateEnd(&zlib);
    bool ok = code == Z_STREAM_END;
    ProtoReader reader(packets);
    ProtoField field;
    while (reader.next(field)) {
      if (field.number == 1 && field.delimited) ok = packet(field.bytes, true) && ok;
    }
    builder_.refund(packets.size() * 4);  // the input is as large as it is without compression
    return ok && reader.ok();
  }

  // --- clocks ---

  /// Sequence-scoped clocks by their sequence, the others for all.
  Clock& clock(std::uint32_t id, std::uint64_t sequence_id) {
    const auto [at, added] = clocks_.try_emplace({id >= 64 && id < 128 ? sequence_id : 0, id});
    if (added) builder_.charge(96);
    return at->second;
  }

  std::int64_t to_trace_time(std::uint64_t timestamp, std::uint32_t id, std::uint64_t sequence_id) {
    if (id == trace_clock_) return static_cast<std::int64_t>(timestamp);
    Clock& of = clock(id, sequence_id);
    std::int64_t time = times(static_cast<std::int64_t>(timestamp), of.unit_ns);
    if (of.incremental) time = of.last_ns = plus(of.last_ns, time);
    return plus(time, of.to_trace_ns.value_or(0));
  }

  bool take_clocks(std::string_view message, std::uint64_t sequence_id) {
    ProtoReader reader(message);
    ProtoField field;
    std::vector<std::uint32_t> ids;
    while (reader.next(field)) {
      if (field.number == 2) trace_clock_ = static_cast<std::uint32_t>(field.value);
      if (field.number != 1 || !field.delimited) continue;
      ProtoReader entry(field.bytes);
      std::uint32_t id = 0;
      std::uint64_t timestamp = 0, unit = 1;
      bool incremental = false;
      ProtoField member;
      while (entry.next(member)) {
        if (member.number == 1) id = static_cast<std::uint32_t>(member.value);
        if (member.number == 2) timestamp = member.value;
        if (member.number == 3) incremental = member.value != 0;
        if (member.number == 4 && member.value != 0) unit = member.value;
      }
      if (!entry.ok()) return false;
      Clock& of = clock(id, sequence_id);
      of.unit_ns = static_cast<std::int64_t>(unit);
      of.incremental = incremental;
      of.last_ns = times(static_cast<std::int64_t>(timestamp), of.unit_ns);
      ids.push_back(id);
    }
    // Through the trace's own clock, or else any whose relation to it is known.
    std::optional<std::int64_t> now;
    for (const std::uint32_t id : ids) {
      const Clock& of = clock(id, sequence_id);
      if (id == trace_clock_) {
        now = of.last_ns;
        break;
      }
      if (!now && of.to_trace_ns) now = plus(of.last_ns, *of.to_trace_ns);
    }
    for (const std::uint32_t id : ids) {
      Clock& of = clock(id, sequence_id);
      if (now && id != trace_clock_) of.to_trace_ns = *now - of.last_ns;
      constexpr std::uint32_t kRealTime = 1;
      if (now && id == kRealTime && builder_.loaded.trace.header.wall_ns == 0) {
        builder_.loaded.trace.header.clock_ns = *now;
        builder_.loaded.trace.header.wall_ns = of.last_ns;
      }
    }
    return reader.ok();
  }

  // --- state of a sequence ---

  bool take_defaults(std::string_view message, Sequence& sequence) {
    ProtoReader reader(message);
    ProtoField field;
    while (reader.next(field)) {
      if (field.number == 58) sequence.default_clock = static_cast<std::uint32_t>(field.value);
      if (field.number != 11 || !field.delimited) continue;
      ProtoReader event(field.bytes);
      ProtoField member;
      while (event.next(member)) {
        if (member.number == 11) sequence.default_track = member.value;
        if (member.number == 31) append_integers(member, sequence.default_counters);
      }
      if (!event.ok()) return false;
    }
    return reader.ok();
  }

  /// A repeated integer field, packed or not.
  template <class T>
  void append_integers(const ProtoField& field, std::vector<T>& values) {
    builder_.charge(8 * (field.delimited ? field.bytes.size() : 1));
    if (!field.delimited) {
      values.push_back(static_cast<T>(field.value));
      return;
    }
    std::string_view rest = field.bytes;
    std::uint64_t value = 0;
    while (!rest.empty() && ProtoReader::take_varint(rest, value)) values.push_back(static_cast<T>(value));
  }
  static void append_fixed(const ProtoField& field, std::vector<std::uint64_t>& values) {
    if (!field.delimited) {
      values.push_back(field.value);
      return;
    }
    for (std::string_view rest = field.bytes; rest.size() >= 8; rest.remove_prefix(8)) {
      std::uint64_t value = 0;
      std::memcpy(&value, rest.data(), 8);
      values.push_back(value);
    }
  }

  bool intern(std::string_view message, Sequence& sequence) {
    ProtoReader reader(message);
    ProtoField field;
    while (reader.next(field)) {
      auto* table = field.number == 1   ? &sequence.categories
                    : field.number == 2 ? &sequence.names
                    : field.number == 3 ? &sequence.annotations
                                        : nullptr;
      if (table == nullptr || !field.delimited) continue;
      ProtoReader entry(field.bytes);
      ProtoField member;
      std::uint64_t iid = 0;
      std::string_view name;
      while (entry.next(member)) {
        if (member.number == 1) iid = member.value;
        if (member.number == 2) name = member.bytes;
      }
      if (!entry.ok()) return false;
      builder_.charge(32);
      (*table)[iid] = builder_.name(name);
    }
    return reader.ok();
  }

  bool take_thread(std::string_view message, Sequence& sequence) {
    ProtoReader reader(message);
    ProtoField field;
    std::uint64_t pid = 0, tid = 0;
    std::string name;
    while (reader.next(field)) {
      if (field.number == 1) pid = field.value;
      if (field.number == 2) tid = field.value;
      if (field.number == 5) name = field.bytes;
      if (field.number == 6) sequence.thread_us = field.integer();
    }
    // Older traces have no track ids: the thread is one.
    const std::uint64_t uuid = kThreadTracks ^ (pid << 32 | (tid & 0xffff'ffff));
    Described& of = track(uuid);
    of.described = true;
    of.pid = static_cast<std::int64_t>(pid);
    of.tid = static_cast<std::int64_t>(tid);
    if (!name.empty()) of.thread_name = name;
    sequence.default_track = uuid;
    return reader.ok();
  }

  Described& track(std::uint64_t uuid) {
    const auto [at, added] = tracks_.try_emplace(uuid);
    if (added) builder_.charge(sizeof(Described) + 64);
    return at->second;
  }

  bool describe(std::string_view message) {
    ProtoReader reader(message);
    ProtoField field;
    std::uint64_t uuid = 0;
    Described found;
    while (reader.next(field)) {
      if (field.number == 1) uuid = field.value;
      if (field.number == 2 || field.number == 10 || field.number == 13) found.name = field.bytes.substr(0, 4096);
      if (field.number == 5) found.parent = field.value;
      ProtoReader inner(field.delimited ? field.bytes : std::string_view());
      ProtoField member;
      if (field.number == 3) {
        while (inner.next(member)) {
          if (member.number == 1) found.pid = member.integer();
          if (member.number == 6) found.process_name = member.bytes.substr(0, 4096);
        }
      } else if (field.number == 4) {
        while (inner.next(member)) {
          if (member.number == 1) found.pid = member.integer();
          if (member.number == 2) found.tid = member.integer();
          if (member.number == 5) found.thread_name = member.bytes.substr(0, 4096);
        }
      } else if (field.number == 8) {
        found.is_counter = true;
        while (inner.next(member)) {
          if (member.number == 4 && member.value != 0) found.multiplier = member.integer();
          if (member.number == 5) found.incremental = member.value != 0;
        }
      }
      if (!inner.ok()) return false;
    }
    if (!reader.ok()) return false;
    builder_.charge(found.name.size() + found.process_name.size() + found.thread_name.size());
    Described& of = track(uuid);
    // A descriptor may come again with more; what it does not say stays.
    found.row = of.row;
    found.last = of.last;
    for (auto text : {&Described::name, &Described::process_name, &Described::thread_name}) {
      if ((found.*text).empty()) found.*text = of.*text;
    }
    if (found.pid < 0) found.pid = of.pid;
    if (found.tid < 0) found.tid = of.tid;
    if (found.parent == 0) found.parent = of.parent;
    found.is_counter = found.is_counter || of.is_counter;
    found.described = true;
    of = std::move(found);
    if (const auto memory = category_counter(of.name)) categories_of_.insert({of.parent, memory->first});
    return true;
  }

  /// "device memory: parameter", as our own export names the curves of categories.
  static std::optional<std::pair<Memory, Category>> category_counter(std::string_view name) {
    const std::size_t colon = name.find(": ");
    if (colon == std::string_view::npos) return std::nullopt;
    const auto memory = memory_counter_named(name.substr(0, colon));
    const auto category = category_named(name.substr(colon + 2));
    if (!memory || !category) return std::nullopt;
    return std::pair(*memory, *category);
  }

  // --- events ---

  RowId row(std::uint64_t uuid) {
    Described& of = track(uuid);
    if (!of.row.valid()) {
      of.row = builder_.add_row({.kind = TrackKind::other});
      rows_.push_back({.uuid = uuid});
    }
    return of.row;
  }

  NameId found(const std::unordered_map<std::uint64_t, NameId>& table, std::uint64_t iid) const {
    const auto at = table.find(iid);
    return at == table.end() ? NameId{} : at->second;
  }

  bool annotation(std::string_view message, const Sequence& sequence, Span& span) {
    ProtoReader reader(message);
    ProtoField field;
    std::string_view name, text;
    std::optional<std::int64_t> value;
    while (reader.next(field)) {
      if (field.number == 1) name = builder_.loaded.trace.name_of(found(sequence.annotations, field.value));
      if (field.number == 10) name = field.bytes;
      if (field.number == 3 || field.number == 4) value = field.integer();
      if (field.number == 6) text = field.bytes;
    }
    if (!reader.ok()) return false;
    if (value && name == "op") span.op = OpId{clamp32(*value)};
    if (value && name == "unit") span.unit = UnitId{clamp32(*value)};
    if (value && name == "step") span.step = clamp32(*value);
    if (value && name == "micro_step") span.micro_step = clamp32(*value);
    if (value && name == "bytes") span.bytes = *value;
    if (value && name == "waiting_ns") span.waiting_ns = *value;
    if (name == "phase") span.phase = phase_named(text).value_or(span.phase);
    return true;
  }

  bool parse(std::string_view message, const Sequence& sequence, TrackEvent& event) {
    ProtoReader reader(message);
    ProtoField field;
    while (reader.next(field)) {
      switch (field.number) {
        case 9: event.type = field.integer(); break;
        case 11: event.track = field.value; break;
        case 10: event.name = found(sequence.names, field.value); break;
        case 23: event.name = builder_.name(field.bytes); break;
        case 3:
          if (!event.category_id.valid() && !field.delimited)
            event.category_id = found(sequence.categories, field.value);
          break;
        case 22:
          if (event.category.empty()) event.category = field.bytes;
          break;
        case 4:
          if (field.delimited && !annotation(field.bytes, sequence, event.described)) return false;
          break;
        case 30:
          event.integer_value = field.integer();
          event.value = static_cast<double>(field.integer());
          break;
        case 44: event.value = field.real(); break;
        case 47:
        case 36: field.number == 47 ? append_fixed(field, event.flows) : append_integers(field, event.flows); break;
        case 48:
        case 42:
          field.number == 48 ? append_fixed(field, event.terminating_flows)
                             : append_integers(field, event.terminating_flows);
          break;
        case 31: append_integers(field, event.counters); break;
        case 12: append_integers(field, event.counter_values); break;
        case 1: event.delta_us = field.integer(); break;
        case 16: event.absolute_us = field.integer(); break;
        case 6: event.legacy = field.bytes; break;
        default: break;
      }
    }
    if (event.category.empty()) event.category = builder_.loaded.trace.name_of(event.category_id);
    return reader.ok();
  }

  bool track_event(std::string_view message, std::int64_t time, Sequence& sequence) {
    TrackEvent event;
    if (!parse(message, sequence, event)) return false;
    if (event.absolute_us) {
      time = times(*event.absolute_us, 1000);
    } else if (event.delta_us) {
      sequence.thread_us = plus(sequence.thread_us, *event.delta_us);
      time = times(sequence.thread_us, 1000);
    }
    const std::uint64_t uuid = event.track.value_or(sequence.default_track);
    const std::vector<std::uint64_t>& counters = event.counters.empty() ? sequence.default_counters : event.counters;
    for (std::size_t i = 0; i < std::min(counters.size(), event.counter_values.size()); ++i) {
      count(counters[i], time, static_cast<double>(event.counter_values[i]), event.counter_values[i]);
    }
    if (event.type == 0 && !event.legacy.empty()) return legacy_event(event, uuid, time, sequence);
    act(event, uuid, time);
    return true;
  }

  /// Slices, instants and counters, by TrackEvent.Type.
  void act(const TrackEvent& event, std::uint64_t uuid, std::int64_t time) {
    constexpr std::int64_t kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4;
    const bool joins = !event.flows.empty() || !event.terminating_flows.empty();
    if (event.type == kBegin) {
      const RowId id = row(uuid);
      vote(id, event);
      builder_.begin(id, id.value, described(event, time));
    } else if (event.type == kEnd) {
      builder_.end(row(uuid).value, time);
    } else if (event.type == kInstant) {
      // An instant without a name only carries an arrow.
      if (event.name.valid() || !joins) builder_.instant(row(uuid), time, event.name);
    } else if (event.type == kCounter && event.value) {
      count(uuid, time, *event.value, event.integer_value);
    }
    if (!joins) return;
    const RowId id = row(uuid);
    for (const std::uint64_t flow : event.flows) {
      builder_.flow(flow, Builder::FlowEnd::step, id, time, FlowKind::dependency);
    }
    for (const std::uint64_t flow : event.terminating_flows) {
      builder_.flow(flow, Builder::FlowEnd::finish, id, time, FlowKind::dependency);
    }
  }

  void vote(RowId id, const TrackEvent& event) {
    std::string& first = rows_[static_cast<std::size_t>(id.value)].first_category;
    if (first.empty()) first = event.category.substr(0, 256);
  }

  static Span described(const TrackEvent& event, std::int64_t time) {
    Span span = event.described;
    span.name = event.name;
    span.begin_ns = time;
    return span;
  }

  bool legacy_event(TrackEvent& event, std::uint64_t uuid, std::int64_t time, const Sequence& sequence) {
    ProtoReader reader(event.legacy);
    ProtoField field;
    std::int64_t phase = 0, duration_us = 0;
    std::string key;  // of asynchronous events, with what it is unique in
    bool global = false;
    while (reader.next(field)) {
      if (field.number == 6 || field.number == 10 || field.number == 11) {
        key += "," + std::to_string(field.number) + ":" + std::to_string(field.value);
        global = global || field.number == 11;
      }
      if (field.number == 7) key.append(",").append(field.bytes.substr(0, 256));
      if (field.number == 1 && !event.name.valid()) event.name = found(sequence.names, field.value);
      if (field.number == 2) phase = field.integer();
      if (field.number == 3) duration_us = field.integer();
    }
    if (!reader.ok()) return false;
    if (phase == 'X') {
      const RowId id = row(uuid);
      vote(id, event);
      Span span = described(event, time);
      span.duration_ns = times(duration_us, 1000);
      builder_.complete(id, span);
      return true;
    }
    if (std::string_view("bneSTpF").find(static_cast<char>(phase)) != std::string_view::npos && phase > 0 &&
        phase < 128) {
      asynchronous(event, static_cast<char>(phase), std::move(key), global, uuid, time);
      return true;
    }
    event.type = phase == 'B' ? 1 : phase == 'E' ? 2 : phase == 'I' || phase == 'i' || phase == 'R' ? 3 : 0;
    if (event.type == 0) ++other_count_;
    act(event, uuid, time);
    return true;
  }

  /// Begins and ends that an id joins, on whichever thread: on rows of their own, one per category.
  void asynchronous(const TrackEvent& event, char phase, std::string id, bool global, std::uint64_t uuid,
                    std::int64_t time) {
    const Described& on = track(uuid);
    const std::uint64_t process = on.pid >= 0 ? static_cast<std::uint64_t>(on.pid) : on.parent != 0 ? on.parent : uuid;
    const std::string category(event.category.substr(0, 256));
    const auto named = [&](std::string key) {
      const auto [at, added] = asynchronous_.try_emplace(std::move(key), asynchronous_.size());
      if (added) builder_.charge(256 + at->first.size());
      return static_cast<std::int64_t>(at->second);
    };
    // Rows of no track in the file: numbers that no file of moderate size gives.
    const std::uint64_t of_row = ~static_cast<std::uint64_t>(named(std::to_string(process) + "/" + category));
    Described& shown = track(of_row);
    if (shown.name.empty()) {
      shown.name = category.empty() ? "async" : category;
      shown.parent = uuid;
    }
    const RowId to = row(of_row);
    const auto group =
        static_cast<std::int32_t>(-1 - named((global ? "" : std::to_string(process)) + "/" + category + id));
    if (phase == 'b' || phase == 'S') {
      vote(to, event);
      builder_.begin(to, group, described(event, time));
    } else if (phase == 'e' || phase == 'F') {
      builder_.end(group, time);
    } else {
      builder_.instant(to, time, event.name);
    }
  }

  void count(std::uint64_t uuid, std::int64_t time, double value, std::optional<std::int64_t> integer) {
    Described& of = track(uuid);
    const std::int32_t index = counter_source(uuid, of);
    if (const auto memory = category_counter(of.name); memory && integer) {
      MemoryCurves::Values values;
      values[static_cast<std::size_t>(memory->second)] = *integer;
      curves_.sample(builder_, Rank{index}, memory->first, time, values);
      return;
    }
    // The sum of such curves.
    if (const auto memory = memory_counter_named(of.name); memory && categories_of_.contains({of.parent, *memory}))
      return;
    value *= static_cast<double>(of.multiplier);
    if (of.incremental) value = of.last += value;
    builder_.counter(
        {Rank{index}, builder_.name(of.name.empty() ? "counter " + std::to_string(uuid) : of.name), time, value});
  }

  /// Ranks are known at the end only: until then counters and memory carry the number of their process track.
  std::int32_t counter_source(std::uint64_t uuid, const Described& of) {
    const std::uint64_t process = of.parent != 0 ? of.parent : uuid;
    const auto [at, added] = source_ids_.try_emplace(process, static_cast<std::int32_t>(sources_.size()));
    if (added) {
      sources_.push_back(process);
      builder_.charge(64);
    }
    return at->second;
  }

  // --- what it all means ---

  /// The process that a track belongs to: itself, or the nearest above it that is one.
  const Described* process_of(std::uint64_t uuid) const {
    for (int level = 0; level < 64; ++level) {
      const auto at = tracks_.find(uuid);
      if (at == tracks_.end()) return nullptr;
      const Described& of = at->second;
      if (!of.process_name.empty() || (of.pid >= 0 && of.tid < 0)) return &of;
      if (of.pid >= 0) {  // a thread: its process may be a track of its own
        const auto process = processes_.find(of.pid);
        if (process != processes_.end()) return process->second;
      }
      if (of.parent == 0 || of.parent == uuid) return nullptr;
      uuid = of.parent;
    }
    return nullptr;
  }

  static std::optional<Rank> our_rank(const Described* process) {
    std::int64_t rank = 0;
    if (process == nullptr || !process->process_name.starts_with("rank ")) return std::nullopt;
    if (!to_integer(std::string_view(process->process_name).substr(5), rank)) return std::nullopt;
    if (rank < 0 || static_cast<std::uint64_t>(rank) >= kMaxRank) return std::nullopt;
    return Rank{clamp32(rank)};
  }

  Result<LoadedTrace> finish() {
    for (const auto& [uuid, of] : tracks_) {
      if (of.pid >= 0 && of.tid < 0) processes_.try_emplace(of.pid, &of);
    }
    std::set<const Described*> shown;
    for (const RowInfo& row : rows_) shown.insert(process_of(row.uuid));
    OurLanes lanes;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const RowInfo& row = rows_[i];
      const RowId id{static_cast<std::int32_t>(i)};
      const Described& of = tracks_[row.uuid];
      const Described* process = process_of(row.uuid);
      Track& track = builder_.row(id);
      const std::optional<Rank> rank = our_rank(process);
      track.rank = rank.value_or(Rank{0});
      builder_.set_order(id, {process != nullptr ? process->pid : -1, 0});
      if (rank && (stream_named(row.first_category) || row.first_category == "other")) {
        lanes.add(builder_, id, rank->value, row.first_category, of.name, static_cast<std::int64_t>(row.uuid));
        continue;
      }
      std::string name = !of.name.empty() ? of.name : of.thread_name;
      if (name.empty() && of.tid >= 0) name = "thread " + std::to_string(of.tid);
      if (name.empty()) name = !of.process_name.empty() ? of.process_name : "track " + std::to_string(row.uuid);
      const bool prefixed = shown.size() > 1 && process != nullptr && &of != process;
      track.name = prefixed ? process_name(*process) + ", " + name : name;
    }
    Trace& trace = builder_.loaded.trace;
    const auto rank_of = [&](Rank source) {
      return our_rank(process_of(sources_[static_cast<std::size_t>(source.value)])).value_or(Rank{0});
    };
    for (Rank& rank : trace.memory.rank) rank = rank_of(rank);
    for (Counter& counter : trace.counters) counter.rank = rank_of(counter.rank);
    if (other_count_ > 0) {
      builder_.loaded.notes.push_back(std::to_string(other_count_) + " events of older phases that are not shown");
    }
    return builder_.finish();
  }

  static std::string process_name(const Described& process) {
    return process.process_name.empty() ? "process " + std::to_string(process.pid) : process.process_name;
  }

  static constexpr std::uint64_t kThreadTracks = 0x5348'4152'4400'0000;  // keeps invented ids apart from the file's
  static constexpr std::size_t kLargePacket = 1u << 20;

  ByteSource& source_;
  Builder builder_{TraceFormat::perfetto};
  std::string buffer_;
  std::unordered_map<std::uint64_t, Sequence> sequences_;
  std::unordered_map<std::uint64_t, Described> tracks_;
  std::map<std::int64_t, const Described*> processes_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Clock> clocks_;
  std::uint32_t trace_clock_ = kBootTime;
  std::vector<RowInfo> rows_;  // by RowId
  std::unordered_map<std::uint64_t, std::int32_t> source_ids_;
  std::vector<std::uint64_t> sources_;
  std::set<std::pair<std::uint64_t, Memory>> categories_of_;  // processes whose memory is told by category
  MemoryCurves curves_;
  std::unordered_map<std::string, std::size_t> asynchronous_;  // rows and groups of legacy events
  std::int64_t other_count_ = 0;
  bool known_ = false;
  std::string stop_;
  std::uint64_t stop_at_ = 0;
};

}  // namespace

Result<LoadedTrace> import_perfetto(ByteSource& source) {
  return Importer(source).run();
}

}  // namespace shard::import
