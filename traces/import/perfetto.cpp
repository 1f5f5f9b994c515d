// Field numbers are those of protos/perfetto/trace in github.com/google/perfetto.
#include "traces/import/perfetto.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/base/protobuf.h"
#include "traces/import/builder.h"
#include "traces/import/json_reader.h"
#include "traces/import/names.h"
#include "traces/import/perfetto_clocks.h"
#include "traces/import/perfetto_event.h"
#include "traces/import/perfetto_packets.h"

namespace shard::import {
namespace {

constexpr std::uint64_t kMaxRank = 1u << 20;

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

struct PacketRow {
  std::uint64_t uuid = 0;
  std::string first_category{};
};

class PerfettoImporter {
 public:
  explicit PerfettoImporter(ByteSource& source) : source_(source), packets_(source) {}

  Result<LoadedTrace> run() {
    std::vector<Truncated>& lost = builder_.loaded.trace.truncated;
    std::string_view message;
    while (packets_.next(message)) {
      if (!packet(message, false) && lost.size() < 100) lost.push_back({packets_.at(), "a packet is damaged"});
      if (!builder_.room(source_.offset()))
        packets_.stop(source_.offset(), "more events and names than a file of this size can hold");
    }
    if (packets_.stopped()) lost.push_back(*packets_.stopped());
    if (!known_) {
      const Truncated first = lost.empty() ? Truncated{0, "no packet of it is known"} : lost.front();
      return Error{.code = Errc::malformed,
                   .what = "is no Perfetto trace: " + first.why,
                   .where = source_.label() + ": byte " + std::to_string(first.offset),
                   .help = "a file of TracePackets, as Perfetto's SDK or traced wrote it"};
    }
    return finish();
  }

 private:
  bool packet(std::string_view message, bool inside) {
    ProtoReader reader(message);
    ProtoField field;
    std::uint64_t timestamp = 0;
    std::uint32_t clock = 0;
    std::uint64_t sequence_id = 0, flags = 0;
    std::string_view event, names, descriptor, defaults, clocks, thread;
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
        case 12: names = field.bytes; break;
        case 60: descriptor = field.bytes; break;
        case 59: defaults = field.bytes; break;
        case 6: clocks = field.bytes; break;
        case 44: thread = field.bytes; break;
        case 50:
          if (!inside && field.delimited) ok = compressed(field.bytes) && ok;
          known_ = known_ || ok;
          break;
        default: break;
      }
    }
    if (!reader.ok()) return false;
    if (sequence_id != 0 || has_event || !descriptor.empty() || !clocks.empty()) known_ = true;
    const auto [at, first] = sequences_.try_emplace(sequence_id);
    PerfettoSequence& sequence = at->second;
    if (first) builder_.charge(sizeof(PerfettoSequence) + 64);
    if (dropped && !first) ++builder_.loaded.trace.dropped_count;
    if ((flags & 1) != 0) {
      sequence = PerfettoSequence{};
      sequence.state_valid = true;
    }
    if (!defaults.empty()) ok = take_defaults(defaults, sequence, builder_) && ok;
    if (!names.empty()) ok = take_names(names, sequence, builder_) && ok;
    if (!clocks.empty()) ok = clocks_.take(clocks, sequence_id) && ok;
    if (!descriptor.empty()) ok = describe(descriptor) && ok;
    if (!thread.empty()) ok = take_thread(thread, sequence) && ok;
    if (has_event) {
      if ((flags & 2) != 0 && !sequence.state_valid) {
        ++builder_.loaded.trace.dropped_count;  // what it refers to was lost
        return ok;
      }
      const std::uint32_t id = clock != 0                    ? clock
                               : sequence.default_clock != 0 ? sequence.default_clock
                                                             : PerfettoClocks::kBootTime;
      ok = track_event(event, clocks_.to_trace_time(timestamp, id, sequence_id), sequence) && ok;
    }
    return ok;
  }

  bool compressed(std::string_view bytes) {
    bool ok = false;
    const std::string packets = inflated_packets(bytes, ok);
    ProtoReader reader(packets);
    ProtoField field;
    while (reader.next(field)) {
      if (field.number == 1 && field.delimited) ok = packet(field.bytes, true) && ok;
    }
    builder_.refund(packets.size() * 4);  // the input is as large as it is without compression
    return ok && reader.ok();
  }

  // --- tracks ---

  bool take_thread(std::string_view message, PerfettoSequence& sequence) {
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

  bool track_event(std::string_view message, std::int64_t time, PerfettoSequence& sequence) {
    TrackEvent event;
    if (!parse_event(message, sequence, builder_, event)) return false;
    if (event.absolute_us) {
      time = wrapping_product(*event.absolute_us, 1000);
    } else if (event.delta_us) {
      sequence.thread_us = wrapping_sum(sequence.thread_us, *event.delta_us);
      time = wrapping_product(sequence.thread_us, 1000);
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

  bool legacy_event(TrackEvent& event, std::uint64_t uuid, std::int64_t time, const PerfettoSequence& sequence) {
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
      if (field.number == 1 && !event.name.valid()) event.name = interned(sequence.names, field.value);
      if (field.number == 2) phase = field.integer();
      if (field.number == 3) duration_us = field.integer();
    }
    if (!reader.ok()) return false;
    if (phase == 'X') {
      const RowId id = row(uuid);
      vote(id, event);
      Span span = described(event, time);
      span.duration_ns = wrapping_product(duration_us, 1000);
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
    for (const PacketRow& row : rows_) shown.insert(process_of(row.uuid));
    OurLanes lanes;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const PacketRow& row = rows_[i];
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

  ByteSource& source_;
  PerfettoPackets packets_;
  Builder builder_{TraceFormat::perfetto};
  PerfettoClocks clocks_{builder_};
  std::unordered_map<std::uint64_t, PerfettoSequence> sequences_;
  std::unordered_map<std::uint64_t, Described> tracks_;
  std::map<std::int64_t, const Described*> processes_;
  std::vector<PacketRow> rows_;  // by RowId
  std::unordered_map<std::uint64_t, std::int32_t> source_ids_;
  std::vector<std::uint64_t> sources_;
  std::set<std::pair<std::uint64_t, Memory>> categories_of_;  // processes whose memory is told by category
  MemoryCurves curves_;
  std::unordered_map<std::string, std::size_t> asynchronous_;  // rows and groups of legacy events
  std::int64_t other_count_ = 0;
  bool known_ = false;
};

}  // namespace

Result<LoadedTrace> import_perfetto(ByteSource& source) {
  return PerfettoImporter(source).run();
}

}  // namespace shard::import
