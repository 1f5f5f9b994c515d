// Times on the command line: 12.5ms, 1.2s, 400us, 37ns.
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/base/result.h"

namespace shard::cli {

/// Nanoseconds; a number without a unit is nanoseconds. Errc::usage naming `where`.
[[nodiscard]] Result<std::int64_t> parse_time(std::string_view text, std::string_view where);

}  // namespace shard::cli
