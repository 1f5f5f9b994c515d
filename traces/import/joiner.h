// Adds one trace's tables and events to another's: tables by content, events at their moved times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "traces/import/align.h"
#include "traces/import/import.h"
#include "traces/stack_ids.h"

namespace shard {

class Joiner {
 public:
  explicit Joiner(Trace& into) : into_(into) {}

  void add(const Trace& from, const ClockShift& shift) {
    const auto moved = [&](std::int64_t time) { return shift.moved(time); };
    std::vector<NameId> names;
    for (const std::string& name : from.names) names.push_back(this->name(name));
    const auto named = [&](NameId id) { return id.valid() ? names[static_cast<std::size_t>(id.value)] : id; };
    std::vector<TrackId> tracks;
    for (const Track& track : from.tracks) tracks.push_back(this->track(track));
    const auto on = [&](TrackId id) { return tracks[static_cast<std::size_t>(id.value)]; };
    const std::vector<StackId> stacks = add_stacks(from, names);

    for (std::size_t i = 0; i < from.spans.size(); ++i) {
      Span span = from.spans[i];
      span.track = on(span.track);
      span.name = named(span.name);
      const std::int64_t end = moved(span.begin_ns + span.duration_ns);
      span.begin_ns = moved(span.begin_ns);
      span.duration_ns = end - span.begin_ns;
      span.waiting_ns = std::min(span.waiting_ns, span.duration_ns);
      into_.spans.push_back(span);
    }
    for (std::size_t i = 0; i < from.memory.size(); ++i) {
      MemoryEvent event = from.memory[i];
      event.time_ns = moved(event.time_ns);
      if (event.stack.valid()) event.stack = stacks[static_cast<std::size_t>(event.stack.value)];
      into_.memory.push_back(event);
    }
    for (Counter counter : from.counters) {
      counter.name = named(counter.name);
      counter.time_ns = moved(counter.time_ns);
      into_.counters.push_back(counter);
    }
    for (ChunkState state : from.chunk_states) {
      state.time_ns = moved(state.time_ns);
      into_.chunk_states.push_back(state);
    }
    for (const Flow& flow : from.flows)
      into_.flows.push_back(
          {on(flow.from_track), moved(flow.from_ns), on(flow.to_track), moved(flow.to_ns), flow.kind});
    into_.arenas.insert(into_.arenas.end(), from.arenas.begin(), from.arenas.end());
    into_.collectives.insert(into_.collectives.end(), from.collectives.begin(), from.collectives.end());
    into_.dropped_count += from.dropped_count;
    into_.skipped_frame_count += from.skipped_frame_count;
    into_.truncated.insert(into_.truncated.end(), from.truncated.begin(), from.truncated.end());
    track_of_ = std::move(tracks);
    name_of_ = std::move(names);
  }
  /// An instant of the trace added last.
  [[nodiscard]] Instant place(Instant instant, const ClockShift& shift) const {
    if (instant.track.valid()) instant.track = track_of_[static_cast<std::size_t>(instant.track.value)];
    if (instant.name.valid()) instant.name = name_of_[static_cast<std::size_t>(instant.name.value)];
    instant.time_ns = shift.moved(instant.time_ns);
    return instant;
  }

 private:
  NameId name(const std::string& text) {
    const auto [at, added] = names_.try_emplace(text, static_cast<std::int32_t>(into_.names.size()));
    if (added) into_.names.push_back(text);
    return NameId{at->second};
  }
  TrackId track(const Track& track) {
    const auto [at, added] = tracks_.try_emplace({track.rank, track.kind, track.stream, track.memory, track.name},
                                                 static_cast<std::int32_t>(into_.tracks.size()));
    if (added) into_.tracks.push_back(track);
    return TrackId{at->second};
  }
  std::vector<StackId> add_stacks(const Trace& from, const std::vector<NameId>& names) {
    const auto named = [&](NameId id) { return id.valid() ? names[static_cast<std::size_t>(id.value)] : id; };
    std::vector<FrameId> frames;
    for (const StackFrame& frame : from.frames) {
      const StackFrame renamed{named(frame.function), named(frame.file), frame.line};
      const auto [id, added] = stack_ids_.frame(renamed);
      if (added) into_.frames.push_back(renamed);
      frames.push_back(id);
    }
    std::vector<StackId> stacks;
    for (const StackNode& node : from.stacks) {  // callers come before whom they call
      const StackNode renamed{node.frame.valid() ? frames[static_cast<std::size_t>(node.frame.value)] : node.frame,
                              node.caller.valid() ? stacks[static_cast<std::size_t>(node.caller.value)] : node.caller};
      const auto [id, added] = stack_ids_.stack(renamed);
      if (added) into_.stacks.push_back(renamed);
      stacks.push_back(id);
    }
    return stacks;
  }

  Trace& into_;
  std::map<std::string, std::int32_t> names_;
  std::map<std::tuple<Rank, TrackKind, Stream, Memory, std::string>, std::int32_t> tracks_;
  StackIds stack_ids_;
  std::vector<TrackId> track_of_;
  std::vector<NameId> name_of_;
};

}  // namespace shard
