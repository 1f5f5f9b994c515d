// A simulation as JSON and as text.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/simulation.h"
#include "sim/engine/smallest_change.h"
#include "traces/base/numbers.h"

namespace shard::engine {

/// Of the objects that hold a strategy, in every command: 1 had it as a line of text.
inline constexpr int kSchemaVersion = 2;

inline constexpr std::size_t kDevice = static_cast<std::size_t>(Memory::device);

/// Of a time; 0 where there is none.
[[nodiscard]] inline double share(Seconds part, Seconds whole) {
  return whole > Seconds{0} ? part.count() / whole.count() : 0;
}

/// `change` is what smallest_change() found, if it was asked.
/// {"schema_version", "plan_hash", "cluster", "strategy" (an object), "world_size", "steps", "fits",
/// "verdict" ("fits", "tight", "does_not_fit"), "device_capacity_bytes" (null: no limit),
///  "headroom_bytes" (null), "outside_allocator_bytes" ({"low", "high"}), "peak_uncertainty" (0), "peak_device_bytes",
///  "live_peak_device_bytes" (largest rank, phases of the run), "peak_host_bytes" (of a host), "peak_pinned_bytes" (of
///  these), "host_capacity_bytes" (null), "peak_disk_bytes" (of the largest rank), "peak_memory" (the one that is too
///  small, else "device"), "peak_phase", "largest_holders" (of both): [{"name", "category", "bytes", "buffers"}],
///  "smallest_change": null or {"options", "peak_device_bytes"}, "moments": [{"name", "live_bytes", "live_peak_bytes",
///  "by_category"}], "rank_classes": [{"rank", "ranks", "phases":
///  [{"phase", "in_run", "seconds", "compute_seconds", "communication_seconds", "exposed_communication_seconds",
///  "memory": [{"memory", "peak_bytes", "live_peak_bytes", "by_category", "largest_holders", "op"}], "collectives":
///  [{"kind", "count", "bytes"}]}]}], "arenas": [{"rank", "memory", "predicted_peak_bytes"}], "collectives": [{"rank",
///  "kind", "predicted_count", "predicted_bytes"}] (creation and steps), "step_seconds", "first_step_seconds",
///  "creation_seconds", "run_seconds", "compute_share", "communication_share", "exposed_communication_share" (of a
///  steady step), "tokens_per_second", "tflops_per_device"}. Arenas and collectives list each rank up to 64 ranks, then
///  one of each class.
[[nodiscard]] nlohmann::json to_json(const Simulation& simulation, const std::optional<Change>& change = std::nullopt);

/// Live device memory by category, a column per moment; lines ended by newlines.
[[nodiscard]] std::string moments_table(const std::vector<Moment>& moments, ShowBytes show = show_bytes);

/// The strategy's fields by their keys in the table (sim/strategy/fields.h), all of them; null: not set.
[[nodiscard]] nlohmann::json to_json(const plan::Strategy& strategy);

/// {"low", "high"}
[[nodiscard]] nlohmann::json to_json(const cluster::ByteRange& range);

/// {"parameter": bytes, ...}, without those that are 0.
[[nodiscard]] nlohmann::json to_json(const CategoryBytes& bytes);

/// What an answer's sizes are written in: by the most that its largest rank, or a host, takes.
[[nodiscard]] ShowBytes unit_of(const Simulation& simulation);

/// The verdict and what it rests on, the memory that is too small first; lines ended by newlines.
[[nodiscard]] std::string verdict_text(const Simulation& simulation, const std::optional<Change>& change,
                                       ShowBytes show);

/// What a step takes and does in how long, two lines; empty where nothing is timed.
[[nodiscard]] std::string time_text(const Simulation& simulation);
/// "23.6 ms (18.9 to 29.5)": a time of it, and between what it is expected.
[[nodiscard]] std::string between_text(const Simulation& simulation, Seconds time);

/// For a terminal: memory by category, phase and moment of every class, and communication.
[[nodiscard]] std::string details_text(const Simulation& simulation, ShowBytes show);

}  // namespace shard::engine
