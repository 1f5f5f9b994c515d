// Ranges of time on the command line: 10ms:12.5ms.
#pragma once

#include <string_view>

#include "traces/base/result.h"
#include "viewer/index/viewport.h"

namespace shard::view {

/// "A:B", two times with A before B.
[[nodiscard]] Result<TimeRange> parse_range(std::string_view text, std::string_view where);

}  // namespace shard::view
