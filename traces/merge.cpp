// Merges the traces of several ranks by loading one after the other and writing its events again.
#include <algorithm>
#include <utility>

#include "traces/reader.h"
#include "traces/writer.h"

namespace shard {
namespace {

Result<void> same_run(const Header& first, const Header& other, const std::string& where) {
  const auto differs = [&](const char* what) {
    return Error{Errc::contradiction, std::string("traces of two runs: ") + what + " differs from the first trace's",
                 where, "merge the ranks of one run only"};
  };
  if (first.kind != other.kind) return differs("the kind (predicted or measured)");
  if (first.world_size != other.world_size) return differs("the world size");
  if (first.plan_hash != other.plan_hash) return differs("the plan's hash");
  return {};
}

/// What to add to a time of `from` to have it on the clock of `to`, modulo 2^64; 0 where a wall clock is not known.
std::uint64_t clock_shift(const Header& from, const Header& to) {
  if (from.wall_ns == 0 || to.wall_ns == 0) return 0;
  const auto u = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  return (u(from.wall_ns) - u(from.clock_ns)) - (u(to.wall_ns) - u(to.clock_ns));
}

}  // namespace

void append_events(const Trace& trace, Writer& out, std::uint64_t shift) {
  const auto shifted = [&](std::int64_t time) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(time) + shift);
  };
  std::vector<TrackId> tracks;
  for (const Track& track : trace.tracks) tracks.push_back(track.rank.valid() ? out.track(track) : TrackId{});
  std::vector<NameId> names;
  for (const std::string& name : trace.names) names.push_back(out.name(name));
  const auto renamed = [&](NameId name) { return name.valid() ? names[static_cast<std::size_t>(name.value)] : name; };
  const auto moved = [&](TrackId track) { return tracks[static_cast<std::size_t>(track.value)]; };

  std::vector<FrameId> frames;
  for (const StackFrame& frame : trace.frames)
    frames.push_back(out.frame({renamed(frame.function), renamed(frame.file), frame.line}));
  std::vector<StackId> stacks;
  const auto restacked = [&](StackId stack) {
    return stack.valid() ? stacks[static_cast<std::size_t>(stack.value)] : stack;
  };
  for (const StackNode& node : trace.stacks)  // callers come before whom they call
    stacks.push_back(out.stack({node.frame.valid() ? frames[static_cast<std::size_t>(node.frame.value)] : node.frame,
                                restacked(node.caller)}));

  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    Span span = trace.spans[i];
    span.track = moved(span.track);
    span.name = renamed(span.name);
    span.begin_ns = shifted(span.begin_ns);
    out.add(span);
  }
  for (std::size_t i = 0; i < trace.memory.size(); ++i) {
    MemoryEvent event = trace.memory[i];
    event.time_ns = shifted(event.time_ns);
    event.stack = restacked(event.stack);
    out.add(event);
  }
  for (Counter counter : trace.counters) {
    counter.name = renamed(counter.name);
    counter.time_ns = shifted(counter.time_ns);
    out.add(counter);
  }
  for (ChunkState state : trace.chunk_states) {
    state.time_ns = shifted(state.time_ns);
    out.add(state);
  }
  for (Flow flow : trace.flows) {
    flow.from_track = moved(flow.from_track);
    flow.to_track = moved(flow.to_track);
    flow.from_ns = shifted(flow.from_ns);
    flow.to_ns = shifted(flow.to_ns);
    out.add(flow);
  }
  for (const ArenaSummary& summary : trace.arenas) out.add(summary);
  for (const CollectiveTotal& total : trace.collectives) out.add(total);
  if (trace.dropped_count > 0) out.add_dropped(trace.dropped_count);
}

Result<MergeReport> merge_traces(const std::vector<std::filesystem::path>& inputs, const std::filesystem::path& output,
                                 BrokenOff broken_off) {
  if (inputs.empty()) return Error{Errc::usage, "no traces to merge", output.string(), ""};

  Result<Trace> trace = load(inputs.front());
  if (!trace) return trace.error();
  const Header first = trace->header;
  Result<Writer> out = Writer::create(output, first, Appears::whole);
  if (!out) return out.error();

  MergeReport report;
  std::map<std::string, std::string> metadata = first.metadata;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i > 0) trace = load(inputs[i]);
    if (!trace) return trace.error();
    if (const Result<void> same = same_run(first, trace->header, inputs[i].string()); !same) return same.error();
    for (const Truncated& note : trace->truncated) {
      report.incomplete.push_back(inputs[i].string() + ": byte " + std::to_string(note.offset) + ": " + note.why);
    }
    if (broken_off == BrokenOff::refused && !report.incomplete.empty())
      return Error{Errc::io, "a rank's trace broke off, so there is no trace of the run: " + report.incomplete.back(),
                   output.string(), "run again, where no other process touches the files " + inputs[i].string()};
    append_events(*trace, *out, clock_shift(trace->header, first));
    for (const auto& [key, value] : trace->header.metadata) {
      if (metadata.try_emplace(key, value).second) out->add_metadata(key, value);
    }
  }
  if (!report.incomplete.empty()) {
    std::string lines;
    for (const std::string& line : report.incomplete) lines += (lines.empty() ? "" : "\n") + line;
    out->add_metadata("incomplete", lines);
  }
  if (const Result<void> closed = out->close(); !closed) return closed.error();
  return report;
}

}  // namespace shard
