// A chunk search's result for a reader at a terminal.
#pragma once

#include <string>

#include "sim/search/chunk_search.h"

namespace shard {

/// The answer, what each rule would choose, a picture of the waste over the chunk size, the curve's best points, and
/// why. Forecasts of memory and time are shown where there are any. Sizes in elements and in MiB at
/// result.bytes_per_element. Ends with a newline; no colours. `unicode` draws with block characters, else with '#'.
[[nodiscard]] std::string to_text(const ChunkSearchResult& result, bool unicode = true);

}  // namespace shard
