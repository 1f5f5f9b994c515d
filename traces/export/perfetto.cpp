// Field numbers are those of protos/perfetto/trace in github.com/google/perfetto.
#include "traces/export/perfetto.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "traces/base/output_file.h"
#include "traces/base/protobuf.h"
#include "traces/export/timeline.h"

namespace shard {
namespace {

namespace packet {  // trace_packet.proto
constexpr std::uint32_t in_trace = 1, timestamp = 8, sequence_id = 10, track_event = 11, interned_data = 12,
                        sequence_flags = 13, track_descriptor = 60;
constexpr std::int64_t state_cleared = 1, needs_state = 2;
}  // namespace packet
namespace event {  // track_event/track_event.proto
constexpr std::uint32_t category_iids = 3, annotations = 4, type = 9, name_iid = 10, track_uuid = 11,
                        counter_value = 30, double_counter_value = 44, flow_ids = 47, terminating_flow_ids = 48;
constexpr std::int64_t begin = 1, end = 2, instant = 3, counter = 4;
}  // namespace event
namespace descriptor {  // track_event/track_descriptor.proto, process_descriptor.proto, counter_descriptor.proto
constexpr std::uint32_t uuid = 1, name = 2, process = 3, parent_uuid = 5, counter = 8;
constexpr std::uint32_t process_pid = 1, process_name = 6, counter_unit = 3;
constexpr std::int64_t unit_bytes = 3;
}  // namespace descriptor
namespace annotation {  // track_event/debug_annotation.proto
constexpr std::uint32_t name_iid = 1, int_value = 4, string_value = 6;
}  // namespace annotation
namespace interned {  // interned_data/interned_data.proto; entries are {1: iid, 2: name}
constexpr std::uint32_t categories = 1, event_names = 2, annotation_names = 3, iid = 1, name = 2;
}  // namespace interned

/// Annotations of a span; the position is the interned id.
enum class Note : std::uint8_t { none, op, phase, step, micro_step, bytes, unit, waiting_ns, part, activity };
constexpr const char* kNoteNames[] = {"",      "op",   "phase",      "step", "micro_step",
                                      "bytes", "unit", "waiting_ns", "part", "activity"};

constexpr std::int64_t kOtherCategory = kStreamCount + 1;  // interned ids of categories: stream + 1, then this
constexpr std::int64_t kSequence = 1;
/// Packets are handed on in pieces of this size.
constexpr std::size_t kPieceBytes = 1u << 20;

class PerfettoExporter {
 public:
  PerfettoExporter(const Trace& trace, OutputFile& out) : trace_(trace), out_(out), origin_(time_origin(trace)) {}

  void run() {
    intern();
    describe_lanes();
    spans();
    memory();
    counters();
    flows();
    flush();
  }

 private:
  void add_packet(const ProtoMessage& body) {
    pending_.message(packet::in_trace, body);
    if (pending_.bytes().size() >= kPieceBytes) flush();
  }
  void flush() {
    out_.write(pending_.bytes());
    pending_.clear();
  }

  /// Everything that later packets name by id, in the first packet.
  void intern() {
    ProtoMessage data;
    const auto entry = [&](std::uint32_t table, std::int64_t id, std::string_view name) {
      ProtoMessage message;
      message.varint(interned::iid, id);
      message.text(interned::name, name);
      data.message(table, message);
    };
    for (int stream = 0; stream < kStreamCount; ++stream) {
      entry(interned::categories, stream + 1, to_string(static_cast<Stream>(stream)));
    }
    entry(interned::categories, kOtherCategory, "other");
    for (std::size_t i = 0; i < trace_.names.size(); ++i) {
      entry(interned::event_names, static_cast<std::int64_t>(i) + 1, trace_.names[i]);
    }
    for (std::size_t i = 1; i < std::size(kNoteNames); ++i) {
      entry(interned::annotation_names, static_cast<std::int64_t>(i), kNoteNames[i]);
    }
    ProtoMessage body;
    body.varint(packet::sequence_id, kSequence);
    body.varint(packet::sequence_flags, packet::state_cleared | packet::needs_state);
    body.message(packet::interned_data, data);
    add_packet(body);
  }

