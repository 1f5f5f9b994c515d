// Times on the command line: 12.5ms, 1.2s, 400us, 37ns.
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/base/result.h"
#include "viewer/index/viewport.h"

namespace shard::view {

/// Nanoseconds; a number without a unit is nanoseconds. Errc::usage naming `where`.
[[nodiscard]] Result<std::int64_t> parse_time(std::string_view text, std::string_view where);

/// "A:B", two times with A before B.
[[nodiscard]] Result<TimeRange> parse_range(std::string_view text, std::string_view where);

}  // namespace shard::view
