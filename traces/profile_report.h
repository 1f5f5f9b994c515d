// A profile in JSON and in text, as `inspect` prints it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "traces/profile.h"

namespace shard {

/// {"devices": [{"rank", "device" (null where there is none), "stream_count", "window_seconds", "busy_seconds",
///   "busy_share", "idle_seconds", "idle_between_seconds", "kernel_seconds", "copy_seconds", "communication_seconds",
///   "hidden_seconds", "exposed_seconds"}],
///  "copies": [{"rank", "device", "direction", "count", "bytes", "seconds"}],
///  "kernels": [{"name", "activity", "count", "total_seconds", "mean_seconds", "share"}],
///  "kernels_rest": {"names", "count", "total_seconds"},
///  "operations": [{"name", "activity", "count", "total_seconds", "self_seconds", "share"}],
///  "operations_rest": {"names", "count", "self_seconds"}}: what is below the `top` of each is its rest.
[[nodiscard]] nlohmann::ordered_json to_json(const Profile& profile, std::size_t top);

/// [{"rank", "kind", "count", "bytes", "device", "on_host", "calls_without_bytes", "seconds", "hidden_seconds",
///   "exposed_seconds"}]. Counts and bytes are the producer's own totals where it has them; what only they know has no
/// keys behind "bytes", and hidden and exposed are null where a collective ran on the host.
[[nodiscard]] nlohmann::ordered_json collectives_json(const std::vector<CollectiveTotal>& totals,
                                                      const Profile& profile);

/// Of one step: [{"rank", "device", "seconds", "busy_seconds", "idle_seconds", "communication_seconds",
/// "hidden_seconds", "exposed_seconds"}].
[[nodiscard]] nlohmann::ordered_json step_json(const Profile& profile, std::int32_t step);

/// The same for people, a table each, with the lines between them.
[[nodiscard]] std::string to_text(const Profile& profile, const std::vector<CollectiveTotal>& totals, std::size_t top);

/// "GPU 3", "host", or "" for a rank's one device.
[[nodiscard]] std::string device_name(const DevicePlace& place, bool on_host = false);

}  // namespace shard