  std::int64_t describe(ProtoMessage& message) {
    message.varint(descriptor::uuid, ++last_uuid_);
    ProtoMessage body;
    body.varint(packet::sequence_id, kSequence);
    body.message(packet::track_descriptor, message);
    add_packet(body);
    return last_uuid_;
  }

  /// The track of a rank, made when first asked for. Process ids begin at 1: 0 is the idle process.
  std::int64_t rank_track(Rank rank) {
    const auto [at, added] = rank_tracks_.try_emplace(rank, 0);
    if (added) {
      ProtoMessage process;
      process.varint(descriptor::process_pid, std::int64_t{rank.value} + 1);
      process.text(descriptor::process_name, "rank " + std::to_string(rank.value));
      ProtoMessage message;
      message.message(descriptor::process, process);
      at->second = describe(message);
    }
    return at->second;
  }

  std::int64_t child_track(Rank rank, const std::string& name, bool counter = false, bool bytes = false) {
    ProtoMessage message;
    message.varint(descriptor::parent_uuid, rank_track(rank));
    message.text(descriptor::name, name);
    if (counter) {
      ProtoMessage details;
      if (bytes) details.varint(descriptor::counter_unit, descriptor::unit_bytes);
      message.message(descriptor::counter, details);
    }
    return describe(message);
  }

  void describe_lanes() {
    for (std::size_t t = 0; t < trace_.tracks.size(); ++t) {
      lane_tracks_.emplace_back();
      for (std::int32_t lane = 0; lane < lanes_.lanes_of_track[t]; ++lane) {
        lane_tracks_.back().push_back(child_track(trace_.tracks[t].rank, lane_name(trace_.tracks[t], lane)));
      }
    }
  }

  void track_event(std::int64_t time, std::int64_t type, std::int64_t track, const ProtoMessage& rest) {
    ProtoMessage body;
    body.varint(event::type, type);
    body.varint(event::track_uuid, track);
    ProtoMessage whole;
    whole.varint(packet::timestamp,
                 static_cast<std::int64_t>(static_cast<std::uint64_t>(time) - static_cast<std::uint64_t>(origin_)));
    whole.varint(packet::sequence_id, kSequence);
    whole.varint(packet::sequence_flags, packet::needs_state);
    whole.text(packet::track_event, body.bytes() + rest.bytes());
    add_packet(whole);
  }

  static void note(ProtoMessage& message, Note key, std::int64_t value) {
    ProtoMessage body;
    body.varint(annotation::name_iid, static_cast<std::int64_t>(key));
    body.varint(annotation::int_value, value);
    message.message(event::annotations, body);
  }

  static void note(ProtoMessage& message, Note key, std::string_view value) {
    ProtoMessage body;
    body.varint(annotation::name_iid, static_cast<std::int64_t>(key));
    body.text(annotation::string_value, value);
    message.message(event::annotations, body);
  }

  void begin(const Span& span, std::int64_t track) {
    const Track& row = trace_.track_of(span.track);
    ProtoMessage rest;
    if (span.name.valid()) rest.varint(event::name_iid, std::int64_t{span.name.value} + 1);
    rest.varint(event::category_iids,
                row.kind == TrackKind::stream ? static_cast<std::int64_t>(row.stream) + 1 : kOtherCategory);
    note(rest, Note::op, span.op.value);
    note(rest, Note::phase, to_string(span.phase));
    note(rest, Note::step, span.step);
    note(rest, Note::micro_step, span.micro_step);
    if (span.bytes != 0) note(rest, Note::bytes, span.bytes);
    if (span.unit.valid()) note(rest, Note::unit, span.unit.value);
    if (span.waiting_ns != 0) note(rest, Note::waiting_ns, span.waiting_ns);
    if (span.part != Part::unknown) note(rest, Note::part, to_string(span.part));
    if (span.activity != Activity::unknown) note(rest, Note::activity, to_string(span.activity));
    track_event(span.begin_ns, event::begin, track, rest);
  }

