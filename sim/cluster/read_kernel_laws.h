// The key kernel_laws of a cluster description.
#pragma once

#include "sim/cluster/json_object.h"
#include "sim/cluster/kernel_laws.h"

namespace shard::cluster {

/// Faults are kept in the object; every key is checked.
[[nodiscard]] KernelLaws read_kernel_laws(JsonObject json);
/// As it is read; an object.
[[nodiscard]] nlohmann::ordered_json kernel_laws_json(const KernelLaws& laws);

}  // namespace shard::cluster
