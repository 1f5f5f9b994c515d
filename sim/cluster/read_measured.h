// The key "measured" of a cluster description.
#pragma once

#include "sim/cluster/json_object.h"
#include "sim/cluster/measured.h"

namespace shard::cluster {

/// Faults are kept by `json`.
[[nodiscard]] Measured read_measured(JsonObject json);

}  // namespace shard::cluster
