// What there is of GPUs, as people and as programs read it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "executor/cuda/api/machine.h"

namespace shard::commands {

[[nodiscard]] std::string to_text(const cuda::MachineReport& report);

/// "schema_version", "command", "device": "cuda", "driver", "driver_cuda", "runtime_cuda", "devices", "libraries".
/// What is not known is null.
[[nodiscard]] nlohmann::ordered_json to_json(const cuda::MachineReport& report);

}  // namespace shard::commands
