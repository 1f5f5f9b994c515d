// Opens a trace of any tool that is known: finds out by its content what it is, and makes a Trace of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"
#include "traces/inspect.h"
#include "traces/reader.h"
#include "traces/snapshot.h"

namespace shard {

/// Which tool's file. The name is what `inspect --json` says under "format".
enum class TraceFormat : std::uint8_t { sst, chrome, kineto, perfetto, pytorch_snapshot, nsys };

[[nodiscard]] constexpr const char* to_string(TraceFormat format) {
  switch (format) {
    case TraceFormat::sst: return "sst";
    case TraceFormat::chrome: return "chrome";
    case TraceFormat::kineto: return "kineto";
    case TraceFormat::perfetto: return "perfetto";
    case TraceFormat::pytorch_snapshot: return "pytorch-snapshot";
    case TraceFormat::nsys: return "nsys";
  }
  return "?";
}

/// A moment that the file marks, on a track or (invalid) on all of them.
struct Instant {
  TrackId track{};
  std::int64_t time_ns = 0;
  NameId name{};

  friend bool operator==(const Instant&, const Instant&) = default;
};

/// How a recording was put on the others' axis.
enum class AlignedBy : std::uint8_t {
  begin,        ///< it begins where the others do, since it says no Unix time
  clock,        ///< by Unix time
  collectives,  ///< by what it and the first did together (align.h)
};
[[nodiscard]] constexpr const char* to_string(AlignedBy by) {
  switch (by) {
    case AlignedBy::begin: return "begin";
    case AlignedBy::clock: return "clock";
    case AlignedBy::collectives: return "collectives";
  }
  return "?";
}

/// One of several recordings that were put together (combine.h).
struct CombinedPart {
  std::string name;  ///< the file's
  TraceFormat format = TraceFormat::sst;
  std::vector<Rank> ranks;
  AlignedBy by = AlignedBy::begin;
  std::int64_t shift_ns = 0;               ///< added to its times; to the first, where the clocks drift
  std::optional<std::int64_t> bound_ns{};  ///< its times are off by no more; only collectives tell
  std::string says;                        ///< what people should know of how it fits; may be empty
};
/// "snapshot.pickle by its clock (begins 3 s after the others end)".
[[nodiscard]] std::string to_text(const CombinedPart& part);

/// A trace, and what of the file has no place in one.
///
/// Times are the file's own, in nanoseconds. Ranks: those of our own exports and of PyTorch's distributedInfo; else
/// GPUs are ranks (a process's memories and streams by device) and every other row is rank 0. Rows that the file has
/// are tracks; of GPU rows the stream (compute, communication, copies) is what most of their spans are. A memory that
/// already holds bytes when the recording begins gets events for them at its start, so that sums are the file's.
struct LoadedTrace {
  Trace trace;
  TraceFormat format = TraceFormat::sst;
  std::int64_t lane_count = 0;          ///< rows with spans, as the file has them; of a .sst those a timeline needs
  std::int64_t memory_event_count = 0;  ///< the file's own: also those that change no memory, none that were added
  std::int64_t flow_event_count = 0;    ///< the file's own: both ends, and those without a partner
  std::vector<Instant> instants;        ///< by time
  std::optional<Snapshot> snapshot;     ///< of a PyTorch memory snapshot: everything that it says
  std::vector<std::string> notes;       ///< what was passed over, for people
  std::vector<CombinedPart> parts;      ///< where several recordings were put together
};

/// Loads a trace: .sst, Chrome and Kineto JSON, Perfetto (track events), PyTorch memory snapshots (pickle protocols 2
/// to 5; nothing in them is executed), nsys exports (SQLite, where this program was built with it); all but .sst and
/// SQLite also compressed by gzip. What is complete is returned with a note in trace.truncated for the rest.
/// Beside the resulting events, at most 64 MiB + 4 times the (decompressed) input is allocated.
/// Fails with Errc::no_input, or Errc::malformed naming the byte from which on nothing could be made of the file, or
/// Errc::unavailable for a kind that this program was built without.
[[nodiscard]] Result<LoadedTrace> load_any(const std::filesystem::path& path);

/// The same for bytes in memory; `label` names them in errors.
[[nodiscard]] Result<LoadedTrace> load_any(std::span<const std::byte> bytes, std::string_view label = "trace");

/// Whether a recording breaks off where its writer did not mean it to: Errc::malformed naming the byte. A .sst never
/// does: what a killed run leaves is a trace, which says of itself that it is incomplete.
[[nodiscard]] Result<void> check_whole(const LoadedTrace& loaded, std::string_view label);

/// As summarize(Trace), with the file's format and its own counts.
[[nodiscard]] TraceSummary summarize(const LoadedTrace& loaded, std::optional<Rank> rank = {});

/// As to_json(TraceSummary) of summarize(loaded), with "flow_count", "flow_event_count", "instant_count", "notes",
/// "snapshot" for those, and for several recordings "parts": [{"file", "format", "ranks", "aligned_by" ("collectives",
/// "clock", or "begin" where it says no Unix time), "shift_ns", "bound_ns" (null where nothing bounds it), "says"}].
[[nodiscard]] nlohmann::ordered_json to_json(const LoadedTrace& loaded, const TraceSummary& summary,
                                             std::size_t top = kTopNames);

/// As to_text(TraceSummary) of summarize(loaded), with the snapshot's facts.
[[nodiscard]] std::string to_text(const LoadedTrace& loaded, const TraceSummary& summary, std::size_t top = kTopNames);

}  // namespace shard
