// Loads a trace file into memory, column by column, trusting nothing that the file says about itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"
#include "traces/event.h"

namespace shard {

/// Spans by column, in file order: blocks of one track, each sorted by begin.
struct SpanTable {
  std::vector<TrackId> track;
  std::vector<std::int64_t> begin_ns, duration_ns;
  std::vector<OpId> op;
  std::vector<NameId> name;
  std::vector<Phase> phase;
  std::vector<std::int32_t> step, micro_step;
  std::vector<std::int64_t> bytes;
  std::vector<UnitId> unit;
  std::vector<std::int64_t> waiting_ns;
  std::vector<Part> part;
  std::vector<Activity> activity;

  [[nodiscard]] std::size_t size() const { return begin_ns.size(); }
  [[nodiscard]] bool empty() const { return begin_ns.empty(); }
  [[nodiscard]] Span operator[](std::size_t i) const {
    return {track[i],      begin_ns[i], duration_ns[i], op[i],         name[i], phase[i],   step[i],
            micro_step[i], bytes[i],    unit[i],        waiting_ns[i], part[i], activity[i]};
  }
  void push_back(const Span& span);
  void reserve(std::size_t rows);
  /// Of the duration, what is not waiting.
  [[nodiscard]] std::int64_t busy_ns(std::size_t i) const { return duration_ns[i] - waiting_ns[i]; }
};

/// Memory events by column. Those of one rank and memory are in plan order.
struct MemoryTable {
  std::vector<Rank> rank;
  std::vector<Memory> memory;
  std::vector<BufferId> buffer;
  std::vector<std::int64_t> offset_bytes, delta_bytes;
  std::vector<Category> category;
  std::vector<OpId> op;
  std::vector<std::int64_t> time_ns;
  std::vector<Phase> phase;
  std::vector<std::int32_t> step;
  std::vector<UnitId> unit;
  std::vector<std::int64_t> requested_bytes;
  std::vector<StackId> stack;

  [[nodiscard]] std::size_t size() const { return delta_bytes.size(); }
  [[nodiscard]] bool empty() const { return delta_bytes.empty(); }
  [[nodiscard]] MemoryEvent operator[](std::size_t i) const {
    return {rank[i],    memory[i], buffer[i], offset_bytes[i], delta_bytes[i],     category[i], op[i],
            time_ns[i], phase[i],  step[i],   unit[i],         requested_bytes[i], stack[i]};
  }
  void push_back(const MemoryEvent& event);
  void reserve(std::size_t rows);
};

/// A part of the file that could not be used.
struct Truncated {
  std::uint64_t offset = 0;  ///< first byte that could not be used
  std::string why;
};

/// A trace in memory. Every track, name, frame, stack and enumerator in it is valid (names, frames and stacks may be
/// -1: none).
struct Trace {
  Header header;
  std::uint16_t format_minor = 0;  ///< of the file; the major is the one this program reads
  std::vector<Track> tracks;       ///< indexed by TrackId
  std::vector<std::string> names;  ///< indexed by NameId
  std::vector<StackFrame> frames;  ///< indexed by FrameId
  std::vector<StackNode> stacks;   ///< indexed by StackId
  SpanTable spans;
  MemoryTable memory;
  std::vector<Counter> counters;
  std::vector<ChunkState> chunk_states;
  std::vector<Flow> flows;
  std::vector<ArenaSummary> arenas;
  std::vector<CollectiveTotal> collectives;
  std::int64_t dropped_count = 0;  ///< events that the producer says it lost
  /// Frames of types or versions that this program does not know, skipped whole.
  std::int64_t skipped_frame_count = 0;
  /// What was lost, in file order; empty when the file was closed and is intact.
  std::vector<Truncated> truncated;

  [[nodiscard]] bool complete() const { return truncated.empty(); }
  /// The name, or "" for none.
  [[nodiscard]] std::string_view name_of(NameId name) const {
    return name.valid() ? std::string_view(names[static_cast<std::size_t>(name.value)]) : std::string_view();
  }
  [[nodiscard]] const StackNode& stack_of(StackId stack) const { return stacks[static_cast<std::size_t>(stack.value)]; }
  [[nodiscard]] const StackFrame& frame_of(FrameId frame) const {
    return frames[static_cast<std::size_t>(frame.value)];
  }
  [[nodiscard]] const Track& track_of(TrackId track) const { return tracks[static_cast<std::size_t>(track.value)]; }
};

/// Loads a file. What is complete and undamaged is returned, with a note in `truncated` for the rest. Memory used is
/// at most 64 MiB + 128 times the file's size (FORMAT.md T6).
/// Fails with Errc::no_input (absent, unreadable, a folder), or Errc::malformed naming the byte where the file is not a
/// trace, its header is damaged, or its major version is another. The file is read, not mapped: a mapped file that
/// somebody shortens kills its readers.
[[nodiscard]] Result<Trace> load(const std::filesystem::path& path);

/// The same for bytes in memory; `label` names them in errors.
[[nodiscard]] Result<Trace> load(std::span<const std::byte> bytes, std::string_view label = "trace");

}  // namespace shard
