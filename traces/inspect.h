// What is in a trace file, in a few numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/result.h"
#include "traces/idle.h"
#include "traces/peaks.h"
#include "traces/profile.h"
#include "traces/reader.h"

namespace shard {

/// When a step ran, over all ranks: as scripts marked it, else from its first span's begin to its last span's end.
struct StepTime {
  std::int32_t step = 0;
  Phase phase = Phase::steady_step;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  friend bool operator==(const StepTime&, const StepTime&) = default;
};

/// Steps of the phases first_step and steady_step, by step number.
[[nodiscard]] std::vector<StepTime> step_times(const Trace& trace);

/// Median duration of the steady steps (of the first steps where there is no other); 0 without steps.
[[nodiscard]] double median_step_seconds(const std::vector<StepTime>& steps);

/// What collectives took of one rank in one step, on the average; of the steady steps, of the first without others.
struct CommunicationTime {
  double transfer_seconds = 0;
  double waiting_seconds = 0;
};
[[nodiscard]] CommunicationTime communication_time(const Trace& trace);

struct TraceSummary {
  std::string format = "sst";
  Header header;
  std::vector<Rank> ranks;  ///< of which there is anything
  std::int64_t span_count = 0;
  std::int64_t lane_count = 0;  ///< rows that a timeline needs: crossing spans of a track take several
  std::int64_t memory_event_count = 0;
  std::int64_t counter_count = 0;
  std::int64_t begin_ns = 0, end_ns = 0;  ///< over all events; both 0 in an empty trace
  std::int64_t dropped_count = 0;         ///< lost by the producer
  std::int64_t skipped_frame_count = 0;   ///< of a newer format
  std::vector<Truncated> truncated;       ///< lost from the file; empty when it is whole
  std::vector<StepTime> steps;
  CommunicationTime communication;
  std::vector<ArenaSummary> arenas;
  std::vector<CollectiveTotal> collectives;
  std::vector<MemoryPeak> peaks;  ///< from the memory events
  Profile profile;
  IdleTimes idle;

  [[nodiscard]] bool complete() const { return truncated.empty(); }
};

/// `rank`: whose profile; without, everybody's.
[[nodiscard]] TraceSummary summarize(const Trace& trace, std::optional<Rank> rank = {});

/// Of names how many are listed where nobody says.
inline constexpr std::size_t kTopNames = 10;

/// What a header's tables say: strategy{}, units[], capacities[].
[[nodiscard]] nlohmann::ordered_json tables_json(const Header& header);

/// The object of `inspect --json`, without schema_version: format, kind, world_size, ranks[], plan_hash, span_count,
/// lane_count, memory_event_count, begin_ns, end_ns, dropped_count, complete, truncated[], step_seconds, steps[],
/// communication{}, arenas[], peaks[], metadata{}, strategy{}, units[], capacities[]; collectives[], devices[],
/// copies[], kernels[], operations[] and steps[].devices[] as in profile_report.h; verdict, idle[], collective_waits[]
/// as in idle.h.
[[nodiscard]] nlohmann::ordered_json to_json(const TraceSummary& summary, std::size_t top = kTopNames);

/// The same for people, several lines.
[[nodiscard]] std::string to_text(const TraceSummary& summary, std::size_t top = kTopNames);

}  // namespace shard
