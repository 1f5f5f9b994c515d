// Why devices were idle: every gap between two pieces of a device's work is put to what the host did until it launched
// the next one.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "traces/profile.h"
#include "traces/reader.h"

namespace shard {

enum class IdleCause : std::uint8_t {
  launch_bound,     ///< the host was at other work than the following, and had not launched the next
  host_sync,        ///< the host had waited for the device, which then waited for the host
  data_loading,     ///< the host waited for the next batch
  allocation,       ///< the host asked the driver for memory, or gave some back
  host_collective,  ///< the host was in a collective of its own (gloo, MPI)
  on_device,        ///< launched already: waits for another queue, or begins
  nothing_left,     ///< nothing was launched any more
  not_known,        ///< the recording does not say which call launched the next work
};
inline constexpr int kIdleCauseCount = 8;
[[nodiscard]] const char* to_string(IdleCause cause);

/// A rank that came early to collectives, and how long it waited there for the last to come.
struct CollectiveWait {
  Rank rank{}, last{};
  std::int64_t wait_ns = 0;

  friend bool operator==(const CollectiveWait&, const CollectiveWait&) = default;
};

struct DeviceIdle {
  DevicePlace place;
  bool of_steps = false;  ///< within the steps that the script marked; else within the recording
  std::int64_t window_ns = 0;
  std::int64_t idle_ns = 0;     ///< the causes' sum
  std::int64_t exposed_ns = 0;  ///< not idle, but only collectives ran
  std::array<std::int64_t, kIdleCauseCount> by_cause{};

  [[nodiscard]] std::int64_t of(IdleCause cause) const { return by_cause[static_cast<std::size_t>(cause)]; }
};

struct IdleTimes {
  std::vector<DeviceIdle> devices;    ///< by place
  std::vector<CollectiveWait> waits;  ///< the longest first; of recordings of several ranks that called the same
};

/// Of one rank, or of all. Measured traces alone: a prediction has no host.
[[nodiscard]] IdleTimes idle_time(const Trace& trace, std::optional<Rank> rank = {});

/// One sentence or two for people: "The GPU was idle 78 % of the steps: ..."; "" where no device did anything.
[[nodiscard]] std::string verdict(const IdleTimes& idle);

/// `idle`: a list of rank, device, within, window_seconds, idle_seconds, idle_share, exposed_collective_seconds and
/// causes{}; `collective_waits`: rank, for_rank, seconds; `verdict`.
[[nodiscard]] nlohmann::ordered_json to_json(const IdleTimes& idle);

}  // namespace shard