  /// Begins and ends of every lane, innermost ends first: at one time, order in the file decides how they nest.
  void spans() {
    std::vector<std::vector<std::vector<std::int64_t>>> open;  // [track][lane]: ends
    for (const std::vector<std::int64_t>& lanes : lane_tracks_) open.emplace_back(lanes.size());
    const auto close_until = [&](std::size_t track, std::size_t lane, std::int64_t time) {
      std::vector<std::int64_t>& ends = open[track][lane];
      while (!ends.empty() && ends.back() <= time) {
        track_event(ends.back(), event::end, lane_tracks_[track][lane], {});
        ends.pop_back();
      }
    };
    for (const std::uint32_t i : lanes_.order) {
      const Span span = trace_.spans[i];
      const auto track = static_cast<std::size_t>(span.track.value);
      const auto lane = static_cast<std::size_t>(lanes_.lane[i]);
      close_until(track, lane, span.begin_ns);
      begin(span, lane_tracks_[track][lane]);
      open[track][lane].push_back(span.begin_ns + span.duration_ns);
    }
    for (std::size_t track = 0; track < open.size(); ++track) {
      for (std::size_t lane = 0; lane < open[track].size(); ++lane) {
        close_until(track, lane, std::numeric_limits<std::int64_t>::max());
      }
    }
  }

  void counter_value(std::int64_t track, std::int64_t time, std::int64_t value) {
    ProtoMessage rest;
    rest.varint(event::counter_value, value);
    track_event(time, event::counter, track, rest);
  }

  void memory() {
    for (const MemoryCurve& curve : memory_curves(trace_)) {
      const std::string name = std::string(to_string(curve.memory)) + " memory";
      const std::int64_t total = child_track(curve.rank, name, true, true);
      std::array<std::int64_t, kCategoryCount> tracks{};
      for (const Category category : curve.categories) {
        tracks[static_cast<std::size_t>(category)] =
            child_track(curve.rank, name + ": " + to_string(category), true, true);
      }
      for (const MemorySample& sample : curve.samples) {
        counter_value(total, sample.time_ns, sample.live_bytes);
        counter_value(tracks[static_cast<std::size_t>(sample.category)], sample.time_ns, sample.category_bytes);
      }
    }
  }

  void counters() {
    std::map<std::pair<Rank, NameId>, std::int64_t> tracks;
    for (const Counter& counter : trace_.counters) {
      const auto [at, added] = tracks.try_emplace({counter.rank, counter.name}, 0);
      if (added) at->second = child_track(counter.rank, std::string(trace_.name_of(counter.name)), true);
      ProtoMessage rest;
      rest.number(event::double_counter_value, counter.value);
      track_event(counter.time_ns, event::counter, at->second, rest);
    }
  }

  /// Both ends are instants on the lane, inside the spans that they name.
  void flows() {
    std::uint64_t id = 0;
    for (const Flow& flow : trace_.flows) {
      ++id;
      const auto end = [&](TrackId track, std::int64_t time, std::uint32_t field) {
        const std::vector<std::int64_t>& lanes = lane_tracks_[static_cast<std::size_t>(track.value)];
        if (lanes.empty()) return;  // no span that it could name
        ProtoMessage rest;
        rest.fixed64(field, id);
        track_event(time, event::instant, lanes.front(), rest);
      };
      end(flow.from_track, flow.from_ns, event::flow_ids);
      end(flow.to_track, flow.to_ns, event::terminating_flow_ids);
    }
  }

  const Trace& trace_;
  OutputFile& out_;
  const std::int64_t origin_;
  const Lanes lanes_ = assign_lanes(trace_);
  ProtoMessage pending_;
  std::int64_t last_uuid_ = 0;
  std::map<Rank, std::int64_t> rank_tracks_;
  std::vector<std::vector<std::int64_t>> lane_tracks_;  // [track][lane]: uuid
};

}  // namespace

Result<void> export_perfetto(const Trace& trace, const std::filesystem::path& path) {
  Result<OutputFile> out = OutputFile::create(path);
  if (!out) return out.error();
  PerfettoExporter(trace, *out).run();
  return out->finish();
}

}  // namespace shard
