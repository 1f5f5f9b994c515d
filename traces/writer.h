// Writes a trace file: append-only frames, so that a writer killed at any byte leaves a file whose frames all load.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "traces/base/output_file.h"
#include "traces/base/result.h"
#include "traces/event.h"

namespace shard {

/// One writer per process and file; not synchronised: one thread at a time.
///
/// As a rule the file carries its final name as soon as it has a header, because what a killed run leaves behind must
/// open like any other trace; an END frame tells a closed file from a broken-off one. A command that makes a trace out
/// of what it already has asks for Appears::whole instead. What else holds for names stands at OutputFile.
///
/// Events are buffered and written every 65,536; only flush() and close() touch the disk otherwise. A failed write is
/// remembered: later events are dropped and flush() and close() return it (Errc::io).
class Writer {
 public:
  /// Fails with Errc::cannot_create (no such folder, no permission) or Errc::io (no room for the header).
  [[nodiscard]] static Result<Writer> create(const std::filesystem::path& path, const Header& header,
                                             Appears appears = Appears::growing);

  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  /// Without close() the buffered events are written but the file is left without its END frame: incomplete. With
  /// Appears::whole or temporary no file is left.
  ~Writer();

  /// The id of a track; equal tracks are one track. Memory tracks are made by add(MemoryEvent) itself.
  [[nodiscard]] TrackId track(const Track& track);
  /// The id of a name; equal names are one name.
  [[nodiscard]] NameId name(std::string_view text);

  /// The id of a frame; equal frames are one frame.
  [[nodiscard]] FrameId frame(const StackFrame& frame);
  /// The id of the stack of `node.frame` called by the stack `node.caller`, which this writer gave; equal stacks are
  /// one stack.
  [[nodiscard]] StackId stack(const StackNode& node);

  /// Adds an event. Tracks, names and stacks must be ids that this writer gave (names and stacks may be
  /// invalid: none).
  void add(const Span& span);
  void add(const MemoryEvent& event);
  void add(const Counter& counter);
  void add(const ChunkState& state);
  void add(const Flow& flow);
  void add(const ArenaSummary& summary);
  void add(const CollectiveTotal& total);
  /// Adds metadata that was not known at the start; the last value of a key counts.
  void add_metadata(std::string_view key, std::string_view value);
  /// Says that the producer lost `count` events (a full buffer); reported by every reader.
  void add_dropped(std::int64_t count);

  /// Writes all buffered events.
  [[nodiscard]] Result<void> flush();
  /// Flushes, marks the file complete and closes it. The writer is unusable afterwards.
  [[nodiscard]] Result<void> close();

 private:
  struct State;
  explicit Writer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Events of one track or kind per block, after which a writer flushes (FORMAT.md T8).
inline constexpr std::size_t kEventsPerFlush = 65'536;

/// What merging found.
struct MergeReport {
  /// One line per input that broke off or is damaged; what is complete of it was merged. Also kept in the merged
  /// trace's metadata under "incomplete".
  std::vector<std::string> incomplete;
};

/// What merging does with an input that broke off or is damaged.
enum class BrokenOff : std::uint8_t {
  kept,     ///< what is complete of it is merged, and the result says so
  refused,  ///< Errc::io, and nothing is written
};

struct Trace;
/// Writes all events and totals of a trace again, times shifted (modulo 2^64); not what its header says.
void append_events(const Trace& trace, Writer& out, std::uint64_t shift_ns = 0);

/// Merges the traces that ranks wrote into one: `inputs` stay as they are, `output` appears complete or not at all.
/// Header, tables and metadata are those of the first input; a key that only others have is added. Where both know the
/// wall clock, an input's times are shifted so that wall times agree; ranks of one host should therefore record the
/// same (clock_ns, wall_ns) pair, which makes the shift exactly zero. Fails as load() and Writer do, and with
/// Errc::contradiction where kind, world size or plan differ.
[[nodiscard]] Result<MergeReport> merge_traces(const std::vector<std::filesystem::path>& inputs,
                                               const std::filesystem::path& output,
                                               BrokenOff broken_off = BrokenOff::kept);

}  // namespace shard
