// Cluster -> the JSON text that parse_cluster reads back equal.
#pragma once

#include <string>

#include "sim/cluster/cluster.h"

namespace shard::cluster {

[[nodiscard]] std::string to_json(const Cluster& cluster);

}  // namespace shard::cluster
