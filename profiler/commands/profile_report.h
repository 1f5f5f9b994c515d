// What a profiled run answers, in JSON and for people.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "profiler/record/record_program.h"
#include "sim/cli/output.h"
#include "sim/cli/screen.h"

namespace shard::profiler {

/// As README.md says under "profile --json". `top`: of each table.
[[nodiscard]] nlohmann::ordered_json to_json(const Recorded& recorded, std::size_t top);

/// The same, with a picture of device memory over time.
[[nodiscard]] cli::Styled to_text(const Recorded& recorded, std::size_t top, const cli::Style& style);

}  // namespace shard::profiler
